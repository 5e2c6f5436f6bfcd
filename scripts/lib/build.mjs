/**
 * Installs what package-lock.json names and brings dist/ up to date, in two steps that each do nothing while their
 * sources have not changed:
 *
 * - `bundle`: dist/bundle, the JavaScript that is shipped and that `npm start` runs, by esbuild straight from src/;
 * - `compile`: types checked, every file compiled by itself for tests and benchmarks (dist/src, dist/test, …), and
 *   dist/types, the declarations that are shipped.
 *
 * `npm start` needs the first alone, and of node_modules only what is no development dependency: that is why esbuild,
 * and the packages that become part of the bundle, are dependencies of the workspace scripts/bundle and not of the
 * package itself.
 */
import { createRequire } from 'node:module';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkImports } from './bundle-imports.mjs';
import { declarations } from './declarations.mjs';
import { dependency, filesUnder, ROOT, run, secondsSince } from './repository.mjs';
import { plainNames } from './plain-names.mjs';
import { thirdParty } from './third-party.mjs';

const FOLDERS = ['src', 'test', 'examples', 'bench', 'sim'];
/** Files that decide how sources are built. */
const RULES = [
  'tsconfig.json',
  'package.json',
  'package-lock.json',
  ...['build', 'bundle-imports', 'declarations', 'plain-names', 'third-party'].map((name) => `scripts/lib/${name}.mjs`),
];

/** @param {...string} parts */
const dist = (...parts) => join(ROOT, 'dist', ...parts);
/** @param {string} folder */
const sourcesOf = (folder) => filesUnder(folder, (name) => name.endsWith('.ts'));

/** @typedef {{ version?: string, dev?: boolean, optional?: boolean, peer?: boolean, link?: boolean }} Package */

/**
 * The packages of a lock file by path; none where there is no such file.
 *
 * @param {string} path
 * @returns {Record<string, Package>}
 */
const packagesOf = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).packages : {});

/** Runs npm ci where node_modules lacks what package-lock.json asks for. Packages for other platforms may be absent. */
export function install({ dev = true } = {}) {
  const installed = packagesOf(dependency('.package-lock.json'));
  const wanted = Object.entries(packagesOf(join(ROOT, 'package-lock.json'))).filter(
    ([name, entry]) => name.startsWith('node_modules/') && !entry.link && (dev || !entry.dev),
  );
  /** @param {[string, Package]} wanted */
  const isThere = ([name, { version, optional, peer }]) =>
    installed[name] ? installed[name].version === version : optional || peer;
  if (!wanted.every(isThere)) installIn(ROOT, { dev });
}

/**
 * Runs npm ci in a checkout.
 *
 * @param {string} root
 */
export function installIn(root, { dev = true } = {}) {
  console.error('installing dependencies (npm ci)');
  const npm = process.env.npm_execpath?.endsWith('.js') ? [process.execPath, process.env.npm_execpath] : ['npm'];
  const status = run(npm[0], [...npm.slice(1), 'ci', dev ? '--include=dev' : '--omit=dev', '--no-audit', '--no-fund'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) throw new Error(`npm ci failed with status ${status}`);
}

/**
 * Calls `make` unless it succeeded before with the same files of the same sizes and times of change: dist/.NAME.made
 * lists them.
 *
 * @param {string} name
 * @param {readonly string[]} sources
 * @param {() => void} make
 */
function step(name, sources, make) {
  const record = dist(`.${name}.made`);
  const files = [...sources, ...RULES].map((path) => {
    const { size, mtimeMs } = statSync(join(ROOT, path));
    return `${path} ${size} ${mtimeMs}\n`;
  });
  if (existsSync(record) && readFileSync(record, 'utf8') === files.join('')) return;
  const start = performance.now();
  rmSync(record, { force: true });
  make();
  writeFileSync(record, files.join(''));
  console.error(`${name}: ${sources.length} files in ${secondsSince(start)}`);
}

/**
 * The library's two doors, the command line, and the entries of worker threads. Loading some four hundred
 * modules one by one is what a start would take longest for. The source maps hold the sources; THIRD-PARTY.txt the
 * licences of the packages inside. Those with native parts stay outside.
 */
function bundle() {
  // shared parts are named by their contents: those of earlier builds would stay
  rmSync(dist('bundle'), { recursive: true, force: true });
  const { version, dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const { metafile } = createRequire(import.meta.url)('esbuild').buildSync({
    absWorkingDir: ROOT,
    entryPoints: {
      index: 'src/embedded/index.ts',
      server: 'src/server/index.ts',
      edubba: 'src/cli/index.ts',
      'thread-main': 'src/platform/threads/thread-main.ts',
      'compaction-worker': 'src/boot/open/compaction-worker.ts',
      'store-compaction-worker': 'src/boot/cluster/store-compaction-worker.ts',
      'lease-keeper-thread': 'src/platform/etcd/lease-keeper-thread.ts',
      'thread-entry': 'src/server/thread-entry.ts',
    },
    outdir: 'dist/bundle',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: true,
    sourcesContent: true,
    metafile: true,
    legalComments: 'none',
    logLevel: 'error',
    external: Object.keys(dependencies),
    // only a run from the sources resolves by import.meta: webpack would follow that in the bundle
    define: { EDUBBA_VERSION: JSON.stringify(version), 'import.meta.resolve': 'undefined' },
    // CommonJS packages inside ask for Node's own modules by require, for which any place will do: in a CommonJS bundle
    // of a user's there is no URL (and webpack would follow a `createRequire` imported by its name). Of Node's globals
    // the two are accessors: each use would call a function, which no compiler takes out of the hot paths
    banner: {
      js: "import * as edubbaModule from 'node:module'; const require = edubbaModule.createRequire(import.meta.url ?? process.cwd() + '/x.js'), { Buffer, performance } = globalThis;",
    },
  });
  const files = Object.keys(metafile.outputs).filter((path) => path.endsWith('.js'));
  const texts = plainNames(files.map((path) => readFileSync(join(ROOT, path), 'utf8')));
  checkImports(metafile.outputs, texts);
  for (const [i, path] of files.entries()) writeFileSync(join(ROOT, path), texts[i]);
  writeFileSync(dist('bundle', 'THIRD-PARTY.txt'), thirdParty(Object.keys(metafile.inputs)));
}

/** Compiles, and removes outputs without a source: a test of a deleted file must not run on. */
function compile() {
  const sources = new Set(FOLDERS.flatMap(sourcesOf));
  for (const path of FOLDERS.flatMap((folder) => filesUnder(`dist/${folder}`, () => true))) {
    const source = path.replace(/^dist\//, '').replace(/(\.d\.ts|\.js|\.js\.map)$/, '.ts');
    if (!sources.has(source)) rmSync(join(ROOT, path));
  }
  const status = run(process.execPath, [dependency('typescript-native', 'bin', 'tsc'), '-p', '.'], {
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) throw new Error("the build failed: see the compiler's messages above");
  declarations();
}

/**
 * Installs and builds what changed. `onlyBundle`: what `npm start` needs. Throws where the compiler finds an error;
 * what it found stands on standard error.
 */
export function build({ onlyBundle = false } = {}) {
  install({ dev: !onlyBundle });
  const sources = (onlyBundle ? ['src'] : FOLDERS).flatMap(sourcesOf);
  if (!onlyBundle) step('compile', sources, compile);
  step(
    'bundle',
    sources.filter((path) => path.startsWith('src/') && !path.endsWith('.test.ts')),
    bundle,
  );
}

/**
 * For scripts that need a build first: a failure ends the process with its message and status 1.
 *
 * @param {Parameters<typeof build>[0]} [options]
 */
export function buildOrExit(options) {
  try {
    build(options);
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
