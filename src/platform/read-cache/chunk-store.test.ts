import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { crc32c } from '../../base/index.ts';
import { ManualClock, Metrics, silentLogger } from '../../env/index.ts';
import { errno } from '../fixtures.ts';
import { nodeSyscalls, type Syscalls } from '../posix/posix-syscalls.ts';
import { NO_SLOT } from './chunk-index.ts';
import { ChunkStore } from './chunk-store.ts';
import { contentOf, temporaryDirectory } from './fixtures.ts';
import { encodeHeader, encodeRecord, PIECES } from './index-record.ts';

const CHUNK_BYTES = 64;
const fileOf = (number: number): Uint32Array => Uint32Array.of(number, 1, 2, 3);
const ALWAYS = (): boolean => true;

async function open(
  t: TestContext,
  slots: number,
  syscalls: Syscalls = nodeSyscalls,
  directory = temporaryDirectory(t),
): Promise<{ store: ChunkStore; metrics: Metrics }> {
  const metrics = new Metrics();
  const store = await ChunkStore.open({
    directory,
    syscalls,
    checksum: crc32c,
    clock: new ManualClock(),
    logger: silentLogger,
    metrics,
    chunkBytes: CHUNK_BYTES,
    slots,
  });
  t.after(() => store.close());
  return { store, metrics };
}

async function put(store: ChunkStore, file: number, chunk: number, isWanted = ALWAYS): Promise<void> {
  const written = await store.write(contentOf(`${file} ${chunk}`, CHUNK_BYTES));
  if (written) await store.name(written, fileOf(file), chunk, isWanted);
}

describe('the chunks of a read cache', () => {
  test('a read whose slot gets another chunk meanwhile is a miss, and no damage', async (t) => {
    let gate: Promise<void> | undefined;
    const read: Syscalls['read'] = async (...args) => {
      await gate;
      return nodeSyscalls.read(...args);
    };
    const { store, metrics } = await open(t, 8, { ...nodeSyscalls, read });
    await put(store, 1, 0);
    let openGate = (): void => undefined;
    gate = new Promise((resolve) => (openGate = resolve));
    const reading = store.read(store.find(fileOf(1), 0, CHUNK_BYTES), 0, Buffer.alloc(10));
    for (let chunk = 0; chunk < 8; chunk++) await put(store, 2, chunk);
    assert.equal(store.find(fileOf(1), 0, 1), NO_SLOT);
    openGate();
    assert.equal(await reading, false);
    assert.equal(metrics.get('readCache.damaged'), 0);
    assert.equal(metrics.get('readCache.evictions'), 1);
  });

  test('two readers of one damage count it once', async (t) => {
    const { store, metrics } = await open(t, 8, {
      ...nodeSyscalls,
      read: async (fd, into, offset, length, position) => {
        const got = await nodeSyscalls.read(fd, into, offset, length, position);
        into[offset]! ^= 1;
        return got;
      },
    });
    await put(store, 1, 0);
    const slot = store.find(fileOf(1), 0, CHUNK_BYTES);
    const reads = [store.read(slot, 0, Buffer.alloc(64)), store.read(slot, 10, Buffer.alloc(5))];
    assert.deepEqual(await Promise.all(reads), [false, false]);
    assert.equal(metrics.get('readCache.damaged'), 1);
  });

  test('a chunk that is not wanted any more when it is written is not found, nor after a start', async (t) => {
    const directory = temporaryDirectory(t);
    const { store } = await open(t, 8, nodeSyscalls, directory);
    await put(store, 1, 0, () => false);
    assert.equal(store.find(fileOf(1), 0, 1), NO_SLOT);
    assert.equal(store.usedBytes, 0);
    await store.close();
    const { store: again } = await open(t, 8, nodeSyscalls, directory);
    assert.equal(again.filledSlots, 0);
  });

  test('a chunk that is there already is not kept twice', async (t) => {
    const { store } = await open(t, 8);
    await put(store, 1, 0);
    await put(store, 1, 0);
    await Promise.all([put(store, 2, 0), put(store, 2, 0)]);
    assert.equal(store.filledSlots, 2);
    assert.equal(store.usedBytes, 2 * CHUNK_BYTES);
  });

  test('of two records with one chunk one is taken, and none that is too long', async (t) => {
    const directory = temporaryDirectory(t);
    const record = { file: fileOf(1), chunk: 0, lengthBytes: CHUNK_BYTES, sums: new Uint32Array(PIECES) };
    const long = { ...record, chunk: 1, lengthBytes: CHUNK_BYTES + 1 };
    const records = [record, record, long].map((each, slot) => encodeRecord(slot, each, crc32c));
    fs.writeFileSync(join(directory, 'index'), Buffer.concat([encodeHeader(CHUNK_BYTES, crc32c), ...records]));
    const { store } = await open(t, 8, nodeSyscalls, directory);
    assert.equal(store.filledSlots, 1);
    assert.equal(store.find(fileOf(1), 0, CHUNK_BYTES), 0);
    await put(store, 3, 0);
    assert.equal(store.find(fileOf(3), 0, 1), 1);
    store.assertConsistent();
  });

  test('after it is closed it touches no file', async (t) => {
    let calls = 0;
    const counted = <A extends unknown[], R>(call: (...args: A) => R): ((...args: A) => R) => {
      return (...args) => {
        calls++;
        return call(...args);
      };
    };
    const { store } = await open(t, 8, {
      ...nodeSyscalls,
      read: counted(nodeSyscalls.read),
      readNow: counted(nodeSyscalls.readNow),
      write: counted(nodeSyscalls.write),
    });
    await put(store, 1, 0);
    const slot = store.find(fileOf(1), 0, 1);
    const written = await store.write(Buffer.alloc(CHUNK_BYTES));
    await store.close();
    calls = 0;
    assert.equal(await store.read(slot, 0, Buffer.alloc(5)), false);
    assert.equal(store.readNow(slot, 0, Buffer.alloc(5)), false);
    assert.equal(await store.write(Buffer.alloc(CHUNK_BYTES)), undefined);
    if (written) await store.name(written, fileOf(2), 0, ALWAYS);
    store.evictFile(fileOf(2), undefined);
    assert.equal(calls, 0);
  });

  test('concurrent calls, some of which fail, leave no slot held, and keep what they wrote', async (t) => {
    const call = fc.record({
      kind: fc.constantFrom('put', 'unwanted', 'discard', 'read', 'evict'),
      file: fc.nat(2),
      chunk: fc.nat(4),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 40 }), fc.nat(20), fc.nat(5), async (calls, failing, together) => {
        // the opening may fail
        let n = Number.NEGATIVE_INFINITY;
        const write: Syscalls['write'] = async (...args) => {
          if (n++ === failing) throw errno('ENOSPC');
          await nodeSyscalls.write(...args);
        };
        const { store } = await open(t, 8, { ...nodeSyscalls, write: (...args) => write(...args) });
        n = 0;
        const run = async ({ kind, file, chunk }: (typeof calls)[number]): Promise<void> => {
          if (kind === 'put') await put(store, file, chunk);
          else if (kind === 'unwanted') await put(store, file, chunk, () => false);
          else if (kind === 'evict') store.evictFile(fileOf(file), chunk === 0 ? undefined : chunk * CHUNK_BYTES);
          else if (kind === 'discard') {
            const written = await store.write(Buffer.alloc(5));
            if (written) store.discard(written);
          } else {
            const slot = store.find(fileOf(file), chunk, CHUNK_BYTES);
            const into = Buffer.alloc(20);
            if (slot !== NO_SLOT && (await store.read(slot, 7, into)))
              assert.deepEqual(into, contentOf(`${file} ${chunk}`, CHUNK_BYTES).subarray(7, 27));
          }
        };
        for (let at = 0; at < calls.length; at += together + 1)
          await Promise.all(calls.slice(at, at + together + 1).map(run));
        await store.close();
        assert.equal(store.usedBytes, store.filledSlots * CHUNK_BYTES);
        store.assertConsistent();
      }),
      { numRuns: 40 },
    );
  });
});
