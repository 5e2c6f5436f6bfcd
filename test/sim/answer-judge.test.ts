import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { AnswerJudge } from '../../sim/world/answer-judge.ts';
import { SESSION_MS, SimLockService } from '../../sim/world/locks.ts';
import { SimProcess } from '../../sim/world/process.ts';
import { Scheduler } from '../../sim/world/scheduler.ts';
import { Verdicts } from '../../sim/world/verdicts.ts';
import { recordsOf } from '../../src/commitlog/index.ts';
import { appendsOf } from './appends.ts';

const TABLE = '00000001';
const CHANGE = { row: 'a', mutations: [{ kind: 'deleteFromRow' }] };
const CALL = { tableId: TABLE, ...CHANGE, entries: [CHANGE] };
/** A merge of NULL. */
const NO_CHANGE = { row: 'a', mutations: [{ kind: 'mergeToCell', family: 'f', qualifier: 'x', state: undefined }] };

describe('the judge of answers', () => {
  let scheduler: Scheduler;
  let process: SimProcess;
  let judge: AnswerJudge;
  let verdicts: Verdicts;
  let locks: SimLockService;

  beforeEach(() => {
    scheduler = new Scheduler(1);
    process = new SimProcess(scheduler, 'server-0.1', { offsetMs: 0, drift: 0 });
    locks = new SimLockService(scheduler);
    verdicts = new Verdicts();
    judge = new AnswerJudge(scheduler, locks, verdicts);
    locks.onOutlasted = (one) => judge.outlasted(one);
  });

  const answer = (method: string, begunMs: number, answered: unknown = undefined): void =>
    judge.answered({ process, method, message: CALL, begunMs }, answered);
  const sleepFor = (ms: number): Promise<void> =>
    scheduler.run(new Promise((resolve) => scheduler.after(ms, undefined, 'wait', resolve)), 1e6);

  /** A record of the row becomes durable now. */
  async function write(): Promise<void> {
    const [append] = await appendsOf('logs/one', TABLE, ['a']);
    judge.appended(process.name, recordsOf('logs/one', append!));
  }

  /** The process opens a session, and stands still until that is over. */
  async function loseSession(): Promise<void> {
    await scheduler.run(locks.clientOf(process).openSession(), 1000);
    process.pause(2 * SESSION_MS);
    await sleepFor(SESSION_MS + 100);
  }

  test('accepts a write that is durable, and a read that began before the end of the session', async () => {
    await write();
    answer('mutateRow', scheduler.nowMs);
    const begunMs = scheduler.nowMs;
    await loseSession();
    answer('read', begunMs);
    answer('checkAndMutateRow', begunMs);
    answer('mutateRows', scheduler.nowMs, { outcomes: [new Error('not serving')] });
    answer('status', scheduler.nowMs);
    assert.equal(verdicts.first, undefined);
  });

  test('accepts an answer to a write that changes nothing, at any time', async () => {
    await loseSession();
    const begunMs = scheduler.nowMs;
    const call = { process, message: { ...NO_CHANGE, entries: [NO_CHANGE, CHANGE] }, begunMs };
    judge.answered({ ...call, method: 'mutateRow' }, undefined);
    judge.answered({ ...call, method: 'mutateRows' }, { outcomes: [undefined, new Error('not serving')] });
    assert.equal(verdicts.first, undefined);
    judge.answered({ ...call, method: 'mutateRows' }, { outcomes: [undefined, undefined] });
    assert.match(verdicts.first!.message, /answers mutateRows, and its session was over/);
  });

  test('finds a write that is acknowledged before it is durable', async () => {
    await write();
    await sleepFor(1);
    answer('readModifyWriteRow', scheduler.nowMs);
    assert.match(verdicts.first!.message, /acknowledges readModifyWriteRow of row "a", which is not durable/);
  });

  test('accepts a write that is not durable where writes are buffered, and not after the end of the session', async () => {
    judge = new AnswerJudge(scheduler, locks, verdicts, true);
    answer('mutateRow', scheduler.nowMs);
    assert.equal(verdicts.first, undefined);
    await loseSession();
    answer('mutateRow', 0);
    assert.match(verdicts.first!.message, /server-0.1 answers mutateRow, and its session was over/);
  });

  test('finds a write that is acknowledged after the end of the session', async () => {
    await loseSession();
    await write();
    answer('mutateRow', 0);
    assert.match(verdicts.first!.message, /server-0.1 answers mutateRow, and its session was over/);
  });

  test('finds a read that begins after the end of the session', async () => {
    await loseSession();
    answer('read', scheduler.nowMs);
    assert.match(verdicts.first!.message, /server-0.1 answers read/);
  });

  test('finds a lease that outlasts its session: that of a clock which is too slow', async () => {
    const slow = new SimProcess(scheduler, 'server-1.1', { offsetMs: 0, drift: -0.05 });
    await scheduler.run(locks.clientOf(slow).openSession(), 1000);
    locks.cut(slow.machine, true);
    await sleepFor(SESSION_MS + 100);
    assert.match(verdicts.first!.message, /the session of server-1.1 is over, and its lease holds/);
  });
});
