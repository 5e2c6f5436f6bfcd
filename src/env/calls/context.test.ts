import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../../base/index.ts';
import { ByteBudget } from '../budget/budget.ts';
import { CallContext, checkContext, requestContext } from './context.ts';
import { within } from './context-wait.ts';
import { ManualClock } from '../memory/manual-clock.ts';

describe('the request context', () => {
  test('has defaults, and a reservation of its own', () => {
    const budget = new ByteBudget(100);
    const { reservation, ...rest } = requestContext({ budget });
    assert.deepEqual(rest, {
      deadlineMs: Number.POSITIVE_INFINITY,
      signal: undefined,
      principal: 'anonymous',
      appProfile: '',
      priority: 'high',
      trace: '',
      notes: undefined,
    });
    assert.equal(reservation.tryGrow(60), true);
    assert.equal(budget.usedBytes, 60);
    assert.notEqual(requestContext({ budget }).reservation, reservation);
  });

  test('keeps what it is given', () => {
    const { signal } = new AbortController();
    const given = {
      deadlineMs: 5,
      signal,
      principal: 'user:a',
      appProfile: 'batch',
      priority: 'low',
      trace: 't1',
    } as const;
    const { reservation: _, ...rest } = requestContext({ budget: new ByteBudget(1), ...given });
    assert.deepEqual(rest, { ...given, notes: undefined });
  });

  test('is valid until its deadline', () => {
    const clock = new ManualClock();
    const context = requestContext({ budget: new ByteBudget(1), deadlineMs: 100 });
    clock.advance(99);
    checkContext(context, clock);
    clock.advance(1);
    assert.throws(() => checkContext(context, clock), { code: Code.DEADLINE_EXCEEDED, retry: false });
  });

  test('without a deadline it is valid for ever; an abort ends it, and takes precedence over the deadline', () => {
    const clock = new ManualClock();
    const abort = new AbortController();
    const context = requestContext({ budget: new ByteBudget(1), signal: abort.signal });
    clock.advance(1e12);
    checkContext(context, clock);
    abort.abort();
    assert.throws(() => checkContext(context, clock), { code: Code.CANCELLED });
    assert.throws(() => checkContext({ ...context, deadlineMs: 0 }, clock), { code: Code.CANCELLED });
  });
});

describe('the context of a call from a wire', () => {
  const given = new BigtableError(Code.CANCELLED, 'cancelled');
  const context = () => new CallContext({ budget: new ByteBudget(1) });
  const listener = () => {
    const notified: BigtableError[] = [];
    return { notified, interrupt: (error: BigtableError) => void notified.push(error) };
  };

  test('notifies every listener of the first interruption, and none of a second', () => {
    const call = context();
    const [a, b, gone] = [listener(), listener(), listener()];
    for (const each of [a, b, gone]) call.listen(each);
    call.unlisten(gone);
    call.interrupt(given);
    call.interrupt(new BigtableError(Code.DEADLINE_EXCEEDED, 'too late'));
    assert.deepEqual([a.notified, b.notified, gone.notified], [[given], [given], []]);
    assert.equal(call.interruption, given);
    assert.throws(() => checkContext(call, new ManualClock()), given);
  });

  test('a listener that is removed while others listen is not notified', () => {
    const call = context();
    const [a, b] = [listener(), listener()];
    call.listen(a);
    call.listen(b);
    call.unlisten(b);
    call.unlisten(a);
    call.interrupt(given);
    assert.deepEqual([a.notified, b.notified], [[], []]);
  });

  test('its signal aborts, whether it is first read before the interruption or after it', () => {
    const [before, after] = [context(), context()];
    const { signal } = before;
    assert.equal(signal.aborted, false);
    for (const call of [before, after]) call.interrupt(given);
    assert.equal(signal.reason, given);
    assert.equal(after.signal.reason, given);
  });

  test('is valid until it is interrupted: its maker keeps the time', () => {
    const clock = new ManualClock();
    const call = new CallContext({ budget: new ByteBudget(1), deadlineMs: 5 });
    clock.advance(10);
    checkContext(call, clock);
    assert.equal(call.deadlineMs, 5);
  });
});

describe('waiting for shared work under a context', () => {
  const work = (): { promise: Promise<string>; resolve: (value: string) => void; reject: (error: unknown) => void } => {
    let settle: { resolve: (value: string) => void; reject: (error: unknown) => void } | undefined;
    const promise = new Promise<string>((resolve, reject) => (settle = { resolve, reject }));
    return { promise, ...settle! };
  };

  test('ends with the work, and leaves no timer', async () => {
    const clock = new ManualClock();
    const plain = requestContext({ budget: new ByteBudget(1), deadlineMs: 10 });
    const [good, bad] = [work(), work()];
    const waits = [within(good.promise, plain, clock), within(bad.promise, plain, clock)];
    good.resolve('done');
    bad.reject(new Error('failed'));
    assert.equal(await waits[0], 'done');
    await assert.rejects(waits[1]!, /failed/);
    assert.equal(clock.nextTimerMs(), Number.POSITIVE_INFINITY);
  });

  test('ends with the context of the waiting caller, and the work continues', async () => {
    const clock = new ManualClock();
    const shared = work();
    const abort = new AbortController();
    const call = new CallContext({ budget: new ByteBudget(1) });
    const byDeadline = within(shared.promise, requestContext({ budget: new ByteBudget(1), deadlineMs: 10 }), clock);
    const byAbort = within(shared.promise, requestContext({ budget: new ByteBudget(1), signal: abort.signal }), clock);
    const byWire = within(shared.promise, call, clock);
    const patient = within(shared.promise, requestContext({ budget: new ByteBudget(1) }), clock);
    clock.advance(10);
    abort.abort();
    call.interrupt(new BigtableError(Code.CANCELLED, 'the peer has gone'));
    await assert.rejects(byDeadline, { code: Code.DEADLINE_EXCEEDED });
    await assert.rejects(byAbort, { code: Code.CANCELLED });
    await assert.rejects(byWire, /the peer has gone/);
    // a caller whose context has ended already does not wait at all
    await assert.rejects(
      within(shared.promise, requestContext({ budget: new ByteBudget(1), signal: abort.signal }), clock),
      { code: Code.CANCELLED },
    );
    shared.resolve('done');
    assert.equal(await patient, 'done');
  });

  test('a failure after every caller has left ends nothing', async () => {
    const clock = new ManualClock();
    const shared = work();
    const wait = within(shared.promise, requestContext({ budget: new ByteBudget(1), deadlineMs: 0 }), clock);
    await assert.rejects(wait, { code: Code.DEADLINE_EXCEEDED });
    shared.reject(new Error('no caller waits'));
    await new Promise((resolve) => setImmediate(resolve));
  });
});
