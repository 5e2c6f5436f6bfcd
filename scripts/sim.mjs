/**
 * npm run sim -- [--seeds N | --minutes M] [--from N] [--seed N]: simulated clusters under faults (sim/world). Runs N
 * seeds, default 60, or those that begin within M minutes, from the seed `--from` on, default 1. --seed: one run, whose
 * story is printed. Closes with one line 'N passed, N failed, N skipped', of runs.
 *
 * As many processes as there are cores share the seeds. A seed is one run, the same each time.
 */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildOrExit } from './lib/build.mjs';
import { capture, closingLine, ROOT, secondsSince } from './lib/repository.mjs';

/** Seeds that a process takes at a time. */
const PART = 5;
const PART_TIMEOUT_MS = 600_000;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    minutes: { type: 'string' },
    from: { type: 'string' },
    seed: { type: 'string' },
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
const start = performance.now();
const tally = { passed: 0, failed: 0, skipped: 0 };
/** @type {Record<string, number>} */
const counts = {};
let next = from;

/**
 * The last line that sim/world/main.ts prints.
 *
 * @typedef {{ passed: number, failed: number, counts: Record<string, number> }} Part
 */

/** Takes parts of the seeds until none is left. */
async function work() {
  while (next < end && performance.now() - start < maxMs) {
    const first = next;
    next = Math.min(first + PART, end);
    const args = ['--enable-source-maps', join(ROOT, 'dist/sim/world/main.js'), String(first), String(next)];
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
    const part = /** @type {Part} */ (JSON.parse(last));
    tally.passed += part.passed;
    tally.failed += part.failed;
    for (const [name, value] of Object.entries(part.counts)) counts[name] = (counts[name] ?? 0) + value;
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, work));
const minutes = (performance.now() - start) / 60_000;
for (const [name, value] of Object.entries(counts)) console.log(`${name}: ${value}`);
console.log(`${secondsSince(start)}, ${((next - from) / minutes).toFixed(0)} seeds a minute`);
console.log(closingLine(tally));
if (tally.failed > 0) process.exitCode = 1;
