import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { clockOf } from '../seams/clock.ts';
import { Lease } from './lease.ts';

/** Two clocks that a test sets by itself. */
function clocks() {
  const now = { monotonicMs: 5000, wallMs: 1_700_000_000_000 };
  const clock = clockOf({
    nowMicros: () => now.wallMs * 1000,
    monotonicMs: () => now.monotonicMs,
    timer: () => assert.fail('a lease sets no timer'),
    yield: () => assert.fail('a lease does not wait'),
  });
  const pass = (ms: number): void => {
    now.monotonicMs += ms;
    now.wallMs += ms;
  };
  return { now, clock, pass };
}

describe('a lease', () => {
  test('holds from when its keep-alive was sent, less drift and margin', () => {
    const { clock, pass } = clocks();
    const lease = new Lease(clock, 10_000);
    assert.equal(lease.holds(), false);
    const sent = lease.now();
    pass(3000);
    lease.renewed(sent);
    pass(6890);
    assert.equal(lease.holds(), true);
    pass(10);
    assert.equal(lease.holds(), false);
  });

  test('ends by the earlier of the two clocks', () => {
    for (const step of [
      { monotonicMs: 0, wallMs: 60_000 },
      { monotonicMs: 60_000, wallMs: 0 },
      { monotonicMs: 60_000, wallMs: -3_600_000 },
    ]) {
      const { now, clock } = clocks();
      const lease = new Lease(clock, 10_000);
      lease.renewed(lease.now());
      assert.equal(lease.holds(), true);
      now.monotonicMs += step.monotonicMs;
      now.wallMs += step.wallMs;
      assert.equal(lease.holds(), false);
      lease.renewed(lease.now());
      assert.equal(lease.holds(), true);
    }
  });

  test('is not shortened by an answer that comes late', () => {
    const { clock, pass } = clocks();
    const lease = new Lease(clock, 10_000);
    const first = lease.now();
    pass(3000);
    lease.renewed(lease.now());
    lease.renewed(first);
    pass(9000);
    assert.equal(lease.holds(), true);
  });
});
