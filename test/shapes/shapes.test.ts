/**
 * V8 keeps no object of a hot class as a dictionary, whatever the order of the workloads: each access to a field of it
 * would then search a hash table (docs/decisions/0041-plain-names.md). The bundle is judged, since it is what ships;
 * each order runs in a process of its own, a server and a program with the library by turns.
 *
 * Only instances of classes are judged: plain objects with names as keys are dictionaries by design.
 * EDUBBA_SHAPES_SEEDS=200 tries more orders; .ci/run tries 20.
 */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { SeededRandom } from '../../src/env/index.ts';
import { hotClasses } from './bundled-classes.ts';
import { JudgedProcess } from './judged-process.ts';
import type { ClassCount, ProgramClass } from './messages.ts';
import { WORKLOAD_NAMES, type WorkloadName } from './workloads.ts';

const SEEDS = Number(process.env['EDUBBA_SHAPES_SEEDS'] ?? 6);
const CONCURRENT_ORDERS = 2;
/** The workloads run with that number of calls to warm up, and then with fewer under the watch. */
const WARM_CALLS = 200;
const WATCHED_CALLS = 25;

/** Classes that every order must use: a test that finds no objects proves nothing. */
const ENGINE_CLASSES = ['Memtable', 'MergeCursor', 'ServerLog', 'SsTable', 'Tablet', 'TabletServer'];
const USED_CLASSES = {
  server: [...ENGINE_CLASSES, 'ChunkWriter', 'Connection', 'HpackDecoder', 'ServerCall', 'WireReader'],
  library: ENGINE_CLASSES,
} as const;

let classes: readonly ProgramClass[] = [];
before(async () => {
  classes = await hotClasses();
});

function orderOf(seed: number): readonly WorkloadName[] {
  const random = new SeededRandom(seed);
  const left = [...WORKLOAD_NAMES];
  const order: WorkloadName[] = [];
  while (left.length > 0) order.push(...left.splice(Math.floor(random.float() * left.length), 1));
  return order;
}

/** The objects that were found after the workloads, by class. */
async function countsAfter(
  judged: JudgedProcess,
  order: readonly WorkloadName[],
  planted?: ProgramClass,
): Promise<readonly ClassCount[]> {
  await judged.run(order, WARM_CALLS);
  if (planted !== undefined) await judged.ask({ kind: 'plant', planted });
  await judged.ask({ kind: 'watch', classes });
  await judged.run(order, WATCHED_CALLS);
  return judged.ask({ kind: 'counts' });
}

const dictionariesIn = (counts: readonly ClassCount[]): string[] =>
  counts.filter(({ dictionaries }) => dictionaries > 0).map(({ name }) => name);

describe('no object of a hot class is a dictionary', { concurrency: CONCURRENT_ORDERS }, () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const program = seed % 2 === 0 ? 'library' : 'server';
    const order = orderOf(seed);
    test(`in a ${program}, in the order of seed ${seed}: ${order.join(', ')}`, async (t) => {
      const counts = await countsAfter(await JudgedProcess[program](t), order);
      const found = new Set(counts.filter(({ fast }) => fast > 0).map(({ name }) => name));
      assert.deepEqual(dictionariesIn(counts), []);
      assert.deepEqual(
        USED_CLASSES[program].filter((name) => !found.has(name)),
        [],
      );
    });
  }
});

describe('a planted dictionary is found', { concurrency: CONCURRENT_ORDERS }, () => {
  for (const [program, className] of [
    ['server', 'TabletServer'],
    ['library', 'Memtable'],
  ] as const)
    test(`among the objects of a ${program}: ${className}`, async (t) => {
      const planted = classes.find(({ name }) => name === className);
      assert.ok(planted);
      const counts = await countsAfter(await JudgedProcess[program](t), WORKLOAD_NAMES, planted);
      assert.deepEqual(dictionariesIn(counts), [className]);
    });
});
