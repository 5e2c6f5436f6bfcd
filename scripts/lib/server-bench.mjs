/**
 * npm run bench -- server: our load generator against Edubba (durable: every acknowledgement synced, compactions' CPU
 * counted), Google's Go emulator (in memory), HBase standalone (its own client, nothing synced: bench/hbase), Edubba
 * with two tablet servers on as many threads, and Edubba on Node 22. The others of ours run on the Node that runs this
 * script. A table for each of them with ratios and what they are meant to be, and JSON lines for machines.
 *
 * The servers take turns at each workload, the others at rest meanwhile: the speed of a shared machine drifts by a
 * factor of two and more within minutes, and what is set side by side is to be of the same ones. HBase alone comes
 * behind them, all its workloads in one run: its client is compiled as it runs.
 *
 * CPU time is the server process's, all threads, from a workload's first call until the server is at rest again
 * (btbench -rest).
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { btbench, buildBtbench, errorKinds, TIMED_WORKLOADS, workloadResults } from './btbench.mjs';
import { argumentsOf } from './command-line.mjs';
import { startEdubba, startEmulator, startHbase } from './server.mjs';
import { emulator, hbase, javaMissing, nodeProgram } from './tools.mjs';

const MIB = 1024 * 1024;
const REST_SECONDS = 60;
/** Syncs that tell the disk's own speed. */
const SYNCS = 500;
const SYNCED_BYTES = 1024;
const WARM_TABLE = 'warm';
const WARM_ROWS = 10_000;
/** The load comes first; verify counts a whole table, and the Go client's scan is the other's for the server. */
const NOT_WARMED = ['batchwrite', 'verify', 'scanclient'];
const TIMEOUT_MS = 3_600_000;

/**
 * At most this times the emulator's CPU time a row, and at least this times its rows a second (with more than one
 * stream).
 *
 * @type {Record<string, { cpu: number, rate?: number } | undefined>}
 */
const TARGETS = {
  seqwrite: { cpu: 0.7, rate: 0.9 },
  randwrite: { cpu: 0.7, rate: 0.9 },
  batchwrite: { cpu: 0.9 },
  seqread: { cpu: 0.4, rate: 0.9 },
  randread: { cpu: 0.4, rate: 0.9 },
  scan: { cpu: 0.3, rate: 0.9 },
  limitscan: { cpu: 0.3, rate: 0.9 },
  scanstream: { cpu: 0.3, rate: 0.9 },
  multiget: { cpu: 0.6, rate: 0.9 },
  rmw: { cpu: 0.85, rate: 0.9 },
  cam: { cpu: 0.6, rate: 0.9 },
  fscan: { cpu: 0.3, rate: 0.9 },
};
/** At least this times HBase's rows a second. */
const HBASE_TARGET = 3;
/** @type {Record<string, number | undefined>} */
const HBASE_TARGET_OF = { batchwrite: 2, scanclient: undefined, verify: undefined };

/** Two tablet servers: at most this times the CPU time a row of one. */
const THREADS_TARGET = 1.5;
const OTHER_NODE = '22';

/**
 * In an order in which each finds what it reads; the emulator's limitscan walks the whole table, so a large one takes
 * its time.
 */
const ORDER = [...TIMED_WORKLOADS, 'scanclient', 'verify'];

/** @type {(value: number | undefined, digits: number) => number | undefined} */
export const rounded = (value, digits) =>
  value === undefined || !Number.isFinite(value) ? undefined : Number(value.toFixed(digits));

/**
 * A server that can be started. `start` starts it on an empty folder; `load` runs workloads with btbench's options
 * against it. `lacks`: workloads that it cannot run. `atOnce`: all in one run.
 *
 * @typedef {object} Prepared
 * @property {(dir: string) => Promise<import('./server.mjs').RunningServer>} start
 * @property {(address: string, args: readonly (string | number)[]) => ReturnType<typeof btbench>} load
 * @property {readonly string[]} [lacks]
 * @property {boolean} [atOnce]
 */

/**
 * For each server what prepares it.
 *
 * @type {Record<string, (secs: string | number) => Promise<Prepared>>}
 */
const SERVERS = {
  edubba: () => underBtbench((dir) => startEdubba(dir)),
  threads: () => underBtbench((dir) => startEdubba(dir, undefined, ['--tablet-servers', '2'])),
  async node22() {
    const node = await nodeProgram(OTHER_NODE);
    return underBtbench((dir) => startEdubba(dir, undefined, [], node));
  },
  async emulator() {
    const program = await emulator();
    return underBtbench(() => startEmulator(program));
  },
  async hbase(secs) {
    const java = await hbase();
    return {
      start: (dir) => startHbase(java, dir),
      load: (address, args) =>
        workloadResults('java', [...java, 'Load', '-addr', address, '-warm', secs, ...args], TIMEOUT_MS),
      lacks: ['scanclient'],
      atOnce: true,
    };
  },
};

/**
 * @param {Prepared['start']} start
 * @returns {Promise<Prepared>}
 */
async function underBtbench(start) {
  const path = await buildBtbench();
  return { start, load: (address, args) => btbench(path, address, args, TIMEOUT_MS) };
}

/** @typedef {import('./btbench.mjs').WorkloadResult} WorkloadResult */
/** @typedef {WorkloadResult & { server: string, rows_in_table: number, load: string }} Result */

/** A server on an empty folder, that takes workloads until it is ended. */
class Contestant {
  #scratch = mkdtempSync(join(tmpdir(), 'edubba-bench-'));
  #prepared;
  /** @type {string | number} */
  #rows;
  /** @type {import('./server.mjs').RunningServer | undefined} */
  #server;
  /** True once its table exists. */
  #hasTable = false;
  failed = false;

  /**
   * @param {string} name
   * @param {Prepared} prepared
   * @param {{ rows: string, load: string }} size
   * @param {string | number} secs
   */
  constructor(name, prepared, size, secs) {
    this.name = name;
    this.size = size;
    this.secs = secs;
    this.#prepared = prepared;
    this.#rows = size.rows;
  }

  get atOnce() {
    return this.#prepared.atOnce === true;
  }

  /**
   * Returns their results, those there are where it fails: what it and the others came to is worth its table. Once
   * failed it takes nothing more. Before, it takes them for `warmSecs` each, unmeasured.
   *
   * @param {readonly string[]} workloads
   * @param {number} [warmSecs]
   * @returns {Promise<Result[]>}
   */
  async run(workloads, warmSecs = 0) {
    if (warmSecs > 0) await this.#warm(workloads, warmSecs);
    const results = await this.#load(workloads, [
      '-rows',
      this.#rows,
      '-secs',
      this.secs,
      ...(this.#hasTable ? ['-keep'] : []),
    ]);
    this.#hasTable = true;
    // the workloads after the load use its result
    this.#rows = results.find(({ workload }) => workload === 'batchwrite')?.rows ?? this.#rows;
    return results.map((result) => ({
      server: this.name,
      rows_in_table: Number(this.size.rows),
      load: this.size.load,
      ...result,
    }));
  }

  /**
   * Runs the workloads for `secs` each on the table that they are measured on; batch writes on a table of their own,
   * since they make the other one.
   *
   * @param {readonly string[]} workloads
   * @param {number} secs
   */
  async #warm(workloads, secs) {
    if (workloads.includes('batchwrite'))
      await this.#load(['batchwrite'], ['-table', WARM_TABLE, '-rows', WARM_ROWS, '-secs', secs]);
    if (!this.#hasTable) return;
    await this.#load(
      workloads.filter((workload) => !NOT_WARMED.includes(workload)),
      ['-rows', this.#rows, '-secs', secs, '-keep'],
    );
  }

  /**
   * @param {readonly string[]} workloads
   * @param {readonly (string | number)[]} args
   */
  async #load(workloads, args) {
    const asked = this.failed ? [] : workloads.filter((workload) => !this.#prepared.lacks?.includes(workload));
    if (asked.length === 0) return [];
    try {
      const server = (this.#server ??= await this.#prepared.start(this.#scratch));
      const [conns, streams] = this.size.load.split('x');
      const about = [
        '-workloads',
        asked.join(','),
        '-conns',
        conns,
        '-streams',
        streams,
        '-rest',
        REST_SECONDS,
        '-pid',
        server.pid,
        '-datadir',
        this.#scratch,
      ];
      const { results, err } = await this.#prepared.load(server.address, [...args, ...about]);
      if (results.length < asked.length) this.#fail(`ended after ${results.length} of ${asked.join(', ')}: ${err}`);
      return results;
    } catch (error) {
      this.#fail(error.message);
      return [];
    }
  }

  async end() {
    await this.#server?.kill();
    for (const line of this.#server?.output().match(/^tablet server \d+ passed .*$/gm) ?? [])
      console.log(`${this.name}, ${this.size.rows} rows, ${this.size.load}: ${line}`);
    rmSync(this.#scratch, { recursive: true, force: true });
  }

  /** @param {string} why */
  #fail(why) {
    this.failed = true;
    console.error(`${this.name} failed: ${why}`);
  }
}

/**
 * The contestants' results, each of the `turns` (lists of workloads) one contestant after the other. They are ended.
 *
 * @param {Contestant[]} contestants
 * @param {string[][]} turns
 * @param {number} [warmSecs]
 */
async function inTurn(contestants, turns, warmSecs = 0) {
  const start = performance.now();
  /** @type {Result[]} */
  const results = [];
  try {
    for (const turn of turns)
      for (const contestant of contestants) results.push(...(await contestant.run(turn, warmSecs)));
  } finally {
    for (const contestant of contestants) await contestant.end();
  }
  const [{ size }] = contestants;
  console.error(
    `${contestants.map(({ name }) => name).join(', ')}, ${size.rows} rows, ${size.load}: ${((performance.now() - start) / 1000).toFixed(0)} s`,
  );
  return results;
}

/**
 * Milliseconds that the disk takes to write a kilobyte after another and sync it, in the median: what a write alone
 * waits for at least.
 */
function diskSyncMs() {
  const scratch = mkdtempSync(join(tmpdir(), 'edubba-bench-'));
  const file = openSync(join(scratch, 'synced'), 'w');
  try {
    const bytes = Buffer.alloc(SYNCED_BYTES, 1);
    writeSync(file, Buffer.alloc(SYNCS * SYNCED_BYTES), 0, SYNCS * SYNCED_BYTES, 0);
    fdatasyncSync(file);
    const times = Array.from({ length: SYNCS }, (_, i) => {
      const start = performance.now();
      writeSync(file, bytes, 0, SYNCED_BYTES, i * SYNCED_BYTES);
      fdatasyncSync(file);
      return performance.now() - start;
    });
    return times.sort((a, b) => a - b)[SYNCS / 2];
  } finally {
    closeSync(file);
    rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * @param {Result} ours
 * @param {Result | undefined} theirs
 */
function againstEmulator(ours, theirs) {
  const target = TARGETS[ours.workload];
  const cpu = theirs && ours.server_cpu_us_per_row / theirs.server_cpu_us_per_row;
  const rate = theirs && ours.rows_per_s / theirs.rows_per_s;
  const isMeasured = cpu !== undefined && rate !== undefined;
  const meets = target && isMeasured && cpu <= target.cpu && (ours.load === '1x1' || rate >= (target.rate ?? 0));
  return {
    workload: ours.workload,
    'us/row': rounded(ours.server_cpu_us_per_row, 1),
    'emulator us/row': rounded(theirs?.server_cpu_us_per_row, 1),
    ratio: rounded(cpu, 2),
    'at most': target?.cpu,
    'rows/s': Math.round(ours.rows_per_s),
    'emulator rows/s': theirs && Math.round(theirs.rows_per_s),
    'rate ratio': rounded(rate, 2),
    'at least': ours.load === '1x1' ? undefined : target?.rate,
    met: target && isMeasured ? (meets ? 'yes' : 'NO') : undefined,
    'p50 ms': rounded(ours.p50_ms, 3),
    'p99 ms': rounded(ours.p99_ms, 3),
    'emulator p50': rounded(theirs?.p50_ms, 3),
    'rss MiB': Math.round(ours.server_rss_bytes / MIB),
    errors: ours.errors,
  };
}

/**
 * @param {Result} ours
 * @param {Result | undefined} theirs
 */
function againstHbase(ours, theirs) {
  const target = ours.workload in HBASE_TARGET_OF ? HBASE_TARGET_OF[ours.workload] : HBASE_TARGET;
  const rate = theirs && ours.rows_per_s / theirs.rows_per_s;
  return {
    workload: ours.workload,
    'rows/s': Math.round(ours.rows_per_s),
    'HBase rows/s': theirs && Math.round(theirs.rows_per_s),
    'rate ratio': rounded(rate, 2),
    'at least': target,
    met: target && rate !== undefined ? (rate >= target ? 'yes' : 'NO') : undefined,
    'us/row': rounded(ours.server_cpu_us_per_row, 1),
    'HBase us/row': rounded(theirs?.server_cpu_us_per_row, 1),
    'p50 ms': rounded(ours.p50_ms, 3),
    'HBase p50': rounded(theirs?.p50_ms, 3),
    'p99 ms': rounded(ours.p99_ms, 3),
    'HBase p99': rounded(theirs?.p99_ms, 3),
    'HBase rss MiB': theirs && Math.round(theirs.server_rss_bytes / MIB),
    errors: ours.errors,
    'HBase errors': theirs?.errors,
  };
}

/**
 * Edubba next to another form of itself.
 *
 * @param {string} name
 * @param {string} other
 * @param {number} [most] Times the CPU time a row.
 * @returns {(ours: Result, theirs: Result | undefined) => object}
 */
const againstItself = (name, other, most) => (ours, theirs) => {
  const cpu = theirs && theirs.server_cpu_us_per_row / ours.server_cpu_us_per_row;
  return {
    workload: ours.workload,
    [`${name}: us/row`]: rounded(ours.server_cpu_us_per_row, 1),
    [`${other}: us/row`]: rounded(theirs?.server_cpu_us_per_row, 1),
    [`${other} to ${name}`]: rounded(cpu, 2),
    'at most': most,
    met: cpu !== undefined && most !== undefined ? (cpu <= most ? 'yes' : 'NO') : undefined,
    [`${name}: rows/s`]: Math.round(ours.rows_per_s),
    [`${other}: rows/s`]: theirs && Math.round(theirs.rows_per_s),
    'rate ratio': rounded(theirs && theirs.rows_per_s / ours.rows_per_s, 2),
    [`${name}: p50 ms`]: rounded(ours.p50_ms, 3),
    [`${other}: p50 ms`]: rounded(theirs?.p50_ms, 3),
    [`${other}: rss MiB`]: theirs && Math.round(theirs.server_rss_bytes / MIB),
    errors: theirs?.errors,
  };
};

/** @type {Record<string, { title: string, line: (ours: Result, theirs: Result | undefined) => object }>} */
const TABLES = {
  threads: {
    title: 'with one tablet server against two (calls passed on between them included)',
    line: againstItself('one', 'two', THREADS_TARGET),
  },
  node22: {
    title: `on Node ${process.versions.node} against Node ${OTHER_NODE}`,
    line: againstItself(process.versions.node, OTHER_NODE),
  },
  emulator: { title: "against Google's Go emulator, which keeps everything in memory", line: againstEmulator },
  hbase: {
    title:
      'against HBase standalone (its own client, warmed up; it does not sync its log, Edubba does before each acknowledgement)',
    line: againstHbase,
  },
};

/**
 * The first server's results next to each other server's, or alone.
 *
 * @param {string} heading
 * @param {string[]} servers
 * @param {readonly Result[]} results
 */
function printTables(heading, [first, ...peers], results) {
  /** @type {(name: string, workload: string) => Result | undefined} */
  const of = (name, workload) => results.find((one) => one.server === name && one.workload === workload);
  for (const peer of peers.length > 0 ? peers : ['emulator']) {
    const { title, line } = TABLES[peer];
    console.log(`${heading}: ${first}${peers.length > 0 ? ` ${title}` : ''}`);
    console.table(results.filter(({ server }) => server === first).map((ours) => line(ours, of(peer, ours.workload))));
  }
  for (const result of results)
    if (result.errors > 0) console.log(`${result.server} ${result.workload}: ${errorKinds(result)}`);
}

/**
 * The servers to run, all of them by default; without HBase, and a line that says so, where Java is missing.
 *
 * @param {string} only
 */
async function chosen(only) {
  const names = only === '' ? Object.keys(SERVERS) : only.split(',');
  const why = names.includes('hbase') ? await javaMissing() : undefined;
  if (why === undefined) return names;
  console.log(`HBase is left out: ${why}`);
  return names.filter((name) => name !== 'hbase');
}

/**
 * `words`: the options of scripts/bench.mjs. Answers the exit code: 2 where a workload of ours had errors, 1 where a
 * server could not be measured.
 *
 * @param {string[]} words
 */
export async function serverBench(words) {
  const { values } = argumentsOf({
    args: words,
    options: {
      rows: { type: 'string', default: '100000' },
      load: { type: 'string', default: '2x16' },
      secs: { type: 'string', default: '3' },
      warm: { type: 'string', default: '0' },
      workloads: { type: 'string', default: ORDER.join(',') },
      only: { type: 'string', default: '' },
      json: { type: 'string' },
    },
  });
  const settings = { secs: values.secs, warmSecs: Number(values.warm), workloads: values.workloads.split(',') };
  const servers = await chosen(values.only);
  const unknown = servers.find((name) => !(name in SERVERS));
  if (unknown !== undefined) {
    console.log(`no server '${unknown}'; there are ${Object.keys(SERVERS).join(', ')}`);
    return 2;
  }
  if (servers.length === 0) return 1;
  /** @type {Record<string, Prepared>} */
  const prepared = {};
  for (const name of servers) prepared[name] = await SERVERS[name](settings.secs);
  /** @type {Result[]} */
  const all = [];
  let failed = false;
  for (const rows of values.rows.split(',')) {
    for (const load of values.load.split(',')) {
      if (load === '1x1')
        console.log(`the disk writes and syncs a kilobyte in ${diskSyncMs().toFixed(3)} ms (median of ${SYNCS})`);
      const contestants = servers.map((name) => new Contestant(name, prepared[name], { rows, load }, settings.secs));
      const together = contestants.filter(({ atOnce }) => !atOnce);
      const results =
        together.length > 0
          ? await inTurn(
              together,
              settings.workloads.map((workload) => [workload]),
              settings.warmSecs,
            )
          : [];
      for (const one of contestants.filter(({ atOnce }) => atOnce))
        results.push(...(await inTurn([one], [settings.workloads])));
      failed ||= contestants.some((one) => one.failed);
      all.push(...results);
      printTables(`${rows} rows of 1000 bytes, ${load} (connections x streams)`, servers, results);
    }
  }
  if (values.json !== undefined)
    writeFileSync(values.json, all.map((result) => `${JSON.stringify(result)}\n`).join(''));
  if (failed) return 1;
  return all.some(({ server, errors }) => server === 'edubba' && errors > 0) ? 2 : 0;
}
