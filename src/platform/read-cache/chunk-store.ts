/**
 * The chunks of a read cache on the local disk: slots of one size in the file `chunks`, and their records in the file
 * `index`. Format: docs/formats/read-cache.md.
 *
 * Invariants:
 * - What is read has the checksums that it was written with; anything else is a miss, and leaves the cache.
 * - No call fails: an error of the disk is a miss, or a chunk that is not kept. The first is logged, all are counted.
 * - The files never grow beyond the slots. A held slot, one that is written to, is no other chunk's.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { assert } from '../../base/index.ts';
import { type Checksum, type Clock, type Counter, type Logger, type Metrics, Pacer } from '../../env/index.ts';
import { isOutOfSpace } from '../posix/posix-errors.ts';
import type { Syscalls } from '../posix/posix-syscalls.ts';
import { ChunkIndex, NO_SLOT } from './chunk-index.ts';
import {
  type ChunkRecord,
  decodeRecord,
  encodeHeader,
  encodeRecord,
  type FileKey,
  PIECES,
  RECORD_BYTES,
  recordPosition,
} from './index-record.ts';

export const CHUNKS_NAME = 'chunks';
export const INDEX_NAME = 'index';

/** How long nothing is written after an error of the disk, or takes more of it after a lack of space. */
const PAUSE_MS = 60_000;
/** Records that are read together at the start. */
const RECORDS_PER_READ = 16 * 1024;
const NO_RECORD = Buffer.alloc(RECORD_BYTES);
const OPEN_FLAGS = constants.O_RDWR | constants.O_CREAT;

export interface ChunkStoreOptions {
  readonly directory: string;
  readonly syscalls: Syscalls;
  readonly checksum: Checksum;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** A multiple of PIECES. */
  readonly chunkBytes: number;
  readonly slots: number;
}

/** A chunk that is written and has no name yet. Its slot is held until `name` or `discard`. */
export interface WrittenChunk {
  readonly slot: number;
  readonly lengthBytes: number;
  readonly sums: Uint32Array;
}

export class ChunkStore {
  readonly chunkBytes: number;
  readonly #options: ChunkStoreOptions;
  readonly #index: ChunkIndex;
  readonly #chunksFile: number;
  readonly #indexFile: number;
  readonly #damaged: Counter;
  /** Reused by synchronous reads. */
  readonly #scratch: Buffer;
  #writtenAfterMs = Number.NEGATIVE_INFINITY;
  #growsAfterMs = Number.NEGATIVE_INFINITY;
  #hasWarned = false;
  #isClosed = false;
  /** Calls that use the files. */
  #users = 0;
  #whenUnused: (() => void) | undefined;

  private constructor(options: ChunkStoreOptions, chunksFile: number, indexFile: number) {
    this.chunkBytes = options.chunkBytes;
    this.#options = options;
    this.#chunksFile = chunksFile;
    this.#indexFile = indexFile;
    this.#damaged = options.metrics.counter('readCache.damaged');
    const evictions = options.metrics.counter('readCache.evictions');
    this.#index = new ChunkIndex(options.slots, () => evictions.value++);
    this.#scratch = Buffer.allocUnsafeSlow(options.chunkBytes);
  }

  /** Opens the files, made where there are none, and reads the records. Chunks are checked when they are read. */
  static async open(options: ChunkStoreOptions): Promise<ChunkStore> {
    const { directory, syscalls, chunkBytes } = options;
    assert(chunkBytes % PIECES === 0, 'a chunk has pieces of one size');
    const files: number[] = [];
    try {
      for (const name of [CHUNKS_NAME, INDEX_NAME]) files.push(await syscalls.open(join(directory, name), OPEN_FLAGS));
      const store = new ChunkStore(options, files[0]!, files[1]!);
      await store.#load();
      return store;
    } catch (error) {
      for (const file of files) await syscalls.close(file);
      throw error;
    }
  }

  /** Bytes of the slots that are taken, whatever the length of their chunks. */
  get usedBytes(): number {
    return this.#index.takenSlots * this.chunkBytes;
  }

  get filledSlots(): number {
    return this.#index.filledSlots;
  }

  /** The slot of the chunk if it has bytes up to `end`, or NO_SLOT. */
  find(file: FileKey, chunk: number, end: number): number {
    const slot = this.#index.find(file, chunk);
    return slot !== NO_SLOT && this.#index.lengthOf(slot) >= end ? slot : NO_SLOT;
  }

  use(slot: number): void {
    this.#index.use(slot);
  }

  /** Reads the chunk's bytes from `from` on into all of `into`. False where they are lost: the chunk is a miss then. */
  async read(slot: number, from: number, into: Buffer): Promise<boolean> {
    const generation = this.#index.generationOf(slot);
    const { start, length } = this.#pieces(slot, from, into.length);
    const bytes = Buffer.allocUnsafe(length);
    try {
      const position = this.#positionOf(slot) + start;
      const got = await this.#inUse(({ read }) => read(this.#chunksFile, bytes, 0, length, position));
      // another chunk may be in the slot by now
      if (this.#index.generationOf(slot) !== generation) return false;
      if (got < length || !this.#isSound(slot, start, bytes)) {
        this.#dropDamaged(slot);
        return false;
      }
    } catch (error) {
      this.#failed(error);
      if (this.#index.generationOf(slot) === generation) void this.#clear(slot);
      return false;
    }
    bytes.copy(into, 0, from - start, from - start + into.length);
    return true;
  }

  /** The same synchronously, and without a consequence: `read` judges what is lost. */
  readNow(slot: number, from: number, into: Buffer): boolean {
    if (this.#isClosed) return false;
    const { start, length } = this.#pieces(slot, from, into.length);
    const bytes = this.#scratch.subarray(0, length);
    try {
      const position = this.#positionOf(slot) + start;
      if (this.#options.syscalls.readNow(this.#chunksFile, bytes, 0, length, position) < length) return false;
    } catch {
      return false;
    }
    if (!this.#isSound(slot, start, bytes)) return false;
    bytes.copy(into, 0, from - start, from - start + into.length);
    return true;
  }

  /** Writes a chunk's bytes into a slot. Undefined where there is none to be had, or the disk fails. */
  async write(bytes: Buffer): Promise<WrittenChunk | undefined> {
    assert(bytes.length > 0 && bytes.length <= this.chunkBytes, 'a chunk fits into a slot');
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs < this.#writtenAfterMs) return undefined;
    const slot = this.#index.take(nowMs >= this.#growsAfterMs);
    if (slot === NO_SLOT) return undefined;
    const sums = this.#sumsOf(bytes);
    try {
      await this.#inUse(({ write }) => write(this.#chunksFile, [bytes], this.#positionOf(slot)));
      return { slot, lengthBytes: bytes.length, sums };
    } catch (error) {
      this.#index.release(slot);
      this.#failed(error);
      return undefined;
    }
  }

  /**
   * Makes a written chunk one of the file, unless the cache has it already. It is found from then on, if `isWanted` is
   * still true.
   */
  async name(written: WrittenChunk, file: FileKey, chunk: number, isWanted: () => boolean): Promise<void> {
    const { slot, lengthBytes, sums } = written;
    const record = { file, chunk, lengthBytes, sums };
    const bytes = encodeRecord(slot, record, this.#options.checksum);
    await this.#writeRecord(slot, bytes);
    if (isWanted() && this.#index.find(file, chunk) === NO_SLOT) {
      this.#index.add(slot, record);
      return;
    }
    await this.#writeRecord(slot, NO_RECORD);
    this.#index.release(slot);
  }

  discard({ slot }: WrittenChunk): void {
    this.#index.release(slot);
  }

  /** Evicts the file's chunks. Without its size every slot is searched. */
  evictFile(file: FileKey, sizeBytes: number | undefined): void {
    const slots = sizeBytes === undefined ? this.#index.slotsOf(file) : this.#slotsWithin(file, sizeBytes);
    for (const slot of slots) void this.#clear(slot);
  }

  /** Closes the files when no call uses them any more. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#users > 0) await new Promise<void>((resolve) => (this.#whenUnused = resolve));
    const { syscalls } = this.#options;
    // a file of which nothing is promised
    await syscalls.close(this.#chunksFile).catch(() => undefined);
    await syscalls.close(this.#indexFile).catch(() => undefined);
  }

  /** For tests. */
  assertConsistent(): void {
    this.#index.assertConsistent();
  }

  async #load(): Promise<void> {
    const { syscalls, clock, checksum, chunkBytes, slots } = this.#options;
    const header = encodeHeader(chunkBytes, checksum);
    const found = Buffer.alloc(RECORD_BYTES);
    await syscalls.read(this.#indexFile, found, 0, RECORD_BYTES, 0);
    if (!found.equals(header)) {
      await syscalls.truncate(this.#indexFile, 0);
      await syscalls.truncate(this.#chunksFile, 0);
      await syscalls.write(this.#indexFile, [header], 0);
      return;
    }
    await this.#cutTo(this.#indexFile, recordPosition(slots));
    await this.#cutTo(this.#chunksFile, slots * chunkBytes);
    const empty: number[] = [];
    const pacer = new Pacer(clock);
    const bytes = Buffer.allocUnsafe(Math.min(slots, RECORDS_PER_READ) * RECORD_BYTES);
    for (let first = 0; first < slots; first += RECORDS_PER_READ) {
      const got = await syscalls.read(this.#indexFile, bytes, 0, bytes.length, recordPosition(first));
      for (let at = 0; at + RECORD_BYTES <= got && this.#index.takenSlots < slots; at += RECORD_BYTES) {
        const slot = this.#index.take(true);
        assert(slot === first + at / RECORD_BYTES, 'slots are taken in their order');
        const record = decodeRecord(slot, bytes.subarray(at, at + RECORD_BYTES), checksum);
        if (record && this.#isPlausible(record)) this.#index.add(slot, record);
        else empty.push(slot);
        if (pacer.due()) await pacer.pause();
      }
      if (got < bytes.length) break;
    }
    for (const slot of empty.reverse()) this.#index.release(slot);
  }

  async #cutTo(file: number, sizeBytes: number): Promise<void> {
    const { syscalls } = this.#options;
    if ((await syscalls.fileSize(file)) > sizeBytes) await syscalls.truncate(file, sizeBytes);
  }

  /** False for the second slot with the same chunk, which a loss of power may leave. */
  #isPlausible({ file, chunk, lengthBytes }: ChunkRecord): boolean {
    return lengthBytes <= this.chunkBytes && this.#index.find(file, chunk) === NO_SLOT;
  }

  #slotsWithin(file: FileKey, sizeBytes: number): number[] {
    const found: number[] = [];
    for (let chunk = 0; chunk * this.chunkBytes < sizeBytes; chunk++) {
      const slot = this.#index.find(file, chunk);
      if (slot !== NO_SLOT) found.push(slot);
    }
    return found;
  }

  /** Evicts the slot's chunk, here now and on the disk soon. */
  async #clear(slot: number): Promise<void> {
    this.#index.remove(slot);
    await this.#writeRecord(slot, NO_RECORD);
    this.#index.release(slot);
  }

  #dropDamaged(slot: number): void {
    this.#damaged.value++;
    this.#warn('a part of the read cache is damaged; it is read from the store again');
    void this.#clear(slot);
  }

  async #writeRecord(slot: number, bytes: Buffer): Promise<void> {
    try {
      await this.#inUse(({ write }) => write(this.#indexFile, [bytes], recordPosition(slot)));
    } catch (error) {
      // what stays there is of no chunk that the slot will hold: its checksums are wrong after the next start
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    const { clock, metrics } = this.#options;
    metrics.add('readCache.diskErrors');
    const untilMs = clock.monotonicMs() + PAUSE_MS;
    if (isOutOfSpace(error)) this.#growsAfterMs = untilMs;
    else this.#writtenAfterMs = untilMs;
    this.#warn(`the disk of the read cache fails: ${error instanceof Error ? error.message : String(error)}`);
  }

  /** Once: the counters tell how it goes on. */
  #warn(message: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#options.logger.warn(message, { directory: this.#options.directory });
  }

  #positionOf(slot: number): number {
    return slot * this.chunkBytes;
  }

  /** The pieces that hold these bytes of the slot's chunk, as a range in the chunk. */
  #pieces(slot: number, from: number, length: number): { readonly start: number; readonly length: number } {
    const pieceBytes = this.chunkBytes / PIECES;
    const start = from - (from % pieceBytes);
    const end = Math.min(Math.ceil((from + length) / pieceBytes) * pieceBytes, this.#index.lengthOf(slot));
    assert(from >= 0 && from + length <= end, 'a read is within its chunk');
    return { start, length: end - start };
  }

  #isSound(slot: number, start: number, bytes: Buffer): boolean {
    const pieceBytes = this.chunkBytes / PIECES;
    for (let at = 0, piece = start / pieceBytes; at < bytes.length; at += pieceBytes, piece++)
      if (this.#options.checksum(bytes.subarray(at, at + pieceBytes)) !== this.#index.sumOf(slot, piece)) return false;
    return true;
  }

  #sumsOf(bytes: Buffer): Uint32Array {
    const pieceBytes = this.chunkBytes / PIECES;
    const sums = new Uint32Array(PIECES);
    for (let at = 0, piece = 0; at < bytes.length; at += pieceBytes, piece++)
      sums[piece] = this.#options.checksum(bytes.subarray(at, at + pieceBytes));
    return sums;
  }

  /** The files stay open until the call has ended, and are not touched once they are closed. */
  async #inUse<T>(call: (syscalls: Syscalls) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new Error('the read cache is closed');
    this.#users++;
    try {
      return await call(this.#options.syscalls);
    } finally {
      if (--this.#users === 0) this.#whenUnused?.();
    }
  }
}
