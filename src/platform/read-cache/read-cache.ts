/**
 * A read cache on the local disk, before a store that many machines share. Format: docs/formats/read-cache.md, reasons:
 * docs/decisions/0087-read-cache.md.
 *
 * Invariants:
 * - The directory is this process's alone, and of one store: it is emptied for another one.
 * - What it takes of the disk is within the budget.
 * - What the cache answers is what the store would have, except that a file which another machine has deleted may still
 *   be read. The store must not reuse the paths of deleted files.
 */
import { constants } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { BigtableError, Code, CorruptionError, invalidArgument } from '../../base/index.ts';
import { type Checksum, type Clock, type FileSystem, type Logger, Metrics, silentLogger } from '../../env/index.ts';
import { FORMAT_NAME, formatText, parseFormat } from '../directory/format-file.ts';
import { makeDirectory, syncDirectory } from '../directory/make-directory.ts';
import { LOCK_NAME, lockDirectory } from '../locks/directory-lock.ts';
import { errnoOf, systemCall, systemError } from '../posix/posix-errors.ts';
import { nodeSyscalls, type Syscalls } from '../posix/posix-syscalls.ts';
import { CachedFiles } from './cached-files.ts';
import { CHUNKS_NAME, ChunkStore, INDEX_NAME } from './chunk-store.ts';
import { RECORD_BYTES } from './index-record.ts';

export interface ReadCacheOptions {
  /** The store that is read through the cache. Closing the cache leaves it open. */
  readonly fileSystem: FileSystem;
  /** The store's identity (`SharedStore.identity`): 32 lower-case hexadecimal digits. */
  readonly identity: string;
  /** Bytes that the directory takes of the disk at most. A chunk takes chunkBytes, however short it is. */
  readonly budgetBytes: number;
  /**
   * Files are fetched and kept in chunks of this size: a power of two. Default: 256 KiB, which is also a good choice
   * for most stores. A cache with chunks of another size is emptied.
   */
  readonly chunkBytes?: number;
  /** Files under this path are read and written past the cache: they are read once. Default: none. */
  readonly passedPrefix?: string;
  readonly checksum: Checksum;
  readonly clock: Clock;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
  readonly syscalls?: Syscalls;
}

export interface ReadCache {
  /** The store's files, read through the cache, and its logs. */
  readonly fileSystem: FileSystem;
  /** Resolves when all that was fetched so far is on the disk, or given up. */
  settled(): Promise<void>;
  /** Frees the directory once the calls under way have ended. No call may follow. */
  close(): Promise<void>;
}

const CHUNK_BYTES = 256 * 1024;
const MIN_CHUNK_BYTES = 64;
/** What the directory, the lock and the format file take, by blocks of the disk. */
const OTHER_BYTES = 32 * 1024;
const MIN_SLOTS = 8;
const NEW_NAME = `${FORMAT_NAME}.new`;
/** All that a cache's directory may hold. */
const OWN_NAMES = new Set([LOCK_NAME, FORMAT_NAME, NEW_NAME, CHUNKS_NAME, INDEX_NAME, 'lost+found']);

/**
 * Opens the cache in the directory, which is made where there is none. INVALID_ARGUMENT: the budget is too small.
 * FAILED_PRECONDITION: another process owns the directory, or it holds something else. Errors of the disk are reported
 * here, and never later.
 */
export async function openReadCache(path: string, options: ReadCacheOptions): Promise<ReadCache> {
  const { fileSystem, clock, metrics = new Metrics(), syscalls = nodeSyscalls, chunkBytes = CHUNK_BYTES } = options;
  const { passedPrefix } = options;
  const slots = slotsOf(options.budgetBytes, chunkBytes);
  const directory = resolve(path);
  await systemCall(`making ${directory}`, makeDirectory(directory));
  const lock = await lockDirectory(directory);
  try {
    await systemCall(`opening ${directory}`, prepare(directory, options.identity, syscalls));
    const { checksum, logger = silentLogger } = options;
    const parts = { directory, syscalls, checksum, clock, logger, metrics, chunkBytes, slots };
    const chunks = await systemCall(`opening ${directory}`, ChunkStore.open(parts));
    logger.info('the read cache is open', { directory, chunks: chunks.filledSlots, slots });
    const stopGauges = metrics.gauges({
      'readCache.usedBytes': () => chunks.usedBytes,
      'readCache.limitBytes': () => slots * chunkBytes,
    });
    const nowMs = (): number => clock.monotonicMs();
    const files = new CachedFiles({ store: fileSystem, chunks, slots, metrics, nowMs, syscalls, passedPrefix });
    const end = async (): Promise<void> => {
      stopGauges();
      await files.settled();
      await chunks.close();
      await lock.release();
    };
    let ended: Promise<void> | undefined;
    return { fileSystem: files, settled: () => files.settled(), close: () => (ended ??= end()) };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

function slotsOf(budgetBytes: number, chunkBytes: number): number {
  if (!(chunkBytes >= MIN_CHUNK_BYTES && chunkBytes <= 2 ** 30 && Number.isInteger(Math.log2(chunkBytes))))
    throw invalidArgument(`invalid chunk size of the read cache ${chunkBytes}: expected a power of two`);
  const slots = Math.floor((budgetBytes - OTHER_BYTES - RECORD_BYTES) / (chunkBytes + RECORD_BYTES));
  if (slots >= MIN_SLOTS) return slots;
  const leastBytes = OTHER_BYTES + RECORD_BYTES + MIN_SLOTS * (chunkBytes + RECORD_BYTES);
  throw invalidArgument(`invalid budget of the read cache ${budgetBytes}: expected ${leastBytes} bytes or more`);
}

/** Empties the directory where it is not of this store. What is no cache is refused and left unchanged. */
async function prepare(directory: string, identity: string, syscalls: Syscalls): Promise<void> {
  if ((await identityIn(directory)) === identity) return;
  const strange = (await readdir(directory)).find((name) => !OWN_NAMES.has(name));
  if (strange !== undefined) {
    const what = `it is not of this store and holds ${JSON.stringify(strange)}`;
    throw new BigtableError(Code.FAILED_PRECONDITION, `${directory} is not an Edubba read cache: ${what}`);
  }
  for (const name of [INDEX_NAME, CHUNKS_NAME]) {
    await syscalls.unlink(join(directory, name)).catch((error: unknown) => {
      if (errnoOf(error) !== 'ENOENT') throw error;
    });
  }
  // the chunks of the other store must be gone before the identity is this one's
  await syncDirectory(directory);
  const temporary = join(directory, NEW_NAME);
  const fd = await syscalls.open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC);
  try {
    await syscalls.write(fd, [Buffer.from(formatText('cache', identity), 'latin1')], 0);
    await syscalls.sync(fd);
  } finally {
    await syscalls.close(fd);
  }
  await syscalls.rename(temporary, join(directory, FORMAT_NAME));
}

/** The identity in the format file; undefined where there is none, or it is damaged. */
async function identityIn(directory: string): Promise<string | undefined> {
  const file = join(directory, FORMAT_NAME);
  try {
    return parseFormat(await readFile(file, 'latin1'), file, 'cache');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || error instanceof CorruptionError) return undefined;
    throw systemError(error, file);
  }
}
