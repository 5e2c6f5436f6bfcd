import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../base/index.ts';
import { ByteBudget, type Logger, ManualClock, Metrics, requestContext, silentLogger } from '../env/index.ts';
import { METADATA_TABLE_ID } from '../metadata/index.ts';
import { notServing } from '../protocol/index.ts';
import { MemtableBudget } from './memtable-budget.ts';
import type { ServedTablet } from './tablet-map.ts';

const DISK_FULL = new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full');

/** The part of a tablet that the budget reads. */
class Memory {
  memtableBytes: number;
  readonly oldestUnflushed = undefined;
  flushes = 0;
  failure: Error | undefined;
  /** A flush waits for it. */
  gate: Promise<void> | undefined;

  constructor(bytes: number) {
    this.memtableBytes = bytes;
  }

  async flush(): Promise<void> {
    this.flushes++;
    await this.gate;
    if (this.failure) throw this.failure;
    this.memtableBytes = 0;
  }
}

function budgetOf(limitBytes: number, logger: Logger = silentLogger, clock = new ManualClock()): MemtableBudget {
  const log = { newestPosition: 0, sizeBytes: () => 0, trimBefore: () => {} };
  const sizes = { limitBytes, logLimitBytes: 1e9, metadataTabletBytes: 1e9 };
  return new MemtableBudget({ ...sizes, log, clock, logger, metrics: new Metrics() });
}

function tabletOf(bytes: number): [ServedTablet, Memory] {
  const memory = new Memory(bytes);
  return [
    {
      key: 'k',
      tableId: '00000010',
      range: { start: '', end: undefined },
      epoch: 1,
      tablet: memory,
      host: {},
      countedBytes: 0,
      requests: 0,
    } as unknown as ServedTablet,
    memory,
  ];
}

const MIB = 1024 * 1024;

const settled = async (): Promise<void> => {
  for (let i = 0; i < 200; i++) await Promise.resolve();
};

describe('the memory of memtables', () => {
  test('a flush that met another change of its tablet delays no other', async () => {
    const budget = budgetOf(100);
    const [moved, movedMemory] = tabletOf(60);
    movedMemory.failure = notServing('00000010', 'a');
    const [other, otherMemory] = tabletOf(55);
    budget.add(moved);
    budget.add(other);
    await settled();
    assert.deepEqual([movedMemory.flushes, otherMemory.flushes], [1, 1]);
    budget.remove(moved);
    assert.equal(budget.totalBytes, 0);
    await budget.stop();
  });

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

  test('METADATA’s is flushed at a size of its own, which is never above that of a tablet that is split', async () => {
    for (const [metadataTabletBytes, flushBytes] of [
      [100, 100],
      [1 << 30, 4 << 20],
    ] as const) {
      const log = { newestPosition: 0, sizeBytes: () => 0, trimBefore: () => {} };
      const sizes = { limitBytes: 1 << 30, logLimitBytes: 1e9, metadataTabletBytes };
      const parts = { clock: new ManualClock(), logger: silentLogger, metrics: new Metrics() };
      const budget = new MemtableBudget({ ...sizes, log, ...parts });
      const [user, userMemory] = tabletOf(flushBytes * 2);
      const [metadata, memory] = tabletOf(flushBytes - 1);
      budget.add(user);
      budget.add({ ...metadata, tableId: METADATA_TABLE_ID });
      await settled();
      assert.deepEqual([userMemory.flushes, memory.flushes], [0, 0]);
      const [next, nextMemory] = tabletOf(flushBytes);
      budget.add({ ...next, tableId: METADATA_TABLE_ID });
      await settled();
      assert.deepEqual([userMemory.flushes, memory.flushes, nextMemory.flushes], [0, 0, 1]);
    }
  });

  test('while tablets are loaded no flush begins by itself; afterwards it does', async () => {
    const budget = budgetOf(100);
    const [served, memory] = tabletOf(90);
    budget.pause();
    budget.add(served);
    await settled();
    assert.equal(memory.flushes, 0);
    budget.resume();
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
    budget.pause();
    budget.add(served);
    assert.equal(budget.open, false);
    await budget.wait(requestContext({ budget: new ByteBudget(1) }));
    assert.deepEqual([memory.flushes, budget.open], [1, true]);
  });

  test('of many tablets with little each several are flushed at the same time', async () => {
    const budget = budgetOf(200 * MIB);
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    const memories: Memory[] = [];
    const add = (bytes: number, tableId?: string): Memory => {
      const [served, memory] = tabletOf(bytes);
      memory.gate = gate;
      memories.push(memory);
      budget.add(tableId === undefined ? served : { ...served, tableId });
      return memory;
    };
    const begun = (): number => memories.reduce((sum, { flushes }) => sum + flushes, 0);
    budget.pause();
    for (let i = 0; i < 120; i++) add(MIB);
    budget.resume();
    await settled();
    assert.equal(begun(), 8, 'as far as there is room');
    const metadata = add(5 * MIB, METADATA_TABLE_ID);
    open();
    await settled();
    assert.equal(metadata.flushes, 1);
    assert.ok(budget.totalBytes < 100 * MIB && budget.totalBytes >= 90 * MIB, `${budget.totalBytes}`);
  });

  test('of several that fail together the first is logged, and no other begins before a pause', async () => {
    const logged: string[] = [];
    const note = (message: string): void => void logged.push(message);
    const clock = new ManualClock();
    const budget = budgetOf(4 * MIB, { ...silentLogger, info: note, warn: note, error: note }, clock);
    const memories = Array.from({ length: 8 }, () => {
      const [served, memory] = tabletOf(MIB);
      memory.failure = DISK_FULL;
      budget.add(served);
      return memory;
    });
    const begun = (): number => memories.reduce((sum, { flushes }) => sum + flushes, 0);
    await settled();
    const first = begun();
    assert.deepEqual(logged, ['a minor compaction failed and will be tried again']);
    await settled();
    assert.equal(begun(), first);
    for (const memory of memories) memory.failure = undefined;
    clock.advance(1000);
    await settled();
    assert.ok(budget.totalBytes < 2 * MIB && !budget.flushFails);
  });

  test('a flush on demand waits for room, and those that are due go on after it', async () => {
    const budget = budgetOf(100 * MIB);
    let open = (): void => {};
    const [large, largeMemory] = tabletOf(60 * MIB);
    largeMemory.gate = new Promise<void>((resolve) => (open = resolve));
    const [other, otherMemory] = tabletOf(30 * MIB);
    budget.add(other);
    budget.add(large);
    const demanded = budget.flush(other);
    await settled();
    assert.deepEqual([largeMemory.flushes, otherMemory.flushes], [1, 0]);
    open();
    await demanded;
    await settled();
    assert.deepEqual([budget.totalBytes, otherMemory.flushes], [0, 1]);
  });

  test('a flush that fails is logged, unless the tablet has gone elsewhere, and retried', async () => {
    const logged: string[] = [];
    const note = (message: string): void => void logged.push(message);
    const clock = new ManualClock();
    const budget = budgetOf(100, { ...silentLogger, info: note, warn: note, error: note }, clock);
    const [served, memory] = tabletOf(90);
    memory.failure = notServing('00000010', 'a');
    budget.add(served);
    await settled();
    assert.deepEqual([memory.flushes, logged], [1, []]);
    memory.failure = new BigtableError(Code.RESOURCE_EXHAUSTED, 'no space');
    clock.advance(1000);
    await settled();
    assert.equal(memory.flushes, 2);
    assert.deepEqual(logged, ['a minor compaction failed and will be tried again']);
    memory.failure = undefined;
    clock.advance(1000);
    await settled();
    assert.deepEqual([memory.flushes, budget.totalBytes], [3, 0]);
  });

  test('its end does not wait for the next attempt of a flush that failed', async () => {
    const budget = budgetOf(100);
    const [served, memory] = tabletOf(90);
    memory.failure = DISK_FULL;
    budget.add(served);
    await settled();
    assert.equal(memory.flushes, 1);
    let ended = false;
    // the clock does not move: a wait that is not cut short never ends
    void budget.stop().then(() => (ended = true));
    await settled();
    assert.deepEqual([ended, memory.flushes], [true, 1]);
  });

  test('a write that would wait for a flush is refused while the disk has no space for one', async () => {
    const clock = new ManualClock();
    const budget = budgetOf(100, silentLogger, clock);
    const [served, memory] = tabletOf(110);
    memory.failure = DISK_FULL;
    const context = requestContext({ budget: new ByteBudget(1) });
    budget.add(served);
    for (let write = 0; write < 2; write++) {
      await assert.rejects(budget.wait(context), {
        code: Code.RESOURCE_EXHAUSTED,
        message: /limit of 100 bytes .* nothing was written: the disk is full/,
      });
    }
    memory.failure = undefined;
    clock.advance(1000);
    await settled();
    assert.deepEqual([memory.flushes, budget.open], [2, true]);
    memory.memtableBytes = 110;
    budget.count(served);
    await budget.wait(context);
    assert.equal(memory.flushes, 3);
  });

  test('a flush that fails is reported until one succeeds or none is due, whatever the reason', async () => {
    for (const failure of [DISK_FULL, new BigtableError(Code.UNAVAILABLE, 'an I/O error')]) {
      const clock = new ManualClock();
      const budget = budgetOf(100, silentLogger, clock);
      const [served, memory] = tabletOf(90);
      const states: [boolean, boolean][] = [];
      const step = async (): Promise<void> => {
        clock.advance(1000);
        await settled();
        states.push([budget.flushFails, budget.refuses]);
      };
      memory.failure = failure;
      budget.add(served);
      await step();
      memory.failure = undefined;
      await step();
      memory.failure = failure;
      memory.memtableBytes = 90;
      budget.count(served);
      await step();
      budget.remove(served);
      await step();
      const failed: [boolean, boolean] = [true, failure === DISK_FULL];
      assert.deepEqual(states, [failed, [false, false], failed, [false, false]]);
    }
  });

  test('after the end nothing begins', async () => {
    const budget = budgetOf(100);
    const [served, memory] = tabletOf(90);
    budget.pause();
    budget.add(served);
    await budget.stop();
    budget.resume();
    await settled();
    assert.equal(memory.flushes, 0);
  });

  test('a tablet is counted from its load to its end, once, and never below zero', () => {
    const budget = budgetOf(100);
    const [served, memory] = tabletOf(20);
    for (const wrong of [() => budget.count(served), () => budget.markReplayed(served)]) {
      assert.throws(wrong, /a tablet (is counted after it is added|to be flushed was added)/);
    }
    budget.add(served);
    assert.throws(() => budget.add(served), /a tablet is added once/);
    budget.assertConsistent();
    served.countedBytes = 5;
    assert.throws(() => budget.assertConsistent(), /the bytes of all memtables are the sum of each/);
    served.countedBytes = 20;
    memory.memtableBytes = -1;
    assert.throws(() => budget.count(served), /less than nothing/);
    served.countedBytes = 21;
    assert.throws(() => budget.remove(served), /less than nothing/);
  });

  test('a log whose positions run back is not trimmed', async () => {
    const trimmed: number[] = [];
    const trimBefore = (position: number): void => void trimmed.push(position);
    const log = { newestPosition: 7, sizeBytes: () => 0, trimBefore };
    const parts = { clock: new ManualClock(), logger: silentLogger, metrics: new Metrics() };
    const budget = new MemtableBudget({ limitBytes: 100, logLimitBytes: 1e9, metadataTabletBytes: 1e9, log, ...parts });
    const [served] = tabletOf(20);
    budget.add(served);
    await budget.flush(served);
    const flush = budget.flush(served);
    log.newestPosition = 3;
    await assert.rejects(flush, /positions of the log ascend/);
    assert.deepEqual(trimmed, [7]);
  });
});
