/**
 * The power fails before each single operation on files that changes anything (each write, sync, close, deletion,
 * append and trim; METADATA's commits and the lock service's changes are such operations too), in scenarios that have
 * every kind of compaction. What was not durable is lost, whole, torn, or not at all. Afterwards everything
 * acknowledged is there, nothing is there that no call wrote, and after one sweep nothing is left behind.
 */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { BigtableError } from '../../src/embedded/index.ts';
import { type FileOperation, type MemoryFileSystem, SeededRandom } from '../../src/env/index.ts';
import { Life, type Scenario, SCENARIOS, Stage, TABLE } from './scenarios.ts';
import { Simulation } from './simulation.ts';
import { assertWhole } from './whole.ts';
import type { Witness } from './witness.ts';

/** Every how manieth operation; EDUBBA_CRASH_STRIDE=1 is the long form, .ci/run tries every eighth. */
const STRIDE = Number(process.env['EDUBBA_CRASH_STRIDE'] ?? 29);
const MAX_MS = STRIDE === 1 ? 3_600_000 : 600_000;
const CHANGES: ReadonlySet<FileOperation> = new Set([
  'create',
  'appendFile',
  'closeFile',
  'syncFile',
  'delete',
  'openLog',
  'appendLog',
  'syncLog',
  'trimLog',
  'fence',
  'deleteLog',
]);

let stage: Stage;
before(async () => {
  stage = await Stage.prepare();
});

/** Opens the database after a power failure, checks it, works with it, and opens it again. */
async function lookAfter(fileSystem: MemoryFileSystem, witness: Witness, simulation: Simulation): Promise<void> {
  const db = await simulation.open(fileSystem);
  const life = new Life(simulation, witness, db, false);
  await witness.check(db.database.table(TABLE), 'after the power failed');
  await life.write(
    'row-1',
    { kind: 'set', family: 'f', qualifier: 'after', timestamp: 5n, value: 'w' },
    { kind: 'add', family: 'sum', qualifier: 'n', timestamp: 0n, input: 1n },
  );
  await db.opened.compact();
  await witness.check(db.database.table(TABLE), 'after a major compaction of all');
  await db.opened.sweep();
  await assertWhole(db.opened, 'after one sweep');
  await db.database.close();
  const again = await simulation.open(fileSystem);
  await witness.check(again.database.table(TABLE), 'after it was opened once more');
  await again.database.close();
}

/** Runs the scenario up to the operation of that number. Answers the operation, undefined where it was over before. */
async function crashAt(scenario: Scenario, at: number): Promise<string | undefined> {
  const simulation = new Simulation();
  let count = 0;
  let crashed: string | undefined;
  let tellCrash = (): void => {};
  const crash = new Promise<void>((resolve) => (tellCrash = resolve));
  let found: MemoryFileSystem | undefined;
  const set = stage.set((operation, path) => {
    if (crashed !== undefined || !CHANGES.has(operation) || ++count < at) return;
    crashed = `${operation} ${path}`;
    found = set.fileSystem.crash(new SeededRandom(at), () => {});
    tellCrash();
  });
  const witness = set.witness(simulation);
  const live = async (): Promise<void> => {
    const db = await simulation.open(set.fileSystem);
    const life = new Life(simulation, witness, db, false);
    await scenario.run(life);
    assert.ok((life.counters[scenario.counter] ?? 0) > 0, `${scenario.counter} was not counted`);
    await db.database.close();
  };
  try {
    // nothing is answered once the power has failed
    await simulation.run(Promise.race([live(), crash]));
  } catch (error) {
    if (crashed === undefined || !(error instanceof BigtableError)) throw error;
  }
  const later = new Simulation(simulation.clock.nowMicros());
  try {
    await later.run(lookAfter(found ?? set.fileSystem.crash(), rebased(witness, later), later));
  } catch (error) {
    const messages = [...simulation.messages.slice(-3), ...later.messages.slice(-5)].join('\n');
    throw new Error(
      `the power failed before operation ${at}, ${crashed ?? 'which never came'}: ${error instanceof Error ? error.stack : error}\n${messages}`,
      { cause: error },
    );
  }
  return crashed;
}

const rebased = (witness: Witness, simulation: Simulation): Witness => witness.copy(() => simulation.clock.nowMicros());

describe('the power fails before every operation', () => {
  for (const scenario of SCENARIOS) {
    test(scenario.name, { timeout: MAX_MS }, async () => {
      let points = 0;
      for (let at = 1; (await crashAt(scenario, at)) !== undefined; at += STRIDE) points++;
      assert.ok(points * STRIDE > 40, `only ${points} points`);
      console.log(`crash: ${points} power failures in "${scenario.name}"`);
    });
  }
});
