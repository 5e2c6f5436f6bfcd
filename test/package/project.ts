/**
 * A project of a user's with the package in it, as `npm pack` makes it: its files, and of all other packages only those
 * that package.json names. With EDUBBA_PACKAGE_REGISTRY=1 npm installs the packed file from the registry's packages;
 * else they are links to this repository's, and no network is needed.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** True when packages come from the registry. */
export const FROM_REGISTRY = process.env['EDUBBA_PACKAGE_REGISTRY'] === '1';
export const ROOT = fileURLToPath(
  new URL(import.meta.url.includes('/dist/test/') ? '../../../' : '../../', import.meta.url),
);

interface Manifest {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

export interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

/** Node 22 before 22.13 says of each `require` of an ES module that it is an experiment. */
const EXPERIMENT =
  /^\(node:\d+\) ExperimentalWarning: CommonJS module .*\n(Support for loading ES Module.*\n)?(\(Use `node --trace-warnings.*\n)?/gm;

/**
 * Runs a program by this Node in the folder. Rejects where its status is not 0. What Node itself says of `require` is
 * left out.
 */
export async function runNode(path: string, cwd: string): Promise<Output> {
  const { stdout, stderr } = await run(process.execPath, [path], { cwd });
  return { stdout, stderr: stderr.replace(EXPERIMENT, '') };
}

export class UserProject {
  readonly folder: string;
  /** Files of the package, by paths relative to it. */
  readonly files: readonly string[];

  private constructor(folder: string, files: readonly string[]) {
    this.folder = folder;
    this.files = files;
  }

  static async make(): Promise<UserProject> {
    const folder = await mkdtemp(join(tmpdir(), 'edubba-package-'));
    await writeFile(join(folder, 'package.json'), '{ "name": "a-user", "private": true }');
    // the build is there: the run of the tests made it, and `prepack` would only look whether it is
    const [packed] = JSON.parse(
      await npm(ROOT, [
        'pack',
        '--json',
        '--ignore-scripts',
        ...(FROM_REGISTRY ? ['--pack-destination', folder] : ['--dry-run']),
      ]),
    ) as [Manifest];
    const project = new UserProject(
      folder,
      packed.files.map(({ path }) => path),
    );
    if (FROM_REGISTRY)
      await project.install([join(folder, packed.filename), `@types/node@${await versionHere('@types/node')}`]);
    else await project.#copy();
    return project;
  }

  async #copy(): Promise<void> {
    for (const path of this.files) {
      const target = join(this.folder, 'node_modules/edubba', path);
      await mkdir(dirname(target), { recursive: true });
      await cp(join(ROOT, path), target);
    }
    const { dependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
      readonly dependencies: Record<string, string>;
    };
    for (const name of [...Object.keys(dependencies), '@types/node', 'undici-types']) await link(name, this.folder);
  }

  async install(packages: readonly string[]): Promise<void> {
    await npm(this.folder, ['install', '--no-audit', '--no-fund', ...packages]);
  }

  async write(path: string, text: string): Promise<string> {
    const full = join(this.folder, path);
    await mkdir(dirname(full), { recursive: true });
    await writeFile(full, text);
    return full;
  }

  /** Runs a file of the project by this Node. `cwd`: where; default the project. Rejects where the status is not 0. */
  node(path: string, cwd = this.folder): Promise<Output> {
    return runNode(join(this.folder, path), cwd);
  }

  /**
   * The compiler's complaints, '' where there are none. `compiler`: a package of this repository, or one that was
   * installed in the project.
   */
  async typeErrors(compiler: string, words: readonly string[]): Promise<string> {
    const installed = join(this.folder, 'node_modules', compiler, 'bin/tsc');
    const tsc = existsSync(installed) ? installed : join(ROOT, 'node_modules', compiler, 'bin/tsc');
    const options = [
      '--noEmit',
      '--strict',
      '--exactOptionalPropertyTypes',
      '--skipLibCheck',
      'false',
      '--types',
      'node',
      '--target',
      'es2022',
    ];
    return run(process.execPath, [tsc, ...options, ...words], { cwd: this.folder }).then(
      () => '',
      (error: Output) => error.stdout,
    );
  }

  /** Takes a package out of its node_modules. */
  without(name: string): Promise<void> {
    return rm(join(this.folder, 'node_modules', name), { recursive: true, force: true });
  }

  remove(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }
}

/** A folder without packages next to it, or with links to those of this repository. */
export async function lonelyFolder(packages: readonly string[] = []): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'edubba-lonely-'));
  for (const name of packages) await link(name, folder);
  return folder;
}

/** A package without the files that `without` names in its top folder. */
export async function copyPackage(name: string, folder: string, without: string): Promise<void> {
  const target = join(folder, 'node_modules', name);
  await mkdir(target, { recursive: true });
  for (const file of await readdir(join(ROOT, 'node_modules', name))) {
    if (file !== without) await cp(join(ROOT, 'node_modules', name, file), join(target, file), { recursive: true });
  }
}

export async function link(name: string, folder: string): Promise<void> {
  const target = join(folder, 'node_modules', name);
  await rm(target, { recursive: true, force: true });
  await mkdir(dirname(target), { recursive: true });
  await symlink(join(ROOT, 'node_modules', name), target);
}

async function npm(cwd: string, words: readonly string[]): Promise<string> {
  const { stdout } = await run('npm', [...words], { cwd, shell: process.platform === 'win32' });
  return stdout;
}

async function versionHere(name: string): Promise<string> {
  return (
    JSON.parse(await readFile(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')) as { readonly version: string }
  ).version;
}
