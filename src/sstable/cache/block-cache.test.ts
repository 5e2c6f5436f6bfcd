import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AssertionError, CorruptionError } from '../../base/index.ts';
import { Metrics } from '../../env/index.ts';
import { Block } from '../read/block.ts';
import { BlockCache, type BlockOrigin } from './block-cache.ts';
import { SharedRead } from '../read/shared-read.ts';

/** Overhead of a block with one restart point. */
const OVERHEAD_BYTES = 256 + 8;

/** A block whose content is its offset. */
function block(offset: number, bytes = 1000, memory = Buffer.alloc(bytes)): Block {
  memory.writeUInt32BE(offset, 0);
  memory.writeUInt32BE(1, memory.length - 4);
  return new Block('t', offset, memory);
}

function cacheOf(blocks: number): { cache: BlockCache; metrics: Metrics } {
  const metrics = new Metrics();
  return { cache: new BlockCache({ limitBytes: blocks * (1000 + OVERHEAD_BYTES), metrics }), metrics };
}

const read = (offset: number, bytes?: number) => (): Promise<Block> => Promise.resolve(block(offset, bytes));

describe('BlockCache', () => {
  test('returns what was loaded, and counts', async () => {
    const { cache, metrics } = cacheOf(10);
    const file = cache.open('t');
    assert.equal(file.get(5), undefined);
    const loaded = await file.load(5, read(5));
    assert.equal(file.get(5), loaded);
    assert.equal(cache.open('other').get(5), undefined);
    assert.deepEqual(metrics.snapshot(), { 'blockCache.hits': 1, 'blockCache.misses': 2 });
  });

  test('loads of one block share one read, and a failed one is made anew', async () => {
    const { cache } = cacheOf(10);
    const file = cache.open('t');
    let reads = 0;
    const slow = async (): Promise<Block> => {
      reads++;
      await Promise.resolve();
      if (reads === 1) throw new Error('once');
      return block(1);
    };
    const failed = await Promise.allSettled([file.load(1, slow), file.load(1, slow)]);
    assert.deepEqual(
      failed.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal(reads, 1);
    assert.equal(file.has(1), false);
    const [a, b] = await Promise.all([file.load(1, slow), file.load(1, slow)]);
    assert.equal(a, b);
    assert.equal(reads, 2);
    assert.equal(await file.load(1, slow), a);
    assert.equal(reads, 2);
  });

  test('a scan does not evict what is used repeatedly', async () => {
    const { cache, metrics } = cacheOf(100);
    const file = cache.open('t');
    for (let hot = 0; hot < 50; hot++) {
      await file.load(hot, read(hot));
      assert.ok(file.get(hot));
    }
    for (let cold = 1000; cold < 3000; cold++) if (!file.get(cold)) await file.load(cold, read(cold));
    const before = metrics.get('blockCache.hits');
    for (let hot = 0; hot < 50; hot++) assert.ok(file.get(hot), `block ${hot} is still there`);
    assert.equal(metrics.get('blockCache.hits') - before, 50);
  });

  test('a scan that reads ahead does not either, though it requests each block that was read ahead', async () => {
    const { cache } = cacheOf(100);
    const file = cache.open('t');
    for (let hot = 0; hot < 50; hot++) {
      await file.load(hot, read(hot));
      file.get(hot);
    }
    for (let cold = 1000; cold < 3000; cold += 4) {
      const together = { read: new SharedRead(), isAhead: true, isVisitor: file.noteScan(cold, cold + 3) };
      for (let i = 0; i < 4; i++) await file.load(cold + i, read(cold + i), together);
      for (let i = 0; i < 4; i++) assert.ok(file.get(cold + i));
    }
    for (let hot = 0; hot < 50; hot++) assert.ok(file.get(hot), `block ${hot} is still there`);
  });

  /** The origin of a block that a scan reads by itself. */
  const scanned = (file: ReturnType<BlockCache['open']>, number: number): BlockOrigin => ({
    read: undefined,
    isAhead: false,
    isVisitor: file.noteScan(number, number),
  });

  describe('keeps few blocks that only one scan wanted, however much space there is', () => {
    const MIB = 1 << 20;
    const BLOCKS = 60;
    const scan = async (file: ReturnType<BlockCache['open']>): Promise<number> => {
      let reads = 0;
      for (let i = 0; i < BLOCKS; i++) {
        if (file.get(i)) continue;
        reads++;
        await file.load(i, read(i, MIB), scanned(file, i));
      }
      return reads;
    };
    const open = (): { cache: BlockCache; file: ReturnType<BlockCache['open']> } => {
      const cache = new BlockCache({ limitBytes: 256 * MIB, metrics: new Metrics() });
      return { cache, file: cache.open('t') };
    };

    test('the first scan leaves 16 MiB, the second one leaves all', async () => {
      const { cache, file } = open();
      assert.equal(await scan(file), BLOCKS);
      assert.ok(cache.usedBytes <= 16 * MIB && cache.usedBytes > 14 * MIB, `${cache.usedBytes} bytes`);
      assert.ok(cache.keepsAll, 'there is space for all that rows were read for');
      assert.ok((await scan(file)) > 40);
      assert.equal(await scan(file), 0);
      cache.assertConsistent();
    });

    test('a twentieth of a large cache', async () => {
      const cache = new BlockCache({ limitBytes: 800 * MIB, metrics: new Metrics() });
      const file = cache.open('t');
      assert.equal(await scan(file), BLOCKS);
      assert.ok(cache.usedBytes <= 40 * MIB && cache.usedBytes > 38 * MIB, `${cache.usedBytes} bytes`);
    });

    test('a block that is requested again stays', async () => {
      const { cache, file } = open();
      await file.load(0, read(0, MIB), scanned(file, 0));
      assert.ok(file.get(0));
      for (let i = 1; i < BLOCKS; i++) await file.load(i, read(i, MIB), scanned(file, i));
      assert.ok(file.get(0));
      assert.equal(file.get(1), undefined);
      cache.assertConsistent();
    });

    test('a block that was read for a row stays', async () => {
      const { file } = open();
      for (let i = 0; i < 20; i++) await file.load(i, read(i, MIB));
      for (let i = 100; i < 160; i++) await file.load(i, read(i, MIB), scanned(file, i));
      for (let i = 0; i < 20; i++) assert.ok(file.get(i));
    });

    test('one block above the bound is kept until the next', async () => {
      const { cache, file } = open();
      await file.load(0, read(0, 20 * MIB), scanned(file, 0));
      assert.ok(file.get(0) && cache.usedBytes > 20 * MIB);
      cache.assertConsistent();
      await file.load(1, read(1, 20 * MIB), scanned(file, 1));
      await file.load(2, read(2, 20 * MIB), scanned(file, 2));
      assert.equal(file.get(1), undefined);
      cache.assertConsistent();
    });
  });

  test('a block that is no longer used is evicted', async () => {
    const { cache } = cacheOf(20);
    const file = cache.open('t');
    for (let offset = 0; offset < 200; offset++) {
      await file.load(offset, read(offset));
      file.get(offset);
    }
    assert.equal(file.has(0), false);
    assert.ok(file.get(199));
  });

  test('blocks above an eighth of the budget are not kept, nor any by a cache of 0 bytes', async () => {
    const { cache } = cacheOf(16);
    const file = cache.open('t');
    await file.load(1, read(1, 3000));
    assert.equal(file.has(1), false);
    await file.load(2, read(2, 2000));
    assert.equal(file.has(2), true);
    const none = new BlockCache({ limitBytes: 0, metrics: new Metrics() }).open('t');
    assert.equal((await none.load(3, read(3))).offset, 3);
    assert.equal(none.has(3), false);
  });

  test('a block that leaves probation leaves the memory it came in, which counts until its last block goes', async () => {
    const { cache } = cacheOf(16);
    const file = cache.open('t');
    const memory = Buffer.alloc(4000);
    const origin = { read: new SharedRead(), isAhead: false, isVisitor: false };
    for (let i = 0; i < 4; i++)
      await file.load(i, () => Promise.resolve(block(i, 1000, memory.subarray(i * 1000, (i + 1) * 1000))), origin);
    assert.equal(file.get(0)?.bytes.buffer, memory.buffer);
    for (let i = 4; i < 17; i++) await file.load(i, read(i));
    // the oldest on probation was used: it went to the main part, and the next made way
    const copy = file.get(0)?.bytes;
    assert.ok(copy);
    assert.notEqual(copy.buffer, memory.buffer);
    assert.equal(copy.buffer.byteLength, copy.length);
    assert.equal(copy.readUInt32BE(0), 0);
    assert.equal(file.has(1), false);
    const kept = Array.from({ length: 17 }, (_, i) => i).filter((i) => file.has(i)).length;
    // blocks 1 to 3 released no memory before the last of them went
    assert.deepEqual(
      [1, 2, 3, 4].map((i) => file.has(i)),
      [false, false, false, true],
    );
    assert.equal(cache.usedBytes, kept * (1000 + OVERHEAD_BYTES));
    file.close();
    assert.equal(cache.usedBytes, 0);
  });

  test('a block that was read ahead is decoded at its first request, and counts with its decoded size', async () => {
    const { cache, metrics } = cacheOf(16);
    const file = cache.open('t');
    let decoded = 0;
    const unread = { storedBytes: 300, isCompressed: true, decode: (): Block => (decoded++, block(1)) };
    file.loadAhead(1, () => Promise.resolve(unread), new SharedRead(), false);
    assert.equal(file.has(1), true);
    await Promise.resolve();
    await Promise.resolve();
    assert.equal(cache.usedBytes, 300 + 256);
    assert.equal(decoded, 0);
    assert.equal(file.get(1)?.offset, 1);
    assert.equal(file.get(1)?.offset, 1);
    assert.equal(decoded, 1);
    assert.equal(cache.usedBytes, 1000 + OVERHEAD_BYTES);
    assert.equal(metrics.get('blockCache.hits'), 2);
  });

  test('a block that was read ahead and cannot be decoded is read again', async () => {
    const { cache } = cacheOf(16);
    const file = cache.open('t');
    const broken = {
      storedBytes: 300,
      isCompressed: false,
      decode: (): Block => {
        throw new CorruptionError('t', 1, 'broken');
      },
    };
    file.loadAhead(1, () => Promise.resolve(broken), new SharedRead(), false);
    await assert.rejects(file.load(1, read(1)), CorruptionError);
    assert.equal(file.has(1), false);
    file.loadAhead(2, () => Promise.resolve(broken), new SharedRead(), false);
    await Promise.resolve();
    await Promise.resolve();
    assert.equal(file.get(2), undefined);
    assert.equal((await file.load(2, read(2))).offset, 2);
    file.loadAhead(3, () => Promise.reject(new Error('no such file')), new SharedRead(), false);
    await Promise.resolve();
    assert.equal((await file.load(3, read(3)).catch(() => file.load(3, read(3)))).offset, 3);
  });

  test('a file closed while a block is on its way leaves nothing in the cache, and closing twice is a bug', async () => {
    const { cache } = cacheOf(16);
    const file = cache.open('t');
    const load = file.load(1, read(1));
    file.close();
    assert.equal((await load).offset, 1);
    assert.equal(cache.usedBytes, 0);
    assert.throws(() => file.close(), AssertionError);
    const again = cache.open('t');
    assert.equal(again.has(1), false);
  });

  test('stays within its budget for any requests, and never returns another block', async () => {
    const step = fc.record({
      file: fc.constantFrom('a', 'b', 'c'),
      offset: fc.nat(30),
      bytes: fc.integer({ min: 12, max: 2500 }),
      together: fc.nat(4),
      ahead: fc.boolean(),
      scans: fc.boolean(),
      closes: fc.nat(30),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 150, size: 'max' }), async (steps) => {
        const cache = new BlockCache({ limitBytes: 12_000, visitorBytes: 3000, metrics: new Metrics() });
        const files = new Map(['a', 'b', 'c'].map((name) => [name, cache.open(name)]));
        for (const { file: name, offset, bytes, together, ahead, scans, closes } of steps) {
          let file = files.get(name);
          assert.ok(file);
          if (closes === 0) {
            file.close();
            file = cache.open(name);
            files.set(name, file);
          }
          const isVisitor = scans && file.noteScan(offset, offset + together);
          const origin =
            together > 1
              ? { read: new SharedRead(), isAhead: ahead, isVisitor }
              : { read: undefined, isAhead: false, isVisitor };
          for (let i = 0; i <= together; i++) {
            const got: Block = file.get(offset + i) ?? (await file.load(offset + i, read(offset + i, bytes), origin));
            assert.equal(got.offset, offset + i);
            assert.equal(got.bytes.readUInt32BE(0), offset + i);
            assert.ok(
              cache.usedBytes >= 0 && cache.usedBytes <= cache.limitBytes,
              `${cache.usedBytes} of ${cache.limitBytes}`,
            );
            cache.assertConsistent();
          }
        }
        for (const file of files.values()) file.close();
        assert.equal(cache.usedBytes, 0);
      }),
    );
  });
});
