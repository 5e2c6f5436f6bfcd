/** Searches for the seeds with which the simulator finds planted bugs (sim/planted). */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { capture, ROOT } from './repository.mjs';

/** Each bug is to be found within so many seeds. */
export const MAX_SEEDS = 1000;
const TIMEOUT_MS = 9 * 3_600_000;
const PLANT = pathToFileURL(join(ROOT, 'sim/planted/plant.mjs')).href;
const FOUND = join(ROOT, 'sim/planted/found.json');

/**
 * @typedef {{ name: string, title: string, changes: object[] }} PlantedBug
 * @typedef {{ seed: number, judge: string, message?: string }} Found
 */

/** @returns {Promise<readonly PlantedBug[]>} */
export async function plantedBugs() {
  return (await import(pathToFileURL(join(ROOT, 'dist/sim/planted/index.js')).href)).PLANTED_BUGS;
}

/**
 * The seeds that have found them, by name.
 *
 * @returns {Record<string, Found>}
 */
export const knownSeeds = () => JSON.parse(readFileSync(FOUND, 'utf8'));

/**
 * Looks for the bug with the seeds from `from` up to and without `to`. Returns the first that finds it, undefined if
 * none does.
 *
 * @param {PlantedBug} bug
 * @param {{ from: number, to: number, nodeOptions: string[] }} search
 * @returns {Promise<Found | undefined>}
 */
async function searchFor({ changes }, { from, to, nodeOptions }) {
  const args = [...nodeOptions, '--import', PLANT, join(ROOT, 'dist/sim/world/main.js'), `${from}`, `${to}`, 'first'];
  const env = { ...process.env, EDUBBA_PLANTED_BUG: JSON.stringify({ root: ROOT, changes }) };
  const { status, out, err } = await capture(process.execPath, args, { timeoutMs: TIMEOUT_MS, env });
  const last = out.trimEnd().split('\n').at(-1) ?? '';
  if (status !== 0 || !last.startsWith('{'))
    throw new Error(`the simulator ended with status ${status}: ${last}\n${err}`);
  return JSON.parse(last).found;
}

/**
 * Searches for the bugs, as many at a time as there are cores, and prints a line for each. `isReplay`: with the seeds
 * that are known to find them. Returns the number of those that were found and of those that were not.
 *
 * @param {readonly PlantedBug[]} bugs
 * @param {{ isReplay: boolean, from: number, to: number, nodeOptions: string[] }} search
 */
export async function findPlanted(bugs, { isReplay, from, to, nodeOptions }) {
  const known = knownSeeds();
  const tally = { passed: 0, failed: 0 };
  const left = [...bugs];
  const work = async () => {
    for (let bug = left.shift(); bug; bug = left.shift()) {
      const seed = known[bug.name]?.seed;
      if (isReplay && seed === undefined) continue;
      const seeds = isReplay ? { from: seed, to: seed + 1 } : { from, to };
      const found = await searchFor(bug, { ...seeds, nodeOptions });
      if (found === undefined) {
        tally.failed++;
        console.log(`${bug.name} NOT FOUND with seeds ${seeds.from} to ${seeds.to - 1}: ${bug.title}`);
      } else {
        tally.passed++;
        console.log(`${bug.name} seed ${found.seed}, by ${found.judge}: ${bug.title}\n    ${found.message}`);
      }
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  return tally;
}
