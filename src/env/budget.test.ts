import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Code } from '../base/index.ts';
import { ByteBudget } from './budget.ts';

/** All that is ready to run has run. */
async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

/** Notes when the promise is kept. */
function watch(promise: Promise<void>): { done: boolean } {
  const seen = { done: false };
  promise.then(
    () => {
      seen.done = true;
    },
    () => {},
  );
  return seen;
}

describe('the budget', () => {
  test('gives at once while it lasts', () => {
    const budget = new ByteBudget(10);
    assert.equal(budget.tryTake(6), true);
    assert.equal(budget.tryTake(5), false);
    assert.equal(budget.tryTake(4), true);
    assert.equal(budget.usedBytes, 10);
    budget.give(10);
    assert.equal(budget.usedBytes, 0);
  });

  test('first come, first served: a small one does not pass a large one that waits', async () => {
    const budget = new ByteBudget(10);
    budget.tryTake(8);
    const large = watch(budget.take(6));
    const small = watch(budget.take(1));
    assert.equal(budget.tryTake(1), false);
    await settled();
    assert.deepEqual([large.done, small.done, budget.waiting], [false, false, 2]);
    budget.give(4);
    await settled();
    assert.deepEqual([large.done, small.done, budget.usedBytes], [true, false, 10]);
    budget.give(1);
    await settled();
    assert.deepEqual([small.done, budget.waiting], [true, 0]);
  });

  test('what is larger than the whole budget runs alone', async () => {
    const budget = new ByteBudget(10);
    budget.tryTake(1);
    const giant = watch(budget.take(100));
    const after = watch(budget.take(1));
    budget.give(1);
    await settled();
    assert.deepEqual([giant.done, after.done, budget.usedBytes], [true, false, 100]);
    budget.give(100);
    await settled();
    assert.deepEqual([after.done, budget.usedBytes], [true, 1]);
  });

  test('who gives up leaves the queue, and those behind move up', async () => {
    const budget = new ByteBudget(10);
    budget.tryTake(8);
    const abort = new AbortController();
    const first = budget.take(5, abort.signal);
    const second = watch(budget.take(2));
    abort.abort();
    await assert.rejects(first, { code: Code.CANCELLED });
    await settled();
    assert.deepEqual([second.done, budget.usedBytes, budget.waiting], [true, 10, 0]);
    await assert.rejects(budget.take(5, abort.signal), { code: Code.CANCELLED });
    assert.equal(budget.waiting, 0);
  });

  test('giving up after the grant changes nothing', async () => {
    const budget = new ByteBudget(10);
    budget.tryTake(10);
    const abort = new AbortController();
    const taken = budget.take(5, abort.signal);
    budget.give(10);
    abort.abort();
    await taken;
    assert.equal(budget.usedBytes, 5);
  });
});

describe('a reservation', () => {
  test('holds, shrinks and gives everything back once', async () => {
    const budget = new ByteBudget(10);
    const one = budget.reservation();
    await one.grow(4);
    assert.equal(one.tryGrow(7), false);
    assert.equal(one.tryGrow(3), true);
    one.shrink(2);
    assert.deepEqual([one.heldBytes, budget.usedBytes], [5, 5]);
    one.shrink(100);
    assert.deepEqual([one.heldBytes, budget.usedBytes], [0, 0]);
    one.tryGrow(5);
    one.release();
    one.release();
    assert.deepEqual([one.heldBytes, budget.usedBytes], [0, 0]);
  });

  test('takes nothing any more once it is released, also not what it waited for', async () => {
    const budget = new ByteBudget(10);
    budget.tryTake(10);
    const late = budget.reservation();
    const growing = late.grow(5);
    late.release();
    budget.give(10);
    await growing;
    assert.deepEqual([late.heldBytes, budget.usedBytes], [0, 0]);
    assert.equal(late.tryGrow(1), false);
  });

  test('giving back wakes who waits', async () => {
    const budget = new ByteBudget(10);
    const one = budget.reservation();
    const other = budget.reservation();
    await one.grow(10);
    const waiting = watch(other.grow(6));
    one.shrink(5);
    await settled();
    assert.equal(waiting.done, false);
    one.shrink(1);
    await settled();
    assert.deepEqual([waiting.done, other.heldBytes], [true, 6]);
  });
});

test('whatever is asked for: never above the limit but alone, and nobody waits for ever', async () => {
  const step = fc.record({ kind: fc.constantFrom('take', 'give', 'abort'), bytes: fc.integer({ min: 1, max: 15 }), which: fc.nat({ max: 20 }) });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const budget = new ByteBudget(10);
      const held: number[] = [];
      const waiting: { readonly abort: AbortController }[] = [];
      const check = (): void => {
        assert.equal(budget.usedBytes, held.reduce((sum, bytes) => sum + bytes, 0));
        assert.ok(budget.usedBytes <= 10 || held.length === 1, 'above the limit only alone');
      };
      for (const { kind, bytes, which } of steps) {
        if (kind === 'take') {
          const one = { abort: new AbortController() };
          waiting.push(one);
          const leave = (): unknown => waiting.splice(waiting.indexOf(one), 1);
          budget.take(bytes, one.abort.signal).then(() => (leave(), held.push(bytes)), leave);
        } else if (kind === 'abort') {
          waiting[which % Math.max(1, waiting.length)]?.abort.abort();
        } else if (held.length > 0) {
          budget.give(held.splice(which % held.length, 1)[0] as number);
        }
        await settled();
        check();
      }
      while (held.length > 0) {
        budget.give(held.shift() as number);
        await settled();
        check();
      }
      assert.equal(budget.waiting, 0);
      assert.equal(budget.usedBytes, 0);
    }),
    { numRuns: 100 },
  );
});
