/** Searches for the seeds with which the simulator finds planted bugs (sim/planted). */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { capture, ROOT } from './repository.mjs';

/** Each bug is to be found within so many seeds. */
export const MAX_SEEDS = 1000;
/** Seeds of a bug that are tried before those of the next bug: few at first, since most bugs are found soon. */
const FIRST_SEEDS = 5;
const MOST_SEEDS = 40;
const TIMEOUT_MS = 1_800_000;
const PLANT = pathToFileURL(join(ROOT, 'sim/planted/plant.mjs')).href;
const FOUND = join(ROOT, 'sim/planted/found.json');

/**
 * @typedef {{ name: string, title: string, meeting?: string, changes: object[] }} PlantedBug
 * @typedef {{ seed: number, judge: string, message: string }} Found
 */

/** @returns {Promise<readonly PlantedBug[]>} */
export async function plantedBugs() {
  return (await import(pathToFileURL(join(ROOT, 'dist/sim/planted/index.js')).href)).PLANTED_BUGS;
}

/**
 * The seeds that have found them, by name.
 *
 * @returns {Record<string, { seed: number, judge: string }>}
 */
const knownSeeds = () => JSON.parse(readFileSync(FOUND, 'utf8'));

/**
 * The first of the seeds that fails, with these changes of the source; undefined if none does.
 *
 * @param {object[]} changes
 * @param {readonly number[]} seeds
 * @param {string[]} nodeOptions
 * @returns {Promise<Found | undefined>}
 */
async function firstFailure(changes, seeds, nodeOptions) {
  const args = [...nodeOptions, '--import', PLANT, join(ROOT, 'dist/sim/world/main.js'), seeds.join(), 'first'];
  const env = { ...process.env, EDUBBA_PLANTED_BUG: JSON.stringify({ root: ROOT, changes }) };
  const { status, out, err } = await capture(process.execPath, args, { timeoutMs: TIMEOUT_MS, env });
  const last = out.trimEnd().split('\n').at(-1) ?? '';
  if (status !== 0 || !last.startsWith('{'))
    throw new Error(`the simulator ended with status ${status}: ${last}\n${err}`);
  return JSON.parse(last).found;
}

/**
 * Takes parts as long as there are any, as many at a time as there are cores. `work` may add parts.
 *
 * @template P
 * @param {P[]} parts
 * @param {(part: P) => Promise<void>} work
 */
async function inParallel(parts, work) {
  const worker = async () => {
    for (let part = parts.shift(); part; part = parts.shift()) await work(part);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
}

/**
 * Runs each bug with the seed that is known to find it. Returns the number of those that it finds, and of the others.
 *
 * @param {readonly PlantedBug[]} bugs
 * @param {string[]} nodeOptions
 */
export async function replayPlanted(bugs, nodeOptions) {
  const known = knownSeeds();
  const tally = { passed: 0, failed: 0 };
  const parts = bugs.flatMap((bug) => {
    const seed = known[bug.name]?.seed;
    return seed === undefined ? [] : [{ bug, seed }];
  });
  await inParallel(parts, async ({ bug, seed }) => {
    const found = await firstFailure(bug.changes, [seed], nodeOptions);
    if (found === undefined) tally.failed++;
    else tally.passed++;
    report(bug, found, `seed ${seed}`);
  });
  return tally;
}

/**
 * Searches each bug with the seeds from `from` up to and without `to`, those of its meeting first, and notes the first
 * seed that finds it in found.json. A seed that fails without the bug finds nothing. Returns the number of bugs that
 * were found, and of the others.
 *
 * @param {readonly PlantedBug[]} bugs
 * @param {{ from: number, to: number, nodeOptions: string[] }} search
 */
export async function searchPlanted(bugs, { from, to, nodeOptions }) {
  const { meetingsOf } = await import(pathToFileURL(join(ROOT, 'dist/sim/world/faults.js')).href);
  const seeds = Array.from({ length: to - from }, (_, i) => from + i);
  const meetings = new Map(seeds.map((seed) => [seed, meetingsOf(seed)]));
  /** @param {PlantedBug} bug */
  const inOrder = ({ meeting }) => {
    const isFirst = (/** @type {number} */ seed) => meeting !== undefined && meetings.get(seed)?.has(meeting) === true;
    return [...seeds.filter(isFirst), ...seeds.filter((seed) => !isFirst(seed))];
  };
  const tally = { passed: 0, failed: 0 };
  /** @type {Map<number, Promise<Found | undefined>>} */
  const unplanted = new Map();
  /** @param {number} seed */
  const failureWithout = (seed) => {
    let failure = unplanted.get(seed);
    if (failure === undefined) {
      failure = firstFailure([], [seed], nodeOptions);
      unplanted.set(seed, failure);
    }
    return failure;
  };
  const parts = bugs.map((bug) => ({ bug, left: inOrder(bug), count: FIRST_SEEDS }));
  await inParallel(parts, async ({ bug, left, count }) => {
    const tried = left.slice(0, count);
    const found = await firstFailure(bug.changes, tried, nodeOptions);
    const next = left.slice(found === undefined ? tried.length : tried.indexOf(found.seed) + 1);
    const without = found && (await failureWithout(found.seed));
    if (found !== undefined && without === undefined) {
      tally.passed++;
      note(bug.name, found);
      return report(bug, found);
    }
    if (without !== undefined)
      console.log(`seed ${found?.seed} fails without ${bug.name}, by ${without.judge}: ${without.message}`);
    if (next.length > 0) {
      parts.push({ bug, left: next, count: Math.min(2 * count, MOST_SEEDS) });
    } else {
      tally.failed++;
      report(bug, undefined, `seeds ${from} to ${to - 1}`);
    }
  });
  return tally;
}

/**
 * @param {string} name
 * @param {Found} found
 */
function note(name, { seed, judge }) {
  const all = Object.entries({ ...knownSeeds(), [name]: { seed, judge } }).sort(([a], [b]) => (a < b ? -1 : 1));
  const lines = all.map(([bug, { seed, judge }]) => `  "${bug}": { "seed": ${seed}, "judge": "${judge}" }`);
  writeFileSync(FOUND, `{\n${lines.join(',\n')}\n}\n`);
}

/**
 * @param {PlantedBug} bug
 * @param {Found | undefined} found
 * @param {string} [tried] the seeds
 */
function report({ name, title }, found, tried) {
  if (found === undefined) console.log(`${name} NOT FOUND with ${tried}: ${title}`);
  else console.log(`${name} seed ${found.seed}, by ${found.judge}: ${title}\n    ${found.message}`);
}
