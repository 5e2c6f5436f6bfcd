import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { silentLogger } from '../../env/index.ts';
import { errno, smallDisk } from '../fixtures.ts';
import { nodeSyscalls, type Syscalls } from '../posix/posix-syscalls.ts';
import {
  assertWithinBudget,
  budgetOf,
  CHUNK_BYTES,
  type CacheUnderTest,
  contentOf,
  openCache,
  writeFile,
} from './fixtures.ts';

const SLOTS = 12;

/** System calls that may fail: `fails` is called before each, with its number since it was set. */
function faultySyscalls(): { readonly syscalls: Syscalls; fails: (call: number) => string | undefined; calls: number } {
  const faulty = {
    calls: 0,
    fails: (_call: number): string | undefined => undefined,
    syscalls: nodeSyscalls,
  };
  const judge = (): void => {
    const code = faulty.fails(faulty.calls++);
    if (code !== undefined) throw errno(code);
  };
  faulty.syscalls = {
    ...nodeSyscalls,
    read: async (...args) => {
      judge();
      return nodeSyscalls.read(...args);
    },
    readNow: (...args) => {
      judge();
      return nodeSyscalls.readNow(...args);
    },
    write: async (fd, buffers, position) => {
      const code = faulty.fails(faulty.calls++);
      // the part of a write that fails which was made
      if (code !== undefined) await nodeSyscalls.write(fd, [Buffer.concat(buffers).subarray(0, 20)], position);
      if (code !== undefined) throw errno(code);
      await nodeSyscalls.write(fd, buffers, position);
    },
    close: async (fd) => {
      await nodeSyscalls.close(fd);
      judge();
    },
  };
  return faulty;
}

/** Reads and writes of each kind; true results whatever the disk does. */
async function use({ cache, store, directory, clock }: CacheUnderTest, round: number): Promise<void> {
  const { fileSystem } = cache;
  const [written, read] = [`written/${round}`, `read/${round}`];
  await writeFile(fileSystem, written, 150);
  await writeFile(store, read, 64 * 9);
  const check = async (path: string, offset: number, length: number): Promise<void> => {
    const expected = contentOf(path, 64 * 9).subarray(offset, offset + length);
    assert.deepEqual(await fileSystem.read(path, offset, length), expected);
    const now = fileSystem.readNow?.(path, offset, length);
    if (now !== undefined) assert.deepEqual(now, expected);
    await cache.settled();
    assertWithinBudget(directory, SLOTS);
  };
  for (let i = 0; i < 2; i++) {
    await check(written, 0, 150);
    await check(read, 0, 64 * 9);
    await check(read, 100, 30);
  }
  await fileSystem.delete(written);
  await check(read, 200, 60);
  clock.advance(60_000);
}

describe('a read cache on a disk that fails', () => {
  test('at each call: reads are right, and what is kept is right after a restart', async (t) => {
    const faulty = faultySyscalls();
    const subject = await openCache(t, SLOTS, { syscalls: faulty.syscalls });
    await use(subject, 0);
    const calls = faulty.calls;
    assert.ok(calls > 20);
    for (const [round, code] of ['EIO', 'ENOSPC'].entries()) {
      for (let failing = 0; failing < calls; failing += 1 + 2 * round) {
        faulty.calls = 0;
        faulty.fails = (call) => (call === failing ? code : undefined);
        await use(subject, 1 + round * calls + failing);
        faulty.fails = () => undefined;
        await subject.reopen();
      }
    }
    assert.ok(subject.metrics.get('readCache.diskErrors') > calls / 2);
  });

  test('at all calls, and once it works again, what is read is kept again', async (t) => {
    const faulty = faultySyscalls();
    const warnings: string[] = [];
    const logger = { ...silentLogger, warn: (message: string) => void warnings.push(message) };
    const subject = await openCache(t, SLOTS, { syscalls: faulty.syscalls, logger });
    await use(subject, 0);
    faulty.fails = () => 'EIO';
    for (let round = 1; round < 5; round++) await use(subject, round);
    assert.deepEqual(warnings, ['the disk of the read cache fails: EIO: made to fail']);
    faulty.fails = () => undefined;
    await subject.cache.fileSystem.read('read/1', 5, 90);
    await subject.cache.settled();
    subject.storeReads();
    await subject.cache.fileSystem.read('read/1', 5, 90);
    assert.deepEqual(subject.storeReads(), []);
  });

  test('after an error nothing is written for a minute', async (t) => {
    const faulty = faultySyscalls();
    const subject = await openCache(t, SLOTS, { syscalls: faulty.syscalls });
    await writeFile(subject.store, 'f', 300);
    const readAgain = async (): Promise<number> => {
      subject.storeReads();
      await subject.cache.fileSystem.read('f', 10, 40);
      await subject.cache.settled();
      return subject.storeReads().length;
    };
    faulty.fails = () => 'EIO';
    assert.equal(await readAgain(), 1);
    faulty.fails = () => undefined;
    assert.equal(await readAgain(), 1);
    subject.clock.advance(59_999);
    assert.equal(await readAgain(), 1);
    subject.clock.advance(1);
    assert.equal(await readAgain(), 1);
    assert.equal(await readAgain(), 0);
  });

  test('on a full disk new chunks replace others, and take more when there is space again', async (t) => {
    const disk = smallDisk();
    const options = { syscalls: disk.syscalls, chunkBytes: 4096, budgetBytes: budgetOf(20, 4096) };
    const subject = await openCache(t, 20, options);
    await writeFile(subject.store, 'f', 20 * 4096);
    const { fileSystem } = subject.cache;
    const read = async (chunk: number): Promise<boolean> => {
      subject.storeReads();
      const bytes = await fileSystem.read('f', chunk * 4096 + 100, 50);
      assert.deepEqual(bytes, contentOf('f', 20 * 4096).subarray(chunk * 4096 + 100, chunk * 4096 + 150));
      await subject.cache.settled();
      return subject.storeReads().length === 0;
    };
    for (let chunk = 0; chunk < 5; chunk++) await read(chunk);
    disk.freeBytes = 0;
    await read(5);
    assert.equal(await read(5), false, 'the first that finds no space is not kept');
    assert.equal(await read(5), true);
    assert.equal(await read(0), false, 'it has replaced the oldest');
    assert.equal(subject.metrics.report().gauges['readCache.usedBytes'], 5 * 4096);
    disk.freeBytes = 1 << 20;
    subject.clock.advance(60_000);
    for (let chunk = 6; chunk < 10; chunk++) await read(chunk);
    assert.equal(subject.metrics.report().gauges['readCache.usedBytes'], 9 * 4096);
  });

  test('an opening on a disk that fails is an error, and frees the directory', async (t) => {
    const faulty = faultySyscalls();
    const subject = await openCache(t, SLOTS, { syscalls: faulty.syscalls });
    await writeFile(subject.cache.fileSystem, 'f', CHUNK_BYTES);
    const opening = subject.reopen(() => (faulty.fails = () => 'EIO'));
    await assert.rejects(opening, /opening .*EIO/);
    faulty.fails = () => undefined;
    await subject.reopen();
    await subject.cache.fileSystem.read('f', 0, CHUNK_BYTES);
    assert.deepEqual(subject.storeReads(), []);
  });
});
