/**
 * The first seam: GFS's role. Write-once files and append-only logs, nothing else, so that a directory, S3 and HDFS can
 * all hold a database. Every adapter is run through test/contracts/file-system-contract.ts.
 *
 * `size`, `read`, `list`, `delete`, `fence`, `readLog`, `listLogs` and `deleteLog` may be sent again when their answer
 * was lost. An adapter whose storage is remote settles its other calls itself.
 *
 * Promises every adapter keeps (and proves at start by a self-test):
 * - A file is invisible until `close` of its writer resolves; from then on it is whole, durable and never changes.
 * - When two writers create the same path, exactly one succeeds; the other fails with ALREADY_EXISTS at `close` at the
 *   latest.
 * - `list` after `close` shows the file.
 * - An append to a log is durable once it has resolved; one append is in flight at a time; `readLog` yields exactly the
 *   appends that were made, in order, and ends cleanly at a torn tail. A damaged append that is not the torn tail is a
 *   CorruptionError.
 *
 * Paths are relative, parts joined by "/", of the characters [A-Za-z0-9._-]. No path is ever a prefix directory of
 * another file's path in the S3 sense: "x" and "x/y" never both exist.
 */

export interface FileInfo {
  readonly path: string;
  readonly sizeBytes: number;
}

/** The disk of a file system. */
export interface StorageSpace {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** Writes one write-once file. Exactly one of close and abort ends it. */
export interface FileWriter {
  /** Resolves when the bytes may be reused by the caller; appends are made one after another. */
  append(bytes: Uint8Array): Promise<void>;
  /** Makes the file whole, durable and visible. */
  close(): Promise<void>;
  /** Removes the bytes written so far. */
  abort(): Promise<void>;
}

/**
 * The position of an append in its log: opaque but ordered, growing with every append of the log. On slots it is the
 * slot's number, in a preallocated file the byte offset since the log began.
 */
export type LogPosition = number;

/** A reader's own, for one log; empty at first. What an adapter keeps in it is its own affair. */
export interface LogMemo {
  learned?: unknown;
}

export interface LogAppend {
  readonly position: LogPosition;
  readonly bytes: Buffer;
  /** Appends before this one are left out, because they were trimmed while the log was read. */
  readonly afterTrim?: true;
}

export interface LogCuts {
  readonly sizeBytes: number;
  /** What short appends count besides that where calls are slow (`LogWriter.sizeBytes`). */
  readonly callCostBytes: number;
  /** Ascending. The first part begins with the log, the last one ends with it. */
  readonly positions: readonly LogPosition[];
}

/** Most bytes that an append takes of a reservation besides its own. */
export const APPEND_OVERHEAD_BYTES = 128;

export interface AppendOptions {
  /** The append uses reserved space, and is never refused for lack of space. Default: false. */
  readonly reserved?: boolean;
}

export interface LogWriter {
  /**
   * Appends the concatenation of `parts` as one unit. Resolves with its position when durable. The parts may be reused
   * after that. Failure: RESOURCE_EXHAUSTED = surely not written, the log can be used further; anything else = outcome
   * unknown, every later append fails with FAILED_PRECONDITION and the log must be closed.
   */
  append(parts: readonly Uint8Array[], options?: AppendOptions): Promise<LogPosition>;
  /**
   * Reserves space on storage for appends with the option `reserved`, which may together take `bytes` more,
   * APPEND_OVERHEAD_BYTES for each of them included. May be called while an append is in flight. The reservation lasts
   * until the writer is closed or its process ends. Fails as `append` does: RESOURCE_EXHAUSTED = nothing was reserved,
   * and the log can be used further.
   */
  reserve(bytes: number): Promise<void>;
  /** Lets the adapter remove appends that lie wholly before `position`. It may keep more. */
  trimBefore(position: LogPosition): Promise<void>;
  /**
   * About the bytes of the appends at `from` and above (default: all that are left): what a replay would read. Where
   * calls are slow short appends count as more than they have.
   */
  sizeBytes(from?: LogPosition): number;
  close(): Promise<void>;
}

export interface FileSystem {
  create(path: string): Promise<FileWriter>;
  /** Size of a visible file in bytes. NOT_FOUND where there is none. */
  size(path: string): Promise<number>;
  /**
   * Exactly `length` bytes from `offset`; OUT_OF_RANGE where the file is shorter, NOT_FOUND where there is none. The
   * result is the caller's own.
   */
  read(path: string, offset: number, length: number): Promise<Buffer>;
  /**
   * The same synchronously. Undefined where a quick read cannot be expected, or where it fails: then `read`, which
   * reports the error. With `into`, which is `length` bytes long, the bytes are written there. An adapter whose storage
   * is remote does not implement it, unless it has local copies.
   */
  readNow?(path: string, offset: number, length: number, into?: Buffer): Buffer | undefined;
  /**
   * The space of the disk now. It promises nothing: other processes use the disk, and a quota may be less. An adapter
   * whose storage has no bound, or does not tell it, does not implement it, or returns undefined.
   */
  space?(): Promise<StorageSpace | undefined>;
  /** Visible files whose path starts with `prefix`, by path. Logs are not listed. */
  list(prefix: string): Promise<FileInfo[]>;
  /** Removes a file; nothing happens where there is none. */
  delete(path: string): Promise<void>;

  /** Creates a new log and becomes its only writer. ALREADY_EXISTS where there is one. */
  openLog(path: string): Promise<LogWriter>;
  /** Makes every later append of the log's earlier writer fail. The log stays readable. */
  fence(path: string): Promise<void>;
  /**
   * The appends from `from` on (all, by default). A log that does not exist has none. Where it is trimmed meanwhile,
   * some appends before the trim's position may be left out; the others are yielded. `memo`: what earlier readings of
   * the same log have learned, and this one adds to. With it an adapter that has to look for `from` begins close to it,
   * and one that reads far ahead does not: such readings are many, and some stand still.
   */
  readLog(path: string, from?: LogPosition, memo?: LogMemo): AsyncIterable<LogAppend>;
  /**
   * Positions that cut the log, from `from` on (default: all of it), into parts of about `partBytes`, and about how
   * long it is from there: a few samples tell both. An adapter whose logs have one reader at most leaves it out.
   */
  cutLog?(path: string, partBytes: number, from?: LogPosition): Promise<LogCuts>;
  /**
   * A position at or below that of the log's newest append, near it: few appends are there or above. 0 where the log is
   * short, or there is none. An adapter without it has logs that are read from their beginning.
   */
  logTail?(path: string): Promise<LogPosition>;
  /** Paths of logs that start with `prefix`. */
  listLogs(prefix: string): Promise<string[]>;
  /** Removes a log whole; nothing happens where there is none. */
  deleteLog(path: string): Promise<void>;
}

/** What a store has besides its logs. */
export type StoredFiles = Pick<FileSystem, 'create' | 'size' | 'read' | 'list' | 'delete'>;
