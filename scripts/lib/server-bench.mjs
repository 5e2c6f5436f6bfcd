/**
 * npm run bench -- server: our load generator against Edubba (durable: every acknowledgement synced, compactions' CPU counted) and, in turn, Google's
 * Go emulator (in memory). A table with ratios and what they are meant to be, and JSON lines for machines.
 *
 * CPU time is the server process's, all threads, from a workload's first call until the server is at rest again (btbench -rest).
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { btbench, buildBtbench, errorKinds, WORKLOADS } from './btbench.mjs';
import { startEdubba, startEmulator } from './server.mjs';
import { emulator } from './tools.mjs';

const MIB = 1024 * 1024;
const REST_SECONDS = 60;
const TIMEOUT_MS = 3_600_000;

/** At most this times the emulator's CPU time a row, and at least this times its rows a second (with more than one stream). */
const TARGETS = {
  seqwrite: { cpu: 0.5, rate: 1 },
  randwrite: { cpu: 0.5, rate: 1 },
  batchwrite: { cpu: 1.3, rate: 1 },
  seqread: { cpu: 0.4, rate: 1.2 },
  randread: { cpu: 0.4, rate: 1.2 },
  scan: { cpu: 0.3, rate: 1.2 },
  limitscan: { cpu: 0.3, rate: 1.2 },
  scanstream: { cpu: 0.3, rate: 1.2 },
  multiget: { cpu: 0.8, rate: 1.2 },
  rmw: { cpu: 0.6, rate: 1 },
  cam: { cpu: 0.5, rate: 1 },
  fscan: { cpu: 0.5, rate: 1.2 },
};
/** In an order in which each finds what it reads; the emulator's limitscan walks the whole table, so a large one takes its time. */
const ORDER = ['batchwrite', ...WORKLOADS.filter((name) => !['batchwrite', 'verify'].includes(name)), 'scanstream', 'scanclient', 'verify'];

const rounded = (value, digits) => (value === undefined || !Number.isFinite(value) ? undefined : Number(value.toFixed(digits)));

async function runOne(path, name, size, { secs, workloads }) {
  const scratch = mkdtempSync(join(tmpdir(), 'edubba-bench-'));
  const server = name === 'edubba' ? await startEdubba(scratch) : await startEmulator(await emulator());
  const [conns, streams] = size.load.split('x');
  const args = ['-rows', size.rows, '-secs', secs, '-conns', conns, '-streams', streams, '-workloads', workloads.join(','), '-rest', REST_SECONDS, '-pid', server.pid];
  try {
    const { results, err } = await btbench(path, server.address, [...args, ...(name === 'edubba' ? ['-datadir', scratch] : [])], TIMEOUT_MS);
    if (results.length === 0) throw new Error(`${name}: ${err}`);
    return results.map((result) => ({ server: name, rows_in_table: Number(size.rows), load: size.load, ...result }));
  } finally {
    await server.kill();
    rmSync(scratch, { recursive: true, force: true });
  }
}

function line(ours, theirs) {
  const target = TARGETS[ours.workload];
  const cpu = theirs && ours.server_cpu_us_per_row / theirs.server_cpu_us_per_row;
  const rate = theirs && ours.rows_per_s / theirs.rows_per_s;
  const meets = target && theirs && cpu <= target.cpu && (ours.load === '1x1' || rate >= target.rate);
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
    met: target && theirs ? (meets ? 'yes' : 'NO') : undefined,
    'p50 ms': rounded(ours.p50_ms, 3),
    'p99 ms': rounded(ours.p99_ms, 3),
    'emulator p50': rounded(theirs?.p50_ms, 3),
    'rss MiB': Math.round(ours.server_rss_bytes / MIB),
    errors: ours.errors,
  };
}

/** `words`: the options of scripts/bench.mjs. Answers the exit code: 2 where a workload had errors. */
export async function serverBench(words) {
  const option = (name, fallback) => words.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) ?? fallback;
  const settings = { secs: option('secs', 3), workloads: option('workloads', ORDER.join(',')).split(',') };
  const servers = option('only', 'edubba,emulator').split(',');
  const path = await buildBtbench();
  const all = [];
  for (const rows of option('rows', '100000').split(',')) {
    for (const load of option('load', '2x16').split(',')) {
      const results = [];
      for (const name of servers) {
        const start = performance.now();
        results.push(...(await runOne(path, name, { rows, load }, settings)));
        console.error(`${name}, ${rows} rows, ${load}: ${((performance.now() - start) / 1000).toFixed(0)} s`);
      }
      all.push(...results);
      const of = (name, workload) => results.find((one) => one.server === name && one.workload === workload);
      console.log(`${rows} rows of 1000 bytes, ${load} (connections x streams)`);
      console.table(results.filter(({ server }) => server === servers[0]).map((ours) => line(ours, servers[1] && of(servers[1], ours.workload))));
      for (const result of results) if (result.errors > 0) console.log(`${result.server} ${result.workload}: ${errorKinds(result)}`);
    }
  }
  const file = option('json', undefined);
  if (file !== undefined) writeFileSync(file, all.map((result) => `${JSON.stringify(result)}\n`).join(''));
  return all.some(({ server, errors }) => server === 'edubba' && errors > 0) ? 2 : 0;
}
