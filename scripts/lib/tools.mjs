/**
 * Tools that the scripts need and the product does not, each through its own package manager: Google's Go
 * emulator, programs of Go modules and our own, Google's clients, HBase. All of it is kept in one cache folder outside
 * the repository.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { capture, filesUnder, ROOT, which } from './repository.mjs';

/** The last version of it that the Go client's module has. */
const CBT = 'cloud.google.com/go/bigtable/cmd/cbt@v1.13.0';
const EMULATOR = 'cloud.google.com/go/bigtable/cmd/emulator@v1.58.0';
/** An S3 store over a directory. */
const VERSITYGW = 'github.com/versity/versitygw/cmd/versitygw@v1.8.0';
const NODE_CLIENT = '@google-cloud/bigtable';
const OLDEST_GO = [1, 21];
const OLDEST_JAVA = 11;

export const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'edubba-interop');

/**
 * @param {string} what
 * @param {string} command
 * @param {string[]} args
 * @param {Parameters<typeof capture>[2]} [options]
 */
async function must(what, command, args, options = {}) {
  const { status, out, err } = await capture(command, args, options);
  if (status !== 0) throw new Error(`${what} failed with status ${status}:\n${(err || out).slice(-4000)}`);
  return out.trim();
}

/** Why Go cannot be used, or undefined. Newer toolchains that a go.mod names are fetched by Go itself, from 1.21 on. */
export async function goMissing() {
  if (!which('go')) return 'go (1.21 or newer) is not on the search path';
  const { out } = await capture('go', ['version']);
  const [, major, minor] = /go(\d+)\.(\d+)/.exec(out)?.map(Number) ?? [];
  if (major === undefined || major < OLDEST_GO[0] || (major === OLDEST_GO[0] && minor < OLDEST_GO[1]))
    return `go ${OLDEST_GO.join('.')} or newer is needed, not ${out.trim()}`;
  return undefined;
}

/** Why Python cannot be used, or undefined. */
export async function pythonMissing() {
  if (!which('python3')) return 'python3 is not on the search path';
  const { status } = await capture('python3', [
    '-c',
    'import venv, ensurepip, sys; sys.exit(sys.version_info < (3, 9))',
  ]);
  return status === 0 ? undefined : 'python3 (3.9 or newer, with venv and ensurepip) is needed';
}

/** versitygw; returns the path of its executable. */
export const versitygw = () => goInstalled(VERSITYGW, 'versitygw');

/** Google's emulator; returns the path of its executable. */
export const emulator = () => goInstalled(EMULATOR, 'emulator');

/** The folder of Google's command line, cbt. */
export const cbtFolder = async () => dirname(await goInstalled(CBT, 'cbt'));

/**
 * A program of a Go module, as `go install` names it; returns the path of its executable.
 *
 * @param {string} program
 * @param {string} name
 */
export async function goInstalled(program, name) {
  const folder = join(CACHE, 'go', 'installed', program.replaceAll(/[^a-z0-9.]+/gi, '-'));
  const path = join(folder, name);
  if (!existsSync(path)) {
    mkdirSync(folder, { recursive: true });
    await must(`installing ${program}`, 'go', ['install', program], { env: { ...process.env, GOBIN: folder } });
  }
  return path;
}

/**
 * Node of another version; returns the path of its executable. npm has each as a package for each platform.
 *
 * @param {string} version
 */
export async function nodeProgram(version) {
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  const folder = join(ROOT, '.cache', `node-${version}`);
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  if (!existsSync(path)) {
    const args = ['install', '--prefix', folder, '--no-save', '--no-audit', '--no-fund', `${name}@${version}`];
    await must(`installing Node ${version}`, 'npm', args, { cwd: folder });
  }
  return path;
}

/** Why Java cannot be used, or undefined. */
export async function javaMissing() {
  if (!which('mvn')) return 'mvn (Maven) is not on the search path';
  if (!which('java') || !which('javac')) return 'java and javac (11 or newer) are not on the search path';
  const { err } = await capture('javac', ['-version']).then(({ out, err: more }) => ({ err: out + more }));
  const major = Number(/javac (\d+)/.exec(err)?.[1]);
  return major >= OLDEST_JAVA ? undefined : `javac ${OLDEST_JAVA} or newer is needed, not ${err.trim()}`;
}

/** Google's Java client and the scenario for it, compiled; returns the class path. */
export const javaClient = () => javaProgram("Google's Java client", 'test/interop/clients/java');

/**
 * HBase, and the server and load generator of bench/hbase, compiled; returns the arguments of java that stand before
 * the name of a class.
 */
export const hbase = async () => [
  `@${join(ROOT, 'bench/hbase/jvm.options')}`,
  '-cp',
  await javaProgram('HBase', 'bench/hbase'),
];

/**
 * Fetches what the pom.xml in `folder` (relative to the repository) names, once for each text of it, and compiles the
 * sources next to it; returns the class path.
 *
 * @param {string} what
 * @param {string} folder
 */
async function javaProgram(what, folder) {
  const pom = join(ROOT, folder, 'pom.xml');
  const kept = join(CACHE, 'java', createHash('sha256').update(readFileSync(pom)).digest('hex').slice(0, 16));
  const [lib, classes] = [join(kept, 'lib'), join(kept, 'classes')];
  if (!existsSync(lib)) {
    rmSync(`${lib}.part`, { recursive: true, force: true });
    await must(`fetching ${what}`, 'mvn', [
      '-q',
      '-B',
      '-f',
      pom,
      'dependency:copy-dependencies',
      `-DoutputDirectory=${lib}.part`,
    ]);
    renameSync(`${lib}.part`, lib);
  }
  mkdirSync(classes, { recursive: true });
  const classPath = [classes, join(lib, '*')].join(delimiter);
  const sources = filesUnder(join(folder, 'src/main/java'), (name) => name.endsWith('.java'));
  await must(`compiling ${folder}`, 'javac', ['--release', '11', '-cp', classPath, '-d', classes, ...sources]);
  return classPath;
}

/**
 * Builds the Go program in `folder` (relative to the repository), package `pkg` of it; returns the path of its
 * executable.
 *
 * @param {string} folder
 * @param {string} name
 */
export async function goProgram(folder, name, pkg = '.') {
  const path = join(CACHE, 'go', name);
  mkdirSync(join(CACHE, 'go'), { recursive: true });
  await must(`building ${folder}`, 'go', ['build', '-o', path, pkg], { cwd: join(ROOT, folder) });
  return path;
}

/** Google's Node client, in the version that npm picks for this Node; returns { folder, version }. */
export async function nodeClient() {
  const folder = join(CACHE, `node${process.versions.node.split('.', 1)[0]}`);
  const manifest = join(folder, 'node_modules', ...NODE_CLIENT.split('/'), 'package.json');
  if (!existsSync(manifest)) {
    mkdirSync(folder, { recursive: true });
    await must(
      `installing ${NODE_CLIENT}`,
      'npm',
      ['install', '--prefix', folder, '--no-audit', '--no-fund', NODE_CLIENT],
      { cwd: folder },
    );
  }
  return { folder, version: JSON.parse(readFileSync(manifest, 'utf8')).version };
}

/** Google's Python client in an environment of its own; returns the path of its interpreter. */
export async function pythonClient() {
  const out = await must("installing Google's Python client", 'bash', [
    join(ROOT, 'test/interop/suites/python-venv.sh'),
  ]);
  return out.split('\n').at(-1) ?? '';
}
