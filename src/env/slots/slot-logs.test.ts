import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type Fate, unreliableSlots } from '../../../test/contracts/unreliable-slots.ts';
import { examplesOf, goldenFile } from '../../../test/golden/golden-file.ts';
import { quickClock } from '../../../test/simulated-time.ts';
import { BigtableError, Code, CorruptionError, crc32c, unavailable } from '../../base/index.ts';
import { MemorySlotStore } from '../memory/memory-slot-store.ts';
import { SeededRandom } from '../memory/seeded-random.ts';
import type { LogAppend, LogWriter } from '../seams/file-system.ts';
import type { SlotStore } from '../seams/slot-store.ts';
import { decodeSlotHeader, encodeSlotHeader, rowsOf, SLOT_HEADER_BYTES, type SlotHeader } from './slot-format.ts';
import { SlotLogs, type SlotLogsOptions } from './slot-logs.ts';

const LOG = 'logs/server';
const [ROW, OTHER_ROW] = rowsOf(LOG);
const READ_BYTES = 512 << 10;
const SHORT_READ_BYTES = 64 << 10;

function logsOn(store: SlotStore, options: Partial<SlotLogsOptions> = {}): SlotLogs {
  return new SlotLogs(store, { clock: quickClock(), random: new SeededRandom(1), ...options });
}

async function filled(store: SlotStore, count: number): Promise<{ logs: SlotLogs; log: LogWriter }> {
  const logs = logsOn(store);
  const log = await logs.openLog(LOG);
  for (let i = 1; i <= count; i++) await log.append([Buffer.from(`record ${i}`)]);
  return { logs, log };
}

async function readAll(logs: SlotLogs, from?: number): Promise<LogAppend[]> {
  const appends: LogAppend[] = [];
  for await (const append of logs.readLog(LOG, from)) appends.push(append);
  return appends;
}

async function positions(logs: SlotLogs, from?: number): Promise<number[]> {
  return (await readAll(logs, from)).map(({ position }) => position);
}

async function slotsOf(store: SlotStore, row = ROW): Promise<number[]> {
  return [...(await store.listSlots(row, 0)).slots];
}

/** Resolves when a trim has ended that nothing delays. */
async function turns(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
}

async function fails(call: Promise<unknown>, code: Code): Promise<void> {
  await assert.rejects(call, (error) => error instanceof BigtableError && error.code === code);
}

function isCorruption(error: unknown): boolean {
  return error instanceof CorruptionError && error.code === Code.DATA_LOSS && error.file.startsWith(LOG);
}

describe('format of slots', () => {
  test('the slots of a log are the golden bytes and the example, and are read back', async () => {
    const store = new MemorySlotStore();
    const nonces = ['000102030405060708090a0b0c0d0e0f', 'f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff'];
    const random = { float: () => 0, uniqueName: () => nonces.shift() ?? 'f0'.repeat(16) };
    const logs = logsOn(store, { random });
    const log = await logs.openLog(LOG);
    for (const payload of [Buffer.from('tablet'), Buffer.alloc(0)]) await log.append([payload]);
    await log.trimBefore(2);
    await log.append([Buffer.alloc(900, 7)]);
    await turns();
    await log.close();
    await logs.fence(LOG);
    const written: Buffer[] = [];
    for (const slot of await slotsOf(store)) written.push((await store.read(ROW, slot, 0, 10_000))!);
    const golden = goldenFile('slot-log-v1.bin', Buffer.concat(written));
    assert.equal(Buffer.concat(written).toString('hex'), golden.toString('hex'));
    const [exampleHead, exampleAppend, exampleFence] = examplesOf('slot-log.md');
    assert.equal(exampleHead!.toString('hex'), written[0]!.toString('hex'));
    assert.equal(exampleFence!.toString('hex'), written.at(-1)!.toString('hex'));
    const { nonce, slot, payloadBytes } = decodeSlotHeader(exampleAppend!, ROW, 1, crc32c);
    assert.deepEqual([nonce.toString('hex').slice(0, 8), slot, payloadBytes], ['00010203', 1, 6]);

    const again = new MemorySlotStore();
    let at = 0;
    for (const [slot, length] of [
      [0, 80],
      [2, 80],
      [3, 980],
      [4, 80],
    ] as const) {
      await again.create(ROW, slot, [golden.subarray(at, at + length)]);
      at += length;
    }
    assert.equal(at, golden.length);
    assert.deepEqual(
      (await readAll(logsOn(again))).map(({ position, bytes }) => [position, bytes.length]),
      [
        [2, 0],
        [3, 900],
      ],
    );
  });

  test('a header reads back; one of a later version, or of unknown features, is refused with words', () => {
    const header: SlotHeader = {
      kind: 'append',
      nonce: Buffer.alloc(16, 3),
      slot: 7,
      sequence: 6,
      lowWater: 5,
      payloadBytes: 1,
      payloadChecksum: 2,
    };
    const bytes = encodeSlotHeader(header, crc32c);
    assert.deepEqual(decodeSlotHeader(bytes, ROW, 7, crc32c), header);
    for (const [offset, what] of [
      [8, /version 2/],
      [12, /features 0x1/],
    ] as const) {
      const later = Buffer.from(bytes);
      later[offset] = later[offset]! + 1;
      later.writeUInt32LE(crc32c(later.subarray(0, 76)), 76);
      assert.throws(
        () => decodeSlotHeader(later, ROW, 7, crc32c),
        (error) =>
          error instanceof BigtableError && error.code === Code.FAILED_PRECONDITION && what.test(error.message),
      );
    }
  });

  test('any bytes are a slot or corruption', () => {
    const valid = encodeSlotHeader(
      { kind: 'head', nonce: Buffer.alloc(16), slot: 0, sequence: 0, lowWater: 0, payloadBytes: 0, payloadChecksum: 0 },
      crc32c,
    );
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 100 }),
      fc.tuple(fc.nat(75), fc.uint8Array({ minLength: 1, maxLength: 9 })).map(([at, changed]) => {
        const made = Buffer.from(valid);
        made.set(changed.subarray(0, 76 - at), at);
        made.writeUInt32LE(crc32c(made.subarray(0, 76)), 76);
        return made;
      }),
    );
    fc.assert(
      fc.property(bytes, (made) => {
        try {
          decodeSlotHeader(Buffer.from(made), ROW, 0, crc32c);
        } catch (error) {
          assert.ok(error instanceof BigtableError);
          assert.ok([Code.DATA_LOSS, Code.FAILED_PRECONDITION].includes(error.code as 9), error.message);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('damaged slots', () => {
  test('each changed byte, each truncation and each missing slot is reported', async () => {
    for (const isFenced of [false, true]) {
      const make = async (): Promise<MemorySlotStore> => {
        const store = new MemorySlotStore();
        const { logs } = await filled(store, 4);
        if (isFenced) await logs.fence(LOG);
        return store;
      };
      const damaged = async (slot: number, change: (bytes: Buffer) => Buffer | undefined): Promise<void> => {
        const store = await make();
        store.damage(ROW, slot, change);
        // the head is looked for, and not read
        await assert.rejects(readAll(logsOn(store)), isCorruption, `slot ${slot}`);
        await logsOn(store).fence(LOG);
        await assert.rejects(readAll(logsOn(store)), isCorruption, `slot ${slot}, fenced`);
      };
      for (const slot of isFenced ? [1, 3, 4, 5] : [1, 3, 4]) {
        const { length } = (await (await make()).read(ROW, slot, 0, 1000))!;
        for (let at = 0; at < length; at++) {
          await damaged(slot, (bytes) => bytes.fill(bytes[at]! ^ 0x10, at, at + 1));
          await damaged(slot, (bytes) => bytes.subarray(0, at));
        }
        if (slot < 5) await damaged(slot, (bytes) => Buffer.concat([bytes, Buffer.of(0)]));
      }
      for (const slot of isFenced ? [0, 1, 3, 4] : [0, 1, 3]) await damaged(slot, () => undefined);
    }
  });

  test('a slot of another log is none of this one', async () => {
    const store = new MemorySlotStore();
    await filled(store, 3);
    const other = await logsOn(store, { random: new SeededRandom(2) }).openLog('logs/other');
    for (let i = 1; i <= 3; i++) await other.append([Buffer.from(`record ${i}`)]);
    const bytes = await store.read('logs/other/a', 2, 0, 1000);
    store.damage(ROW, 2, () => bytes);
    await assert.rejects(readAll(logsOn(store)), isCorruption);
  });

  test('appends of about the size of one read are read whole, and a byte more or less is reported', async () => {
    const firstReads = [
      { slot: 10, readBytes: SHORT_READ_BYTES },
      { slot: 1, readBytes: READ_BYTES },
    ];
    const cases = firstReads.flatMap(({ slot, readBytes }) =>
      [-1, 0, 1, 100_000].map((more) => ({ slot, payloadBytes: readBytes - SLOT_HEADER_BYTES + more })),
    );
    for (const { slot, payloadBytes } of cases) {
      const store = new MemorySlotStore();
      const log = await logsOn(store).openLog(LOG);
      // after short ones less is read at a time
      for (let i = 1; i < slot; i++) await log.append([Buffer.from('before')]);
      await log.append([Buffer.alloc(payloadBytes, 5)]);
      await log.append([Buffer.from('after')]);
      const appends = await readAll(logsOn(store));
      assert.ok(appends[slot - 1]!.bytes.equals(Buffer.alloc(payloadBytes, 5)));
      assert.equal(appends[slot]!.bytes.toString(), 'after');
      store.damage(ROW, slot, (bytes) => Buffer.concat([bytes, Buffer.of(5)]));
      await assert.rejects(readAll(logsOn(store)), isCorruption);
      store.damage(ROW, slot, (bytes) => bytes.subarray(0, bytes.length - 2));
      await assert.rejects(readAll(logsOn(store)), isCorruption);
    }
  });
});

describe('appends of unknown outcome', () => {
  test('one that was applied is acknowledged once, in its slot', async () => {
    const store = new MemorySlotStore();
    const fates: Fate[] = [];
    const lossy = unreliableSlots(store, (method) =>
      method === 'create' ? (fates.shift() ?? 'answered') : 'answered',
    );
    const log = await logsOn(lossy.store).openLog(LOG);
    fates.push('unanswered', 'failed', 'late', 'failed', 'unanswered');
    assert.equal(await log.append([Buffer.from('a')]), 1);
    fates.push('late', 'late');
    assert.equal(await log.append([Buffer.from('b')]), 2);
    await lossy.landAll();
    assert.deepEqual(
      (await readAll(logsOn(store))).map(({ bytes }) => bytes.toString()),
      ['a', 'b'],
    );
  });

  test('one that was refused after an attempt of unknown outcome may be there yet: the log ends', async () => {
    const store = new MemorySlotStore();
    const lossy = unreliableSlots(
      store,
      () => fate,
      () => 1000,
    );
    let fate: Fate = 'answered';
    const log = await logsOn(lossy.store).openLog(LOG);
    fate = 'late';
    const append = log.append([Buffer.from('a')]);
    await new Promise((resolve) => setImmediate(resolve));
    fate = 'answered';
    store.freeBytes = 0;
    await fails(append, Code.UNAVAILABLE);
    store.freeBytes = Number.POSITIVE_INFINITY;
    await fails(log.append([Buffer.from('b')]), Code.FAILED_PRECONDITION);
    await lossy.landAll();
    assert.deepEqual(await positions(logsOn(store)), [1]);
  });

  test('a store that is away for long ends the log, in limited time; a log that is closed waits no longer', async () => {
    const store = new MemorySlotStore();
    let isAway = false;
    const away = unreliableSlots(store, () => (isAway ? 'failed' : 'answered'));
    const clock = quickClock();
    const logs = new SlotLogs(away.store, { clock, random: new SeededRandom(1), retryForMs: 3000 });
    const log = await logs.openLog(LOG);
    const other = await logs.openLog('logs/other');
    isAway = true;
    await fails(log.append([Buffer.from('a')]), Code.UNAVAILABLE);
    assert.ok(clock.monotonicMs() <= 3000, `${clock.monotonicMs()} ms`);
    await fails(log.append([Buffer.from('b')]), Code.FAILED_PRECONDITION);
    const waiting = other.append([Buffer.from('c')]);
    await other.close();
    const closedMs = clock.monotonicMs();
    await fails(waiting, Code.UNAVAILABLE);
    assert.ok(clock.monotonicMs() <= closedMs + 1000);
  });

  test('one that lands after its log was deleted whole, fence and all, is not acknowledged', async () => {
    const store = new MemorySlotStore();
    const held: (() => void)[] = [];
    const holding: SlotStore = new Proxy(store, {
      get: (target, method: keyof SlotStore) => {
        const call = target[method] as (...args: unknown[]) => Promise<unknown>;
        return async (...args: unknown[]) => {
          if (method === 'create' && args[0] === ROW && args[1] === 3)
            await new Promise<void>((resolve) => held.push(resolve));
          return call.apply(target, args);
        };
      },
    });
    const clock = quickClock();
    const log = await logsOn(holding, { clock, switchAfterMs: 1e9 }).openLog(LOG);
    await log.append([Buffer.from('a')]);
    await log.append([Buffer.from('b')]);
    const append = log.append([Buffer.from('c')]);
    await clock.yield();
    const master = logsOn(store);
    await master.fence(LOG);
    assert.deepEqual(await positions(master), [1, 2]);
    await master.deleteLog(LOG);
    assert.deepEqual(await master.listLogs(''), []);
    await new Promise<void>((resolve) => clock.timer(1000, resolve));
    held[0]!();
    await fails(append, Code.FAILED_PRECONDITION);
    // what landed late is found and goes with the next sweep
    assert.deepEqual(await master.listLogs(''), [LOG]);
    await master.deleteLog(LOG);
    assert.deepEqual(await master.listLogs(''), []);
  });
});

describe('slow appends', () => {
  /** A store whose creations in the rows of `held` wait for `release`. */
  function slowRows(store: SlotStore): { slow: SlotStore; held: Set<string>; release: () => void } {
    const held = new Set<string>();
    const waiting: (() => void)[] = [];
    const slow: SlotStore = new Proxy(store, {
      get: (target, method: keyof SlotStore) => {
        const call = target[method] as (...args: unknown[]) => Promise<unknown>;
        return async (...args: unknown[]) => {
          if (method === 'create' && held.has(args[0] as string))
            await new Promise<void>((resolve) => waiting.push(resolve));
          return call.apply(target, args);
        };
      },
    });
    const release = (): void => {
      held.clear();
      for (const go of waiting.splice(0)) go();
    };
    return { slow, held, release };
  }

  test('one that is slow is written to the other row, which takes the next ones; duplicates are read once', async () => {
    const store = new MemorySlotStore();
    const { slow, held, release } = slowRows(store);
    const log = await logsOn(slow).openLog(LOG);
    const part = Buffer.from('record 1');
    await log.append([part]);
    held.add(ROW);
    part.write('record 2');
    assert.equal(await log.append([part]), 2);
    // the slow row sends it yet, and the caller reuses the part
    part.write('record 3');
    assert.equal(await log.append([part]), 3);
    part.fill(0);
    const rows = async (): Promise<number[][]> => [await slotsOf(store), await slotsOf(store, OTHER_ROW)];
    assert.deepEqual(await rows(), [
      [0, 1],
      [0, 1, 2],
    ]);
    const read = async (): Promise<string[]> => (await readAll(logsOn(store))).map(({ bytes }) => bytes.toString());
    assert.deepEqual(await read(), ['record 1', 'record 2', 'record 3']);
    release();
    await turns();
    assert.deepEqual(await rows(), [
      [0, 1, 2],
      [0, 1, 2],
    ]);
    assert.deepEqual(await read(), ['record 1', 'record 2', 'record 3']);
    held.add(OTHER_ROW);
    assert.equal(await log.append([Buffer.from('record 4')]), 4);
    assert.deepEqual(await rows(), [
      [0, 1, 2, 3],
      [0, 1, 2],
    ]);
    release();
    await turns();
    assert.deepEqual(await read(), ['record 1', 'record 2', 'record 3', 'record 4']);
    assert.deepEqual(await positions(logsOn(store), 3), [3, 4]);
  });

  test('one that is slow in both rows is acknowledged by the first that answers', async () => {
    const store = new MemorySlotStore();
    const { slow, held, release } = slowRows(store);
    const log = await logsOn(slow).openLog(LOG);
    held.add(ROW);
    held.add(OTHER_ROW);
    let isDone = false;
    const append = log.append([Buffer.from('a')]).then(() => (isDone = true));
    await turns();
    assert.equal(isDone, false);
    release();
    await append;
    await turns();
    assert.deepEqual(
      [await slotsOf(store), await slotsOf(store, OTHER_ROW)],
      [
        [0, 1],
        [0, 1],
      ],
    );
    assert.deepEqual(await positions(logsOn(store)), [1]);
  });

  test('one that the other row refuses is neither refused nor acknowledged until the first is known', async () => {
    const store = new MemorySlotStore();
    const { slow, held, release } = slowRows(store);
    const log = await logsOn(slow).openLog(LOG);
    held.add(ROW);
    store.freeBytes = 0;
    let isOver = false;
    const append = log.append([Buffer.from('a')]).finally(() => (isOver = true));
    await turns();
    assert.equal(isOver, false);
    store.freeBytes = Number.POSITIVE_INFINITY;
    release();
    assert.equal(await append, 1);
    // both refuse: nothing was written, and the log goes on with the same number
    store.freeBytes = 0;
    await fails(log.append([Buffer.from('b')]), Code.RESOURCE_EXHAUSTED);
    store.freeBytes = Number.POSITIVE_INFINITY;
    assert.equal(await log.append([Buffer.from('c')]), 2);
    assert.deepEqual(
      (await readAll(logsOn(store))).map(({ bytes }) => bytes.toString()),
      ['a', 'c'],
    );
  });

  test('a fence stops both rows: nothing is acknowledged behind it, whichever is slow', async () => {
    for (const row of [ROW, OTHER_ROW]) {
      const store = new MemorySlotStore();
      const { slow, held, release } = slowRows(store);
      const log = await logsOn(slow).openLog(LOG);
      held.add(ROW);
      await log.append([Buffer.from('a')]);
      release();
      await turns();
      held.add(row);
      const append = log.append([Buffer.from('b')]);
      append.catch(() => undefined);
      await logsOn(store).fence(LOG);
      const read = await positions(logsOn(store));
      release();
      if (read.length === 1) await fails(append, Code.FAILED_PRECONDITION);
      await fails(log.append([Buffer.from('c')]), Code.FAILED_PRECONDITION);
      assert.deepEqual(await positions(logsOn(store)), read);
    }
  });

  test('a row that cannot be written to any more leaves the other one', async () => {
    const store = new MemorySlotStore();
    let isAway = false;
    const lossy = unreliableSlots(store, (method, args) =>
      isAway && method === 'create' && args[0] === ROW ? 'failed' : 'answered',
    );
    const log = await logsOn(lossy.store, { retryForMs: 2000 }).openLog(LOG);
    isAway = true;
    for (let i = 1; i <= 20; i++) {
      assert.equal(await log.append([Buffer.from(`record ${i}`)]), i);
      await turns();
    }
    await log.trimBefore(15);
    await log.append([Buffer.from('record 21')]);
    await turns();
    assert.deepEqual(await slotsOf(store), [0]);
    assert.deepEqual(await positions(logsOn(store)), [15, 16, 17, 18, 19, 20, 21]);
  });
});

describe('trimmed and deleted logs', () => {
  test('slots vanish once a later append says so; the head and the newest stay, so that it is opened once', async () => {
    const store = new MemorySlotStore();
    const { logs, log } = await filled(store, 20);
    await log.trimBefore(1000);
    await log.append([Buffer.from('record 21')]);
    await turns();
    assert.deepEqual(await slotsOf(store), [0, 20, 21]);
    assert.equal(log.sizeBytes(), 4 * SLOT_HEADER_BYTES + 'record 20'.length + 'record 21'.length);
    assert.deepEqual(await positions(logs), [20, 21]);
    await fails(logs.openLog(LOG), Code.ALREADY_EXISTS);
  });

  test('short slots count as what a call for one costs', async () => {
    const store = new MemorySlotStore();
    const log = await logsOn(store, { slotCostBytes: 10_000 }).openLog(LOG);
    const emptyBytes = log.sizeBytes();
    for (let i = 0; i < 5; i++) await log.append([Buffer.alloc(10)]);
    assert.equal(log.sizeBytes() - emptyBytes, 50_000);
    await log.append([Buffer.alloc(20_000)]);
    assert.equal(log.sizeBytes() - emptyBytes, 70_000 + SLOT_HEADER_BYTES);
    await log.trimBefore(6);
    await log.append([Buffer.alloc(10)]);
    await turns();
    assert.equal(log.sizeBytes() - emptyBytes, 30_000 + SLOT_HEADER_BYTES);
  });

  test('a creation that lands again below the low-water mark is not read', async () => {
    const store = new MemorySlotStore();
    const { logs, log } = await filled(store, 9);
    const third = await store.read(ROW, 3, 0, 1000);
    await log.trimBefore(7);
    await log.append([Buffer.from('record 10')]);
    await turns();
    assert.deepEqual(await slotsOf(store), [0, 7, 8, 9, 10]);
    await store.create(ROW, 3, [third!]);
    assert.deepEqual(await positions(logs), [7, 8, 9, 10]);
    assert.deepEqual(await positions(logs, 2), [7, 8, 9, 10]);
  });

  test('a trim that finds nothing to delete is not the last one', async () => {
    const store = new MemorySlotStore();
    const { log } = await filled(store, 1);
    await log.trimBefore(1);
    for (let i = 2; i <= 6; i++) {
      await log.append([Buffer.from('x')]);
      await turns();
      await log.trimBefore(i);
    }
    assert.deepEqual(await slotsOf(store), [0, 5, 6]);
  });

  test('a marker in a slot that is trimmed while the log is read does not end it', async () => {
    const store = new MemorySlotStore();
    const { logs, log } = await filled(store, 30);
    const nonce = Buffer.alloc(16);
    const marker = {
      kind: 'fence',
      nonce,
      slot: 20,
      sequence: 0,
      lowWater: 0,
      payloadBytes: 0,
      payloadChecksum: 0,
    } as const;
    const seen: LogAppend[] = [];
    for await (const append of logs.readLog(LOG)) {
      seen.push(append);
      if (seen.length > 1) continue;
      await log.trimBefore(25);
      await log.append([Buffer.from('record 31')]);
      await turns();
      await store.create(ROW, 20, [encodeSlotHeader(marker, crc32c)]);
    }
    const after = seen.findIndex(({ afterTrim }) => afterTrim);
    assert.deepEqual(
      seen.slice(after).map(({ position }) => position),
      [25, 26, 27, 28, 29, 30, 31],
    );
    await logs.fence(LOG);
    assert.deepEqual(await positions(logs), [25, 26, 27, 28, 29, 30, 31]);
  });

  test('a deletion that was cut short leaves a log without appends, in the list, which no writer goes on with', async () => {
    const store = new MemorySlotStore({ pageSize: 3 });
    const { log } = await filled(store, 20);
    let left = 4;
    const dying = unreliableSlots(store, (method) => (method === 'delete' && left-- <= 0 ? 'failed' : 'answered'));
    await fails(logsOn(dying.store).deleteLog(LOG), Code.UNAVAILABLE);
    const logs = logsOn(store);
    assert.deepEqual(await positions(logs), []);
    assert.deepEqual(await logs.listLogs(''), [LOG]);
    await fails(log.append([Buffer.from('late')]), Code.FAILED_PRECONDITION);
    await logs.fence(LOG);
    assert.deepEqual(await positions(logs), []);
    await logs.deleteLog(LOG);
    assert.deepEqual(await logs.listLogs(''), []);
  });

  test('an append that lands after its log was deleted belongs to no log, and goes with the next deletion', async () => {
    const store = new MemorySlotStore();
    const { logs } = await filled(store, 3);
    const second = await store.read(ROW, 2, 0, 1000);
    await logs.deleteLog(LOG);
    await store.create(ROW, 2, [second!]);
    assert.deepEqual(await positions(logs), []);
    assert.deepEqual(await logs.listLogs(''), [LOG]);
    await logs.deleteLog(LOG);
    assert.deepEqual(await logs.listLogs(''), []);
  });

  test('a row without its head is damage while the other row has one', async () => {
    const store = new MemorySlotStore();
    const { logs } = await filled(store, 3);
    await store.delete(ROW, [0]);
    await fails(positions(logs), Code.DATA_LOSS);
  });

  test('a fence that a full store refuses, in one row or in both, is made when it is sent again', async () => {
    for (const markers of [0, 1]) {
      const store = new MemorySlotStore();
      const { logs, log } = await filled(store, 3);
      store.freeBytes = markers * SLOT_HEADER_BYTES;
      await fails(logs.fence(LOG), Code.RESOURCE_EXHAUSTED);
      await fails(logs.fence(LOG), Code.RESOURCE_EXHAUSTED);
      store.freeBytes = Number.POSITIVE_INFINITY;
      await logs.fence(LOG);
      await fails(log.append([Buffer.from('late')]), Code.FAILED_PRECONDITION);
      assert.deepEqual(await positions(logs), [1, 2, 3]);
      for (const row of [ROW, OTHER_ROW])
        assert.equal((await slotsOf(store, row)).at(-1), row === ROW ? 4 : 1, `${row}: one marker`);
    }
  });

  test('the fence of a log that was never opened takes its name', async () => {
    const store = new MemorySlotStore();
    const logs = logsOn(store);
    await logs.fence(LOG);
    await logs.fence(LOG);
    assert.deepEqual(await slotsOf(store), [0]);
    await fails(logs.openLog(LOG), Code.ALREADY_EXISTS);
    assert.deepEqual(await positions(logs), []);
    await logs.deleteLog(LOG);
    await (await logs.openLog(LOG)).close();
  });
});

describe('reading', () => {
  test('32 short slots are read at a time, or 4 long ones, and none after the reader stops', async () => {
    const store = new MemorySlotStore();
    const { log } = await filled(store, 60);
    for (let i = 0; i < 60; i++) await log.append([Buffer.alloc(100_000)]);
    let highest = 0;
    const seen = unreliableSlots(store, (method, args) => {
      if (method === 'read' && (args[1] as number) < 119) highest = Math.max(highest, args[1] as number);
      return 'answered';
    });
    let read = 0;
    const aheadAt = new Map<number, number>();
    for await (const { position } of logsOn(seen.store).readLog(LOG)) {
      aheadAt.set(position, highest - position);
      if (++read === 100) break;
    }
    const most = (from: number, to: number): number =>
      Math.max(...[...aheadAt].filter(([at]) => at >= from && at < to).map(([, ahead]) => ahead));
    assert.deepEqual([most(1, 2), most(10, 60), most(95, 101)], [3, 31, 3]);
    assert.ok(highest <= 104);
  });

  test('from a position on, the slots far below it are not read', async () => {
    const store = new MemorySlotStore({ pageSize: 200 });
    await filled(store, 1000);
    const read = new Set<number>();
    const seen = unreliableSlots(store, (method, args) => {
      if (method === 'read') read.add(args[1] as number);
      return 'answered';
    });
    assert.deepEqual(await positions(logsOn(seen.store), 995), [995, 996, 997, 998, 999, 1000]);
    assert.ok(read.size < 60, `${read.size} slots`);
  });

  test('whatever the fates of the calls, what was acknowledged is read, from any position, by any machine', async () => {
    const step = fc.record({
      kind: fc.constantFrom('append', 'append', 'append', 'trim', 'read'),
      size: fc.oneof(fc.nat(20), fc.nat(3000)),
      back: fc.nat(6),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 60 }),
        fc.integer(),
        fc.constantFrom(1, 2, 3, 4, 12, 100),
        async (steps, seed, pageSize) => {
          const random = new SeededRandom(seed);
          const slots = new MemorySlotStore({ pageSize });
          const fates: readonly Fate[] = ['answered', 'answered', 'unanswered', 'failed', 'late'];
          const draw = (): Fate => fates[Math.floor(random.float() * fates.length)]!;
          const { store } = unreliableSlots(slots, draw, () => Math.ceil(random.float() * 6));
          const machine = (): SlotLogs => logsOn(store, { retryForMs: 1e6 });
          const log = await machine().openLog(LOG);
          const model: { position: number; bytes: Buffer }[] = [];
          let trimmed = 0;
          for (const { kind, size, back } of steps) {
            const position = model.length - back;
            if (kind === 'append') {
              const bytes = Buffer.alloc(size, model.length);
              model.push({ position: await log.append([bytes.subarray(0, 5), bytes.subarray(5)]), bytes });
            } else if (kind === 'trim') {
              await log.trimBefore(position);
              trimmed = Math.max(trimmed, position);
            } else {
              const from = Math.max(0, position);
              const got = await readAll(machine(), from);
              const wanted = model.filter((append) => append.position >= from);
              assert.deepEqual(got, wanted.slice(wanted.length - got.length));
              assert.ok(got.length >= wanted.filter((append) => append.position >= trimmed).length);
            }
          }
          await machine().fence(LOG);
          await fails(log.append([Buffer.from('late')]), Code.FAILED_PRECONDITION);
          assert.deepEqual(
            (await positions(machine(), trimmed)).length,
            model.filter((a) => a.position >= trimmed).length,
          );
        },
      ),
      { numRuns: 60 },
    );
  });

  test('errors that no repetition mends are reported as they are', async () => {
    const store = new MemorySlotStore();
    await filled(store, 1);
    const broken = new Proxy(store, {
      get: (target, method: keyof SlotStore) =>
        method === 'listSlots'
          ? () => Promise.reject(new BigtableError(Code.PERMISSION_DENIED, 'not yours'))
          : target[method],
    });
    await fails(readAll(logsOn(broken)), Code.PERMISSION_DENIED);
    const slow = new Proxy(store, {
      get: (target, method: keyof SlotStore) =>
        method === 'listSlots' ? () => Promise.reject(unavailable('away')) : target[method],
    });
    await fails(readAll(logsOn(slow)), Code.UNAVAILABLE);
  });
});
