/**
 * The writer of a log of slots. It has two rows of slots and writes to one of them: an append that is slow there is
 * written to the other row, too, which takes the next ones if it answers first (paper section 6). Appends are numbered,
 * so that readers skip duplicates. Format: docs/formats/slot-log.md, reasons: docs/decisions/0057-two-log-writers.md.
 *
 * Invariants:
 * - An append is acknowledged when one row has it; each number from the low-water mark to the last acknowledged one is
 *   in a row.
 * - A number is given to another append only if every row that was sent it has surely refused it.
 * - A slot is deleted only if an append says durably that it may be.
 */
import { assert, BigtableError, Code, toBigtableError } from '../../base/index.ts';
import { isStorageRefusal } from '../calls/call-errors.ts';
import { checksumOf } from '../seams/codecs.ts';
import { APPEND_OVERHEAD_BYTES, type AppendOptions, type LogPosition, type LogWriter } from '../seams/file-system.ts';
import type { SlotCalls } from './slot-calls.ts';
import { MAX_SLOT_PAYLOAD_BYTES, rowsOf } from './slot-format.ts';
import { type AppendToWrite, SlotRow } from './slot-row.ts';

export interface SlotWriterOptions {
  readonly calls: SlotCalls;
  readonly log: string;
  readonly nonce: Buffer;
  readonly doubtMs: number;
  /** An append that is not durable after this time is written to the other row, too, ms. */
  readonly switchAfterMs: number;
}

export class SlotLogWriter implements LogWriter {
  readonly #calls: SlotCalls;
  readonly #log: string;
  readonly #rows: readonly SlotRow[];
  readonly #switchAfterMs: number;
  /** The row that has answered last. */
  #active: SlotRow;
  #nextSequence = 1;
  #isAppending = false;
  /** Appends before it may be deleted, once an append says so. */
  #lowWater = 0;
  #hasReserved = false;
  /** Reserved bytes that no append has taken yet. Each row has as many, and those of its creation under way. */
  #reservedBytes = 0;
  /** The reason why every append is refused; undefined while the log is open. */
  #ended: string | undefined;

  private constructor({ calls, log, nonce, doubtMs, switchAfterMs }: SlotWriterOptions) {
    this.#calls = calls;
    this.#log = log;
    const [a, b] = rowsOf(log);
    this.#active = new SlotRow(a, { calls, nonce, doubtMs });
    this.#rows = [this.#active, new SlotRow(b, { calls, nonce, doubtMs })];
    this.#switchAfterMs = switchAfterMs;
  }

  /** Creates the log. ALREADY_EXISTS if it exists, or was fenced before. */
  static async open(options: SlotWriterOptions): Promise<SlotLogWriter> {
    const writer = new SlotLogWriter(options);
    // one after the other: of two that open the log, one gets both
    for (const row of writer.#rows) await row.open();
    return writer;
  }

  async append(parts: readonly Uint8Array[], { reserved = false }: AppendOptions = {}): Promise<LogPosition> {
    assert(!this.#isAppending, `${this.#log}: two concurrent appends`);
    this.#checkOpen();
    this.#isAppending = true;
    try {
      return await this.#append(parts, reserved);
    } catch (error) {
      if (!isStorageRefusal(error)) this.#ended ??= 'an earlier append failed';
      throw error;
    } finally {
      this.#isAppending = false;
    }
  }

  /** In both rows: an append can take room in each. */
  async reserve(bytes: number): Promise<void> {
    this.#checkOpen();
    this.#hasReserved = true;
    this.#reservedBytes += bytes;
    try {
      for (const row of this.#rows) await this.#calls.reserve(row.row, this.#reservedBytes + row.reservedUnderWayBytes);
    } catch (error) {
      this.#reservedBytes -= bytes;
      throw error;
    }
  }

  async trimBefore(position: LogPosition): Promise<void> {
    this.#lowWater = Math.max(this.#lowWater, Math.min(position, this.#nextSequence - 1));
  }

  sizeBytes(from?: LogPosition): number {
    return this.#rows.reduce((sum, row) => sum + (from === undefined ? row.sizeBytes : row.sizeFrom(from)), 0);
  }

  async close(): Promise<void> {
    this.#ended ??= 'the log is closed';
    for (const row of this.#rows) await row.close();
    if (!this.#hasReserved) return;
    this.#hasReserved = false;
    for (const { row } of this.#rows) await this.#calls.unreserve(row);
  }

  async #append(parts: readonly Uint8Array[], reserved: boolean): Promise<LogPosition> {
    const { clock, checksum } = this.#calls;
    const sequence = this.#nextSequence;
    const lowWater = this.#lowWater;
    // a copy: a row that is slow sends it again after the caller has reused the parts
    const payload = Buffer.concat(parts);
    assert(payload.length <= MAX_SLOT_PAYLOAD_BYTES, `${this.#log}: an append of ${payload.length} bytes`);
    if (reserved) this.#takeReserved(payload.length);
    const payloadChecksum = await checksumOf([payload], checksum, clock.yield);
    await this.#write({ sequence, lowWater, payload, payloadChecksum, reserved });
    this.#nextSequence = sequence + 1;
    if (lowWater > 0) for (const row of this.#rows) row.trim(lowWater);
    return sequence;
  }

  #takeReserved(payloadBytes: number): void {
    this.#reservedBytes -= payloadBytes + APPEND_OVERHEAD_BYTES;
    assert(this.#reservedBytes >= 0, `${this.#log}: appends take no more than what was reserved`);
  }

  /** Resolves when one row has the append. */
  async #write(append: AppendToWrite): Promise<void> {
    const active = this.#active.isFree ? this.#active : this.#other();
    const writings = [active.write(append).then(() => active)];
    const isSlow = await this.#isSlow(writings[0]!);
    const other = this.#rows.find((row) => row !== active)!;
    if (isSlow && other.isFree) writings.push(other.write(append).then(() => other));
    try {
      this.#active = await Promise.any(writings);
    } catch (thrown) {
      assert(thrown instanceof AggregateError, 'all rows have failed');
      const errors = thrown.errors.map(toBigtableError);
      throw errors.find((error) => !isStorageRefusal(error)) ?? errors[0]!;
    }
  }

  /** True, if it takes longer than it may; it never rejects. */
  #isSlow(writing: Promise<unknown>): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = this.#calls.clock.timer(this.#switchAfterMs, () => resolve(true));
      const end = (): void => {
        timer.cancel();
        resolve(false);
      };
      writing.then(end, end);
    });
  }

  #other(): SlotRow {
    const other = this.#rows.find((row) => row !== this.#active)!;
    assert(other.isFree, `${this.#log}: a row is free when the last append has ended`);
    return other;
  }

  #checkOpen(): void {
    // a fence has begun: it will come to the other row, too
    this.#ended ??= this.#rows.find(({ ended }) => ended !== undefined)?.ended?.message;
    if (this.#ended) throw new BigtableError(Code.FAILED_PRECONDITION, `${this.#log}: ${this.#ended}`);
  }
}
