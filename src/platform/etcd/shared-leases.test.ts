import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { leaseMemory, processInstant, SharedLeases } from './shared-leases.ts';

/** Two clocks that a test sets by itself, over one memory. */
function shared() {
  const now = { monotonicMs: 5000, wallMs: 1_700_000_000_000 };
  const memory = leaseMemory();
  return { now, keeper: new SharedLeases(memory, () => now), owner: new SharedLeases(memory, () => ({ ...now })) };
}

describe('leases in shared memory', () => {
  test('hold from when their keep-alive was sent, each in its slot', () => {
    const { now, keeper, owner } = shared();
    assert.equal(owner.holds(3), false);
    const sent = { ...now };
    now.monotonicMs += 3000;
    now.wallMs += 3000;
    keeper.renewed(3, sent, 10_000);
    assert.deepEqual([owner.holds(2), owner.holds(3), owner.holds(4)], [false, true, false]);
    now.monotonicMs += 6890;
    assert.equal(owner.holds(3), true);
    now.monotonicMs += 10;
    assert.equal(owner.holds(3), false);
  });

  test('end by the earlier of the two clocks, and by their keeper', () => {
    for (const step of [
      { monotonicMs: 0, wallMs: 60_000 },
      { monotonicMs: 60_000, wallMs: -3_600_000 },
    ]) {
      const { now, keeper, owner } = shared();
      keeper.renewed(0, { ...now }, 10_000);
      now.monotonicMs += step.monotonicMs;
      now.wallMs += step.wallMs;
      assert.equal(owner.holds(0), false);
    }
    const { now, keeper, owner } = shared();
    keeper.renewed(0, { ...now }, 10_000);
    keeper.ended(0);
    assert.equal(owner.holds(0), false);
  });

  test('the monotonic clock is the same for all threads', async () => {
    const before = processInstant();
    const thread = new Worker(`require('node:worker_threads').parentPort.postMessage(process.hrtime())`, {
      eval: true,
    });
    const [seconds, nanos] = await new Promise<[number, number]>((resolve, reject) => {
      thread.once('message', resolve);
      thread.once('error', reject);
    });
    const after = processInstant();
    const thereMs = seconds * 1000 + nanos / 1e6;
    assert.ok(before.monotonicMs <= thereMs && thereMs <= after.monotonicMs);
  });
});
