import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from './system-clock.ts';
import { systemRandom } from './system-random.ts';

describe('systemClock', () => {
  test('real time is that of the machine, in whole microseconds', () => {
    for (let i = 0; i < 1000; i++) {
      const before = Date.now();
      const now = systemClock.nowMicros();
      const after = Date.now();
      assert.ok(Number.isSafeInteger(now));
      assert.ok(now >= before * 1000 && now < (after + 1) * 1000, `${before} ${now} ${after}`);
    }
  });

  test('the monotonic clock never goes back', () => {
    let last = systemClock.monotonicMs();
    for (let i = 0; i < 10_000; i++) {
      const now = systemClock.monotonicMs();
      assert.ok(now >= last);
      last = now;
    }
  });

  test('a timer fires once, later, and never early', async () => {
    const keepAlive = setInterval(() => {}, 1000);
    try {
      for (const delayMs of [0, 0.3, 1, 2.5, 5, 7.9]) {
        const startMs = systemClock.monotonicMs();
        let inCall = true;
        await new Promise<void>((resolve) => {
          systemClock.timer(delayMs, () => {
            assert.equal(inCall, false);
            assert.ok(systemClock.monotonicMs() >= startMs + delayMs);
            resolve();
          });
          inCall = false;
        });
      }
    } finally {
      clearInterval(keepAlive);
    }
  });

  test('a cancelled timer and one of a month do not fire', async () => {
    const fired: string[] = [];
    const cancelled = systemClock.timer(0, () => fired.push('cancelled'));
    const month = systemClock.timer(31 * 86_400_000, () => fired.push('month'));
    const never = systemClock.timer(Number.POSITIVE_INFINITY, () => fired.push('never'));
    cancelled.cancel();
    const keepAlive = setInterval(() => {}, 1000);
    await new Promise<void>((resolve) => systemClock.timer(5, resolve));
    clearInterval(keepAlive);
    assert.deepEqual(fired, []);
    month.cancel();
    never.cancel();
  });

  test('yield lets timers and I/O have their turn', async () => {
    let ran = false;
    setImmediate(() => {
      ran = true;
    });
    await systemClock.yield();
    assert.equal(ran, true);
  });
});

describe('systemRandom', () => {
  test('floats lie in [0, 1), differ and spread', () => {
    const drawn = Array.from({ length: 5000 }, () => systemRandom.float());
    assert.ok(drawn.every((x) => x >= 0 && x < 1));
    assert.ok(new Set(drawn).size > 4990);
    const mean = drawn.reduce((a, b) => a + b) / drawn.length;
    // six standard deviations of the mean of 5000
    assert.ok(Math.abs(mean - 0.5) < 0.0245, `${mean}`);
  });

  test('names are 128 bits in hexadecimal, none twice', () => {
    const names = Array.from({ length: 1000 }, () => systemRandom.uniqueName());
    assert.equal(new Set(names).size, 1000);
    for (const name of names) assert.match(name, /^[0-9a-f]{32}$/);
  });
});
