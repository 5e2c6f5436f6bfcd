/**
 * The files of a store, read through a cache on the local disk. Logs pass through.
 *
 * A read fetches and keeps whole chunks, unless it is part of a scan or a compaction: of reads that go on where the one
 * before ended, for more than SCAN_CHUNKS. Of these a chunk is kept that a scan has passed before. A hit is a use of
 * the chunk, unless its read goes on where another ended. What is written here is kept as it is written.
 *
 * Invariants:
 * - What is read is what the store has, or had before a deletion. Errors are the store's own.
 * - Concurrent reads of a chunk share its fetch. No read waits until a chunk is written to the disk.
 * - Bytes that wait for the disk are at most MAX_UNWRITTEN_BYTES; more are not kept.
 */
import type {
  Counter,
  FileInfo,
  FileSystem,
  FileWriter,
  LogAppend,
  LogMemo,
  LogPosition,
  LogWriter,
  Metrics,
} from '../../env/index.ts';
import { QuickReads } from '../posix/posix-quick-reads.ts';
import type { Syscalls } from '../posix/posix-syscalls.ts';
import { CachedFileWriter } from './cached-file-writer.ts';
import { NO_SLOT } from './chunk-index.ts';
import type { ChunkStore } from './chunk-store.ts';
import { type KnownFile, KnownFiles } from './known-files.ts';
import { PassedChunks } from './passed-chunks.ts';

/** Longer reads are none of a tablet server, and are left to the store. */
const MAX_READ_BYTES = 4 << 20;
const MAX_UNWRITTEN_BYTES = 32 << 20;
/** Bytes that reads may go on for before they are a scan, in chunks. */
const SCAN_CHUNKS = 4;
/** Files of which the size and the last reads are remembered, some 500 bytes each. */
const MAX_KNOWN_FILES = 16_384;

export interface CachedFilesParts {
  readonly store: FileSystem;
  readonly chunks: ChunkStore;
  readonly slots: number;
  readonly metrics: Metrics;
  readonly nowMs: () => number;
  readonly syscalls: Pick<Syscalls, 'diskReads'>;
  /** As `ReadCacheOptions`. */
  readonly passedPrefix?: string | undefined;
}

/** Missing chunks next to each other, from `first` to `last`. */
interface Run {
  readonly first: number;
  last: number;
  readonly isKept: boolean;
}

export class CachedFiles implements FileSystem {
  readonly #store: FileSystem;
  readonly #chunks: ChunkStore;
  readonly #chunkBytes: number;
  readonly #files = new KnownFiles(MAX_KNOWN_FILES);
  readonly #passed: PassedChunks;
  readonly #quickReads: QuickReads;
  readonly #hits: Counter;
  readonly #misses: Counter;
  readonly #hitBytes: Counter;
  readonly #fetchedBytes: Counter;
  readonly #passedPrefix: string | undefined;
  readonly cutLog?: NonNullable<FileSystem['cutLog']>;
  readonly logTail?: NonNullable<FileSystem['logTail']>;
  readonly space?: NonNullable<FileSystem['space']>;
  #unwrittenBytes = 0;
  readonly #filling = new Set<Promise<void>>();

  constructor({ store, chunks, slots, metrics, nowMs, syscalls, passedPrefix }: CachedFilesParts) {
    this.#passedPrefix = passedPrefix;
    this.#store = store;
    if (store.cutLog !== undefined) this.cutLog = (...call) => store.cutLog!(...call);
    if (store.logTail !== undefined) this.logTail = (path) => store.logTail!(path);
    if (store.space !== undefined) this.space = () => store.space!();
    this.#chunks = chunks;
    this.#chunkBytes = chunks.chunkBytes;
    this.#passed = new PassedChunks(slots);
    this.#quickReads = new QuickReads(nowMs, () => syscalls.diskReads());
    this.#hits = metrics.counter('readCache.hits');
    this.#misses = metrics.counter('readCache.misses');
    this.#hitBytes = metrics.counter('readCache.hitBytes');
    this.#fetchedBytes = metrics.counter('readCache.fetchedBytes');
  }

  async create(path: string): Promise<FileWriter> {
    if (this.#isPassed(path)) return this.#store.create(path);
    return new CachedFileWriter(await this.#store.create(path), this.#chunks, () => this.#files.of(path));
  }

  async size(path: string): Promise<number> {
    const file = this.#files.of(path);
    return (file.sizeBytes = await this.#store.size(path));
  }

  async read(path: string, offset: number, length: number): Promise<Buffer> {
    if (!(offset >= 0 && length > 0 && length <= MAX_READ_BYTES) || this.#isPassed(path))
      return this.#store.read(path, offset, length);
    const file = this.#files.of(path);
    const runBytes = file.noteRead(offset, length);
    const into = Buffer.allocUnsafe(length);
    const missing = await this.#readChunks(file, offset, into, runBytes === 0);
    if (missing.length === 0) {
      this.#countHit(length);
      return into;
    }
    this.#misses.value++;
    const end = offset + length;
    file.sizeBytes ??= await this.#store.size(path);
    // the store says what is wrong
    if (end > file.sizeBytes) return this.#store.read(path, offset, length);
    const isScan = runBytes > SCAN_CHUNKS * this.#chunkBytes;
    const runs = this.#runsOf(file, offset, missing, isScan);
    await Promise.all(runs.map((run) => this.#readRun(file, run, offset, into)));
    return into;
  }

  readNow(path: string, offset: number, length: number, into?: Buffer): Buffer | undefined {
    if (!(offset >= 0 && length > 0 && length <= this.#chunkBytes)) return undefined;
    const file = this.#files.of(path);
    const slots: number[] = [];
    for (const part of this.#partsOf(offset, length)) {
      const slot = this.#chunks.find(file.key, part.chunk, part.from + part.length);
      if (slot === NO_SLOT) return undefined;
      slots.push(slot);
    }
    const bytes = this.#quickReads.run(
      () => into ?? Buffer.allocUnsafe(length),
      (target) => {
        const isRead = this.#partsOf(offset, length).every(({ from, at, length: partLength }, i) =>
          this.#chunks.readNow(slots[i]!, from, target.subarray(at, at + partLength)),
        );
        return isRead ? target : undefined;
      },
    );
    if (bytes === undefined) return undefined;
    if (file.noteRead(offset, length) === 0) for (const slot of slots) this.#chunks.use(slot);
    this.#countHit(length);
    return bytes;
  }

  #isPassed(path: string): boolean {
    return this.#passedPrefix !== undefined && path.startsWith(this.#passedPrefix);
  }

  list(prefix: string): Promise<FileInfo[]> {
    return this.#store.list(prefix);
  }

  async delete(path: string): Promise<void> {
    try {
      await this.#store.delete(path);
    } finally {
      const { key, sizeBytes } = this.#files.delete(path);
      this.#chunks.evictFile(key, sizeBytes);
    }
  }

  openLog(path: string): Promise<LogWriter> {
    return this.#store.openLog(path);
  }

  fence(path: string): Promise<void> {
    return this.#store.fence(path);
  }

  readLog(path: string, from?: LogPosition, memo?: LogMemo): AsyncIterable<LogAppend> {
    return this.#store.readLog(path, from, memo);
  }

  listLogs(prefix: string): Promise<string[]> {
    return this.#store.listLogs(prefix);
  }

  deleteLog(path: string): Promise<void> {
    return this.#store.deleteLog(path);
  }

  /** Resolves when all that was fetched is on the disk, or given up. */
  async settled(): Promise<void> {
    while (this.#filling.size > 0) await Promise.all(this.#filling);
  }

  /** Reads what is here into `into`, and returns the numbers of the chunks that are missing, ascending. */
  async #readChunks(file: KnownFile, offset: number, into: Buffer, isUse: boolean): Promise<number[]> {
    const missing: number[] = [];
    const reads = this.#partsOf(offset, into.length).map(async ({ chunk, from, at, length }) => {
      const target = into.subarray(at, at + length);
      const fetch = file.fetches.get(chunk);
      if (fetch !== undefined) return copyPart(await fetch, from, target);
      const slot = this.#chunks.find(file.key, chunk, from + length);
      if (slot === NO_SLOT) return false;
      if (isUse) this.#chunks.use(slot);
      return this.#chunks.read(slot, from, target);
    });
    const first = Math.floor(offset / this.#chunkBytes);
    for (const [i, isRead] of (await Promise.all(reads)).entries()) if (!isRead) missing.push(first + i);
    return missing;
  }

  #runsOf(file: KnownFile, offset: number, missing: readonly number[], isScan: boolean): Run[] {
    const runs: Run[] = [];
    for (const chunk of missing) {
      // a scan passes a chunk with the read that has its start
      const hasStart = chunk * this.#chunkBytes >= offset;
      const isKept = !isScan || (hasStart && this.#passed.note(file.key, chunk));
      const run = runs.at(-1);
      if (run !== undefined && run.last === chunk - 1 && run.isKept === isKept) run.last = chunk;
      else runs.push({ first: chunk, last: chunk, isKept });
    }
    return runs;
  }

  /** Reads the part of a run that `into`, the bytes from `offset` on, has of it. */
  async #readRun(file: KnownFile, run: Run, offset: number, into: Buffer): Promise<void> {
    const from = Math.max(offset, run.first * this.#chunkBytes);
    const end = Math.min(offset + into.length, (run.last + 1) * this.#chunkBytes);
    const target = into.subarray(from - offset, end - offset);
    if (!run.isKept) {
      this.#fetchedBytes.value += target.length;
      (await this.#store.read(file.path, from, target.length)).copy(target);
      return;
    }
    const fetches = this.#fetchRun(file, run);
    for (const part of this.#partsOf(from, target.length))
      copyPart(await fetches[part.chunk - run.first]!, part.from, target.subarray(part.at, part.at + part.length));
  }

  /** The fetches of the run's chunks: those under way, and one for all others next to each other. */
  #fetchRun(file: KnownFile, { first, last }: Run): Promise<Buffer>[] {
    const fetches: Promise<Buffer>[] = [];
    for (let chunk = first; chunk <= last; ) {
      const underWay = file.fetches.get(chunk);
      if (underWay !== undefined) {
        fetches.push(underWay);
        chunk++;
        continue;
      }
      let end = chunk + 1;
      while (end <= last && !file.fetches.has(end)) end++;
      const start = chunk * this.#chunkBytes;
      const length = Math.min(end * this.#chunkBytes, file.sizeBytes!) - start;
      this.#fetchedBytes.value += length;
      const whole = this.#store.read(file.path, start, length);
      for (; chunk < end; chunk++) {
        const at = chunk * this.#chunkBytes - start;
        const fetch = whole.then((bytes) => bytes.subarray(at, at + this.#chunkBytes));
        file.fetches.set(chunk, fetch);
        fetches.push(fetch);
        this.#fill(file, chunk, fetch);
      }
    }
    // each is awaited in its turn, and may fail before
    for (const fetch of fetches) fetch.catch(() => undefined);
    return fetches;
  }

  #fill(file: KnownFile, chunk: number, fetch: Promise<Buffer>): void {
    const filling = this.#keep(file, chunk, fetch).finally(() => {
      file.fetches.delete(chunk);
      this.#filling.delete(filling);
    });
    this.#filling.add(filling);
  }

  async #keep(file: KnownFile, chunk: number, fetch: Promise<Buffer>): Promise<void> {
    // a fetch that fails is reported by those who wait for it
    const bytes = await fetch.catch(() => undefined);
    if (bytes === undefined || file.isDeleted || this.#unwrittenBytes + bytes.length > MAX_UNWRITTEN_BYTES) return;
    this.#unwrittenBytes += bytes.length;
    try {
      const written = await this.#chunks.write(bytes);
      if (written) await this.#chunks.name(written, file.key, chunk, () => !file.isDeleted);
    } finally {
      this.#unwrittenBytes -= bytes.length;
    }
  }

  /** The parts of chunks that the bytes are in. `from`: where it begins in its chunk. `at`: where in the bytes. */
  #partsOf(offset: number, totalLength: number): { chunk: number; from: number; at: number; length: number }[] {
    const parts: { chunk: number; from: number; at: number; length: number }[] = [];
    for (let at = 0; at < totalLength; ) {
      const chunk = Math.floor((offset + at) / this.#chunkBytes);
      const from = offset + at - chunk * this.#chunkBytes;
      const length = Math.min(this.#chunkBytes - from, totalLength - at);
      parts.push({ chunk, from, at, length });
      at += length;
    }
    return parts;
  }

  #countHit(bytes: number): void {
    this.#hits.value++;
    this.#hitBytes.value += bytes;
  }
}

/** False where the chunk is too short. */
function copyPart(chunk: Buffer, from: number, target: Buffer): boolean {
  return chunk.copy(target, 0, from, from + target.length) === target.length;
}
