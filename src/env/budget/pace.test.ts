import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Pace } from './pace.ts';

const OPTIONS = { graceMs: 1000, bytesPerSecond: 100 };

describe('the pace', () => {
  test('nothing is too slow within its grace', () => {
    const pace = new Pace(OPTIONS, 5000);
    assert.deepEqual([pace.isTooSlow(5999), pace.isTooSlow(6000)], [false, true]);
  });

  test('a transfer at the least rate is never too slow', () => {
    const pace = new Pace(OPTIONS, 0);
    for (let nowMs = 100; nowMs < 100_000; nowMs += 100) {
      pace.moved(10, nowMs);
      assert.equal(pace.isTooSlow(nowMs), false);
    }
  });

  test('a byte now and then is too slow', () => {
    const pace = new Pace(OPTIONS, 0);
    for (let nowMs = 500; nowMs <= 10_000; nowMs += 500) pace.moved(1, nowMs);
    assert.equal(pace.isTooSlow(10_000), true);
  });

  test('another rate counts from when it is set', () => {
    const pace = new Pace(OPTIONS, 0);
    pace.moved(1000, 10);
    pace.restart(100, 1000);
    assert.deepEqual([pace.isTooSlow(1099), pace.isTooSlow(1100)], [false, true]);
  });

  test('a standstill is too slow after three times the grace, however fast the transfer was before', () => {
    const move = fc.record({ afterMs: fc.nat({ max: 3000 }), bytes: fc.nat({ max: 1_000_000 }) });
    fc.assert(
      fc.property(fc.array(move), (moves) => {
        const pace = new Pace(OPTIONS, 0);
        let nowMs = 0;
        for (const { afterMs, bytes } of moves) {
          nowMs += afterMs;
          pace.moved(bytes, nowMs);
        }
        assert.equal(pace.isTooSlow(nowMs + 3 * OPTIONS.graceMs), true);
      }),
    );
  });
});
