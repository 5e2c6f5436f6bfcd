/**
 * Our load generator (bench/btbench), run against a server: workloads as objects, and the write-until-it-dies and
 * look-again pair.
 */
import { readFileSync } from 'node:fs';
import { capture } from './repository.mjs';
import { goProgram } from './tools.mjs';

export const WORKLOADS = [
  'seqwrite',
  'batchwrite',
  'randwrite',
  'seqread',
  'randread',
  'scan',
  'limitscan',
  'multiget',
  'rmw',
  'cam',
  'fscan',
  'verify',
];

/** Those that a bench times, batches first: they fill the table that the others read. */
export const TIMED_WORKLOADS = [
  'batchwrite',
  ...WORKLOADS.filter((name) => !['batchwrite', 'verify'].includes(name)),
  'scanstream',
];

/** Crashwrite's line on standard error once a row was acknowledged: before that there is not even a table. */
const FIRST_ROW = 'the first row was acknowledged';

/** Builds it; returns the path of the executable. */
export const buildBtbench = () => goProgram('bench/btbench', 'btbench');

/** Builds the prober; returns the path of the executable. */
export const buildProbe = () => goProgram('bench/btbench', 'probe', './rpcprobe');

/**
 * The JSON line of a workload, as far as it is used here.
 *
 * @typedef {object} WorkloadResult
 * @property {string} workload
 * @property {number} rows
 * @property {number} rows_per_s
 * @property {number} errors
 * @property {Record<string, number>} [error_kinds]
 * @property {number} p50_ms
 * @property {number} p99_ms
 * @property {number} server_cpu_us_per_row
 * @property {number} server_rss_bytes
 */

/**
 * Runs btbench; returns one object a workload (its JSON line) and what it said on standard error.
 *
 * @param {string} path
 * @param {string} address
 * @param {readonly (string | number)[]} args
 * @param {number} [timeoutMs]
 * @param {(err: string) => void} [heard]
 */
export const btbench = (path, address, args, timeoutMs = 600_000, heard) =>
  workloadResults(path, ['-addr', address, '-json', ...args], timeoutMs, heard);

/**
 * The same of any program that prints such lines.
 *
 * @param {string} program
 * @param {readonly (string | number)[]} args
 * @param {number} timeoutMs
 * @param {(err: string) => void} [heard]
 * @returns {Promise<{ results: WorkloadResult[], err: string }>}
 */
export async function workloadResults(program, args, timeoutMs, heard) {
  const { out, err } = await capture(program, args.map(String), { timeoutMs, heard });
  const results = out
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
  return { results, err };
}

/**
 * The errors in a workload's result as one line; empty if there are none.
 *
 * @param {WorkloadResult} result
 */
export const errorKinds = ({ error_kinds: kinds = {} }) =>
  Object.entries(kinds)
    .filter(([, count]) => count > 0)
    .map(([text, count]) => `${count} x ${text}`)
    .join('; ');

/** @typedef {{ table: string, ackFile: string, valueBytes?: number }} Written */

/**
 * Writes rows to a fresh table until `stopServer` (called `delayMs` after the first row was acknowledged) has ended the
 * server. Returns the number of rows that were acknowledged; their names are in `ackFile`.
 *
 * @param {string} path
 * @param {import('./server.mjs').RunningServer} server
 * @param {Written & { delayMs: number, stopServer: () => Promise<unknown> }} options
 * @returns {Promise<number>}
 */
export async function writeUntilGone(path, server, { table, ackFile, delayMs, stopServer, valueBytes = 1000 }) {
  const words = [
    '-workloads',
    'crashwrite',
    '-table',
    table,
    '-ackfile',
    ackFile,
    '-rows',
    2_000_000,
    '-secs',
    20,
    '-value',
    valueBytes,
  ];
  let tellFirst = () => {};
  /** @type {Promise<void>} */
  const first = new Promise((resolve) => (tellFirst = resolve));
  const writing = btbench(path, server.address, words, undefined, (err) => {
    if (err.includes(FIRST_ROW)) tellFirst();
  });
  await Promise.race([first, writing]);
  await new Promise((resolve) => setTimeout(resolve, delayMs));
  await stopServer();
  const { results, err } = await writing;
  if (results.length === 0) throw new Error(`btbench wrote nothing: ${err.slice(0, 500)}`);
  return JSON.parse(readFileSync(ackFile, 'utf8')).length;
}

/**
 * Looks for every row that `ackFile` names. Returns { rows, errors, text }.
 *
 * @param {string} path
 * @param {string} address
 * @param {Written} written
 */
export async function lookAgain(path, address, { table, ackFile, valueBytes = 1000 }) {
  const { results, err } = await btbench(path, address, [
    '-keep',
    '-workloads',
    'crashverify',
    '-table',
    table,
    '-ackfile',
    ackFile,
    '-value',
    valueBytes,
  ]);
  const [result] = results;
  if (!result) throw new Error(`crashverify gave no answer: ${err.slice(0, 500)}`);
  return { rows: result.rows, errors: result.errors, text: errorKinds(result) };
}
