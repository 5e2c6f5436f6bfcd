import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../base/index.ts';
import { ByteBudget, ManualClock, Metrics, requestContext, silentLogger } from '../env/index.ts';
import { MemtableBudget } from './memtable-budget.ts';
import type { ServedTablet } from './tablet-map.ts';

/** As much of a tablet as the budget looks at. */
class Memory {
  memtableBytes: number;
  readonly oldestUnflushed = undefined;
  flushes = 0;
  fails = false;

  constructor(bytes: number) {
    this.memtableBytes = bytes;
  }

  async flush(): Promise<void> {
    this.flushes++;
    if (this.fails) throw new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full');
    this.memtableBytes = 0;
  }
}

function budgetOf(limitBytes: number, clock = new ManualClock()): MemtableBudget {
  const log = { newestPosition: 0, sizeBytes: () => 0, trimBefore: () => {} };
  return new MemtableBudget({ limitBytes, logLimitBytes: 1e9, log, clock, logger: silentLogger, metrics: new Metrics() });
}

function tabletOf(bytes: number): [ServedTablet, Memory] {
  const memory = new Memory(bytes);
  return [{ key: 'k', tableId: '00000010', range: { start: '', end: undefined }, epoch: 1, tablet: memory, host: {}, countedBytes: 0 } as unknown as ServedTablet, memory];
}

const settled = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

describe('the memory of memtables', () => {
  test('above half of its limit the largest is flushed', async () => {
    const budget = budgetOf(100);
    const [small, smallMemory] = tabletOf(20);
    const [large, largeMemory] = tabletOf(29);
    budget.add(small);
    budget.add(large);
    await settled();
    assert.deepEqual([smallMemory.flushes, largeMemory.flushes], [0, 0]);
    smallMemory.memtableBytes = 25;
    budget.count(small);
    await settled();
    assert.deepEqual([smallMemory.flushes, largeMemory.flushes, budget.totalBytes], [0, 1, 25]);
  });

  test('while tablets are loaded no flush begins by itself; afterwards it does', async () => {
    const budget = budgetOf(100);
    const [served, memory] = tabletOf(90);
    budget.rest();
    budget.add(served);
    await settled();
    assert.equal(memory.flushes, 0);
    budget.endRest();
    await settled();
    assert.deepEqual([memory.flushes, budget.totalBytes], [1, 0]);
    memory.memtableBytes = 90;
    budget.count(served);
    await settled();
    assert.equal(memory.flushes, 2, 'and again');
  });

  test('unless a write waits for it', async () => {
    const budget = budgetOf(100);
    const [served, memory] = tabletOf(110);
    budget.rest();
    budget.add(served);
    assert.equal(budget.open, false);
    await budget.wait(requestContext({ budget: new ByteBudget(1) }));
    assert.deepEqual([memory.flushes, budget.open], [1, true]);
  });

  test('its end does not wait for the next try of a flush that failed', async () => {
    const budget = budgetOf(100);
    const [served, memory] = tabletOf(90);
    memory.fails = true;
    budget.add(served);
    await settled();
    assert.equal(memory.flushes, 1);
    let ended = false;
    // the clock stands still: a wait that is not cut short never ends
    void budget.stop().then(() => (ended = true));
    await settled();
    assert.deepEqual([ended, memory.flushes], [true, 1]);
  });

  test('a write that would wait for a flush is refused while the disk has no room for one', async () => {
    const clock = new ManualClock();
    const budget = budgetOf(100, clock);
    const [served, memory] = tabletOf(110);
    memory.fails = true;
    const context = requestContext({ budget: new ByteBudget(1) });
    budget.add(served);
    for (let write = 0; write < 2; write++) {
      await assert.rejects(budget.wait(context), { code: Code.RESOURCE_EXHAUSTED, message: /limit of 100 bytes .* nothing was written: the disk is full/ });
    }
    memory.fails = false;
    clock.advance(1000);
    await settled();
    assert.deepEqual([memory.flushes, budget.open], [2, true]);
    memory.memtableBytes = 110;
    budget.count(served);
    await budget.wait(context);
    assert.equal(memory.flushes, 3);
  });

  test('after the end nothing begins', async () => {
    const budget = budgetOf(100);
    const [served, memory] = tabletOf(90);
    budget.rest();
    budget.add(served);
    await budget.stop();
    budget.endRest();
    await settled();
    assert.equal(memory.flushes, 0);
  });
});
