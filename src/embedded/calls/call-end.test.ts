import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../../base/index.ts';
import { ByteBudget, ManualClock } from '../../env/index.ts';
import { CallEndedError } from './call-end.ts';
import { Calls } from './calls.ts';

const never = (): Promise<never> => new Promise(() => {});

function subject(): { readonly calls: Calls; readonly clock: ManualClock; readonly budget: ByteBudget } {
  const [clock, budget] = [new ManualClock(), new ByteBudget(1 << 20)];
  return { calls: new Calls({} as never, { clock, requestBudget: budget }), clock, budget };
}

describe('a call that its caller may end', () => {
  test('its timer is of the clock, and ends with the call', async () => {
    const { calls, clock } = subject();
    const call = calls.write(never, { timeoutMs: 50 });
    clock.advance(49);
    assert.equal(await Promise.race([call, 'waits']), 'waits');
    clock.advance(1);
    await assert.rejects(call, { name: 'TimeoutError', code: Code.DEADLINE_EXCEEDED, outcomeUnknown: true });
    assert.equal(clock.nextTimerMs(), Number.POSITIVE_INFINITY);
    await calls.read(async () => 1, { timeoutMs: 50 });
    await assert.rejects(calls.read(async () => Promise.reject(new Error('no')), { timeoutMs: 50 }));
    assert.equal(clock.nextTimerMs(), Number.POSITIVE_INFINITY);
  });

  test('a time that is longer than a timer of Node can take', async () => {
    const { calls, clock } = subject();
    const year = 365 * 86_400_000;
    const call = calls.read(never, { timeoutMs: year });
    for (let days = 0; days < 364; days++) clock.advance(86_400_000);
    assert.equal(await Promise.race([call, 'waits']), 'waits');
    clock.advance(86_400_000);
    await assert.rejects(call, { name: 'TimeoutError' });
    assert.equal(await calls.read(async () => 1, { timeoutMs: Number.POSITIVE_INFINITY }), 1);
  });

  test('the layers below get the reason and the deadline', async () => {
    const { calls, clock } = subject();
    const abort = new AbortController();
    clock.advance(7);
    let told: unknown;
    const call = calls.read(
      (_, context) => {
        assert.equal(context.deadlineMs, 17);
        context.signal?.addEventListener('abort', () => (told = context.signal?.reason));
        return never();
      },
      { signal: abort.signal, timeoutMs: 10 },
    );
    abort.abort();
    const error = await call.catch((ended: unknown) => ended);
    assert.ok(error instanceof CallEndedError);
    assert.deepEqual(told, error);
    assert.deepEqual([error.cause, error.details], [abort.signal.reason, {}]);
  });

  test('a signal that others listen to ends it, too', async () => {
    const { calls } = subject();
    const abort = new AbortController();
    abort.signal.addEventListener('abort', () => {});
    let outcome = 'waits';
    calls.write(never, { signal: abort.signal }).catch(({ name }: Error) => (outcome = name));
    abort.abort();
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(outcome, 'AbortError');
  });

  test('a deadline that others have reported first is reported as its own', async () => {
    const { calls } = subject();
    const first = new BigtableError(Code.DEADLINE_EXCEEDED, 'the server says so');
    await assert.rejects(
      calls.write(() => Promise.reject(first), { timeoutMs: 10 }),
      { name: 'TimeoutError', cause: first, outcomeUnknown: true },
    );
    // no caller here set a time
    await assert.rejects(
      calls.write(() => Promise.reject(first), { signal: new AbortController().signal }),
      first,
    );
  });

  test('a signal has one listener, however many calls it serves; all of them end', async () => {
    const { calls } = subject();
    const abort = new AbortController();
    const all = Array.from({ length: 50 }, () => calls.read(never, { signal: abort.signal }));
    assert.equal(getEventListeners(abort.signal, 'abort').length, 1);
    abort.abort();
    for (const call of all) await assert.rejects(call, { name: 'AbortError' });
    assert.equal(getEventListeners(abort.signal, 'abort').length, 0);
  });

  test('a call releases its resources when its work ends, and no rejection stays unhandled', async () => {
    const { calls, budget } = subject();
    let fail: (error: Error) => void = () => {};
    const abort = new AbortController();
    const call = calls.write(
      (_, context) => {
        assert.ok(context.reservation.tryAdmit(1000));
        return new Promise<never>((_resolve, reject) => {
          fail = reject;
        });
      },
      { signal: abort.signal },
    );
    abort.abort();
    await assert.rejects(call, { name: 'AbortError' });
    assert.equal(budget.usedBytes, 1000);
    fail(new Error('later'));
    await calls.idle();
    assert.equal(budget.usedBytes, 0);
  });
});
