/** Runs the simulated clusters of many seeds (sim/world), in as many processes as there are cores. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { ROOT } from './repository.mjs';

/** A process that answers nothing for this long is ended: it may run a seed that fails many times, to make it short. */
const SILENCE_MS = 1_200_000;
const CHECK_INVARIANTS = pathToFileURL(join(ROOT, 'scripts/lib/check-invariants.mjs')).href;
/**
 * `--always-sparkplug`: much code of a cluster runs too rarely to be optimized, and often enough to be compiled. One
 * thread collects garbage: each core has a process of its own. No source maps: errors are passed on with their stacks,
 * and each of those would be mapped.
 */
export const NODE_OPTIONS = [
  '--always-sparkplug',
  '--single-threaded-gc',
  '--max-semi-space-size=64',
  '--import',
  CHECK_INVARIANTS,
];
/** Seeds make thousands of errors, whose stacks are read when they are passed on. The story of one seed has them. */
const WITHOUT_STACKS = '--stack-trace-limit=0';

/**
 * What sim/world/main.ts says of seeds.
 *
 * @typedef {object} Sums
 * @property {number} passed
 * @property {number} failed
 * @property {Record<string, number>} counts
 * @property {Record<string, string>} traces by seed
 * @property {number} shortestMs
 * @property {number} cpuSeconds
 */

/**
 * Runs the seeds from `from` up to and without `end`, or those that begin within `maxMs`. Prints what failed. `node`:
 * the program that runs them.
 *
 * @param {{ from: number, end: number, maxMs?: number, node?: string }} seeds
 * @returns {Promise<Sums & { next: number }>}
 */
export async function runSeeds({ from, end, maxMs = Number.POSITIVE_INFINITY, node = process.execPath }) {
  const start = performance.now();
  const all = { passed: 0, failed: 0, counts: {}, traces: {}, shortestMs: 1e9, cpuSeconds: 0, next: from };
  const work = async () => {
    while (all.next < end && performance.now() - start < maxMs) {
      const isLeft = () => all.next < end && performance.now() - start < maxMs;
      await runProcess(node, () => (isLeft() ? all.next++ : undefined), all);
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), end - from) }, work));
  return all;
}

/**
 * One process, which is given seeds until none is left, or it ends: a process is slow with its first seeds.
 *
 * @param {string} node
 * @param {() => number | undefined} nextSeed
 * @param {Sums} all
 */
function runProcess(node, nextSeed, all) {
  return new Promise((resolve) => {
    const child = spawn(node, [...NODE_OPTIONS, WITHOUT_STACKS, join(ROOT, 'dist/sim/world/main.js')], { cwd: ROOT });
    let seed = nextSeed();
    let errors = '';
    let timer = setTimeout(() => {}, 0);
    const give = () => {
      clearTimeout(timer);
      timer = setTimeout(() => child.kill('SIGKILL'), SILENCE_MS);
      if (seed === undefined) child.stdin.end();
      else child.stdin.write(`${seed}\n`);
    };
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (!line.startsWith('{')) return console.log(line);
      add(all, JSON.parse(line));
      seed = nextSeed();
      give();
    });
    child.stderr.setEncoding('utf8').on('data', (text) => (errors += text));
    child.stdin.on('error', () => {});
    child.on('close', (status) => {
      clearTimeout(timer);
      if (seed !== undefined) {
        all.failed++;
        console.log(`FAIL seed ${seed}: the process ended with status ${status}\n${errors}`);
      }
      resolve(undefined);
    });
    give();
  });
}

/**
 * @param {Sums} all
 * @param {Sums} part
 */
function add(all, { passed, failed, counts, traces, shortestMs, cpuSeconds }) {
  all.passed += passed;
  all.failed += failed;
  all.cpuSeconds += cpuSeconds;
  all.shortestMs = Math.min(all.shortestMs, shortestMs);
  Object.assign(all.traces, traces);
  for (const [name, value] of Object.entries(counts)) all.counts[name] = (all.counts[name] ?? 0) + value;
}

/**
 * One hash of the traces of those seeds.
 *
 * @param {Record<string, string>} traces
 * @param {number} from
 * @param {number} end
 */
export function traceOf(traces, from, end) {
  const hash = createHash('sha256');
  for (let seed = from; seed < end; seed++) hash.update(traces[seed] ?? '');
  return hash.digest('hex').slice(0, 16);
}
