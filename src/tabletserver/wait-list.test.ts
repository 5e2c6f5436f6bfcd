import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Code } from '../base/index.ts';
import { ByteBudget, ManualClock, requestContext } from '../env/index.ts';
import { WaitList } from './wait-list.ts';

const budget = new ByteBudget(1024);

describe('calls that wait for space', () => {
  test('are woken all together, once', async () => {
    const list = new WaitList(new ManualClock(), 'a compaction');
    const woken: number[] = [];
    const waits = [0, 1, 2].map((i) => list.next(requestContext({ budget })).then(() => woken.push(i)));
    list.wake();
    await Promise.all(waits);
    assert.deepEqual(woken, [0, 1, 2]);
    list.wake();
  });

  test('end at their deadline, or when their caller cancels', async () => {
    const clock = new ManualClock();
    const list = new WaitList(clock, 'a compaction');
    const late = list.next(requestContext({ budget, deadlineMs: clock.monotonicMs() + 100 }));
    const abort = new AbortController();
    const given = list.next(requestContext({ budget, signal: abort.signal }));
    clock.advance(101);
    abort.abort();
    await assert.rejects(late, { code: Code.DEADLINE_EXCEEDED, message: /waited for a compaction/ });
    await assert.rejects(given, { code: Code.CANCELLED, message: /waited for a compaction/ });
    await assert.rejects(list.next(requestContext({ budget, signal: abort.signal })), { code: Code.CANCELLED });
    list.wake();
  });
});
