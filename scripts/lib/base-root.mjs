/**
 * Roots of a small Debian with Node for change roots, as Docker's images of Node are: tests of the image and of the
 * operator's page run in copies of it. They need Linux, root and some programs.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { capture, which } from './repository.mjs';
import { CACHE } from './tools.mjs';

const PROGRAMS = ['debootstrap', 'unshare', 'nsenter', 'ip', 'mount', 'chroot', 'cp'];
const SUITE = 'bookworm';
/** The user in Node's images. */
export const NODE_USER = { id: 1000, name: 'node' };
export const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const STEP_MS = 600_000;

/** What is missing for a change root, in words, or undefined. */
export function rootsMissing() {
  const missing = PROGRAMS.filter((program) => !which(program));
  if (process.platform !== 'linux') missing.push('Linux');
  if (process.getuid?.() !== 0) missing.push('root');
  return missing.length > 0 ? `missing: ${missing.join(', ')}` : undefined;
}

/**
 * A scratch folder for roots, and the processes in them: both end with this process.
 *
 * @param {string} name
 */
export function placeForRoots(name) {
  const scratch = mkdtempSync(join(tmpdir(), `edubba-${name}-`));
  /** @type {Set<import('node:child_process').ChildProcess>} */
  const children = new Set();
  process.on('exit', () => {
    for (const child of children) child.kill('SIGKILL');
    spawnSync('umount', ['-R', '-l', scratch], { stdio: 'ignore' });
    rmSync(scratch, { recursive: true, force: true });
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(130));
  return { scratch, children };
}

/**
 * @param {string} what
 * @param {string} command
 * @param {readonly string[]} args
 * @param {Parameters<typeof capture>[2]} [options]
 */
export async function must(what, command, args, options = {}) {
  const { status, out, err } = await capture(command, args, { timeoutMs: STEP_MS, ...options });
  if (status !== 0) throw new Error(`${what} failed with status ${status}:\n${`${out}${err}`.slice(-3000)}`);
  return out;
}

/**
 * Debian's smallest system with this Node and its npm where the images of Node have them, and their user. The system is
 * kept in the cache of tools.mjs.
 *
 * @param {string} scratch The folder in which the root is made.
 */
export async function baseRoot(scratch) {
  const kept = join(CACHE, 'image', SUITE);
  if (!existsSync(kept)) {
    const part = `${kept}.part`;
    rmSync(part, { recursive: true, force: true });
    mkdirSync(part, { recursive: true });
    await must('debootstrap', 'debootstrap', ['--variant=minbase', SUITE, part]);
    rmSync(join(part, 'var/cache/apt'), { recursive: true, force: true });
    renameSync(part, kept);
  }
  const root = join(scratch, 'base');
  await must('copying the base', 'cp', ['-a', kept, root]);
  const local = join(root, 'usr/local');
  copyFileSync(realpathSync(process.execPath), join(local, 'bin/node'));
  chmodSync(join(local, 'bin/node'), 0o755);
  const npm = dirname(dirname(realpathSync(which('npm') ?? fail('npm is not on the search path'))));
  cpSync(npm, join(local, 'lib/node_modules/npm'), { recursive: true, verbatimSymlinks: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'));
  writeFileSync(join(root, 'etc/group'), `${NODE_USER.name}:x:${NODE_USER.id}:\n`, { flag: 'a' });
  writeFileSync(
    join(root, 'etc/passwd'),
    `${NODE_USER.name}:x:${NODE_USER.id}:${NODE_USER.id}::/home/${NODE_USER.name}:/bin/bash\n`,
    { flag: 'a' },
  );
  const version = (await must('Node in the base', 'chroot', [root, 'node', '--version'])).trim();
  if (version !== process.version) throw new Error(`the base has Node ${version}, not ${process.version}`);
  return root;
}

/**
 * The parts of this machine that a build sees: name resolution, and the authorities that Node trusts.
 *
 * @param {string} root
 */
export function lend(root) {
  copyFileSync('/etc/resolv.conf', join(root, 'etc/resolv.conf'));
  const authorities = process.env.NODE_EXTRA_CA_CERTS;
  if (authorities && existsSync(authorities)) {
    mkdirSync(join(root, dirname(authorities)), { recursive: true });
    copyFileSync(authorities, join(root, authorities));
  }
}

/** The variables of this machine that reach a registry. */
export const buildEnvironment = () =>
  Object.fromEntries(
    Object.entries(process.env).filter(([name]) => /^(https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS)$/i.test(name)),
  );

/**
 * @param {string} why
 * @returns {never}
 */
function fail(why) {
  throw new Error(why);
}
