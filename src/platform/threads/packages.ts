/**
 * Finds the packages that Edubba loads while it runs (native code, WebAssembly), and the modules of its own that
 * threads run.
 *
 * Usually both are found from this module. A bundler that takes Edubba into its output separates them:
 * `import.meta.url` then names the bundle, or nothing in a CommonJS bundle. So there the search starts at each of these
 * origins in turn: the bundle, the program that Node was started with, the working directory. Without a bundle it
 * starts at this module alone: no code is ever taken from a directory that happens to be the current one.
 *
 * The search runs at run time. webpack would follow `createRequire` imported by its name while it bundles, and
 * complain.
 */
import { existsSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { assert, BigtableError, Code } from '../../base/index.ts';

/** The version of the package that the build makes; not defined in tests, which run each module by itself. */
declare const EDUBBA_VERSION: string | undefined;

/** The hint for the configuration of a bundler, for messages. */
const KEEP_EXTERNAL =
  'Leave edubba out of the bundle (esbuild: --external:edubba; webpack, Vite, Rollup, Next.js: list it as external) and install it next to the program';

/** `from`: files, as paths or URLs, from which packages are searched. Default: see above. */
export function requirePackage<T>(name: string, from: readonly string[] = origins()): T {
  for (const origin of from) {
    const path = resolveFrom(origin, name);
    if (path !== undefined) return nodeModule.createRequire(origin)(path) as T;
  }
  throw packageMissing(name);
}

/** The path of the package's main file. */
export function resolvePackage(name: string): string {
  for (const origin of origins()) {
    const path = resolveFrom(origin, name);
    if (path !== undefined) return path;
  }
  throw packageMissing(name);
}

function packageMissing(name: string): BigtableError {
  return new BigtableError(
    Code.FAILED_PRECONDITION,
    `the package ${name} was not found. npm installs it with edubba, but a bundle does not contain it. ${KEEP_EXTERNAL}`,
  );
}

/**
 * The module `path` (relative, ".ts") next to the one whose `import.meta.url` is given: itself in the sources, ".js"
 * where compiled.
 */
export function moduleUrl(path: string, importer: string): URL {
  assert(path.endsWith('.ts'), `${path} is not a module of the sources`);
  return new URL(isSource(importer) ? path : `${path.slice(0, -3)}.js`, importer);
}

export function isSource(url: string): boolean {
  return url.endsWith('.ts');
}

/**
 * As `moduleUrl`, for a module that a thread runs. Where it is missing, since a bundler has moved the importer, that of
 * the installed package if this is of the same version; else undefined.
 */
export function threadModule(
  path: string,
  importer: string | undefined,
  from: readonly string[] = origins(),
  version: string | undefined = ownVersion(),
): URL | undefined {
  if (importer?.startsWith('file:')) {
    const sibling = moduleUrl(path, importer);
    if (existsSync(sibling)) return sibling;
  }
  const name = `${path.slice(path.lastIndexOf('/') + 1, -3)}.js`;
  for (const origin of from) {
    const manifest = resolveFrom(origin, 'edubba/package.json');
    if (manifest === undefined || nodeModule.createRequire(origin)(manifest).version !== version) continue;
    const url = pathToFileURL(join(dirname(manifest), 'dist', 'bundle', name));
    if (existsSync(url)) return url;
  }
  return undefined;
}

/** As `threadModule`; fails where there is none. */
export function mustThreadModule(path: string, importer: string | undefined): URL {
  const url = threadModule(path, importer);
  if (url === undefined)
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `${path}: the code of this thread was not found. ${KEEP_EXTERNAL}`,
    );
  return url;
}

let warned = false;

/**
 * Warns once, as a warning of the process, that compactions have no threads: a library without a logger has no other
 * way to report it.
 */
export function warnOfNoThreads(): void {
  if (warned) return;
  warned = true;
  process.emitWarning(
    `compactions run on the main thread, where they delay other work: the code of their threads was not found next to this bundle. ${KEEP_EXTERNAL}`,
    {
      type: 'EdubbaWarning',
      code: 'EDUBBA_BUNDLED',
    },
  );
}

function ownVersion(): string | undefined {
  return typeof EDUBBA_VERSION === 'string' ? EDUBBA_VERSION : undefined;
}

function origins(): string[] {
  // not defined in a CommonJS bundle
  const here: string | undefined = import.meta.url;
  const isFile = here?.startsWith('file:') ?? false;
  if (isFile && existsSync(moduleUrl('./thread-main.ts', here))) return [here];
  const program = process.argv[1];
  return [...(isFile ? [here] : []), ...(program === undefined ? [] : [resolve(program)]), join(process.cwd(), 'x.js')];
}

function resolveFrom(origin: string, name: string): string | undefined {
  try {
    return nodeModule.createRequire(origin).resolve(name);
  } catch {
    return undefined;
  }
}
