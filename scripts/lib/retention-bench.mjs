/**
 * npm run bench -- retention: what it costs writes that their changes are kept for a change stream. Each round starts
 * two servers of the default command line on empty folders, one after another, creates the same table on each, loads
 * the same rows, and makes as many calls on both; one of them keeps the table's changes for a day. Rounds take turns at
 * who begins. A table of medians, and JSON lines for machines.
 *
 * CPU time is the server process's, all threads, from a workload's first call until the server is at rest again. Both
 * sides do the same work, and a flush or compaction may fall to one workload or to the next one: so what is judged is
 * the sum over the workloads of a round.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { btbench, buildBtbench, errorKinds } from './btbench.mjs';
import { argumentsOf } from './command-line.mjs';
import { capture, ROOT } from './repository.mjs';
import { startEdubba } from './server.mjs';
import { rounded } from './server-bench.mjs';

const WORKLOADS = ['batchwrite', 'randwrite', 'rmw'];
/** All of a round's workloads as one. */
const SUM = 'all';
const TABLE = 'btbench';
/** At most this times the CPU time of a row without. */
const TARGET = 1.03;
const REST_SECONDS = 60;
/** All calls are made long before. */
const MOST_SECONDS = 300;

/**
 * @param {readonly string[]} words
 * @returns {Promise<number>} The exit status.
 */
export async function retentionBench(words) {
  const { values } = argumentsOf({
    args: words,
    options: {
      rounds: { type: 'string', default: '9' },
      rows: { type: 'string', default: '100000' },
      calls: { type: 'string', default: '60000' },
      json: { type: 'string' },
    },
  });
  const program = await buildBtbench();
  const { quantile } = await import('../../dist/bench/compare/verdict.js');
  const scratch = mkdtempSync(join(tmpdir(), 'edubba-retention-'));
  /** @type {Line[]} */
  const lines = [];
  try {
    for (let round = 1; round <= Number(values.rounds); round++)
      for (const isKept of round % 2 === 0 ? [true, false] : [false, true]) {
        const directory = join(scratch, `${round}-${isKept}`);
        for (const line of await measure(program, directory, isKept, values)) lines.push({ round, ...line });
        rmSync(directory, { recursive: true });
      }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  const shown = [...WORKLOADS, SUM].map((workload) => {
    /** @type {(isKept: boolean, figure: 'cpuMicrosPerRow' | 'rowsPerSecond') => number[]} */
    const figures = (isKept, figure) =>
      lines.filter((line) => line.isKept === isKept && line.workload === workload).map((line) => line[figure]);
    const without = figures(false, 'cpuMicrosPerRow');
    const ratios = figures(true, 'cpuMicrosPerRow').map((micros, i) => micros / (without[i] ?? Number.NaN));
    const [low, ratio, high] = [quantile(ratios, 0.25), quantile(ratios, 0.5), quantile(ratios, 0.75)];
    return {
      workload,
      'us/row without': rounded(quantile(without, 0.5), 2),
      'us/row with': rounded(quantile(figures(true, 'cpuMicrosPerRow'), 0.5), 2),
      ratio: rounded(ratio, 3),
      'half of the ratios': `${low.toFixed(3)} to ${high.toFixed(3)}`,
      'at most': workload === SUM ? TARGET : '',
      met: workload !== SUM ? '' : ratio <= TARGET ? 'yes' : 'NO',
      'rows/s without': Math.round(quantile(figures(false, 'rowsPerSecond'), 0.5)),
      'rows/s with': Math.round(quantile(figures(true, 'rowsPerSecond'), 0.5)),
    };
  });
  console.log(`writes to a table whose changes are kept, and to one without: medians of ${values.rounds} rounds`);
  console.table(shown);
  const json = lines.map((line) => JSON.stringify({ bench: 'retention', ...line })).join('\n');
  if (values.json === undefined) console.log(json);
  else writeFileSync(values.json, `${json}\n`);
  return 0;
}

/**
 * A workload of a round, or all of them.
 *
 * @typedef {object} Line
 * @property {number} round
 * @property {boolean} isKept
 * @property {string} workload
 * @property {number} written Rows.
 * @property {number} rowsPerSecond
 * @property {number} cpuMicrosPerRow
 */

/**
 * @param {string} program
 * @param {string} directory
 * @param {boolean} isKept
 * @param {{ rows: string, calls: string }} size
 */
async function measure(program, directory, isKept, { rows, calls }) {
  const server = await startEdubba(directory);
  try {
    /** @param {readonly string[]} command */
    const edubba = async (...command) => {
      const target = ['--address', server.address, '--project', 'p', '--instance', 'i'];
      const { status, err } = await capture(process.execPath, [join(ROOT, 'bin', 'edubba'), ...target, ...command]);
      if (status !== 0) throw new Error(`${command.join(' ')}: ${err}`);
    };
    await edubba('createtable', TABLE, 'families=cf:maxversions=1');
    if (isKept) await edubba('keepchanges', TABLE, '1');
    /** @type {Omit<Line, 'round'>[]} */
    const lines = [];
    for (const workload of WORKLOADS) {
      // batches load all rows
      const size = ['-rows', rows, '-calls', workload === 'batchwrite' ? 0 : calls];
      const times = ['-secs', MOST_SECONDS, '-load-secs', MOST_SECONDS, '-rest', REST_SECONDS];
      const words = ['-workloads', workload, ...size, ...times, '-keep', '-pid', server.pid];
      const { results, err } = await btbench(program, server.address, words);
      const [result] = results;
      if (result === undefined) throw new Error(`${workload}: btbench gave no answer: ${err.slice(0, 500)}`);
      const failed = errorKinds(result);
      if (failed !== '') throw new Error(`${workload}: ${failed}`);
      const { rows: written, rows_per_s: rowsPerSecond, server_cpu_us_per_row: cpuMicrosPerRow } = result;
      lines.push({ isKept, workload, written, rowsPerSecond, cpuMicrosPerRow });
    }
    return [...lines, { isKept, workload: SUM, ...sumOf(lines) }];
  } finally {
    await server.kill();
  }
}

/** @param {readonly { written: number, rowsPerSecond: number, cpuMicrosPerRow: number }[]} lines */
function sumOf(lines) {
  let [written, seconds, cpuMicros] = [0, 0, 0];
  for (const line of lines) {
    written += line.written;
    seconds += line.written / line.rowsPerSecond;
    cpuMicros += line.written * line.cpuMicrosPerRow;
  }
  return { written, rowsPerSecond: written / seconds, cpuMicrosPerRow: cpuMicros / written };
}
