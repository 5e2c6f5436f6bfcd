/**
 * Brings dist/ up to date: installs the dependencies where they are missing or differ from the lock file, then compiles.
 *
 * dist/.stamp holds what the last good build was made of (each source's path, size and time of change, and of this script). While that has not
 * changed a build is a walk over the tree, some milliseconds. Outputs whose source is gone are removed, so that no test of a
 * deleted file runs on.
 */
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dependency, filesUnder, ROOT, run, secondsSince } from './repository.mjs';

const SOURCE_FOLDERS = ['src', 'test', 'examples', 'bench'];
const OUTPUT = /\.(js|js\.map|d\.ts)$/;
const STAMP = join(ROOT, 'dist', '.stamp');
const BUILD_INFO = join(ROOT, 'dist', '.build.tsbuildinfo');

const isSource = (name) => name.endsWith('.ts') && !name.endsWith('.d.ts');

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Whether node_modules holds what package-lock.json asks for (packages for other platforms may be absent). */
function isInstalled() {
  const installedPath = dependency('.package-lock.json');
  const lockPath = join(ROOT, 'package-lock.json');
  if (!existsSync(installedPath)) return false;
  if (statSync(installedPath).mtimeMs >= statSync(lockPath).mtimeMs) return true;
  const [installed, wanted] = [readJson(installedPath)?.packages, readJson(lockPath)?.packages];
  if (!installed || !wanted) return false;
  return Object.entries(wanted).every(([name, { version, optional, peer }]) => {
    if (name === '' || (!installed[name] && (optional || peer))) return true;
    return installed[name]?.version === version;
  });
}

/** Installs the dependencies if need be. */
export function install() {
  if (isInstalled()) return;
  console.error('installing dependencies (npm ci)');
  const npm = process.env.npm_execpath?.endsWith('.js') ? [process.execPath, process.env.npm_execpath] : ['npm'];
  const status = run(npm[0], [...npm.slice(1), 'ci', '--include=dev', '--no-audit', '--no-fund'], { stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new Error(`npm ci failed with status ${status}`);
}

function stampOf(sources) {
  const hash = createHash('sha256');
  for (const path of [...sources, 'tsconfig.json', 'package-lock.json', 'scripts/lib/build.mjs']) {
    const { size, mtimeMs } = statSync(join(ROOT, path));
    hash.update(`${path}\0${size}\0${mtimeMs}\n`);
  }
  return hash.digest('hex');
}

function removeOrphans(sources) {
  const known = new Set(sources.map((path) => path.replace(/\.ts$/, '')));
  for (const folder of SOURCE_FOLDERS) {
    for (const path of filesUnder(`dist/${folder}`, (name) => OUTPUT.test(name))) {
      if (!known.has(path.slice('dist/'.length).replace(OUTPUT, ''))) rmSync(join(ROOT, path));
    }
  }
}

const isWhole = (sources) => existsSync(join(ROOT, 'dist/bundle/edubba.js')) && sources.every((path) => existsSync(join(ROOT, 'dist', path.replace(/\.ts$/, '.js'))));

/**
 * What is shipped, as few files, dist/bundle: the library's two doors, the command line, and beside them what worker threads load, where `moduleUrl`
 * looks for it. Loading some four hundred modules one by one is what a start would take longest for. Packages with native parts stay outside. The
 * source maps hold the sources.
 */
function bundle() {
  // shared parts are named by their contents: those of earlier builds would stay
  rmSync(join(ROOT, 'dist/bundle'), { recursive: true, force: true });
  createRequire(import.meta.url)('esbuild').buildSync({
    absWorkingDir: ROOT,
    entryPoints: {
      index: 'src/embedded/index.ts',
      server: 'src/server/index.ts',
      edubba: 'src/cli/index.ts',
      'thread-main': 'src/platform/thread-main.ts',
      'compaction-worker': 'src/boot/compaction-worker.ts',
      'server-thread': 'src/server/server-thread.ts',
    },
    outdir: 'dist/bundle',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: true,
    sourcesContent: true,
    logLevel: 'error',
    external: ['fs-native-extensions', '@node-rs/crc32', 'lz4-napi', '@bokuweb/zstd-wasm'],
    // CommonJS packages inside ask for Node's own modules by require. Of Node's globals these two are accessors: each use would call a function, which no
    // compiler takes out of the hot paths
    banner: { js: "import { createRequire as edubbaRequire } from 'node:module'; const require = edubbaRequire(import.meta.url), { Buffer, performance } = globalThis;" },
  });
}

/** Builds if anything changed. Throws where the compiler finds an error; what it found stands on standard error. */
export function build() {
  install();
  const start = performance.now();
  const sources = SOURCE_FOLDERS.flatMap((folder) => filesUnder(folder, isSource));
  const stamp = stampOf(sources);
  const whole = isWhole(sources);
  if (whole && existsSync(STAMP) && readFileSync(STAMP, 'utf8') === stamp) return;
  mkdirSync(join(ROOT, 'dist'), { recursive: true });
  rmSync(STAMP, { force: true });
  if (!whole) rmSync(BUILD_INFO, { force: true });
  const status = run(process.execPath, [dependency('typescript-native', 'bin', 'tsc'), '-p', '.', '--tsBuildInfoFile', BUILD_INFO], { stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new Error('the build failed: see the compiler\'s messages above');
  removeOrphans(sources);
  bundle();
  writeFileSync(STAMP, stamp);
  console.error(`built ${sources.length} files in ${secondsSince(start)}`);
}

/** For scripts that need a build first: a failure ends the process with its message and status 1. */
export function buildOrExit() {
  try {
    build();
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
