/**
 * The contract of every Workers, as tests. `make` returns workers that know the tasks of workers-tasks/ by their file
 * names.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { BigtableError, Code, CorruptionError, codeName } from '../../src/base/index.ts';
import type { Workers } from '../../src/env/index.ts';

export interface WorkersUnderTest {
  readonly workers: Workers;
  readonly close?: () => Promise<void>;
}

/** One subject serves all tests, since threads are slow to start; the test that closes takes one of its own. */
export function workersContract(name: string, make: () => Promise<WorkersUnderTest>): void {
  describe(`workers contract: ${name}`, () => {
    let shared: WorkersUnderTest;
    before(async () => {
      shared = await make();
    });
    after(async () => {
      await shared.workers.close();
      await shared.close?.();
    });
    const contract: Contract = (title, body) => test(title, () => body(shared.workers));
    tasksRun(contract);
    tasksFail(contract);
    closingEnds(make);
  });
}

type Contract = (title: string, body: (workers: Workers) => Promise<void>) => void;

function tasksRun(contract: Contract): void {
  contract('a task gets its argument and its answer comes back, whatever can be cloned', async (workers) => {
    const values = [
      undefined,
      null,
      true,
      1.5,
      Number.POSITIVE_INFINITY,
      2n ** 63n,
      'text',
      [1, [2]],
      { a: { b: 1 } },
      new Map([['k', 1]]),
      Uint8Array.of(1, 2, 3),
    ];
    for (const value of values) assert.deepEqual(await workers.run('echo', value), value);
  });

  contract('argument and answer are copies', async (workers) => {
    const argument = { list: [1, 2, 3] };
    const answer = await workers.run('echo', argument);
    assert.deepEqual(answer, argument);
    assert.notEqual(answer, argument);
    const given = { list: [3, 1, 2] };
    assert.deepEqual(await workers.run('sort', given), [1, 2, 3]);
    assert.deepEqual(given.list, [3, 1, 2], 'a task changes its own copy alone');
  });

  contract('many tasks at once each get their own answer', async (workers) => {
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => workers.run('echo', i)));
    assert.deepEqual(
      answers,
      Array.from({ length: 40 }, (_, i) => i),
    );
  });
}

function tasksFail(contract: Contract): void {
  contract('what a task throws arrives as BigtableError with its code, retry and details', async (workers) => {
    const error = await failure(workers.run('fail', { kind: 'bigtable' }));
    assert.equal(codeName(error.code), codeName(Code.RESOURCE_EXHAUSTED));
    assert.equal(error.message, 'no room');
    assert.equal(error.retry, true);
    assert.deepEqual(error.details, { limitBytes: 5 });
  });

  contract('corruption keeps its file and offset', async (workers) => {
    const error = await failure(workers.run('fail', { kind: 'corruption' }));
    assert.ok(error instanceof CorruptionError);
    assert.deepEqual(
      [error.file, error.offset, error.message],
      ['a/b.sst', 17, 'a/b.sst: corrupt at byte 17: bad magic'],
    );
  });

  contract('what is no BigtableError becomes INTERNAL', async (workers) => {
    for (const [kind, message] of [
      ['type-error', 'not a thing'],
      ['text', 'just text'],
    ] as const) {
      const error = await failure(workers.run('fail', { kind }));
      assert.equal(codeName(error.code), codeName(Code.INTERNAL));
      assert.equal(error.message, message);
    }
  });

  contract('an argument or an answer that cannot be cloned fails that task alone', async (workers) => {
    assert.equal((await failure(workers.run('echo', () => 1))).code, Code.INTERNAL);
    assert.equal((await failure(workers.run('fail', { kind: 'uncloneable answer' }))).code, Code.INTERNAL);
    assert.equal(await workers.run('echo', 'still here'), 'still here');
  });

  contract('an unknown task is NOT_FOUND', async (workers) => {
    const error = await failure(workers.run('no-such-task', 1));
    assert.equal(error.code, Code.NOT_FOUND);
    assert.match(error.message, /no-such-task/);
  });
}

function closingEnds(make: () => Promise<WorkersUnderTest>): void {
  test('closing fails the tasks that run and those that come', async () => {
    const { workers, close } = await make();
    const answered = await workers.run('echo', 1);
    assert.equal(answered, 1);
    const outcomes = Promise.allSettled([1, 2, 3].map((i) => workers.run('hang', i)));
    await workers.close();
    for (const outcome of await outcomes) {
      assert.ok(
        outcome.status === 'rejected' &&
          outcome.reason instanceof BigtableError &&
          outcome.reason.code === Code.UNAVAILABLE,
      );
    }
    assert.equal((await failure(workers.run('echo', 1))).code, Code.UNAVAILABLE);
    await workers.close();
    await close?.();
  });
}

async function failure(call: Promise<unknown>): Promise<BigtableError> {
  const outcome = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(outcome instanceof BigtableError, `expected a BigtableError, not ${outcome}`);
  return outcome;
}
