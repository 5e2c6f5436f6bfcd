import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { quickClock } from '../../../test/simulated-time.ts';
import { MemorySlotStore } from '../memory/memory-slot-store.ts';
import { SeededRandom } from '../memory/seeded-random.ts';
import { SlotLogs } from './slot-logs.ts';

const LOG = 'logs/server';

function logsOn(store: MemorySlotStore, slotCostBytes = 0): SlotLogs {
  return new SlotLogs(store, { clock: quickClock(), random: new SeededRandom(1), slotCostBytes });
}

async function fill(logs: SlotLogs, sizes: readonly number[]): Promise<void> {
  const log = await logs.openLog(LOG);
  for (const size of sizes) await log.append([Buffer.alloc(size)]);
  await log.close();
  await logs.fence(LOG);
}

describe('the cuts of a log of slots', () => {
  test('ascend, lie at appends, and make parts of about the size', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 120 }),
        fc.integer({ min: 50, max: 5000 }),
        async (sizes, partBytes) => {
          const logs = logsOn(new MemorySlotStore({ pageSize: 30 }));
          await fill(logs, sizes);
          const { sizeBytes, positions } = await logs.cutLog(LOG, partBytes);
          const sum = sizes.reduce((total, size) => total + size, 0);
          if (sizes.length > 16 && sizeBytes < partBytes / 2) {
            // short, as few of its slots tell: no more of them are read
            assert.deepEqual(positions, []);
            return;
          }
          assert.equal(sizeBytes, sum);
          for (const [i, begin] of [1, ...positions].entries()) {
            const end = positions[i] ?? sizes.length + 1;
            assert.ok(sizes.length === 0 || begin < end);
            const bytes = sizes.slice(begin - 1, end - 1).reduce((sum, size) => sum + size, 0);
            assert.ok(bytes < partBytes + 400, `${bytes}`);
            if (end <= sizes.length) assert.ok(bytes >= partBytes, `${bytes}`);
          }
        },
      ),
    );
  });

  test('of a long log come from a few of its slots', async () => {
    const store = new MemorySlotStore();
    const logs = logsOn(store);
    const sizes = Array.from({ length: 3000 }, (_, i) => 50 + (i % 100));
    await fill(logs, sizes);
    let reads = 0;
    const read = store.read.bind(store);
    store.read = (...args) => {
      reads++;
      return read(...args);
    };
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    const short = await logs.cutLog(LOG, 1_000_000);
    assert.ok(reads < 25, `${reads}`);
    assert.ok(Math.abs(short.sizeBytes - bytes) < bytes / 10, `${short.sizeBytes} of ${bytes}`);
    assert.deepEqual(short.positions, []);
    reads = 0;
    const { sizeBytes, positions } = await logs.cutLog(LOG, 30_000);
    assert.ok(reads < 160, `${reads}`);
    assert.ok(Math.abs(sizeBytes - bytes) < bytes / 10, `${sizeBytes} of ${bytes}`);
    assert.ok(positions.length >= 8 && positions.length <= 10, `${positions.length}`);
  });

  test('leave out what was trimmed, and a log that does not exist has none', async () => {
    const logs = logsOn(new MemorySlotStore());
    assert.deepEqual(await logs.cutLog(LOG, 10), { sizeBytes: 0, callCostBytes: 0, positions: [] });
    const log = await logs.openLog(LOG);
    for (let i = 0; i < 10; i++) await log.append([Buffer.alloc(100)]);
    await log.trimBefore(6);
    await log.append([Buffer.alloc(100)]);
    await log.close();
    assert.deepEqual(await logs.cutLog(LOG, 250), { sizeBytes: 600, callCostBytes: 0, positions: [9] });
  });

  test('tell what short slots cost where calls are slow', async () => {
    const sizes = [100, 5000, 900];
    const logs = logsOn(new MemorySlotStore(), 1000);
    await fill(logs, sizes);
    assert.deepEqual(await logs.cutLog(LOG, 1e6), { sizeBytes: 6000, callCostBytes: 1000, positions: [] });
    // as the writer counts them, but for headers
    const long = Array.from({ length: 3000 }, (_, i) => 50 + (i % 100));
    const many = logsOn(new MemorySlotStore(), 1000);
    await fill(many, long);
    const { sizeBytes, callCostBytes } = await many.cutLog(LOG, 1e6);
    assert.ok(Math.abs(sizeBytes + callCostBytes - 3_000_000) < 100_000, `${sizeBytes} + ${callCostBytes}`);
  });
});
