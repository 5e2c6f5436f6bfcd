/**
 * A server's commit log: all its tablets' records in one log, with group commit. While one append is in flight the next
 * batch gathers; a record is encoded into its batch when it is handed in. Format: docs/formats/commit-log.md.
 *
 * Invariants:
 * - Sequence numbers are given in the order of the calls, which is the order in the log.
 * - One append is in flight; acknowledgements come in log order, each after its append is durable.
 * - After an append of unknown outcome nothing more is written: what came later could otherwise be there without it.
 * - Nothing is trimmed before an append that says so (its low-water mark) is durable.
 * - Room on storage is reserved for a record of `appendReserved` before the record has its number: a full disk refuses it before it can be acknowledged,
 *   and never after. Such records share no append with others, which a full disk may refuse.
 *
 * What a power failure can take of records that are acknowledged before they are durable stays bounded in bytes, since no more are taken while too many
 * wait, and in time, since what waits is always being written.
 */
import { BigtableError, Code, unavailable } from '../base/index.ts';
import {
  APPEND_OVERHEAD_BYTES,
  type Clock,
  type Counter,
  type FileSystem,
  type Histogram,
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
  /** Told once why nothing can be written any more. */
  readonly onFailure?: (error: BigtableError) => void;
  /** Where appends are counted, and by which clock their time is taken. Default: nowhere. */
  readonly env?: { readonly metrics: Metrics; readonly clock: Clock };
}

export interface Appended {
  readonly sequence: number;
  /**
   * Resolves when the record is durable, with the position of its append. Rejects with RESOURCE_EXHAUSTED where it was surely not
   * written and the log goes on, else with UNAVAILABLE: the outcome is unknown.
   */
  readonly durable: Promise<LogPosition>;
}

/** A batch is closed when it has so many bytes, records or rows: what waits for one append is then handled in one step of a few milliseconds. */
const BATCH_BYTES = 1 << 20;
const BATCH_RECORDS = 1024;
const BATCH_ROWS = 1024;
/** Most bytes that may be acknowledged and not durable. */
const MAX_UNSYNCED_BYTES = 4 << 20;
/** Room is reserved in pieces of this size, the next one before the last is used up. */
const RESERVED_AT_ONCE_BYTES = 1 << 20;
/** What an append takes of the reserved room besides its records. */
const BATCH_OVERHEAD_BYTES = MAX_APPEND_HEADER_BYTES + APPEND_OVERHEAD_BYTES;
/** Encoders that are kept for the next batches: one in flight, one gathering. */
const MAX_KEPT_ENCODERS = 2;

interface Batch {
  readonly encoder: AppendEncoder;
  /** Whether its room was reserved. */
  reserved: boolean;
  readonly firstSequence: number;
  readonly durable: Promise<LogPosition>;
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
  #nextSequence: number;
  #pendingBytes = 0;
  #writing: Promise<void> | undefined;
  #failed: BigtableError | undefined;
  #closed = false;
  /** Bytes of reserved room that no record has taken yet. */
  #freeBytes = 0;
  /** The reservation under way; never rejects. */
  #reserving: Promise<void> | undefined;
  /** What the largest record that waits for the next reservation lacks. */
  #wantedBytes = 0;
  #lowWater: LogPosition = 0;
  #trimmed: LogPosition = 0;
  /** Position of the last durable append. */
  #lastPosition: LogPosition = -1;

  private constructor({ path, firstSequence = 1, onFailure, env }: ServerLogOptions, writer: LogWriter) {
    this.path = path;
    this.#writer = writer;
    this.#nextSequence = firstSequence;
    this.#onFailure = onFailure;
    this.#figures = env && {
      clock: env.clock,
      appendMs: env.metrics.histogram('log.appendMs'),
      appendedBytes: env.metrics.counter('log.appendedBytes'),
    };
  }

  /** Creates the log. ALREADY_EXISTS where there is one: a server's incarnation has logs of its own. */
  static async open(options: ServerLogOptions): Promise<ServerLog> {
    return new ServerLog(options, await options.fileSystem.openLog(options.path));
  }

  /** Bytes of records that are not durable yet. Whoever takes requests in waits while there are too many. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Why nothing can be written any more, where that is so. */
  get failed(): BigtableError | undefined {
    return this.#failed;
  }

  /** Puts the record into the log. Large values are not copied: they must not change until it is durable. Throws UNAVAILABLE after a failure. */
  append(record: NewRecord): Appended {
    this.#checkOpen();
    const batch = this.#batchFor(false);
    return this.#added(batch, batch.encoder.add(record));
  }

  /**
   * The same for a record that is acknowledged before it is durable: the log has reserved room for it. A promise where that cannot be now, and the record was
   * not put in: it resolves when it is time to ask again, and rejects with RESOURCE_EXHAUSTED where there is no room on storage, UNAVAILABLE after a failure.
   */
  appendReserved(record: NewRecord): Appended | Promise<void> {
    this.#checkOpen();
    if (this.#pendingBytes >= MAX_UNSYNCED_BYTES) {
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
    if (leftBytes < 0) return this.#roomFor(-leftBytes);
    this.#freeBytes = leftBytes;
    if (this.#freeBytes < RESERVED_AT_ONCE_BYTES) this.#reserve(RESERVED_AT_ONCE_BYTES).catch(() => undefined);
    return this.#added(batch, bytes);
  }

  /** Appends below the position are not needed any more. They are removed after the next append, which says so in the log. */
  trimBefore(position: LogPosition): void {
    // never above the append that is going to say so
    this.#lowWater = Math.max(this.#lowWater, Math.min(position, this.#lastPosition + 1));
  }

  /** Position of the newest durable append; 0 where there is none. */
  get newestPosition(): LogPosition {
    return Math.max(this.#lastPosition, 0);
  }

  /** Bytes that the log holds on storage. */
  sizeBytes(): number {
    return this.#writer.sizeBytes();
  }

  /** Writes what is pending, then closes the log. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#writing;
    await this.#reserving;
    await this.#writer.close();
  }

  #checkOpen(): void {
    if (this.#failed) throw unavailable(`${this.path}: not written: the log failed before`, this.#failed);
    if (this.#closed) throw new BigtableError(Code.FAILED_PRECONDITION, `${this.path}: the log is closed`);
  }

  /** The batch that gathers records of that kind. */
  #batchFor(reserved: boolean): Batch {
    const batch = (this.#gathering ??= this.#newBatch());
    if (batch.reserved === reserved) return batch;
    if (batch.encoder.count === 0) {
      batch.reserved = reserved;
      return batch;
    }
    this.#waiting.push(batch);
    this.#gathering = this.#newBatch();
    this.#gathering.reserved = reserved;
    return this.#gathering;
  }

  /** A record of so many bytes was put into the batch that gathers. */
  #added(batch: Batch, bytes: number): Appended {
    const { encoder, durable } = batch;
    const sequence = this.#nextSequence++;
    this.#pendingBytes += bytes;
    if (encoder.sizeBytes >= BATCH_BYTES || encoder.count >= BATCH_RECORDS || encoder.rows >= BATCH_ROWS) {
      this.#waiting.push(batch);
      this.#gathering = undefined;
    }
    // not at once: what is handed in within this step goes along
    this.#writing ??= Promise.resolve().then(() => this.#write());
    return { sequence, durable };
  }

  /** So much reserved room is lacking: resolves when it is time to ask again. */
  #roomFor(bytes: number): Promise<void> {
    if (this.#reserving) {
      this.#wantedBytes = Math.max(this.#wantedBytes, bytes);
      return this.#reserving;
    }
    return this.#reserve(bytes);
  }

  /** Reserves that much or more; where storage has no room for more, that much alone. Nothing is begun while another reservation is under way. */
  #reserve(bytes: number): Promise<void> {
    if (this.#reserving) return this.#reserving;
    const most = Math.max(bytes, RESERVED_AT_ONCE_BYTES, this.#wantedBytes);
    this.#wantedBytes = 0;
    const reservation = this.#reserved(most).catch((error: unknown) => {
      if (most === bytes || !isRefusal(error)) throw error;
      return this.#reserved(bytes);
    });
    this.#reserving = reservation
      .catch((error: unknown) => {
        if (!isRefusal(error)) this.#fail(unavailable(`${this.path}: no room could be reserved`, error));
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
    // whoever asked for the record hears of it; one that does not listen must not end the process
    durable.catch(() => undefined);
    return {
      encoder: this.#freeEncoders.pop() ?? new AppendEncoder(),
      reserved: false,
      firstSequence: this.#nextSequence,
      durable,
      resolve,
      reject,
    };
  }

  #takeBatch(): Batch | undefined {
    const closed = this.#waiting.shift();
    if (closed) return closed;
    const batch = this.#gathering;
    // it is empty where its first record could not be encoded
    if (!batch || batch.encoder.count === 0) return undefined;
    this.#gathering = undefined;
    return batch;
  }

  /** Writes batches until there are none. A tripped assert ends the log as a failed append does. */
  async #write(): Promise<void> {
    try {
      for (let batch = this.#takeBatch(); batch; batch = this.#takeBatch()) {
        if (this.#failed) batch.reject(this.#notWritten(this.#failed));
        else await this.#writeBatch(batch);
        this.#release(batch);
      }
    } catch (error) {
      const failure = unavailable(`${this.path}: an invariant of the log is broken`, error);
      this.#fail(failure);
      for (let batch = this.#takeBatch(); batch; batch = this.#takeBatch()) batch.reject(this.#notWritten(failure));
    }
    this.#writing = undefined;
  }

  #notWritten(failure: BigtableError): BigtableError {
    return unavailable(`${this.path}: not written: an earlier append failed`, failure);
  }

  async #writeBatch(batch: Batch): Promise<void> {
    const { encoder, firstSequence, reserved } = batch;
    this.#inFlight = batch;
    const lowWater = this.#lowWater;
    const figures = this.#figures;
    const startMs = figures?.clock.monotonicMs() ?? 0;
    try {
      const parts = encoder.finish({ previous: this.#lastPosition + 1, count: encoder.count, firstSequence, lowWater });
      const position = await this.#writer.append(parts, { reserved });
      if (figures !== undefined) {
        figures.appendMs.observe(figures.clock.monotonicMs() - startMs);
        figures.appendedBytes.value += encoder.sizeBytes;
      }
      // the header is shorter than what was counted for it: the rest is reserved still, and the next records take it
      if (reserved) this.#freeBytes += MAX_APPEND_HEADER_BYTES - headerBytes(parts);
      this.#lastPosition = position;
      batch.resolve(position);
    } catch (error) {
      if (!reserved && isRefusal(error)) return batch.reject(error);
      const failure = unavailable(`${this.path}: an append failed, its outcome is unknown`, error);
      batch.reject(failure);
      return this.#fail(failure);
    } finally {
      this.#inFlight = undefined;
    }
    this.#trim(lowWater);
  }

  #fail(error: BigtableError): void {
    if (this.#failed) return;
    this.#failed = error;
    this.#onFailure?.(error);
  }

  #release(batch: Batch): void {
    this.#pendingBytes -= batch.encoder.sizeBytes;
    batch.encoder.reset();
    if (this.#freeEncoders.length < MAX_KEPT_ENCODERS) this.#freeEncoders.push(batch.encoder);
  }

  #trim(lowWater: LogPosition): void {
    if (lowWater <= this.#trimmed) return;
    const before = this.#trimmed;
    this.#trimmed = lowWater;
    // what could not be removed is tried again with the next append
    this.#writer.trimBefore(lowWater).catch(() => {
      if (this.#trimmed === lowWater) this.#trimmed = before;
    });
  }
}

/** The header is the first part of an append. */
function headerBytes([header]: readonly Uint8Array[]): number {
  return header?.length ?? 0;
}

/** Whether nothing was written and the log goes on. */
function isRefusal(error: unknown): error is BigtableError {
  return error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED;
}
