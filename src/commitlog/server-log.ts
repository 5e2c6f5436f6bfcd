/**
 * A server's commit log: all its tablets' records in one log, with group commit. While one append is in flight the next
 * batch gathers; a record is encoded into its batch when it is handed in. Format: docs/formats/commit-log.md.
 *
 * Invariants:
 * - Sequence numbers are given in the order of the calls, which is the order in the log.
 * - One append is in flight; acknowledgements come in log order, each after its append is durable.
 * - After an append of unknown outcome nothing more is written: what came later could otherwise be there without it.
 * - Nothing is trimmed before an append that says so (its low-water mark) is durable.
 *
 * Who acknowledges records that are not durable yet waits for `room` before each of them: so what a power failure can take stays bounded, in bytes, and
 * in time, since what is pending is always being written.
 */
import { BigtableError, Code, unavailable } from '../base/index.ts';
import type { FileSystem, LogPosition, LogWriter } from '../env/index.ts';
import { AppendEncoder } from './append-encoder.ts';
import type { NewRecord } from './record.ts';

export interface ServerLogOptions {
  readonly fileSystem: FileSystem;
  /** Of the log, which must not exist. */
  readonly path: string;
  /** Number of the first record. Default 1. */
  readonly firstSequence?: number;
  /** Told once why nothing can be written any more. */
  readonly onFailure?: (error: BigtableError) => void;
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
const MOST_UNSYNCED_BYTES = 4 << 20;
/** Encoders that are kept for the next batches: one in flight, one gathering. */
const MOST_KEPT_ENCODERS = 2;

interface Batch {
  readonly encoder: AppendEncoder;
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
  #nextSequence: number;
  #pendingBytes = 0;
  #writing: Promise<void> | undefined;
  #failed: BigtableError | undefined;
  #closed = false;
  #refusalFails = false;
  #lowWater: LogPosition = 0;
  #trimmed: LogPosition = 0;
  /** Of the last durable append. */
  #lastPosition: LogPosition = -1;

  private constructor({ path, firstSequence = 1, onFailure }: ServerLogOptions, writer: LogWriter) {
    this.path = path;
    this.#writer = writer;
    this.#nextSequence = firstSequence;
    this.#onFailure = onFailure;
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

  /**
   * For records that are acknowledged before they are durable: undefined where one may be appended so now, else resolves when it is time to ask again.
   * Throws UNAVAILABLE after a failure.
   */
  room(): Promise<void> | undefined {
    if (this.#failed) throw unavailable(`${this.path}: the log failed before`, this.#failed);
    if (this.#pendingBytes < MOST_UNSYNCED_BYTES) return undefined;
    const first = this.#inFlight ?? this.#waiting[0] ?? this.#gathering;
    return first?.durable.then(() => undefined, () => undefined);
  }

  /**
   * A record was acknowledged that is not durable yet: from now on a refusal (a full disk) is a failure like any other, since what was acknowledged can
   * be given back to nobody.
   */
  acknowledgedEarly(): void {
    this.#refusalFails = true;
  }

  /** Puts the record into the log. Large values are not copied: they must not change until it is durable. Throws UNAVAILABLE after a failure. */
  append(record: NewRecord): Appended {
    if (this.#failed) throw unavailable(`${this.path}: not written: the log failed before`, this.#failed);
    if (this.#closed) throw new BigtableError(Code.FAILED_PRECONDITION, `${this.path}: the log is closed`);
    const batch = (this.#gathering ??= this.#newBatch());
    const { encoder, durable } = batch;
    const before = encoder.sizeBytes;
    encoder.add(record);
    const sequence = this.#nextSequence++;
    this.#pendingBytes += encoder.sizeBytes - before;
    if (encoder.sizeBytes >= BATCH_BYTES || encoder.count >= BATCH_RECORDS || encoder.rows >= BATCH_ROWS) {
      this.#waiting.push(batch);
      this.#gathering = undefined;
    }
    // not at once: what is handed in within this step goes along
    this.#writing ??= Promise.resolve().then(() => this.#write());
    return { sequence, durable };
  }

  /** Appends below the position are not needed any more. They are removed after the next append, which says so in the log. */
  trimBefore(position: LogPosition): void {
    // never above the append that is going to say so
    this.#lowWater = Math.max(this.#lowWater, Math.min(position, this.#lastPosition + 1));
  }

  /** Of the newest durable append; 0 where there is none. */
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
    await this.#writer.close();
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
    return { encoder: this.#freeEncoders.pop() ?? new AppendEncoder(), firstSequence: this.#nextSequence, durable, resolve, reject };
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

  /** Writes batches until there are none. */
  async #write(): Promise<void> {
    for (let batch = this.#takeBatch(); batch; batch = this.#takeBatch()) {
      if (this.#failed) batch.reject(unavailable(`${this.path}: not written: an earlier append failed`, this.#failed));
      else await this.#writeBatch(batch);
      this.#release(batch);
    }
    this.#writing = undefined;
  }

  async #writeBatch(batch: Batch): Promise<void> {
    const { encoder, firstSequence } = batch;
    this.#inFlight = batch;
    const lowWater = this.#lowWater;
    try {
      const position = await this.#writer.append(encoder.finish({ previous: this.#lastPosition + 1, count: encoder.count, firstSequence, lowWater }));
      this.#lastPosition = position;
      batch.resolve(position);
    } catch (error) {
      if (!this.#refusalFails && error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED) return batch.reject(error);
      this.#failed = unavailable(`${this.path}: an append failed, its outcome is unknown`, error);
      batch.reject(this.#failed);
      return this.#onFailure?.(this.#failed);
    } finally {
      this.#inFlight = undefined;
    }
    this.#trim(lowWater);
  }

  #release(batch: Batch): void {
    this.#pendingBytes -= batch.encoder.sizeBytes;
    batch.encoder.reset();
    if (this.#freeEncoders.length < MOST_KEPT_ENCODERS) this.#freeEncoders.push(batch.encoder);
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
