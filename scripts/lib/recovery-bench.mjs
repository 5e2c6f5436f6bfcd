/**
 * npm run bench -- recovery: what the death of a tablet server costs whose log is long. Three servers in processes of
 * their own, over a directory as the shared store, have a table with many tablets, all of whose rows are in logs alone.
 * One is killed. Printed are the times until each of its tablets is served again, and the bytes that the others have
 * read for it, next to those of its log; and the memory that they take, next to that which they keep.
 */
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ProcessCluster } from './process-cluster.mjs';
import { btbench, buildBtbench } from './btbench.mjs';
import { argumentsOf } from './command-line.mjs';
import { ROOT } from './repository.mjs';
import { rounded } from './server-bench.mjs';
import { goProgram } from './tools.mjs';

const MIB = 1 << 20;
const SERVERS = 3;
const ROW_BYTES = 1000;
const SAMPLE_MS = 100;
/** What is not counted as memory of a recovery: memtables and caches have limits of their own. */
const KEPT = ['memtables', 'block_cache', 'row_cache', 'indexes', 'in_memory_groups'].map(
  (name) => `edubba_${name}_used_bytes`,
);
const TABLE = 'btbench';

/** @typedef {import('./server.mjs').RunningServer} RunningServer */

/** @param {number} pid @param {string} name of a line in /proc/PID/status */
function memoryOf(pid, name) {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? 0) * 1024;
}

/** Bytes that the process has read from files and sockets. @param {number} pid */
const readBytesOf = (pid) => Number(/^rchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]);

/** @param {string} folder @returns {number} */
function bytesIn(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true }).reduce(
    (sum, entry) => sum + (entry.isFile() ? statSync(join(entry.parentPath, entry.name)).size : 0),
    0,
  );
}

/** The folders of the servers' logs. @param {string} store */
const logsIn = (store) => readdirSync(join(store, 'slots', 'logs')).map((name) => join(store, 'slots', 'logs', name));

/**
 * Memory of a server, and what of it its memtables and caches say that they have.
 *
 * @param {ProcessCluster} cluster
 * @param {RunningServer} server
 */
async function memoryNow(cluster, server) {
  const kept = (await cluster.metrics(server, KEPT)).reduce((sum, bytes) => sum + bytes, 0);
  return { resident: memoryOf(server.pid, 'VmRSS'), kept };
}

/**
 * Highest memory of each server, in all and without its memtables and caches, until the returned function is called.
 *
 * @param {ProcessCluster} cluster
 * @param {readonly RunningServer[]} servers
 */
function watchMemory(cluster, servers) {
  let isOver = false;
  const watches = servers.map(async (server) => {
    let [resident, others] = [0, 0];
    while (!isOver) {
      const now = await memoryNow(cluster, server);
      resident = Math.max(resident, now.resident);
      others = Math.max(others, now.resident - now.kept);
      await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
    }
    return { resident, others };
  });
  return () => {
    isOver = true;
    return Promise.all(watches);
  };
}

/**
 * `words`: the options of scripts/bench.mjs. Answers the exit code.
 *
 * @param {string[]} words
 */
export async function recoveryBench(words) {
  const { values } = argumentsOf({
    args: words,
    options: {
      mb: { type: 'string', default: '1024' },
      tablets: { type: 'string', default: '200' },
      json: { type: 'string' },
    },
  });
  const tablets = Number(values.tablets);
  const rows = Math.round((Number(values.mb) * MIB * SERVERS) / ROW_BYTES);
  const [etcd, program] = [await goProgram('test/etcd/server', 'etcd'), await buildBtbench()];
  const { connect } = await import(pathToFileURL(join(ROOT, 'dist', 'bundle', 'index.js')).href);
  const cluster = new ProcessCluster();
  try {
    await cluster.start(etcd, ['--log-level', 'info', '--log-format', 'json']);
    // nothing is flushed before the death, nor after it
    const limits = ['--memtable-bytes', '16GiB', '--log-limit-bytes', '16GiB'];
    await cluster.startTabletServer(limits);
    const [log] = logsIn(cluster.store);
    for (let i = 1; i < SERVERS; i++) await cluster.startTabletServer(limits);
    const [dead, ...others] = cluster.servers;
    const load = ['-workloads', 'batchwrite', '-rows', rows, '-value', ROW_BYTES, '-splits', tablets - 1];
    await btbench(program, others[0].address, [...load, '-load-secs', 900], 1_000_000);
    await cluster.atRest();
    const look = () =>
      Promise.all(
        others.map(async (server) => ({
          readBytes: readBytesOf(server.pid),
          memory: await memoryNow(cluster, server),
        })),
      );
    const before = await look();
    const deadBytes = bytesIn(log);
    const database = await connect(others[0].address, { project: 'p', instance: 'i' });
    const table = database.table(TABLE);
    const firstRows = Array.from({ length: tablets }, (_, i) => Math.trunc((rows * i) / tablets));
    const keyOf = (/** @type {number} */ row) => `row${String(row).padStart(9, '0')}`;
    await Promise.all(firstRows.map((row) => table.get(keyOf(row))));

    const stopWatching = watchMemory(cluster, others);
    const startMs = performance.now();
    await cluster.kill(dead);
    const servedMs = await Promise.all(
      firstRows.map(async (row) => {
        for (;;) {
          try {
            if ((await table.get(keyOf(row))) === undefined)
              throw new Error(`${keyOf(row)} was acknowledged, and is gone`);
            return performance.now() - startMs;
          } catch (error) {
            if (!/UNAVAILABLE|DEADLINE/.test(String(/** @type {{ code?: unknown }} */ (error).code ?? error)))
              throw error;
          }
        }
      }),
    );
    const highest = await stopWatching();
    const after = await look();
    const readBytes = after.reduce((sum, now, i) => sum + now.readBytes - before[i].readBytes, 0);
    /** @param {(i: number) => number} bytesOf a server's */
    const ofEach = (bytesOf) => others.map((_, i) => Math.round(bytesOf(i) / MIB)).join(', ');
    const sorting = /"the log of a dead server was sorted"[^\n]*/.exec(cluster.masterLog)?.[0];
    await database.close();
    const times = [...servedMs].sort((a, b) => a - b);
    const results = {
      'log of the dead server, MiB': rounded(deadBytes / MIB, 1),
      tablets,
      'read by the others, MiB': rounded(readBytes / MIB, 1),
      'read, times the log': rounded(readBytes / deadBytes, 2),
      'sorting took, s':
        sorting === undefined ? 'not sorted' : rounded(Number(/"tookMs":([\d.]+)/.exec(sorting)?.[1]) / 1000, 1),
      'served again, from the death, s: first': rounded(times[0] / 1000, 1),
      last: rounded((times.at(-1) ?? 0) / 1000, 1),
      'more in memtables and caches at the end, MiB': ofEach((i) => after[i].memory.kept - before[i].memory.kept),
      'highest memory above that before, MiB': ofEach((i) => highest[i].resident - before[i].memory.resident),
      'the same without memtables and caches, MiB': ofEach(
        (i) => highest[i].others - (before[i].memory.resident - before[i].memory.kept),
      ),
    };
    console.table(results);
    if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ bench: 'recovery', ...results })}\n`);
    return 0;
  } finally {
    await cluster.end();
  }
}
