/**
 * A server's commit log: the records of all its tablets in one log, with group commit. While one append is in flight,
 * the next batch is gathered; a record is encoded into its batch immediately. An append begins late: when a turn of the
 * event loop has brought no more records (docs/decisions/0042-synchronous-appends.md). Format:
 * docs/formats/commit-log.md.
 *
 * Invariants:
 * - Sequence numbers ascend in the order of the calls, which is the order in the log.
 * - One append is in flight; acknowledgements come in log order, each after its append is durable.
 * - After an append of unknown outcome nothing more is written: a later append could otherwise be in the log without
 *   it.
 * - An append that is refused fails all records that wait at that time: they may depend on it (hot rows). Records with
 *   reserved storage are excepted: they were acknowledged, and depend on nothing that may be refused.
 * - Nothing is trimmed before an append that says so (its low-water mark) is durable.
 * - Storage is reserved for a record of `appendReserved` before the record gets its number: a full disk refuses it
 *   before it can be acknowledged, and never after. Such records share no append with others, which a full disk may
 *   refuse.
 *
 * A power failure may lose records that were acknowledged before they were durable. Their bytes are bounded, since
 * `appendReserved` accepts no more while too many wait; so is their age, since a batch that waits is written next.
 */
import { assert, BigtableError, checksInvariants, Code, unavailable } from '../base/index.ts';
import {
  APPEND_OVERHEAD_BYTES,
  type Clock,
  type Counter,
  type FileSystem,
  type Histogram,
  isStorageRefusal,
  type LogPosition,
  type LogWriter,
  type Metrics,
} from '../env/index.ts';
import { AppendEncoder } from './append-encoder.ts';
import { MAX_APPEND_HEADER_BYTES } from './append-format.ts';
import type { NewRecord } from './record.ts';

export interface ServerLogOptions {
  readonly fileSystem: FileSystem;
  /** Path of the log, which must not exist. */
  readonly path: string;
  /** Number of the first record. Default 1. */
  readonly firstSequence?: number;
  /** Most bytes that may be acknowledged and not durable. Default: 4 MiB. */
  readonly maxUnsyncedBytes?: number | undefined;
  /** Called once, with the reason, when nothing more can be written. */
  readonly onFailure?: (error: BigtableError) => void;
  /** Counters of appends, the clock for their duration, and the turns of its event loop. Default: neither. */
  readonly env?: { readonly metrics: Metrics; readonly clock: Clock };
}

/** An append, which its records share. */
export interface LogAppend {
  /**
   * Resolves when the records are durable, with their position. Rejects with RESOURCE_EXHAUSTED if they were surely not
   * written and the log goes on, else with UNAVAILABLE: the outcome is unknown.
   */
  readonly durable: Promise<LogPosition>;
  /** The error with which `durable` rejects; set in the slice in which that is known, before any waiter runs. */
  readonly failure: BigtableError | undefined;
}

export interface Appended {
  readonly sequence: number;
  readonly append: LogAppend;
}

/** Bounds of a batch. All that waits for one append is then handled in one slice of a few milliseconds. */
const MAX_BATCH_BYTES = 1 << 20;
const MAX_BATCH_RECORDS = 1024;
const MAX_BATCH_ROWS = 1024;
/** An append waits for this many turns of the event loop at most, and not when it has this many records. */
const MAX_GATHERING_TURNS = 4;
const MAX_GATHERED_RECORDS = 64;
const MAX_UNSYNCED_BYTES = 4 << 20;
/** Storage is reserved in pieces of this size, the next one before the last is used up. */
const RESERVATION_BYTES = 1 << 20;
/** Reserved storage that an append takes in addition to its records. */
const BATCH_OVERHEAD_BYTES = MAX_APPEND_HEADER_BYTES + APPEND_OVERHEAD_BYTES;
/** Encoders kept for the next batches: one in flight, one being gathered. */
const MAX_KEPT_ENCODERS = 2;

interface Batch extends LogAppend {
  readonly encoder: AppendEncoder;
  /** True if its storage was reserved. */
  reserved: boolean;
  readonly firstSequence: number;
  failure: BigtableError | undefined;
  readonly resolve: (position: LogPosition) => void;
  readonly reject: (error: BigtableError) => void;
}

export class ServerLog {
  readonly path: string;
  readonly #writer: LogWriter;
  readonly #freeEncoders: AppendEncoder[] = [];
  /** Closed batches, in order. */
  readonly #waiting: Batch[] = [];
  #gathering: Batch | undefined;
  #inFlight: Batch | undefined;
  readonly #onFailure: ServerLogOptions['onFailure'];
  readonly #figures:
    | { readonly clock: Clock; readonly appendMs: Histogram; readonly appendedBytes: Counter }
    | undefined;
  readonly #maxUnsyncedBytes: number;
  #nextSequence: number;
  /** Lower bound of the sequence numbers of later appends. */
  #nextUnwritten: number;
  #pendingBytes = 0;
  #writing: Promise<void> | undefined;
  #failed: BigtableError | undefined;
  #closed = false;
  /** Bytes of reserved storage that no record has taken yet. */
  #freeBytes = 0;
  /** The reservation under way; never rejects. */
  #reserving: Promise<void> | undefined;
  /** Bytes missing for the largest record that waits for the next reservation. */
  #wantedBytes = 0;
  #lowWater: LogPosition = 0;
  /** No replay needs appends below it. */
  #replayFrom: LogPosition = 0;
  #trimmed: LogPosition = 0;
  /** Position of the last durable append. */
  #lastPosition: LogPosition = -1;

  private constructor(options: ServerLogOptions, writer: LogWriter) {
    const { path, firstSequence = 1, maxUnsyncedBytes = MAX_UNSYNCED_BYTES, onFailure, env } = options;
    this.path = path;
    assert(Number.isSafeInteger(firstSequence) && firstSequence >= 0, 'a sequence number is a safe integer');
    this.#writer = writer;
    this.#nextSequence = firstSequence;
    this.#nextUnwritten = firstSequence;
    this.#maxUnsyncedBytes = maxUnsyncedBytes;
    this.#onFailure = onFailure;
    this.#figures = env && {
      clock: env.clock,
      appendMs: env.metrics.histogram('log.appendMs'),
      appendedBytes: env.metrics.counter('log.appendedBytes'),
    };
  }

  /** Creates the log. ALREADY_EXISTS if the path exists: each start of a server has logs of its own. */
  static async open(options: ServerLogOptions): Promise<ServerLog> {
    return new ServerLog(options, await options.fileSystem.openLog(options.path));
  }

  /** Bytes of records that are not durable yet. Callers that accept requests wait while there are too many. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Why nothing more can be written; undefined while the log works. */
  get failed(): BigtableError | undefined {
    return this.#failed;
  }

  /**
   * Appends the record. Large values are not copied: they must not change until it is durable. UNAVAILABLE after a
   * failure.
   */
  append(record: NewRecord): Appended {
    this.#checkOpen();
    const batch = this.#batchFor(false);
    return this.#added(batch, batch.encoder.add(record));
  }

  /**
   * Appends a record that is acknowledged before it is durable: the log has reserved storage for it. Returns a promise
   * if there is none yet, and the record was not appended: the promise resolves when it is time to call again. It
   * rejects with RESOURCE_EXHAUSTED if storage is full, with UNAVAILABLE after a failure.
   */
  appendReserved(record: NewRecord): Appended | Promise<void> {
    this.#checkOpen();
    if (this.#pendingBytes >= this.#maxUnsyncedBytes) {
      const gathering = this.#gathering?.encoder.count ? this.#gathering : undefined;
      const first = this.#inFlight ?? this.#waiting[0] ?? gathering;
      if (first)
        return first.durable.then(
          () => undefined,
          () => undefined,
        );
    }
    const batch = this.#batchFor(true);
    const overhead = batch.encoder.count === 0 ? BATCH_OVERHEAD_BYTES : 0;
    const bytes = batch.encoder.add(record, this.#freeBytes - overhead);
    const leftBytes = this.#freeBytes - overhead - bytes;
    if (leftBytes < 0) return this.#whenReserved(-leftBytes);
    this.#freeBytes = leftBytes;
    if (this.#freeBytes < RESERVATION_BYTES) this.#reserve(RESERVATION_BYTES).catch(() => undefined);
    return this.#added(batch, bytes);
  }

  /**
   * Trims the appends below the position, after the next append, which records this in the log. `keptFrom`: appends
   * from there on are kept, though no replay needs them: for change streams.
   */
  trimBefore(position: LogPosition, keptFrom: LogPosition = position): void {
    assert(keptFrom <= position, 'what a replay needs is kept');
    // never above the append that will record it
    const end = this.#lastPosition + 1;
    this.#replayFrom = Math.max(this.#replayFrom, Math.min(position, end));
    this.#lowWater = Math.max(this.#lowWater, Math.min(keptFrom, end));
  }

  /** Appends below it may be trimmed. */
  get lowWater(): LogPosition {
    return this.#lowWater;
  }

  /** Position of the newest durable append; 0 if there is none. */
  get newestPosition(): LogPosition {
    return Math.max(this.#lastPosition, 0);
  }

  /** Every append to come is at this position or above. */
  get nextPosition(): LogPosition {
    return this.#lastPosition + 1;
  }

  /** Bytes of the log on storage: those that a replay needs, or those from an append on. */
  sizeBytes(from?: LogPosition): number {
    if (from !== undefined) return this.#writer.sizeBytes(from);
    return this.#lowWater < this.#replayFrom ? this.#writer.sizeBytes(this.#replayFrom) : this.#writer.sizeBytes();
  }

  /** Writes all pending records, then closes the log. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#writing;
    await this.#reserving;
    if (!this.#failed) {
      assert(this.#waiting.length === 0 && this.#inFlight === undefined, 'a log that closes has written its batches');
      assert(this.#pendingBytes === 0, 'a log that closes has no pending records');
    }
    await this.#writer.close();
  }

  #checkOpen(): void {
    if (this.#failed) throw unavailable(`${this.path}: not written: the log failed before`, this.#failed);
    if (this.#closed) throw new BigtableError(Code.FAILED_PRECONDITION, `${this.path}: the log is closed`);
  }

  /** The batch that gathers reserved or unreserved records. */
  #batchFor(reserved: boolean): Batch {
    const batch = (this.#gathering ??= this.#newBatch());
    if (batch.reserved === reserved) return batch;
    if (batch.encoder.count === 0) {
      batch.reserved = reserved;
      return batch;
    }
    this.#closeBatch(batch);
    this.#gathering = this.#newBatch();
    this.#gathering.reserved = reserved;
    return this.#gathering;
  }

  /** Numbers the record that was encoded into the batch, in `bytes`. */
  #added(batch: Batch, bytes: number): Appended {
    const { encoder } = batch;
    assert(batch === this.#gathering, 'records are added to the batch that gathers');
    assert(batch.firstSequence + encoder.count === this.#nextSequence + 1, 'sequence numbers of a batch ascend by one');
    const sequence = this.#nextSequence++;
    this.#pendingBytes += bytes;
    const { sizeBytes, count, rows } = encoder;
    if (sizeBytes >= MAX_BATCH_BYTES || count >= MAX_BATCH_RECORDS || rows >= MAX_BATCH_ROWS) this.#closeBatch(batch);
    this.#writing ??= this.#write();
    return { sequence, append: batch };
  }

  /** The batch gathers no more records and waits to be written. */
  #closeBatch(batch: Batch): void {
    assert(batch === this.#gathering && batch.encoder.count > 0, 'the batch that gathers has records');
    this.#waiting.push(batch);
    this.#gathering = undefined;
  }

  /** Reserves the missing bytes. Resolves when it is time to call again. */
  #whenReserved(bytes: number): Promise<void> {
    if (this.#reserving) {
      this.#wantedBytes = Math.max(this.#wantedBytes, bytes);
      return this.#reserving;
    }
    return this.#reserve(bytes);
  }

  /**
   * Reserves `bytes` or more; exactly `bytes` if storage has no space for more. One reservation is under way at a time.
   */
  #reserve(bytes: number): Promise<void> {
    assert(bytes > 0, 'a reservation has a size');
    if (this.#reserving) return this.#reserving;
    const most = Math.max(bytes, RESERVATION_BYTES, this.#wantedBytes);
    this.#wantedBytes = 0;
    const reservation = this.#reserved(most).catch((error: unknown) => {
      if (most === bytes || !isStorageRefusal(error)) throw error;
      return this.#reserved(bytes);
    });
    this.#reserving = reservation
      .catch((error: unknown) => {
        if (!isStorageRefusal(error)) this.#fail(unavailable(`${this.path}: no storage could be reserved`, error));
      })
      .finally(() => (this.#reserving = undefined));
    return reservation;
  }

  async #reserved(bytes: number): Promise<void> {
    await this.#writer.reserve(bytes);
    this.#freeBytes += bytes;
  }

  #newBatch(): Batch {
    let resolve: Batch['resolve'] = () => undefined;
    let reject: Batch['reject'] = () => undefined;
    const durable = new Promise<LogPosition>((onDurable, onFailure) => {
      resolve = onDurable;
      reject = onFailure;
    });
    // callers handle a rejection; one that does not must not end the process
    durable.catch(() => undefined);
    return {
      encoder: this.#freeEncoders.pop() ?? new AppendEncoder(),
      reserved: false,
      firstSequence: this.#nextSequence,
      durable,
      failure: undefined,
      resolve,
      reject,
    };
  }

  #takeBatch(): Batch | undefined {
    const closed = this.#waiting.shift();
    if (closed) return closed;
    const batch = this.#gathering;
    // it is empty if its first record could not be encoded
    if (!batch || batch.encoder.count === 0) return undefined;
    this.#gathering = undefined;
    return batch;
  }

  /** Writes batches until there are none. A tripped assert ends the log as a failed append does. */
  async #write(): Promise<void> {
    try {
      for (;;) {
        await this.#gatherMore();
        const batch = this.#takeBatch();
        if (batch === undefined) break;
        if (this.#failed) reject(batch, this.#notWritten(this.#failed));
        else await this.#writeBatch(batch);
        this.#release(batch);
      }
    } catch (error) {
      const failure = unavailable(`${this.path}: an invariant of the log is broken`, error);
      this.#fail(failure);
      for (let batch = this.#takeBatch(); batch; batch = this.#takeBatch()) reject(batch, this.#notWritten(failure));
    }
    this.#writing = undefined;
  }

  /** Waits while turns of the event loop bring more records. */
  async #gatherMore(): Promise<void> {
    let seen = 0;
    for (let turns = 0; turns < MAX_GATHERING_TURNS; turns++) {
      const count = this.#gathering?.encoder.count ?? 0;
      if (count === seen || count >= MAX_GATHERED_RECORDS || this.#waiting.length > 0) return;
      seen = count;
      await this.#figures?.clock.yield();
    }
  }

  #notWritten(failure: BigtableError): BigtableError {
    return unavailable(`${this.path}: not written: an earlier append failed`, failure);
  }

  async #writeBatch(batch: Batch): Promise<void> {
    const { encoder, firstSequence, reserved } = batch;
    const lowWater = this.#lowWater;
    const replayFrom = this.#replayFrom > lowWater ? this.#replayFrom : undefined;
    const figures = this.#figures;
    const startMs = figures?.clock.monotonicMs() ?? 0;
    try {
      assert(this.#inFlight === undefined, 'one append is in flight');
      this.#inFlight = batch;
      assert(firstSequence >= this.#nextUnwritten, 'sequence numbers ascend in the log');
      assert(lowWater <= this.#lastPosition + 1, 'no append that is still to come is trimmed');
      this.#nextUnwritten = firstSequence + encoder.count;
      const previous = this.#lastPosition + 1;
      assert(replayFrom === undefined || replayFrom <= previous, 'a replay needs no append that is still to come');
      const parts = encoder.finish({ previous, count: encoder.count, firstSequence, lowWater, replayFrom });
      if (checksInvariants) assertLength(parts, encoder.sizeBytes);
      const position = await this.#writer.append(parts, { reserved });
      assert(position > this.#lastPosition, 'positions ascend in the log');
      if (figures !== undefined) {
        figures.appendMs.observe(figures.clock.monotonicMs() - startMs);
        figures.appendedBytes.value += encoder.sizeBytes;
      }
      // the header is shorter than its bound: the next records take the reserved bytes that remain
      if (reserved) this.#freeBytes += MAX_APPEND_HEADER_BYTES - headerBytes(parts);
      this.#lastPosition = position;
      batch.resolve(position);
    } catch (error) {
      if (!reserved && isStorageRefusal(error)) return this.#refuse(batch, error);
      const failure = unavailable(`${this.path}: an append failed, its outcome is unknown`, error);
      reject(batch, failure);
      return this.#fail(failure);
    } finally {
      this.#inFlight = undefined;
    }
    this.#trim(lowWater);
  }

  /** Nothing of the batch was written. */
  #refuse(batch: Batch, error: BigtableError): void {
    reject(batch, error);
    if (this.#gathering !== undefined && this.#gathering.encoder.count > 0) this.#closeBatch(this.#gathering);
    for (const waiting of this.#waiting.splice(0)) {
      if (waiting.reserved) {
        this.#waiting.push(waiting);
      } else {
        reject(waiting, error);
        this.#release(waiting);
      }
    }
  }

  #fail(error: BigtableError): void {
    if (this.#failed) return;
    this.#failed = error;
    this.#onFailure?.(error);
  }

  #release(batch: Batch): void {
    this.#pendingBytes -= batch.encoder.sizeBytes;
    assert(this.#pendingBytes >= 0, 'pending bytes are those of the batches');
    batch.encoder.reset();
    if (this.#freeEncoders.length < MAX_KEPT_ENCODERS) this.#freeEncoders.push(batch.encoder);
  }

  #trim(lowWater: LogPosition): void {
    if (lowWater <= this.#trimmed) return;
    const before = this.#trimmed;
    this.#trimmed = lowWater;
    // a trim that failed is retried with the next append
    this.#writer.trimBefore(lowWater).catch(() => {
      if (this.#trimmed === lowWater) this.#trimmed = before;
    });
  }
}

function reject(batch: Batch, error: BigtableError): void {
  assert(batch.failure === undefined, 'an append fails once');
  batch.failure = error;
  batch.reject(error);
}

/** Length of the header, the first part of an append. */
function headerBytes([header]: readonly Uint8Array[]): number {
  assert(header !== undefined, 'an append begins with a header');
  return header.length;
}

/** The bytes to be written are those that were counted. */
function assertLength(parts: readonly Uint8Array[], recordBytes: number): void {
  const bytes = parts.reduce((sum, part) => sum + part.length, 0) - headerBytes(parts);
  assert(bytes === recordBytes, 'the parts of an append have the length that was counted');
  assert(headerBytes(parts) <= MAX_APPEND_HEADER_BYTES, 'a header is within its bound');
}

/** True if nothing was written and the log goes on. */
