/**
 * Each single operation on files meets a trouble, in the scenarios of the power failures. The database goes on, or says
 * clearly what failed and goes on in a new incarnation; once the disk works again everything acknowledged is there, and
 * after one sweep nothing is left over. Then it is opened anew, and all that is so again. Which trouble:
 * io-error.test.ts, full-disk.test.ts.
 */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { DatabaseSettings } from '../../src/boot/index.ts';
import { BigtableError } from '../../src/embedded/index.ts';
import type { FileOperation } from '../../src/env/index.ts';
import { Life, type Scenario, SCENARIOS, Stage } from './scenarios.ts';
import { Simulation, type SimulatedDatabase, SMALL } from './simulation.ts';
import { assertWhole } from './whole.ts';
import type { Witness } from './witness.ts';

/** Every how manieth operation; EDUBBA_CRASH_STRIDE=1 is the long form, .ci/run tries every eighth. */
const STRIDE = Number(process.env['EDUBBA_CRASH_STRIDE'] ?? 37);
const MAX_MS = STRIDE === 1 ? 3_600_000 : 600_000;
/** How long a database may take until it answers again. */
const PATIENCE_MS = 60_000;
/** After the scenario: no trouble lasts longer. */
const QUIET_MS = 4000;

export interface Trouble {
  readonly name: string;
  /** The error of this operation, if it is one that has any. */
  fail(operation: FileOperation, path: string): BigtableError | undefined;
  /** How long operations of its kind fail from then on. */
  readonly lastsMs: number;
  /** The database's settings. Default: those of the simulation. */
  readonly settings?: Partial<DatabaseSettings>;
  /** In the short form: how many times the usual stride lies between two points. Default: 1. */
  readonly strideTimes?: number;
}

/** Calls again while no incarnation serves. */
async function patiently(simulation: Simulation, work: () => Promise<unknown>): Promise<void> {
  const endMs = simulation.clock.monotonicMs() + PATIENCE_MS;
  for (;;) {
    try {
      await work();
      return;
    } catch (error) {
      if (!(error instanceof BigtableError) || simulation.clock.monotonicMs() > endMs) throw error;
      await simulation.sleep(200);
    }
  }
}

/** Asserts what must hold once the disk works again. */
async function lookAt(simulation: Simulation, witness: Witness, db: SimulatedDatabase, when: string): Promise<void> {
  const life = new Life(simulation, witness, db, true);
  await patiently(simulation, () => witness.check(life.table, when));
  await patiently(simulation, async () => {
    await life.opened.flush();
    await life.opened.compact();
  });
  await witness.check(life.table, `${when}, after a major compaction`);
  await life.write('row-1', { kind: 'set', family: 'f', qualifier: 'after', timestamp: 5n, value: when });
  assert.deepEqual(life.failures, [], when);
  await life.opened.sweep();
  await assertWhole(life.opened, `${when}, after one sweep`);
}

/** Answers the operation that failed, undefined where the scenario was over before. */
async function failAt(stage: Stage, scenario: Scenario, trouble: Trouble, at: number): Promise<string | undefined> {
  const simulation = new Simulation();
  let count = 0;
  let failed: string | undefined;
  let untilMs = Number.NEGATIVE_INFINITY;
  const set = stage.set((operation, path) => {
    const now = simulation.clock.monotonicMs();
    const error = trouble.fail(operation, path);
    if (error === undefined) return;
    if (failed === undefined && ++count >= at) {
      failed = `${operation} ${path}`;
      untilMs = now + trouble.lastsMs;
      throw error;
    }
    if (now < untilMs) throw error;
  });
  const witness = set.witness(simulation);
  const work = async (): Promise<void> => {
    let db: SimulatedDatabase | undefined;
    // what cannot be opened says so, and can be opened later
    const open = (): Promise<SimulatedDatabase> => simulation.open(set.fileSystem, { ...SMALL, ...trouble.settings });
    await patiently(simulation, async () => void (db = await open()));
    if (db === undefined) return;
    await scenario.run(new Life(simulation, witness, db, true));
    if (failed === undefined) return;
    await simulation.sleep(QUIET_MS);
    await lookAt(simulation, witness, db, 'once the disk works again');
    await db.database.close();
    const again = await open();
    await lookAt(simulation, witness, again, 'after it was opened anew');
    await again.database.close();
  };
  try {
    await simulation.run(work());
  } catch (error) {
    const text = `${trouble.name} at operation ${at}, ${failed ?? 'which never came'}: ${error instanceof Error ? error.stack : error}\n${simulation.messages.slice(-8).join('\n')}`;
    throw new Error(text, { cause: error });
  }
  return failed;
}

/** The tests of one trouble: a scenario each. */
export function atEveryOperation(trouble: Trouble): void {
  const stride = STRIDE === 1 ? 1 : STRIDE * (trouble.strideTimes ?? 1);
  describe(`${trouble.name} at every operation`, () => {
    let stage: Stage;
    before(async () => {
      assert.ok(trouble.lastsMs <= QUIET_MS);
      stage = await Stage.prepare();
    });
    for (const scenario of SCENARIOS) {
      test(scenario.name, { timeout: MAX_MS }, async () => {
        let points = 0;
        for (let at = 1; (await failAt(stage, scenario, trouble, at)) !== undefined; at += stride) points++;
        assert.ok(points * stride > 40, `only ${points} points`);
        console.log(`crash: ${trouble.name} ${points} times in "${scenario.name}"`);
      });
    }
  });
}
