/** The room that a log on slots reserves: each append takes its share, in whichever row it is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quickClock } from '../../../test/simulated-time.ts';
import { MemorySlotStore } from '../memory/memory-slot-store.ts';
import { SeededRandom } from '../memory/seeded-random.ts';
import { APPEND_OVERHEAD_BYTES } from '../seams/file-system.ts';
import { rowsOf } from './slot-format.ts';
import { SlotLogs } from './slot-logs.ts';

const LOG = 'logs/server';
const PAYLOAD = Buffer.alloc(1000, 1);
const SHARE_BYTES = PAYLOAD.length + APPEND_OVERHEAD_BYTES;

test('a log that reserves room for each append, and is trimmed, never needs more of it', async () => {
  const store = new MemorySlotStore();
  const logs = new SlotLogs(store, { clock: quickClock(), random: new SeededRandom(1) });
  const log = await logs.openLog(LOG);
  store.freeBytes = 20 * SHARE_BYTES;
  for (let i = 0; i < 500; i++) {
    await log.reserve(SHARE_BYTES);
    const position = await log.append([PAYLOAD], { reserved: true });
    await log.trimBefore(position);
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  await log.close();
});

test('what is reserved while a slow row takes its share is enough for that row and the other', async () => {
  const store = new MemorySlotStore();
  const clock = quickClock();
  const [slow] = rowsOf(LOG);
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const { create } = MemorySlotStore.prototype;
  store.create = async (...args) => {
    if (args[0] === slow && args[1] === 1) await released;
    return create.apply(store, args);
  };
  const log = await new SlotLogs(store, { clock, random: new SeededRandom(1) }).openLog(LOG);
  await log.reserve(2 * SHARE_BYTES);
  await log.append([PAYLOAD], { reserved: true });
  await log.reserve(SHARE_BYTES);
  store.freeBytes = 0;
  await log.append([PAYLOAD], { reserved: true });
  release();
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  await log.append([PAYLOAD], { reserved: true });
  await assert.rejects(log.append([PAYLOAD]), { codeName: 'RESOURCE_EXHAUSTED' });
  await log.close();
});
