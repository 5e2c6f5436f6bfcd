/** For tests: a read cache in a temporary directory, over a store in memory whose reads are counted. */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { crc32c } from '../../base/index.ts';
import { type FileSystem, ManualClock, MemoryFileSystem, Metrics } from '../../env/index.ts';
import { openReadCache, type ReadCache, type ReadCacheOptions } from './read-cache.ts';

export const IDENTITY = '0123456789abcdef0123456789abcdef';
export const CHUNK_BYTES = 64;

/** The least budget for that number of slots. */
export function budgetOf(slots: number, chunkBytes = CHUNK_BYTES): number {
  return 32 * 1024 + 64 + slots * (chunkBytes + 64);
}

/** A directory that is removed after the test. */
export function temporaryDirectory(t?: TestContext): string {
  const directory = fs.mkdtempSync(join(tmpdir(), 'edubba-read-cache-'));
  t?.after(() => fs.rmSync(directory, { recursive: true }));
  return directory;
}

/** Bytes that differ from file to file and from place to place. */
export function contentOf(path: string, length: number): Buffer {
  const seed = crc32c(Buffer.from(path));
  return Buffer.from(Uint8Array.from({ length }, (_, i) => (Math.imul(seed + i, 0x9e3779b1) >>> 13) & 255));
}

export async function writeFile(fileSystem: FileSystem, path: string, length: number): Promise<Buffer> {
  const content = contentOf(path, length);
  const writer = await fileSystem.create(path);
  for (let at = 0; at < length; at += 50) await writer.append(content.subarray(at, at + 50));
  await writer.close();
  return content;
}

export interface CacheUnderTest {
  readonly directory: string;
  readonly store: MemoryFileSystem;
  readonly clock: ManualClock;
  readonly metrics: Metrics;
  cache: ReadCache;
  /** Reads of the store since the last call, as "path from-to". */
  storeReads(): string[];
  /** Closes the cache, calls `between`, and opens it again. */
  reopen(between?: () => void, options?: Partial<ReadCacheOptions>): Promise<void>;
}

export async function openCache(
  t: TestContext | undefined,
  slots: number,
  options: Partial<ReadCacheOptions> = {},
): Promise<CacheUnderTest> {
  const directory = temporaryDirectory(t);
  const store = new MemoryFileSystem();
  const clock = new ManualClock();
  const metrics = new Metrics();
  let reads: string[] = [];
  const counted = new Proxy(store, {
    get: (target, name) => {
      if (name === 'read')
        return (path: string, offset: number, length: number) => {
          reads.push(`${path} ${offset}-${offset + length}`);
          return target.read(path, offset, length);
        };
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const open = (more: Partial<ReadCacheOptions> = {}): Promise<ReadCache> =>
    openReadCache(directory, {
      fileSystem: counted,
      identity: IDENTITY,
      budgetBytes: budgetOf(slots),
      chunkBytes: CHUNK_BYTES,
      checksum: crc32c,
      clock,
      metrics,
      ...options,
      ...more,
    });
  const subject: CacheUnderTest = {
    directory,
    store,
    clock,
    metrics,
    cache: await open(),
    storeReads: () => {
      const seen = reads;
      reads = [];
      return seen;
    },
    reopen: async (between, more) => {
      await subject.cache.close();
      between?.();
      subject.cache = await open(more);
    },
  };
  t?.after(() => subject.cache.close());
  return subject;
}

/** Slots and records are within the budget for that number of slots, and the rest in what is set apart for it. */
export function assertWithinBudget(directory: string, slots: number): void {
  let restBytes = 0;
  for (const name of fs.readdirSync(directory)) {
    const { size } = fs.statSync(join(directory, name));
    if (name === 'chunks') assert.ok(size <= slots * CHUNK_BYTES, `${size} bytes of chunks`);
    else if (name === 'index') assert.ok(size <= (slots + 1) * 64, `${size} bytes of records`);
    else restBytes += size;
  }
  assert.ok(restBytes <= 16 * 1024);
}

/** Changes a byte of a file in the cache's directory. */
export function damage(directory: string, name: string, at: number): void {
  const path = join(directory, name);
  const bytes = fs.readFileSync(path);
  if (at >= bytes.length) return;
  bytes[at]! ^= 1;
  fs.writeFileSync(path, bytes);
}
