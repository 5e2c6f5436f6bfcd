import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { sleep } from '../seams/clock.ts';
import { Pacer, SLICE_MS } from '../seams/pacer.ts';
import { ManualClock } from './manual-clock.ts';

describe('ManualClock', () => {
  test('both clocks move when they are advanced, by that time, and only then', () => {
    const clock = new ManualClock(5_000_000);
    assert.equal(clock.nowMicros(), 5_000_000);
    assert.equal(clock.monotonicMs(), 0);
    clock.advance(1.5);
    assert.equal(clock.nowMicros(), 5_001_500);
    assert.equal(clock.monotonicMs(), 1.5);
    assert.throws(() => clock.advance(-1), /does not go -1 ms/);
  });

  test('real time is set alone: the monotonic clock and its timers continue', () => {
    const clock = new ManualClock(5_000_000);
    let fired = 0;
    clock.advance(1);
    clock.timer(2, () => fired++);
    clock.setRealTime(7);
    assert.deepEqual([clock.nowMicros(), clock.monotonicMs(), clock.nextTimerMs()], [7, 1, 3]);
    clock.advance(2);
    assert.deepEqual([clock.nowMicros(), clock.monotonicMs(), fired], [2007, 3, 1]);
  });

  test('timers fire in order of time, then of setting, at their time', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ delayMs: fc.nat(50), cancelled: fc.boolean() })),
        fc.nat(60),
        (plans, advanceMs) => {
          const clock = new ManualClock();
          const fired: [number, number][] = [];
          const timers = plans.map(({ delayMs }, i) =>
            clock.timer(delayMs, () => fired.push([clock.monotonicMs(), i])),
          );
          plans.forEach(({ cancelled }, i) => {
            if (cancelled) timers[i]?.cancel();
          });
          const live = plans
            .map(({ delayMs, cancelled }, i) => ({ delayMs, cancelled, i }))
            .filter(({ cancelled }) => !cancelled);
          assert.equal(clock.nextTimerMs(), Math.min(...live.map(({ delayMs }) => delayMs), Number.POSITIVE_INFINITY));
          clock.advance(advanceMs);
          const expected = live
            .filter(({ delayMs }) => delayMs <= advanceMs)
            .sort((a, b) => a.delayMs - b.delayMs || a.i - b.i);
          assert.deepEqual(
            fired,
            expected.map(({ delayMs, i }) => [delayMs, i]),
          );
          assert.equal(clock.monotonicMs(), advanceMs);
        },
      ),
    );
  });

  test('a timer set by a timer fires within the same advance where it falls due', () => {
    const clock = new ManualClock();
    const fired: number[] = [];
    const again = (): void => {
      fired.push(clock.monotonicMs());
      clock.timer(10, again);
    };
    clock.timer(10, again);
    clock.advance(35);
    assert.deepEqual(fired, [10, 20, 30]);
  });

  test('a timer does not fire inside the call that sets it, and a fired one may be cancelled', () => {
    const clock = new ManualClock();
    let fired = 0;
    const timer = clock.timer(0, () => fired++);
    clock.timer(-5, () => fired++);
    assert.equal(fired, 0);
    clock.advance(0);
    assert.equal(fired, 2);
    timer.cancel();
    clock.advance(100);
    assert.equal(fired, 2);
  });

  test('sleep and Pacer run on it', async () => {
    const clock = new ManualClock();
    let awake = false;
    const sleeping = sleep(clock, 100).then(() => {
      awake = true;
    });
    clock.advance(99);
    await clock.yield();
    assert.equal(awake, false);
    clock.advance(1);
    await sleeping;
    const pacer = new Pacer(clock, 1);
    assert.equal(pacer.due(), false);
    clock.advance(SLICE_MS);
    assert.equal(pacer.due(), true);
    await pacer.pause();
    assert.equal(pacer.due(), false);
  });
});
