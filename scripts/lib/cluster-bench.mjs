/**
 * npm run bench -- cluster: what tablet servers in processes of their own cost, on this one machine, over a directory
 * as the shared store and one etcd. Two questions, a table for each, and JSON lines for machines:
 *
 * - Front doors: all rows are those of one server. What does a call cost, both servers together, at the door of the
 *   other one, next to one at the owner's? The doors take turns at each workload.
 * - Servers: the same load over one, two and three servers, each of which has its share of the tablets, and a load
 *   generator at its door. The cores are shared, so CPU time a row says more than rates.
 *
 * CPU time is that of the tablet servers, all threads, from a workload's first call until they are at rest again.
 */
import { writeFileSync } from 'node:fs';
import { ProcessCluster } from './process-cluster.mjs';
import { btbench, buildBtbench, errorKinds } from './btbench.mjs';
import { argumentsOf } from './command-line.mjs';
import { rounded } from './server-bench.mjs';
import { goProgram } from './tools.mjs';

/** In an order in which each finds what it reads. Those of the paper's section 7 that need no in-memory group. */
const WORKLOADS = ['batchwrite', 'seqwrite', 'randwrite', 'seqread', 'randread', 'scan'];
const MORE_AT_DOORS = ['multiget', 'rmw', 'cam'];
/** At most this times the owner's CPU time a row, at another server's door: of calls with many rows, and of one. */
const MANY_ROWS = ['batchwrite', 'scan', 'multiget'];
const MANY_TARGET = 1.35;
const ONE_TARGET = 2;
const SERVERS = [1, 2, 3];
/** Tablets that the table begins with, for each server. */
const TABLETS_PER_SERVER = 4;
/**
 * @typedef {object} Measured
 * @property {string} workload
 * @property {number} rows
 * @property {number} rowsPerSecond
 * @property {number} cpuMicrosPerRow
 * @property {number} p50Ms
 * @property {string} errors
 */

/**
 * Runs a workload at each of the doors, at the same time, and adds up what they came to.
 *
 * @param {ProcessCluster} cluster
 * @param {string} program
 * @param {readonly string[]} doors
 * @param {string} workload
 * @param {readonly (string | number)[]} args
 * @returns {Promise<Measured>}
 */
async function measure(cluster, program, doors, workload, args) {
  await cluster.atRest();
  const before = cluster.cpuMs();
  const runs = await Promise.all(
    doors.map((door, i) => btbench(program, door, ['-workloads', workload, '-seed', i + 1, ...args])),
  );
  await cluster.atRest();
  const results = runs.map(({ results: [result], err }) => {
    if (result === undefined) throw new Error(`${workload}: btbench gave no answer: ${err.slice(0, 500)}`);
    return result;
  });
  const rows = results.reduce((sum, result) => sum + result.rows, 0);
  return {
    workload,
    rows,
    rowsPerSecond: results.reduce((sum, result) => sum + result.rows_per_s, 0),
    cpuMicrosPerRow: ((cluster.cpuMs() - before) * 1000) / rows,
    p50Ms: Math.max(...results.map(({ p50_ms: p50 }) => p50)),
    errors: results.map(errorKinds).filter(Boolean).join('; '),
  };
}

/**
 * @param {string} etcd
 * @param {string} program
 * @param {{ rows: number, secs: number, warmSecs: number, load: readonly (string | number)[] }} size
 */
async function benchDoors(etcd, program, { rows, secs, warmSecs, load }) {
  const cluster = new ProcessCluster();
  try {
    await cluster.start(etcd);
    await cluster.startTabletServer();
    const [owner] = cluster.servers;
    const table = ['-rows', rows, ...load];
    const lines = [await measure(cluster, program, [owner.address], 'batchwrite', [...table, '-secs', secs])];
    // one tablet is not moved to a server that comes
    await cluster.startTabletServer();
    const [, other] = cluster.servers;
    /** @type {object[]} */
    const shown = [];
    for (const workload of [...WORKLOADS, ...MORE_AT_DOORS]) {
      const args = [...table, '-keep'];
      if (warmSecs > 0)
        for (const { address } of [owner, other])
          await btbench(program, address, ['-workloads', workload, ...args, '-secs', warmSecs]);
      const [direct, passed] = [
        await measure(cluster, program, [owner.address], workload, [...args, '-secs', secs]),
        await measure(cluster, program, [other.address], workload, [...args, '-secs', secs]),
      ];
      lines.push(direct, passed);
      const ratio = passed.cpuMicrosPerRow / direct.cpuMicrosPerRow;
      const target = MANY_ROWS.includes(workload) ? MANY_TARGET : ONE_TARGET;
      shown.push({
        workload,
        "owner's door: us/row": rounded(direct.cpuMicrosPerRow, 1),
        "other's door: us/row": rounded(passed.cpuMicrosPerRow, 1),
        ratio: rounded(ratio, 2),
        'at most': target,
        met: ratio <= target ? 'yes' : 'NO',
        "owner's: rows/s": Math.round(direct.rowsPerSecond),
        "other's: rows/s": Math.round(passed.rowsPerSecond),
        "owner's: p50 ms": rounded(direct.p50Ms, 3),
        "other's: p50 ms": rounded(passed.p50Ms, 3),
        errors: [direct.errors, passed.errors].filter(Boolean).join('; '),
      });
    }
    console.log(`a row of one server, at its door and at the door of another one: ${rows} rows`);
    console.table(shown);
    return lines.map((line) => ({ bench: 'doors', ...line }));
  } finally {
    await cluster.end();
  }
}

/**
 * @param {string} etcd
 * @param {string} program
 * @param {{ rows: number, secs: number, warmSecs: number, load: readonly (string | number)[] }} size
 */
async function benchServers(etcd, program, { rows, secs, warmSecs, load }) {
  /** @type {(Measured & { bench: string, servers: number })[]} */
  const lines = [];
  for (const count of SERVERS) {
    const cluster = new ProcessCluster();
    try {
      await cluster.start(etcd);
      for (let i = 0; i < count; i++) await cluster.startTabletServer();
      const doors = cluster.servers.map(({ address }) => address);
      const table = ['-rows', rows, ...load];
      for (const workload of WORKLOADS) {
        const isLoad = workload === 'batchwrite';
        const args = [...table, ...(isLoad ? ['-splits', count * TABLETS_PER_SERVER - 1] : ['-keep'])];
        if (!isLoad && warmSecs > 0)
          await Promise.all(
            doors.map((door) => btbench(program, door, ['-workloads', workload, ...args, '-secs', warmSecs])),
          );
        const at = isLoad ? doors.slice(0, 1) : doors;
        lines.push({
          bench: 'servers',
          servers: count,
          ...(await measure(cluster, program, at, workload, [...args, '-secs', secs])),
        });
      }
    } finally {
      await cluster.end();
    }
  }
  console.log(`the same load over more servers, all on the cores of this machine: ${rows} rows`);
  console.table(
    WORKLOADS.map((workload) => {
      const own = lines.filter((line) => line.workload === workload);
      return Object.fromEntries([
        ['workload', workload],
        ...own.flatMap(({ servers, rowsPerSecond, cpuMicrosPerRow }) => [
          [`${servers}: rows/s`, Math.round(rowsPerSecond)],
          [`${servers}: us/row`, rounded(cpuMicrosPerRow, 1)],
        ]),
        ['errors', own.map(({ errors }) => errors).join('')],
      ]);
    }),
  );
  return lines;
}

/**
 * `words`: the options of scripts/bench.mjs. Answers the exit code: 2 where a workload had errors.
 *
 * @param {string[]} words
 */
export async function clusterBench(words) {
  const { values } = argumentsOf({
    args: words,
    options: {
      rows: { type: 'string', default: '100000' },
      load: { type: 'string', default: '2x16' },
      secs: { type: 'string', default: '5' },
      warm: { type: 'string', default: '5' },
      only: { type: 'string', default: 'doors,servers' },
      json: { type: 'string' },
    },
  });
  const [conns, streams] = values.load.split('x');
  const size = {
    rows: Number(values.rows),
    secs: Number(values.secs),
    warmSecs: Number(values.warm),
    load: ['-conns', conns, '-streams', streams],
  };
  const [etcd, program] = [await goProgram('test/etcd/server', 'etcd'), await buildBtbench()];
  const all = [];
  for (const name of values.only.split(',')) {
    if (name !== 'doors' && name !== 'servers') {
      console.log(`there is no part '${name}'; there are doors, servers`);
      return 2;
    }
    all.push(...(await (name === 'doors' ? benchDoors : benchServers)(etcd, program, size)));
  }
  if (values.json !== undefined) writeFileSync(values.json, all.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return all.some(({ errors }) => errors !== '') ? 2 : 0;
}
