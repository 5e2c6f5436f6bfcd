/**
 * The file system in memory: what `:memory:` databases, unit tests and the simulator run on. It keeps every promise of
 * file-system.ts and models a crash: appended bytes are volatile until their sync, and `crash()` returns the file
 * system that the next process finds.
 *
 * Invariant: nothing is acknowledged before its sync is done; `counts` has the numbers. Faults come in through one
 * function that is called before every operation and every sync, and may delay or fail it.
 */
import {
  assert,
  BigtableError,
  Code,
  CorruptionError,
  notFound,
  toBigtableError,
  unavailable,
} from '../../base/index.ts';
import { ChunkedBytes } from './chunked-bytes.ts';
import type { Random } from '../seams/clock.ts';
import { checkFilePath } from '../seams/file-path.ts';
import {
  APPEND_OVERHEAD_BYTES,
  type AppendOptions,
  type FileInfo,
  type FileSystem,
  type FileWriter,
  type LogAppend,
  type LogPosition,
  type LogWriter,
  type StorageSpace,
} from '../seams/file-system.ts';

/**
 * `syncFile` and `syncLog` happen between the writing of the bytes and the acknowledgement by `closeFile` and
 * `appendLog`. `appendReserved` is an append to a log into reserved space.
 */
export type FileOperation =
  | 'create'
  | 'appendFile'
  | 'closeFile'
  | 'syncFile'
  | 'size'
  | 'read'
  | 'list'
  | 'delete'
  | 'openLog'
  | 'reserveLog'
  | 'appendLog'
  | 'appendReserved'
  | 'syncLog'
  | 'trimLog'
  | 'fence'
  | 'readLog'
  | 'listLogs'
  | 'deleteLog';

/** Called before each operation: throws to fail it, returns a promise to delay it. */
export type FileFaults = (operation: FileOperation, path: string) => void | Promise<void>;

/** The rest that a crash leaves of an append or a file that was written and not yet synced. A Random draws for each. */
export type CrashChoice = 'nothing' | 'torn' | 'all' | Random;

export interface FileSystemCounts {
  /** Closes of files and appends to logs whose bytes were written. */
  readonly written: number;
  /** Those of them whose sync is done: no more than these may be acknowledged. */
  readonly synced: number;
}

interface StoredAppend {
  readonly position: LogPosition;
  bytes: Buffer;
  /** Survives a crash. */
  durable: boolean;
  /** Torn by a crash, or damaged by a test. */
  broken: boolean;
}

interface StoredLog {
  appends: StoredAppend[];
  nextPosition: LogPosition;
  fenced: boolean;
  /** Free bytes of the disk that are reserved for its writer. */
  reservedBytes: number;
}

/** Bytes that an append takes besides its own, so that positions grow even where it is empty. */
const APPEND_HEADER_BYTES = 16;

export class MemoryFileSystem implements FileSystem {
  /**
   * Bytes that may still be written or reserved; deletions return theirs. A test sets it to fill the disk, and to free
   * it again.
   */
  freeBytes = Number.POSITIVE_INFINITY;
  readonly #faults: FileFaults | undefined;
  readonly #files = new Map<string, ChunkedBytes>();
  readonly #logs = new Map<string, StoredLog>();
  /** Files whose bytes are written and whose sync is under way. */
  readonly #closing = new Map<string, ChunkedBytes>();
  #crashed = false;
  #written = 0;
  #synced = 0;

  constructor(options: { readonly faults?: FileFaults } = {}) {
    this.#faults = options.faults;
  }

  /** Undefined while the disk has no bound. */
  async space(): Promise<StorageSpace | undefined> {
    const { freeBytes } = this;
    if (!Number.isFinite(freeBytes)) return undefined;
    let totalBytes = freeBytes;
    for (const content of this.#files.values()) totalBytes += content.length;
    for (const { appends } of this.#logs.values()) for (const append of appends) totalBytes += append.bytes.length;
    return { freeBytes, totalBytes };
  }

  get counts(): FileSystemCounts {
    return { written: this.#written, synced: this.#synced };
  }

  /**
   * The power fails: every call on this one fails with UNAVAILABLE from now on, those under way too. Returns the file
   * system that is found afterwards. It has the same faults unless others are passed.
   */
  crash(choice: CrashChoice = 'nothing', faults = this.#faults): MemoryFileSystem {
    this.#crashed = true;
    const next = new MemoryFileSystem(faults ? { faults } : {});
    next.freeBytes = this.freeBytes;
    for (const [path, content] of this.#files) next.#files.set(path, content);
    for (const [path, content] of this.#closing) {
      if (!next.#files.has(path) && drawKept(choice, 2) === 2) next.#files.set(path, content);
    }
    for (const [path, log] of this.#logs) {
      const appends = log.appends.flatMap((append) => (append.durable ? [{ ...append }] : afterCrash(append, choice)));
      next.#logs.set(path, { appends, nextPosition: log.nextPosition, fenced: log.fenced, reservedBytes: 0 });
      next.freeBytes += log.reservedBytes;
    }
    return next;
  }

  /** Flips the bits of a file's byte at `offset`; for a log, breaks the append at that position. */
  damage(path: string, offset: number): void {
    const log = this.#logs.get(path);
    if (!log) return this.#file(path).flip(offset);
    const append = log.appends.find(({ position }) => position === offset);
    assert(append, `${path} has no append at ${offset}`);
    append.broken = true;
  }

  async create(path: string): Promise<FileWriter> {
    checkFilePath(path);
    return this.#perform('create', path, () => {
      if (this.#files.has(path)) throw exists(path, 'file');
      return new MemoryFileWriter(
        path,
        (bytes, append) =>
          this.#perform('appendFile', path, () => {
            this.#take(path, bytes);
            append();
          }),
        (content) => this.#closeFile(path, content),
        (content) => (this.freeBytes += content.length),
      );
    });
  }

  size(path: string): Promise<number> {
    return this.#perform('size', path, () => this.#file(path).length);
  }

  read(path: string, offset: number, length: number): Promise<Buffer> {
    return this.#perform('read', path, () => {
      const content = this.#file(path);
      if (offset < 0 || length < 0 || offset + length > content.length) {
        throw new BigtableError(
          Code.OUT_OF_RANGE,
          `${path}: bytes ${offset} to ${offset + length} of ${content.length}`,
        );
      }
      return content.slice(offset, length);
    });
  }

  list(prefix: string): Promise<FileInfo[]> {
    return this.#perform('list', prefix, () =>
      sortedWith(this.#files, prefix).map(([path, content]) => ({ path, sizeBytes: content.length })),
    );
  }

  delete(path: string): Promise<void> {
    return this.#perform('delete', path, () => {
      this.freeBytes += this.#files.get(path)?.length ?? 0;
      this.#files.delete(path);
    });
  }

  async openLog(path: string): Promise<LogWriter> {
    checkFilePath(path);
    return this.#perform('openLog', path, () => {
      if (this.#logs.has(path)) throw exists(path, 'log');
      const log: StoredLog = { appends: [], nextPosition: 0, fenced: false, reservedBytes: 0 };
      this.#logs.set(path, log);
      return new MemoryLogWriter(path, log, {
        append: (parts, reserved) => this.#appendToLog(path, log, parts, reserved),
        reserve: (bytes) =>
          this.#perform('reserveLog', path, () => {
            this.#take(path, bytes);
            log.reservedBytes += bytes;
          }),
        trim: (position) =>
          this.#perform('trimLog', path, () => {
            this.freeBytes += trim(log, position);
          }),
        close: () => {
          this.freeBytes += log.reservedBytes;
          log.reservedBytes = 0;
        },
      });
    });
  }

  async fence(path: string): Promise<void> {
    checkFilePath(path);
    await this.#perform('fence', path, () => {
      const log = this.#logs.get(path);
      if (log) {
        log.fenced = true;
        // an append whose sync is under way comes before the fence, so it must outlive what follows
        for (const append of log.appends) append.durable = true;
      } else {
        // the name is taken, so that a late writer does not find it free
        this.#logs.set(path, { appends: [], nextPosition: 0, fenced: true, reservedBytes: 0 });
      }
    });
  }

  async logTail(path: string): Promise<LogPosition> {
    const appends = await this.#perform('readLog', path, () => this.#logs.get(path)?.appends ?? []);
    return appends.findLast(({ broken }) => !broken)?.position ?? 0;
  }

  async *readLog(path: string, from: LogPosition = 0): AsyncIterable<LogAppend> {
    const appends = await this.#perform(
      'readLog',
      path,
      () => this.#logs.get(path)?.appends.filter(({ position }) => position >= from) ?? [],
    );
    for (const [i, append] of appends.entries()) {
      this.#checkAlive();
      if (append.broken) {
        if (i === appends.length - 1) return;
        throw new CorruptionError(path, append.position, 'the append is damaged and others follow it');
      }
      yield { position: append.position, bytes: Buffer.from(append.bytes) };
    }
  }

  listLogs(prefix: string): Promise<string[]> {
    return this.#perform('listLogs', prefix, () => sortedWith(this.#logs, prefix).map(([path]) => path));
  }

  deleteLog(path: string): Promise<void> {
    return this.#perform('deleteLog', path, () => {
      const log = this.#logs.get(path);
      if (log) this.freeBytes += trim(log, Number.POSITIVE_INFINITY);
      this.#logs.delete(path);
    });
  }

  /**
   * Lets the faults act, then runs `act`, unless the file system has crashed meanwhile: check and act are one
   * synchronous step.
   */
  async #perform<T>(operation: FileOperation, path: string, act: () => T): Promise<T> {
    this.#checkAlive();
    if (this.#faults) {
      try {
        await this.#faults(operation, path);
      } catch (error) {
        this.#checkAlive();
        throw toBigtableError(error);
      }
      this.#checkAlive();
    }
    return act();
  }

  #checkAlive(): void {
    if (this.#crashed) throw unavailable('the file system has crashed');
  }

  #file(path: string): ChunkedBytes {
    const content = this.#files.get(path);
    if (!content) throw notFound(`${path}: no such file`);
    return content;
  }

  /** Makes the file durable, then visible. */
  async #closeFile(path: string, content: ChunkedBytes): Promise<void> {
    await this.#perform('closeFile', path, () => {
      if (this.#files.has(path) || this.#closing.has(path)) throw exists(path, 'file');
      this.#closing.set(path, content);
      this.#written++;
    });
    try {
      await this.#perform('syncFile', path, () => {
        this.#synced++;
        this.#files.set(path, content);
      });
    } finally {
      this.#closing.delete(path);
    }
  }

  async #appendToLog(
    path: string,
    log: StoredLog,
    parts: readonly Uint8Array[],
    reserved: boolean,
  ): Promise<LogPosition> {
    const append = await this.#perform(reserved ? 'appendReserved' : 'appendLog', path, () => {
      if (log.fenced) throw new BigtableError(Code.FAILED_PRECONDITION, `${path}: the log is fenced`);
      this.#notDeleted(path, log);
      const made: StoredAppend = {
        position: log.nextPosition,
        bytes: Buffer.concat(parts),
        durable: false,
        broken: false,
      };
      if (reserved) {
        const takenBytes = made.bytes.length + APPEND_OVERHEAD_BYTES;
        assert(
          takenBytes <= log.reservedBytes,
          `${path}: an append of ${takenBytes} bytes where ${log.reservedBytes} are reserved`,
        );
        log.reservedBytes -= takenBytes;
        this.freeBytes += takenBytes - storedBytes(made);
      } else {
        this.#take(path, storedBytes(made));
      }
      log.appends.push(made);
      this.#written++;
      log.nextPosition += APPEND_HEADER_BYTES + made.bytes.length;
      return made;
    });
    const synced = this.#perform('syncLog', path, () => {
      this.#notDeleted(path, log);
      append.durable = true;
      this.#synced++;
      return append.position;
    });
    return synced.catch((error: BigtableError) => {
      // the bytes are written: they may be kept, whatever the fault
      throw unavailable(`${path}: the sync of the append at ${append.position} failed`, error);
    });
  }

  #take(path: string, bytes: number): void {
    if (bytes > this.freeBytes)
      throw new BigtableError(
        Code.RESOURCE_EXHAUSTED,
        `${path}: no space for ${bytes} bytes, ${this.freeBytes} are free`,
      );
    this.freeBytes -= bytes;
  }

  #notDeleted(path: string, log: StoredLog): void {
    if (this.#logs.get(path) !== log) throw new BigtableError(Code.FAILED_PRECONDITION, `${path}: the log was deleted`);
  }
}

class MemoryFileWriter implements FileWriter {
  readonly #path: string;
  readonly #appendFile: (bytes: number, append: () => void) => Promise<void>;
  readonly #closeFile: (content: ChunkedBytes) => Promise<void>;
  readonly #abandon: (content: ChunkedBytes) => void;
  readonly #content = new ChunkedBytes();
  #ended = false;

  constructor(
    path: string,
    appendFile: (bytes: number, append: () => void) => Promise<void>,
    closeFile: (content: ChunkedBytes) => Promise<void>,
    abandon: (content: ChunkedBytes) => void,
  ) {
    this.#path = path;
    this.#appendFile = appendFile;
    this.#closeFile = closeFile;
    this.#abandon = abandon;
  }

  async append(bytes: Uint8Array): Promise<void> {
    assert(!this.#ended, `${this.#path}: append after the end`);
    await this.#appendFile(bytes.length, () => this.#content.append(bytes));
  }

  async close(): Promise<void> {
    assert(!this.#ended, `${this.#path}: ended twice`);
    this.#ended = true;
    await this.#closeFile(this.#content);
  }

  async abort(): Promise<void> {
    if (!this.#ended) this.#abandon(this.#content);
    this.#ended = true;
  }
}

/** The operations of the file system that a log's writer needs. */
interface LogOperations {
  append(parts: readonly Uint8Array[], reserved: boolean): Promise<LogPosition>;
  reserve(bytes: number): Promise<void>;
  trim(position: LogPosition): Promise<void>;
  close(): void;
}

class MemoryLogWriter implements LogWriter {
  readonly #path: string;
  readonly #log: StoredLog;
  readonly #operations: LogOperations;
  #appending = false;
  /** The reason why every append is refused; undefined while the log is open. */
  #ended: string | undefined;

  constructor(path: string, log: StoredLog, operations: LogOperations) {
    this.#path = path;
    this.#log = log;
    this.#operations = operations;
  }

  async append(parts: readonly Uint8Array[], { reserved = false }: AppendOptions = {}): Promise<LogPosition> {
    assert(!this.#appending, `${this.#path}: two concurrent appends`);
    this.#appending = true;
    try {
      return await this.#unlessEnded(() => this.#operations.append(parts, reserved));
    } finally {
      this.#appending = false;
    }
  }

  reserve(bytes: number): Promise<void> {
    return this.#unlessEnded(() => this.#operations.reserve(bytes));
  }

  trimBefore(position: LogPosition): Promise<void> {
    return this.#operations.trim(position);
  }

  sizeBytes(from: LogPosition = 0): number {
    const first = this.#log.appends[0];
    return first ? Math.max(0, this.#log.nextPosition - Math.max(first.position, from)) : 0;
  }

  async close(): Promise<void> {
    this.#ended ??= 'the log is closed';
    this.#operations.close();
  }

  async #unlessEnded<T>(deed: () => Promise<T>): Promise<T> {
    if (this.#ended) throw new BigtableError(Code.FAILED_PRECONDITION, `${this.#path}: ${this.#ended}`);
    try {
      return await deed();
    } catch (error) {
      if (!(error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED))
        this.#ended = 'an earlier append failed';
      throw error;
    }
  }
}

/** 0 = nothing, 1 = a torn part, 2 = all; `outcomes` 2 leaves the torn part out. */
function drawKept(choice: CrashChoice, outcomes: 2 | 3): number {
  if (typeof choice === 'string') return choice === 'all' ? 2 : choice === 'torn' ? 1 : 0;
  const drawn = Math.floor(choice.float() * outcomes);
  return outcomes === 2 ? drawn * 2 : drawn;
}

/** Returns the number of bytes freed. */
function trim(log: StoredLog, position: LogPosition): number {
  const kept = log.appends.findIndex((append) => append.position >= position);
  const trimmed = log.appends.splice(0, kept < 0 ? log.appends.length : kept);
  return trimmed.reduce((sum, append) => sum + storedBytes(append), 0);
}

function storedBytes({ bytes }: StoredAppend): number {
  return APPEND_HEADER_BYTES + bytes.length;
}

function afterCrash(append: StoredAppend, choice: CrashChoice): StoredAppend[] {
  const kept = drawKept(choice, 3);
  if (kept === 0) return [];
  if (kept === 2) return [{ ...append, durable: true }];
  return [{ ...append, bytes: append.bytes.subarray(0, append.bytes.length >> 1), durable: true, broken: true }];
}

function sortedWith<T>(entries: ReadonlyMap<string, T>, prefix: string): [string, T][] {
  return [...entries].filter(([path]) => path.startsWith(prefix)).sort(([a], [b]) => (a < b ? -1 : 1));
}

function exists(path: string, kind: 'file' | 'log'): BigtableError {
  return new BigtableError(Code.ALREADY_EXISTS, `${path}: the ${kind} exists already`);
}
