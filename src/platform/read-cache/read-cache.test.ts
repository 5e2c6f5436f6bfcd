import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { BigtableError, Code, codeName, crc32c, unavailable } from '../../base/index.ts';
import { type FileSystem, ManualClock, MemoryFileSystem } from '../../env/index.ts';
import {
  assertWithinBudget,
  budgetOf,
  CHUNK_BYTES,
  damage,
  IDENTITY,
  openCache,
  temporaryDirectory,
  writeFile,
} from './fixtures.ts';
import { openReadCache } from './read-cache.ts';

async function fails(call: Promise<unknown>, code: Code, pattern = /./): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof BigtableError, String(error));
    assert.equal(error.codeName, codeName(code));
    assert.match(error.message, pattern);
    return true;
  });
}

/** Reads of single pieces, none of which continues another. */
async function readApart(fileSystem: FileSystem, path: string, chunks: readonly number[]): Promise<void> {
  for (const chunk of chunks) await fileSystem.read(path, chunk * CHUNK_BYTES + 3, 10);
}

describe('reads through a read cache', () => {
  test('a chunk is fetched whole and once, and then read from the disk', async (t) => {
    const subject = await openCache(t, 20);
    const content = await writeFile(subject.store, 'f', 150);
    const { fileSystem } = subject.cache;
    assert.deepEqual(await fileSystem.read('f', 70, 10), content.subarray(70, 80));
    await subject.cache.settled();
    assert.deepEqual(await fileSystem.read('f', 100, 28), content.subarray(100, 128));
    assert.deepEqual(subject.storeReads(), ['f 64-128']);
    assert.deepEqual(await fileSystem.read('f', 0, 150), content);
    assert.deepEqual(subject.storeReads(), ['f 0-64', 'f 128-150']);
    await subject.cache.settled();
    assert.deepEqual(await fileSystem.read('f', 0, 150), content);
    assert.deepEqual(subject.storeReads(), []);
    const { metrics } = subject;
    assert.equal(metrics.get('readCache.hits'), 2);
    assert.equal(metrics.get('readCache.misses'), 2);
    assert.equal(metrics.get('readCache.hitBytes'), 178);
    assert.equal(metrics.get('readCache.fetchedBytes'), 150);
    assert.equal(metrics.report().gauges['readCache.usedBytes'], 3 * CHUNK_BYTES);
    assert.equal(metrics.report().gauges['readCache.limitBytes'], 20 * CHUNK_BYTES);
  });

  test('concurrent reads of a chunk share its fetch', async (t) => {
    const subject = await openCache(t, 20);
    const content = await writeFile(subject.store, 'f', 1000);
    const reads = Array.from({ length: 10 }, async (_, i) => {
      const bytes = await subject.cache.fileSystem.read('f', 200 + i, 100);
      assert.deepEqual(bytes, content.subarray(200 + i, 300 + i));
    });
    await Promise.all(reads);
    assert.deepEqual(subject.storeReads(), ['f 192-320']);
  });

  test('a fetch that fails fails its readers, and the next read fetches again', async (t) => {
    let isDown = false;
    const store = new MemoryFileSystem({
      faults: (operation) => {
        if (operation === 'read' && isDown) throw unavailable('the store is down');
      },
    });
    const subject = await openCache(t, 20, { fileSystem: store });
    const content = await writeFile(store, 'f', 300);
    const { fileSystem } = subject.cache;
    await fileSystem.size('f');
    isDown = true;
    const reads = [fileSystem.read('f', 0, 300), fileSystem.read('f', 10, 20), fileSystem.read('f', 150, 100)];
    for (const read of reads) await fails(read, Code.UNAVAILABLE);
    isDown = false;
    assert.deepEqual(await fileSystem.read('f', 0, 300), content);
  });

  test('errors are those of the store', async (t) => {
    const subject = await openCache(t, 20);
    await writeFile(subject.store, 'f', 100);
    const { fileSystem } = subject.cache;
    await fails(fileSystem.read('none', 0, 10), Code.NOT_FOUND);
    await fileSystem.read('f', 0, 100);
    await subject.cache.settled();
    await fails(fileSystem.read('f', 90, 11), Code.OUT_OF_RANGE);
    await fails(fileSystem.read('f', 0, 2 ** 40), Code.OUT_OF_RANGE);
    await fails(fileSystem.read('f', -1, 5), Code.OUT_OF_RANGE);
  });

  test('what is on the disk is read synchronously', async (t) => {
    const subject = await openCache(t, 20);
    const content = await writeFile(subject.store, 'f', 150);
    const { fileSystem } = subject.cache;
    assert.equal(fileSystem.readNow?.('f', 60, 10), undefined);
    await fileSystem.read('f', 60, 10);
    await subject.cache.settled();
    subject.storeReads();
    assert.deepEqual(fileSystem.readNow?.('f', 60, 10), content.subarray(60, 70));
    const into = Buffer.alloc(20);
    assert.equal(fileSystem.readNow?.('f', 100, 20, into), into);
    assert.deepEqual(into, content.subarray(100, 120));
    assert.equal(fileSystem.readNow?.('f', 120, 10), undefined);
    assert.equal(fileSystem.readNow?.('none', 0, 1), undefined);
    assert.deepEqual(subject.storeReads(), []);
    damage(subject.directory, 'chunks', 0);
    damage(subject.directory, 'chunks', CHUNK_BYTES);
    assert.equal(fileSystem.readNow?.('f', 0, 64), undefined);
    assert.deepEqual(await fileSystem.read('f', 0, 64), content.subarray(0, 64));
    assert.deepEqual(subject.storeReads(), ['f 0-64']);
  });
});

describe('what a read cache keeps', () => {
  test('a scan is kept when it comes for the second time', async (t) => {
    const subject = await openCache(t, 40);
    const content = await writeFile(subject.store, 'f', 64 * 20);
    const scan = async (): Promise<string[]> => {
      for (let at = 0; at < content.length; at += 100)
        assert.deepEqual(
          await subject.cache.fileSystem.read('f', at, Math.min(100, content.length - at)),
          content.subarray(at, at + 100),
        );
      await subject.cache.settled();
      return subject.storeReads();
    };
    // four chunks and a bit are no scan yet
    assert.deepEqual((await scan()).slice(0, 5), ['f 0-128', 'f 128-256', 'f 256-320', 'f 320-400', 'f 400-500']);
    assert.equal(subject.metrics.report().gauges['readCache.usedBytes'], 5 * CHUNK_BYTES);
    await scan();
    assert.deepEqual(await scan(), []);
  });

  test('scans, even those that are kept, leave what single reads have used', async (t) => {
    const subject = await openCache(t, 20);
    await writeFile(subject.store, 'hot', 64 * 16);
    await writeFile(subject.store, 'cold', 64 * 100);
    const { fileSystem } = subject.cache;
    const hot = [0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14];
    for (let round = 0; round < 2; round++) {
      await readApart(fileSystem, 'hot', hot);
      await subject.cache.settled();
    }
    for (let pass = 0; pass < 3; pass++) {
      for (let at = 0; at < 6400; at += 128) await fileSystem.read('cold', at, 128);
      await subject.cache.settled();
    }
    subject.storeReads();
    await readApart(fileSystem, 'hot', hot);
    assert.deepEqual(subject.storeReads(), []);
  });

  test('a file that is written here is read from the disk', async (t) => {
    const subject = await openCache(t, 20);
    const content = await writeFile(subject.cache.fileSystem, 'f', 333);
    assert.deepEqual(await subject.cache.fileSystem.read('f', 0, 333), content);
    await subject.reopen();
    assert.deepEqual(await subject.cache.fileSystem.read('f', 0, 333), content);
    assert.deepEqual(subject.storeReads(), []);
  });

  test('files under the prefix that is passed are not kept, read or written', async (t) => {
    const subject = await openCache(t, 20, { passedPrefix: 'once/' });
    const { fileSystem } = subject.cache;
    const content = await writeFile(fileSystem, 'once/f', 333);
    await writeFile(fileSystem, 'once', 100);
    subject.storeReads();
    for (let i = 0; i < 2; i++) assert.deepEqual(await fileSystem.read('once/f', 10, 100), content.subarray(10, 110));
    assert.equal(fileSystem.readNow?.('once/f', 10, 10), undefined);
    assert.deepEqual(subject.storeReads(), ['once/f 10-110', 'once/f 10-110']);
    await fileSystem.read('once', 0, 100);
    assert.deepEqual(subject.storeReads(), []);
  });

  test('a file that is not made, or loses its path to another, leaves nothing', async (t) => {
    const subject = await openCache(t, 20);
    const { fileSystem } = subject.cache;
    const used = (): number | undefined => subject.metrics.report().gauges['readCache.usedBytes'];
    const aborted = await fileSystem.create('f');
    await aborted.append(Buffer.alloc(200));
    assert.equal(used(), 3 * CHUNK_BYTES);
    await aborted.abort();
    assert.equal(used(), 0);
    const late = await fileSystem.create('f');
    await late.append(Buffer.alloc(200));
    const content = await writeFile(subject.store, 'f', 200);
    await fails(late.close(), Code.ALREADY_EXISTS);
    assert.equal(used(), 0);
    assert.deepEqual(await fileSystem.read('f', 0, 200), content);
  });

  test('a deletion evicts, a fetch under way is not kept, and the path is free', async (t) => {
    const subject = await openCache(t, 20);
    const { fileSystem } = subject.cache;
    await writeFile(fileSystem, 'f', 200);
    await fileSystem.delete('f');
    await fails(fileSystem.read('f', 0, 10), Code.NOT_FOUND);
    await writeFile(subject.store, 'f', 300);
    await fileSystem.size('f');
    const underWay = fileSystem.read('f', 0, 300);
    await fileSystem.delete('f');
    await underWay.catch(() => undefined);
    await subject.cache.settled();
    const writer = await subject.store.create('f');
    await writer.append(Buffer.from('another'));
    await writer.close();
    assert.equal((await fileSystem.read('f', 0, 7)).toString(), 'another');
  });

  test('what was read before a deletion is not kept after it', async (t) => {
    const store = new MemoryFileSystem();
    let isRead: Promise<void> | undefined;
    const slow = new Proxy(store, {
      get: (target, name) => {
        if (name === 'read')
          return async (path: string, offset: number, length: number) => {
            const bytes = await target.read(path, offset, length);
            await isRead;
            return bytes;
          };
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
    const { cache } = await openCache(t, 20, { fileSystem: slow });
    await writeFile(store, 'f', 20);
    await cache.fileSystem.size('f');
    let open = (): void => undefined;
    isRead = new Promise((resolve) => (open = resolve));
    const early = cache.fileSystem.read('f', 0, 20);
    // the read has begun, and waits
    await new Promise((resolve) => setImmediate(resolve));
    await cache.fileSystem.delete('f');
    open();
    await early;
    await cache.settled();
    const writer = await store.create('f');
    await writer.append(Buffer.from('another'));
    await writer.close();
    assert.equal((await cache.fileSystem.read('f', 0, 7)).toString(), 'another');
  });

  test('a hit of a read that goes on is no use: the chunk stays on probation', async (t) => {
    const subject = await openCache(t, 10);
    await writeFile(subject.store, 'f', 64 * 50);
    const { fileSystem } = subject.cache;
    const isKept = (): boolean => fileSystem.readNow?.('f', 1, 1) !== undefined;
    // slots 0 to 9 are filled, the first one also by the reads that go on after it
    for (const goesOn of [true, false]) {
      await fileSystem.read('f', 0, 10);
      await subject.cache.settled();
      for (let at = 10; at < 50; at += 10) {
        if (goesOn) fileSystem.readNow?.('f', at, 10);
        else fileSystem.readNow?.('f', at + 1, 1);
      }
      for (let chunk = 2; chunk < 40; chunk += 2) {
        await fileSystem.read('f', chunk * CHUNK_BYTES + 20, 10);
        await subject.cache.settled();
      }
      assert.equal(isKept(), !goesOn);
    }
  });

  test('a deletion after a start, when the size is not known, evicts and lasts', async (t) => {
    const subject = await openCache(t, 20);
    await writeFile(subject.cache.fileSystem, 'f', 200);
    await writeFile(subject.cache.fileSystem, 'g', 64);
    await subject.reopen();
    await subject.cache.fileSystem.delete('f');
    await subject.reopen();
    assert.equal(subject.metrics.report().gauges['readCache.usedBytes'], CHUNK_BYTES);
  });
});

describe('the directory of a read cache', () => {
  test('what is found at a start is kept', async (t) => {
    const subject = await openCache(t, 20);
    const content = await writeFile(subject.store, 'f', 1000);
    await subject.cache.fileSystem.read('f', 0, 1000);
    // closing waits for what was fetched
    await subject.reopen();
    subject.storeReads();
    assert.deepEqual(await subject.cache.fileSystem.read('f', 0, 1000), content);
    assert.deepEqual(subject.storeReads(), []);
  });

  test('another store, another size of chunks, or a damaged format file empties it', async (t) => {
    const subject = await openCache(t, 20);
    const path = join(subject.directory, 'EDUBBA');
    for (const [between, options] of [
      [undefined, { identity: 'f'.repeat(32) }],
      [undefined, { chunkBytes: 128, budgetBytes: budgetOf(20, 128) }],
      [() => fs.writeFileSync(path, 'edubba'), {}],
      [() => fs.rmSync(path), {}],
      [() => damage(subject.directory, 'index', 9), {}],
      [() => fs.rmSync(join(subject.directory, 'index')), {}],
    ] as const) {
      await subject.reopen();
      await writeFile(subject.cache.fileSystem, 'f', 100);
      assert.notEqual(subject.metrics.report().gauges['readCache.usedBytes'], 0);
      await subject.reopen(between, options);
      assert.equal(subject.metrics.report().gauges['readCache.usedBytes'], 0);
      await subject.store.delete('f');
    }
  });

  test('damage of each byte is a miss, and counted', async (t) => {
    const subject = await openCache(t, 8);
    const content = await writeFile(subject.cache.fileSystem, 'f', 100);
    let damages = 0;
    for (let at = 0; at < CHUNK_BYTES; at += 3) {
      // wherever they are: the first chunk, and the second with its 36 bytes
      for (let slot = 0; slot < 8; slot++) damage(subject.directory, 'chunks', slot * CHUNK_BYTES + at);
      damages += at < 36 ? 2 : 1;
      assert.deepEqual(await subject.cache.fileSystem.read('f', 0, 100), content);
      await subject.cache.settled();
      assert.equal(subject.metrics.get('readCache.damaged'), damages);
    }
    assert.equal(subject.storeReads().length, 22);
  });

  test('a damaged record, a shortened file, and a smaller budget lose chunks, and no more', async (t) => {
    const subject = await openCache(t, 20);
    const content = await writeFile(subject.cache.fileSystem, 'f', 64 * 18);
    const chunks = join(subject.directory, 'chunks');
    for (const [between, slots] of [
      [() => damage(subject.directory, 'index', 64 * 3 + 17), 20],
      [() => fs.truncateSync(chunks, 700), 20],
      [() => fs.truncateSync(join(subject.directory, 'index'), 1000), 20],
      [undefined, 20],
      [undefined, 10],
      [() => fs.truncateSync(chunks, 0), 20],
    ] as const) {
      await subject.reopen(between, { budgetBytes: budgetOf(slots) });
      assertWithinBudget(subject.directory, slots);
      for (let round = 0; round < 2; round++) {
        assert.deepEqual(await subject.cache.fileSystem.read('f', 0, content.length), content);
        await subject.cache.settled();
        assertWithinBudget(subject.directory, slots);
      }
    }
  });

  test('a second owner and a directory with other content are refused', async (t) => {
    const subject = await openCache(t, 20);
    const options = {
      fileSystem: subject.store,
      identity: IDENTITY,
      budgetBytes: budgetOf(20),
      chunkBytes: CHUNK_BYTES,
      checksum: crc32c,
      clock: new ManualClock(),
    };
    await fails(openReadCache(subject.directory, options), Code.FAILED_PRECONDITION, /is open in this very process/);
    const foreign = temporaryDirectory(t);
    fs.writeFileSync(join(foreign, 'index'), 'a page');
    fs.writeFileSync(join(foreign, 'index.html'), 'a page');
    await fails(openReadCache(foreign, options), Code.FAILED_PRECONDITION, /holds "index.html"/);
    assert.equal(fs.readFileSync(join(foreign, 'index'), 'utf8'), 'a page');
    await fails(openReadCache(foreign, { ...options, budgetBytes: 1000 }), Code.INVALID_ARGUMENT, /budget/);
    await fails(openReadCache(foreign, { ...options, chunkBytes: 100 }), Code.INVALID_ARGUMENT, /chunk size/);
  });
});
