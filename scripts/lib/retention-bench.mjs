/**
 * npm run bench -- retention: what it costs writes that their changes are kept for a change stream. Each round starts
 * two servers of the default command line on empty folders, one after another, creates the same table on each, loads
 * the same rows, and writes for some seconds; one of them keeps the table's changes for a day. Rounds take turns at
 * who begins. A table of medians with their ratios, and JSON lines for machines.
 *
 * CPU time is the server process's, all threads, from a workload's first call until the server is at rest again. Each
 * round begins anew: on a server that goes on, compactions fall to one side or the other.
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
const TABLE = 'btbench';
/** At most this times the CPU time of a row without. */
const TARGET = 1.03;
const REST_SECONDS = 60;
/** All rows are written long before. */
const MOST_LOAD_SECONDS = 300;

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
      secs: { type: 'string', default: '4' },
      json: { type: 'string' },
    },
  });
  const program = await buildBtbench();
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
  const shown = WORKLOADS.map((workload) => {
    /** @type {(isKept: boolean, figure: 'cpuMicrosPerRow' | 'rowsPerSecond') => number} */
    const medianOf = (isKept, figure) =>
      median(lines.filter((line) => line.isKept === isKept && line.workload === workload).map((line) => line[figure]));
    const ratio = medianOf(true, 'cpuMicrosPerRow') / medianOf(false, 'cpuMicrosPerRow');
    return {
      workload,
      'us/row without': rounded(medianOf(false, 'cpuMicrosPerRow'), 2),
      'us/row with': rounded(medianOf(true, 'cpuMicrosPerRow'), 2),
      ratio: rounded(ratio, 3),
      'at most': TARGET,
      met: ratio <= TARGET ? 'yes' : 'NO',
      'rows/s without': Math.round(medianOf(false, 'rowsPerSecond')),
      'rows/s with': Math.round(medianOf(true, 'rowsPerSecond')),
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
 * A workload of a round.
 *
 * @typedef {object} Line
 * @property {number} round
 * @property {boolean} isKept
 * @property {string} workload
 * @property {number} rowsPerSecond
 * @property {number} cpuMicrosPerRow
 */

/**
 * @param {string} program
 * @param {string} directory
 * @param {boolean} isKept
 * @param {{ rows: string, secs: string }} size
 */
async function measure(program, directory, isKept, { rows, secs }) {
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
      const size = ['-rows', rows, '-secs', secs, '-load-secs', MOST_LOAD_SECONDS, '-keep'];
      const words = ['-workloads', workload, ...size, '-pid', server.pid, '-rest', REST_SECONDS];
      const { results, err } = await btbench(program, server.address, words);
      const [result] = results;
      if (result === undefined) throw new Error(`${workload}: btbench gave no answer: ${err.slice(0, 500)}`);
      const failed = errorKinds(result);
      if (failed !== '') throw new Error(`${workload}: ${failed}`);
      const { rows_per_s: rowsPerSecond, server_cpu_us_per_row: cpuMicrosPerRow } = result;
      lines.push({ isKept, workload, rowsPerSecond, cpuMicrosPerRow });
    }
    return lines;
  } finally {
    await server.kill();
  }
}

/** @param {readonly number[]} all */
function median(all) {
  const sorted = [...all].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? (sorted[half] ?? 0) : ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2;
}
