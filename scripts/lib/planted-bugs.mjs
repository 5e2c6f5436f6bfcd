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
 * @typedef {{ name: string, title: string, changes: { file: string, text: string, wrong: string }[] }} PlantedBug
 * @typedef {{ seed: number, judge: string, message: string }} Found
 * @typedef {{ bug: PlantedBug, from: number, to: number }} Part seeds from `from` up to and without `to`
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
 * @param {{ from: number, to: number }} seeds
 * @param {string[]} nodeOptions
 * @returns {Promise<Found | undefined>}
 */
async function firstFailure(changes, seeds, nodeOptions) {
  return (await runUntilFailure(changes, seeds, nodeOptions)).found;
}

/**
 * Runs the seeds until one fails.
 *
 * @param {object[]} changes
 * @param {{ from: number, to: number }} seeds
 * @param {string[]} nodeOptions
 * @returns {Promise<{ found?: Found, traces: Record<string, string> }>}
 */
async function runUntilFailure(changes, { from, to }, nodeOptions) {
  const args = [...nodeOptions, '--import', PLANT, join(ROOT, 'dist/sim/world/main.js'), `${from}`, `${to}`, 'first'];
  const env = { ...process.env, EDUBBA_PLANTED_BUG: JSON.stringify({ root: ROOT, changes }) };
  const { status, out, err } = await capture(process.execPath, args, { timeoutMs: TIMEOUT_MS, env });
  const last = out.trimEnd().split('\n').at(-1) ?? '';
  if (status !== 0 || !last.startsWith('{'))
    throw new Error(`the simulator ended with status ${status}: ${last}\n${err}`);
  return JSON.parse(last);
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
    return seed === undefined ? [] : [{ bug, from: seed, to: seed + 1 }];
  });
  await inParallel(parts, async (part) => {
    const found = await firstFailure(part.bug.changes, part, nodeOptions);
    if (found === undefined) tally.failed++;
    else tally.passed++;
    report(part, found);
  });
  return tally;
}

/**
 * Searches each bug with the seeds from `from` up to and without `to`, and notes the first seed that finds it in
 * found.json. A seed that fails without the bug finds nothing. Returns the number of bugs that were found, and of the
 * others.
 *
 * @param {readonly PlantedBug[]} bugs
 * @param {{ from: number, to: number, nodeOptions: string[] }} search
 */
export async function searchPlanted(bugs, { from, to, nodeOptions }) {
  const tally = { passed: 0, failed: 0 };
  /** @type {Map<number, Promise<Found | undefined>>} */
  const unplanted = new Map();
  /** @param {number} seed */
  const failureWithout = (seed) => {
    let failure = unplanted.get(seed);
    if (failure === undefined) {
      failure = firstFailure([], { from: seed, to: seed + 1 }, nodeOptions);
      unplanted.set(seed, failure);
    }
    return failure;
  };
  const parts = bugs.map((bug) => ({ bug, from, to: Math.min(from + FIRST_SEEDS, to) }));
  await inParallel(parts, async (part) => {
    const { bug } = part;
    const found = await firstFailure(bug.changes, part, nodeOptions);
    if (found !== undefined) {
      const without = await failureWithout(found.seed);
      if (without !== undefined) {
        console.log(`seed ${found.seed} fails without ${bug.name}, by ${without.judge}: ${without.message}`);
        parts.unshift({ bug, from: found.seed + 1, to: part.to });
        return;
      }
      tally.passed++;
      note(bug.name, found);
      report(part, found);
    } else if (part.to < to) {
      parts.push({ bug, from: part.to, to: Math.min(part.to + Math.min(part.to - from, MOST_SEEDS), to) });
    } else {
      tally.failed++;
      report({ ...part, from }, undefined);
    }
  });
  return tally;
}

/**
 * Searches bugs that a seed seldom meets, many at a time: a seed runs with all of them, and if it fails, with halves of
 * them, until it fails with one alone. A bug that shows in the trace wherever it is planted would change what others
 * meet: each of these is searched alone, after them. Otherwise as `searchPlanted`.
 *
 * @param {readonly PlantedBug[]} bugs
 * @param {{ from: number, to: number, nodeOptions: string[] }} search
 */
export async function searchTogether(bugs, { from, to, nodeOptions }) {
  const tally = { passed: 0, failed: 0 };
  const plain = await runUntilFailure([], { from, to: from + 1 }, nodeOptions);
  /** @type {PlantedBug[]} */
  const quiet = [];
  await inParallel(
    bugs.map((bug) => ({ bug, from, to: from + 1 })),
    async ({ bug, ...seeds }) => {
      const { traces } = await runUntilFailure(bug.changes, seeds, nodeOptions);
      if (traces[from] === plain.traces[from]) quiet.push(bug);
    },
  );
  for (const group of apart(quiet)) {
    console.log(`together: ${group.map(({ name }) => name).join(', ')}`);
    const left = new Set(group);
    /** @type {{ from: number, to: number }[]} */
    const parts = [];
    for (let at = from; at < to; at += MOST_SEEDS) parts.push({ from: at, to: Math.min(at + MOST_SEEDS, to) });
    await inParallel(parts, async (part) => {
      for (let at = part.from; at < part.to && left.size > 0; ) {
        const changes = [...left].flatMap((bug) => bug.changes);
        const failure = await firstFailure(changes, { from: at, to: part.to }, nodeOptions);
        if (failure === undefined) return;
        const seeds = { from: failure.seed, to: failure.seed + 1 };
        at = seeds.to;
        const culprit = await findCulprit([...left], seeds, nodeOptions);
        if (culprit === undefined || !left.has(culprit.bug)) continue;
        const { bug, found } = culprit;
        const without = await firstFailure([], seeds, nodeOptions);
        if (without !== undefined) {
          console.log(`seed ${failure.seed} fails without a planted bug, by ${without.judge}: ${without.message}`);
          continue;
        }
        left.delete(bug);
        tally.passed++;
        note(bug.name, found);
        report({ bug, ...seeds }, found);
      }
    });
    for (const bug of left) report({ bug, from, to }, undefined);
    tally.failed += left.size;
  }
  const loud = bugs.filter((bug) => !quiet.includes(bug));
  const others = await searchPlanted(loud, { from, to, nodeOptions });
  return { passed: tally.passed + others.passed, failed: tally.failed + others.failed };
}

/**
 * One of the bugs with which alone the seed fails, found by halves. Undefined where it takes several of them together.
 *
 * @param {readonly PlantedBug[]} bugs
 * @param {{ from: number, to: number }} seeds
 * @param {string[]} nodeOptions
 * @returns {Promise<{ bug: PlantedBug, found: Found } | undefined>}
 */
async function findCulprit(bugs, seeds, nodeOptions) {
  const middle = Math.ceil(bugs.length / 2);
  for (const half of [bugs.slice(0, middle), bugs.slice(middle)]) {
    if (half.length === 0) continue;
    const changes = half.flatMap((bug) => bug.changes);
    const found = await firstFailure(changes, seeds, nodeOptions);
    if (found === undefined) continue;
    const [bug, ...others] = half;
    return bug !== undefined && others.length === 0 ? { bug, found } : findCulprit(half, seeds, nodeOptions);
  }
  return undefined;
}

/**
 * Groups of bugs that can be planted together: each finds the text that it changes when the others are planted.
 *
 * @param {readonly PlantedBug[]} bugs
 */
function apart(bugs) {
  /** @type {PlantedBug[][]} */
  const groups = [];
  for (const bug of bugs) {
    const group = groups.find((others) => canBePlanted([...others, bug].flatMap(({ changes }) => changes)));
    if (group) group.push(bug);
    else groups.push([bug]);
  }
  return groups;
}

/** @param {readonly { file: string, text: string, wrong: string }[]} changes */
function canBePlanted(changes) {
  /** @type {Map<string, string>} */
  const sources = new Map();
  return changes.every(({ file, text, wrong }) => {
    const parts = (sources.get(file) ?? readFileSync(join(ROOT, 'src', file), 'utf8')).split(text);
    sources.set(file, parts.join(wrong));
    return parts.length === 2;
  });
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
 * @param {Part} part
 * @param {Found | undefined} found
 */
function report({ bug: { name, title }, from, to }, found) {
  if (found === undefined) console.log(`${name} NOT FOUND with seeds ${from} to ${to - 1}: ${title}`);
  else console.log(`${name} seed ${found.seed}, by ${found.judge}: ${title}\n    ${found.message}`);
}
