/**
 * Runs a test of clusters of real processes (test/cluster/child.ts) in a process of its own, in namespaces for network
 * and processes where these are permitted, with a scratch folder that is kept after a failure.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ROOT, which } from './repository.mjs';
import { goMissing, goProgram, versitygw } from './tools.mjs';

export const STORES = ['directory', 's3'];
export const SERVERS = [3, 5];
/** A namespace of its own for network and processes, whose end is that of all in it. */
const NAMESPACES = ['--net', '--pid', '--fork', '--kill-child', '--mount-proc'];

/**
 * By the test that runs: its scratch folder.
 *
 * @type {Map<import('node:child_process').ChildProcess, string>}
 */
const running = new Map();

/** Ends the tests under way when this process ends. */
export function endWithUs() {
  process.on('exit', () => {
    for (const [child, scratch] of running) {
      child.kill('SIGKILL');
      // its processes may not have ended yet
      rmSync(scratch, { recursive: true, force: true, maxRetries: 20 });
    }
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(130));
}

/** Why no cluster can run here, or undefined. */
export async function clusterMissing() {
  return (await goMissing()) ?? (process.platform === 'linux' ? undefined : 'it needs Linux');
}

/** What stands before a command so that it runs in namespaces of its own; undefined if they are not permitted. */
export function unsharing() {
  if (!which('ip') || !which('nsenter')) return undefined;
  const forms = [NAMESPACES, ['--user', '--map-root-user', ...NAMESPACES]];
  const form = forms.find((flags) => spawnSync('unshare', [...flags, 'ip', 'link']).status === 0);
  return form && ['unshare', ...form];
}

/**
 * Runs the test `program`, relative to the repository, to its end and prints its lines. `found`: the line of JSON with
 * which it ended; undefined if it did not come so far.
 *
 * @param {string} program
 * @param {{ store: string, servers: number, seed: number } & Record<string, unknown>} options
 * @param {string[] | undefined} namespaces
 * @returns {Promise<{ found: string | undefined, scratch: string, logs: string }>}
 */
export async function runCluster(program, options, namespaces) {
  const scratch = mkdtempSync(join(tmpdir(), 'edubba-cluster-'));
  const logs = join(scratch, 'logs');
  mkdirSync(logs);
  const tools = {
    etcd: await goProgram('test/etcd/server', 'etcd'),
    versitygw: options.store === 's3' ? await versitygw() : '',
    edubba: [process.execPath, join(ROOT, 'bin', 'edubba')],
    scratch,
    logs,
  };
  const passed = JSON.stringify({ ...options, tools, hasNamespaces: namespaces !== undefined });
  const command = [process.execPath, '--enable-source-maps', join(ROOT, program), passed];
  const [file, ...args] = [...(namespaces ?? []), ...command];
  // its end is noticed by the child at its standard input
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  running.set(child, scratch);
  let found;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith('{')) found = line;
    else console.log(line);
  }
  running.delete(child);
  return { found, scratch, logs };
}
