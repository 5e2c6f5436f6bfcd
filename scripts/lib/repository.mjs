/**
 * Where the repository is, and how its scripts run programs. Node's own modules only: these scripts run before anything
 * is installed.
 */
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, readdirSync } from 'node:fs';
import { delimiter, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's top folder. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The installed file `parts` of a dependency, such as ('knip', 'bin', 'knip.js').
 *
 * @param {...string} parts
 */
export const dependency = (...parts) => join(ROOT, 'node_modules', ...parts);

/**
 * All files under `folder` (relative to ROOT) whose name `wanted` accepts, relative to ROOT with forward slashes, in
 * order.
 *
 * @param {string} folder
 * @param {(name: string) => boolean} wanted
 */
export function filesUnder(folder, wanted) {
  /** @type {string[]} */
  const found = [];
  /** @param {string} dir */
  const walk = (dir) => {
    let entries;
    try {
      entries = readdirSync(dir, { withFileTypes: true });
    } catch {
      return;
    }
    for (const entry of entries) {
      if (entry.isDirectory()) {
        if (entry.name !== 'node_modules') walk(join(dir, entry.name));
      } else if (wanted(entry.name)) found.push(relative(ROOT, join(dir, entry.name)).split(sep).join('/'));
    }
  };
  walk(join(ROOT, folder));
  return found.sort();
}

/**
 * Runs a program to its end with our own input and output; returns its exit status.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {import('node:child_process').SpawnSyncOptions} [options]
 */
export function run(command, args, options = {}) {
  const done = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit', ...options });
  if (done.error) throw done.error;
  return done.status ?? 1;
}

/**
 * @typedef {object} CaptureOptions
 * @property {number} [timeoutMs] The process is killed after it; none by default.
 * @property {string} [input]
 * @property {((err: string) => void) | undefined} [heard] Gets all of standard error so far whenever more comes.
 */

/**
 * Runs a program to its end and returns its output. A status of 1 also stands for an end by a signal.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {import('node:child_process').SpawnOptionsWithoutStdio & CaptureOptions} [options]
 * @returns {Promise<{ status: number, out: string, err: string }>}
 */
export function capture(command, args, { timeoutMs = 0, input = '', heard = () => {}, ...options } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: ROOT, ...options });
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (out += text));
    child.stderr.setEncoding('utf8').on('data', (text) => {
      err += text;
      heard(err);
    });
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    const timer = timeoutMs > 0 ? setTimeout(() => child.kill('SIGKILL'), timeoutMs) : undefined;
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ status: code ?? 1, out, err });
    });
  });
}

/**
 * The full path of a program on the search path, or undefined.
 *
 * @param {string} program
 */
export function which(program) {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return join(folder, program);
    } catch {
      // not in this folder
    }
  }
  return undefined;
}

/**
 * The closing line of every script that tests something.
 *
 * @param {{ passed: number, failed: number, skipped: number }} tally
 */
export const closingLine = ({ passed, failed, skipped }) => `${passed} passed, ${failed} failed, ${skipped} skipped`;

/**
 * Seconds since `start` (milliseconds of performance.now), with two digits.
 *
 * @param {number} start
 */
export const secondsSince = (start) => `${((performance.now() - start) / 1000).toFixed(2)} s`;
