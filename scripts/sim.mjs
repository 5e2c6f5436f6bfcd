/**
 * npm run sim -- [--seeds N | --minutes M] [--from N] [--seed N] [--planted WHICH]: simulated clusters under faults
 * (sim/world). Runs N seeds, default 60, or those that begin within M minutes, from the seed `--from` on, default 1.
 * --seed: one run, whose story is printed. Closes with one line 'N passed, N failed, N skipped', of runs.
 *
 * --planted A01,C02 | all | known: plants bugs (sim/planted), one at a time, and looks for a seed that finds each.
 *
 * As many processes as there are cores share the seeds. A seed is one run, the same each time.
 */
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { buildOrExit } from './lib/build.mjs';
import { findPlanted, MAX_SEEDS, plantedBugs } from './lib/planted-bugs.mjs';
import { capture, closingLine, ROOT, secondsSince } from './lib/repository.mjs';

/** Seeds that a process takes at a time, at most: the first of a process are slow. */
const MAX_PART = 20;
const MIN_PART = 5;
const PART_TIMEOUT_MS = 900_000;
const CHECK_INVARIANTS = pathToFileURL(join(ROOT, 'scripts/lib/check-invariants.mjs')).href;
const NODE_OPTIONS = ['--enable-source-maps', '--max-semi-space-size=32', '--import', CHECK_INVARIANTS];

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    minutes: { type: 'string' },
    from: { type: 'string' },
    seed: { type: 'string' },
    planted: { type: 'string' },
  },
});
const isTimed = values.minutes !== undefined;
const from = Number(values.seed ?? values.from ?? 1);
const end = from + Number(values.seed !== undefined ? 1 : (values.seeds ?? (isTimed ? 1e9 : 60)));
const maxMs = Number(values.minutes ?? Number.POSITIVE_INFINITY) * 60_000;
if (!(Number.isSafeInteger(from) && Number.isSafeInteger(end) && end > from && maxMs > 0)) {
  console.log('--seeds, --from and --seed take whole numbers, --minutes a number');
  process.exit(2);
}

buildOrExit();
if (values.planted !== undefined) await findPlantedAndExit(values.planted);
const start = performance.now();
const tally = { passed: 0, failed: 0, skipped: 0 };
/** @type {Record<string, number>} */
const counts = {};
/** @type {Record<string, string>} */
const traces = {};
let next = from;

/**
 * `which`: names of planted bugs, separated by commas; `all`; or `known`, with the seeds that are known to find them.
 *
 * @param {string} which
 */
async function findPlantedAndExit(which) {
  const all = await plantedBugs();
  const names = which === 'all' || which === 'known' ? all.map(({ name }) => name) : which.split(',');
  const bugs = all.filter(({ name }) => names.includes(name));
  if (bugs.length < new Set(names).size) {
    console.log(`there is no planted bug of one of these names: ${names.join(', ')}`);
    process.exit(2);
  }
  const to = values.seeds === undefined ? from + MAX_SEEDS : end;
  const found = await findPlanted(bugs, { isReplay: which === 'known', from, to, nodeOptions: NODE_OPTIONS });
  console.log(closingLine({ ...found, skipped: 0 }));
  process.exit(found.failed > 0 ? 1 : 0);
}

/**
 * The last line that sim/world/main.ts prints.
 *
 * @typedef {{ passed: number, failed: number, counts: Record<string, number>, traces: Record<string, string> }} Part
 */

/** Takes parts of the seeds until none is left. */
async function work() {
  while (next < end && performance.now() - start < maxMs) {
    const first = next;
    const part = isTimed ? MIN_PART : Math.ceil((end - first) / (2 * availableParallelism()));
    next = Math.min(first + Math.max(MIN_PART, Math.min(part, MAX_PART)), end);
    const args = [...NODE_OPTIONS, join(ROOT, 'dist/sim/world/main.js'), String(first), String(next)];
    if (values.seed !== undefined) args.push('story');
    const { status, out, err } = await capture(process.execPath, args, { timeoutMs: PART_TIMEOUT_MS });
    const lines = out.trimEnd().split('\n');
    const last = lines.pop() ?? '';
    if (lines.length > 0) console.log(lines.join('\n'));
    if (status !== 0 || !last.startsWith('{')) {
      console.log(`seeds ${first} to ${next - 1}: the process ended with status ${status}\n${last}\n${err}`);
      tally.failed += next - first;
      continue;
    }
    const sums = /** @type {Part} */ (JSON.parse(last));
    tally.passed += sums.passed;
    tally.failed += sums.failed;
    Object.assign(traces, sums.traces);
    for (const [name, value] of Object.entries(sums.counts)) counts[name] = (counts[name] ?? 0) + value;
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, work));
const minutes = (performance.now() - start) / 60_000;
for (const [name, value] of Object.entries(counts)) console.log(`${name}: ${value}`);
const hash = createHash('sha256');
for (let seed = from; seed < next; seed++) hash.update(traces[seed] ?? '');
console.log(`trace of all seeds: ${hash.digest('hex').slice(0, 16)}`);
console.log(`${secondsSince(start)}, ${((next - from) / minutes).toFixed(0)} seeds a minute`);
console.log(closingLine(tally));
if (tally.failed > 0) process.exitCode = 1;
