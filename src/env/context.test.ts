import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Code } from '../base/index.ts';
import { ByteBudget } from './budget.ts';
import { checkContext, requestContext } from './context.ts';
import { ManualClock } from './manual-clock.ts';

describe('the request context', () => {
  test('has defaults, and a reservation of its own', () => {
    const budget = new ByteBudget(100);
    const { reservation, ...rest } = requestContext({ budget });
    assert.deepEqual(rest, { deadlineMs: Number.POSITIVE_INFINITY, signal: undefined, principal: 'anonymous', appProfile: '', priority: 'medium', trace: '' });
    assert.equal(reservation.tryGrow(60), true);
    assert.equal(budget.usedBytes, 60);
    assert.notEqual(requestContext({ budget }).reservation, reservation);
  });

  test('keeps what it is given', () => {
    const { signal } = new AbortController();
    const given = { deadlineMs: 5, signal, principal: 'user:a', appProfile: 'batch', priority: 'low', trace: 't1' } as const;
    const { reservation: _, ...rest } = requestContext({ budget: new ByteBudget(1), ...given });
    assert.deepEqual(rest, given);
  });

  test('is good until its deadline', () => {
    const clock = new ManualClock();
    const context = requestContext({ budget: new ByteBudget(1), deadlineMs: 100 });
    clock.advance(99);
    checkContext(context, clock);
    clock.advance(1);
    assert.throws(() => checkContext(context, clock), { code: Code.DEADLINE_EXCEEDED, retry: false });
  });

  test('without a deadline it is good for ever; an abort ends it, and counts before the deadline', () => {
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
