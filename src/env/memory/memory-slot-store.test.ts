import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code } from '../../base/index.ts';
import type { SlotStore } from '../seams/slot-store.ts';
import { MemorySlotStore } from './memory-slot-store.ts';

const LOG = 'logs/a';

function create(store: SlotStore, slot: number, text: string, reserved = false): Promise<boolean> {
  return store.create(LOG, slot, [Buffer.from(text.slice(0, 1)), Buffer.from(text.slice(1))], { reserved });
}

async function allSlots(store: SlotStore, log = LOG, from = 0): Promise<number[]> {
  const slots: number[] = [];
  for (;;) {
    const page = await store.listSlots(log, from);
    slots.push(...page.slots);
    if (page.isLast) return slots;
    assert.ok(page.slots.length > 0, 'a page that is not the last has slots');
    from = page.slots.at(-1)! + 1;
  }
}

describe('MemorySlotStore', () => {
  test('a slot is created once, and reads back by range', async () => {
    const store = new MemorySlotStore();
    const outcomes = await Promise.all(['one', 'two', 'six'].map((text) => create(store, 3, text)));
    assert.deepEqual(outcomes, [true, false, false]);
    assert.equal((await store.read(LOG, 3, 0, 100))!.toString(), 'one');
    assert.equal((await store.read(LOG, 3, 1, 1))!.toString(), 'n');
    assert.equal((await store.read(LOG, 3, 3, 5))!.length, 0);
    assert.equal(await store.read(LOG, 2, 0, 1), undefined);
    (await store.read(LOG, 3, 0, 3))!.fill(0);
    assert.equal((await store.read(LOG, 3, 0, 3))!.toString(), 'one');
    await store.delete(LOG, [3]);
    await store.delete(LOG, [3]);
    assert.equal(await store.read(LOG, 3, 0, 1), undefined);
    assert.equal(await create(store, 3, 'two'), true);
  });

  test('lists are complete, whatever the size of a page', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.nat(40)),
        fc.integer({ min: 1, max: 5 }),
        fc.nat(40),
        async (slots, pageSize, from) => {
          const store = new MemorySlotStore({ pageSize });
          for (const slot of slots) await create(store, slot, 'x');
          for (const slot of slots) await store.create(`logs/b/${slot}`, 0, []);
          assert.deepEqual(
            await allSlots(store, LOG, from),
            slots.filter((slot) => slot >= from).sort((a, b) => a - b),
          );
          const logs: string[] = [];
          for (let page = await store.listLogs('logs/b/', ''); page.length > 0; ) {
            logs.push(...page);
            page = await store.listLogs('logs/b/', logs.at(-1)!);
          }
          assert.deepEqual(logs, slots.map((slot) => `logs/b/${slot}`).sort());
        },
      ),
    );
  });

  test('room is taken, reserved and returned', async () => {
    const store = new MemorySlotStore();
    store.freeBytes = 20;
    await create(store, 0, '0123456789');
    await assert.rejects(create(store, 1, '0123456789x'), isFull);
    await assert.rejects(store.reserve(LOG, 11), isFull);
    await store.reserve(LOG, 9);
    assert.equal(store.freeBytes, 1);
    await create(store, 1, '01234', true);
    assert.equal(store.freeBytes, 1);
    await store.unreserve(LOG);
    assert.equal(store.freeBytes, 5);
    await store.reserve(LOG, 5);
    await store.delete(LOG, [0]);
    await store.delete(LOG, [1]);
    assert.equal(store.freeBytes, 20);
    assert.deepEqual(await store.listLogs('', ''), []);
  });
});

function isFull(error: unknown): boolean {
  return error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED;
}
