/**
 * npm run soak -- [--minutes M] [--seed S] [--place memory|directory]: mixed load with deletions, garbage collection,
 * compactions, changes of groups and rules, reopenings and power failures against the plain model (test/soak). In
 * memory, in simulated time, where one seed makes one run, and at the same time in a directory with real threads;
 * default: 2 minutes. Closes with one line 'N passed, N failed, N skipped'.
 *
 * Checked: every row that was read, what `edubba inspect check` finds, the number of files at rest, and that memory in
 * use stays flat after a warm-up.
 */
import { join } from 'node:path';
import { buildOrExit } from './lib/build.mjs';
import { argumentsOf, helpIfAsked } from './lib/command-line.mjs';
import { Report } from './lib/report.mjs';
import { capture, ROOT } from './lib/repository.mjs';

helpIfAsked(import.meta.url);

/**
 * MiB by which memory in use may seem to grow after the warm-up, by chance: caches and scans come and go.
 */
const MAX_GROWN_MIB = 24;
/** The process as a whole: its allocator keeps what was used once. */
const MAX_RESIDENT_GROWN_MIB = 96;
const PLACES = ['memory', 'directory'];

const { values } = argumentsOf({
  options: { minutes: { type: 'string' }, seed: { type: 'string' }, place: { type: 'string' } },
});
const minutes = Number(values.minutes ?? 2);
const seed = Number(values.seed ?? 1 + Math.floor(Math.random() * 1e6));
if (!(minutes > 0 && Number.isSafeInteger(seed)) || (values.place !== undefined && !PLACES.includes(values.place))) {
  console.log(`--minutes and --seed take numbers, --place one of ${PLACES.join(', ')}`);
  process.exit(2);
}

/**
 * The last line of test/soak/main.ts.
 *
 * @typedef {NonNullable<ReturnType<import('../dist/test/soak/memory.js').Memory['trend']>>} Trend
 * @typedef {Pick<import('../dist/test/soak/soak.js').SoakResult, 'counts' | 'maxFiles'>} Counted
 * @typedef {Counted & { failed: boolean, used?: Trend, resident?: Trend }} Result
 */

buildOrExit();
const report = new Report();
/** @param {string} place */
const again = (place) => `again: npm run soak -- --minutes ${minutes} --seed ${seed} --place ${place}`;
/** @param {Trend} trend */
const rounded = ({ meanMib, slopeMib, grownMib }) =>
  `${meanMib.toFixed(1)} MiB in the mean, ${slopeMib.toFixed(2)} MiB a minute, ${grownMib.toFixed(1)} MiB in all`;

/** @param {string} place */
async function soak(place) {
  const args = [
    '--enable-source-maps',
    '--expose-gc',
    join(ROOT, 'dist/test/soak/main.js'),
    place,
    String(minutes),
    String(seed),
  ];
  const { status, out, err } = await capture(process.execPath, args, { timeoutMs: minutes * 60_000 + 300_000 });
  const lines = out.trimEnd().split('\n');
  /** @type {Result} */
  let result;
  try {
    result = JSON.parse(lines.pop() ?? '');
  } catch {
    report.fail(
      `${place}: the soak ran to its end`,
      `status ${status}\n${out.slice(-4000)}${err.slice(-4000)}\n${again(place)}`,
    );
    return;
  }
  const { failed, counts, maxFiles, used, resident } = result;
  console.log(
    `${place}, seed ${seed}: ${Object.entries(counts)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ')}; at most ${maxFiles} SSTables at rest`,
  );
  report.check(
    !failed,
    `${place}: no difference from the model`,
    failed ? `\n${lines.join('\n')}\n${again(place)}` : `${counts['rows judged']} rows judged`,
  );
  if (failed) return;
  if (used === undefined || resident === undefined)
    return report.skip(`${place}: memory stays flat`, 'the run was too short for samples');
  report.check(used.grownMib <= MAX_GROWN_MIB, `${place}: memory in use stays flat`, rounded(used));
  report.check(resident.grownMib <= MAX_RESIDENT_GROWN_MIB, `${place}: resident memory stays flat`, rounded(resident));
}

await report.section(`soak, ${minutes} minutes, seed ${seed}`, async () => {
  await Promise.all((values.place === undefined ? PLACES : [values.place]).map(soak));
});
report.close();
