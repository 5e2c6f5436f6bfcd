import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ManualClock } from '../../env/index.ts';
import { type DeadlineEntry, Deadlines } from './deadlines.ts';

function entry(onDue: (nowMs: number) => void): DeadlineEntry {
  return { dueMs: 0, slot: undefined, before: undefined, after: undefined, onDue };
}

describe('deadlines', () => {
  test('each fires once, not before its time and soon after, whatever is set and cleared', () => {
    const operation = fc.record({
      afterMs: fc.oneof(fc.nat(50), fc.nat(20_000)),
      waitMs: fc.nat(3000),
      clears: fc.option(fc.nat(30)),
    });
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 30 }), (operations) => {
        const clock = new ManualClock();
        const deadlines = new Deadlines(clock);
        const fired = new Map<number, number>();
        const due = new Map<number, number>();
        const entries: DeadlineEntry[] = [];
        for (const [i, { afterMs, waitMs, clears }] of operations.entries()) {
          const one = entry((nowMs) => {
            assert.ok(!fired.has(i));
            fired.set(i, nowMs);
          });
          entries.push(one);
          due.set(i, clock.monotonicMs() + afterMs);
          deadlines.set(one, clock.monotonicMs() + afterMs);
          const cleared = clears === null ? undefined : entries[clears];
          if (cleared) {
            deadlines.clear(cleared);
            if (!fired.has(clears as number)) due.delete(clears as number);
          }
          clock.advance(waitMs);
        }
        clock.advance(30_000);
        assert.deepEqual([...fired.keys()].sort(), [...due.keys()].sort());
        for (const [i, atMs] of fired)
          assert.ok(atMs >= (due.get(i) as number) && atMs <= (due.get(i) as number) + 17, `${atMs} for ${due.get(i)}`);
      }),
    );
  });

  test('one that fires may clear others, and set itself again', () => {
    const clock = new ManualClock();
    const deadlines = new Deadlines(clock);
    const fired: string[] = [];
    const others = [1, 2, 3].map((i) => entry(() => fired.push(`other ${i}`)));
    let left = 3;
    const first = entry((nowMs) => {
      fired.push('first');
      for (const other of others) deadlines.clear(other);
      if (--left > 0) deadlines.set(first, nowMs + 1000);
    });
    deadlines.set(first, 100);
    for (const other of others) deadlines.set(other, 100);
    clock.advance(10_000);
    assert.deepEqual(fired, ['first', 'first', 'first']);
  });

  test('nothing set, no timer', () => {
    const clock = new ManualClock();
    const deadlines = new Deadlines(clock);
    const one = entry(() => {});
    deadlines.set(one, 1000);
    deadlines.set(one, Number.POSITIVE_INFINITY);
    clock.advance(100_000);
    assert.equal(clock.nextTimerMs(), Number.POSITIVE_INFINITY);
    deadlines.set(one, clock.monotonicMs() + 10);
    deadlines.close();
    assert.equal(clock.nextTimerMs(), Number.POSITIVE_INFINITY);
  });
});
