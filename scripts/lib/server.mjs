/**
 * Starts a server as a child process and speaks of it as an object: Edubba from this checkout, Google's Go emulator, or
 * HBase.
 *
 * Every child is ended when this process ends, so that nothing is left listening.
 */
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { ROOT } from './repository.mjs';

const READY_MS = 30_000;
const HBASE_READY_MS = 180_000;
const MAX_KEPT = 64 * 1024;
/** @type {Set<import('node:child_process').ChildProcess>} */
const children = new Set();

process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(130));

/**
 * A server that runs as a child process.
 *
 * @typedef {object} RunningServer
 * @property {string} name
 * @property {string} address HOST:PORT
 * @property {number} pid
 * @property {Promise<ServerEnd>} exited
 * @property {() => string} output The last of what it printed.
 * @property {(signal?: NodeJS.Signals) => Promise<ServerEnd>} kill Sends SIGTERM or `signal`, and waits for the end.
 */

/** @typedef {{ code: number | null, signal: NodeJS.Signals | null }} ServerEnd */

/**
 * A port on which nothing listens at this moment.
 *
 * @returns {Promise<number>}
 */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      // only a pipe has no AddressInfo
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}

/**
 * Starts `command` and waits, `readyMs` at most, for a line of its output that matches `ready`, whose first group is
 * HOST:PORT.
 *
 * @param {string} name
 * @param {string} command
 * @param {readonly string[]} args
 * @param {RegExp} ready
 * @param {number} [readyMs]
 * @param {Record<string, string | undefined>} [env] Default: this process's.
 * @returns {Promise<RunningServer>}
 */
export function startServer(name, command, args, ready, readyMs = READY_MS, env = process.env) {
  const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], env });
  children.add(child);
  let output = '';
  /** @type {Promise<ServerEnd>} */
  const exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
  exited.then(() => children.delete(child));
  return new Promise((resolve, reject) => {
    /** @param {string} what */
    const fail = (what) => reject(new Error(`${name}: ${what}: ${command} ${args.join(' ')}\n${output}`));
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      fail(`not ready after ${readyMs} ms`);
    }, readyMs);
    child.once('error', (error) => fail(error.message));
    exited.then(({ code, signal }) => fail(`ended with ${signal ?? code} before it was ready`));
    /** @param {string} text */
    const onData = (text) => {
      output = (output + text).slice(-MAX_KEPT);
      const address = ready.exec(output)?.[1];
      if (address === undefined) return;
      clearTimeout(timer);
      resolve({
        name,
        address,
        // it has printed, so it has one
        pid: /** @type {number} */ (child.pid),
        exited,
        output: () => output,
        kill(signal = 'SIGTERM') {
          child.kill(signal);
          return exited;
        },
      });
    };
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', onData);
  });
}

/**
 * The program and arguments that start Edubba on `dir`; `node` is the path of Node.
 *
 * @param {string} dir
 */
export const edubbaCommand = (dir, address = '127.0.0.1:0', node = process.execPath) => [
  node,
  join(ROOT, 'bin', 'edubba'),
  'serve',
  '--dir',
  dir,
  '--address',
  address,
];

/**
 * `options`: more words for `edubba serve`.
 *
 * @param {string} dir
 * @param {string} [address]
 * @param {string[]} [options]
 */
export function startEdubba(dir, address, options = [], node = process.execPath) {
  const [command, ...args] = [...edubbaCommand(dir, address, node), ...options];
  return startServer('edubba', command, args, /listening on (\S+:\d+)/);
}

/**
 * Google's Go emulator; `path` is its executable.
 *
 * @param {string} path
 */
export function startEmulator(path) {
  return startServer('emulator', path, ['-host', '127.0.0.1', '-port', '0'], /running on (\S+:\d+)/);
}

/**
 * HBase standalone (bench/hbase) with its files in `dir`; `java` is the result of hbase() of tools.mjs. The address is
 * that of its ZooKeeper.
 *
 * @param {string[]} java
 * @param {string} dir
 */
export function startHbase(java, dir) {
  return startServer('hbase', 'java', [...java, 'Server', dir], /is ready: (\S+:\d+)/, HBASE_READY_MS);
}
