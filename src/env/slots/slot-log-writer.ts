/**
 * The writer of a log of slots: an append is the creation of the next slot, whose outcome may be unknown for a while.
 * Format: docs/formats/slot-log.md, reasons: docs/decisions/0056-logs-of-slots.md.
 *
 * Invariants:
 * - One creation is under way, and no slot is skipped: a marker in the next slot stops this writer.
 * - The bytes of a slot, once sent, change only if the store surely refused them. So an attempt that lands late is the
 *   append that was acknowledged, or finds the slot taken.
 * - An append is acknowledged only if its slot has this writer's bytes; if that was in doubt, only if the log existed
 *   then, too.
 * - A slot is deleted only if a later one says durably that it may be, and never the newest, nor the head.
 */
import { assert, BigtableError, Code, unavailable } from '../../base/index.ts';
import { checksumOf } from '../seams/codecs.ts';
import type { AppendOptions, LogPosition, LogWriter } from '../seams/file-system.ts';
import { MAX_DELETED_SLOTS } from '../seams/slot-store.ts';
import type { SlotCalls } from './slot-calls.ts';
import {
  decodeSlotHeader,
  encodeSlotHeader,
  isMarker,
  MAX_SLOT_PAYLOAD_BYTES,
  SLOT_HEADER_BYTES,
  type SlotKind,
  slotName,
} from './slot-format.ts';

export interface SlotWriterOptions {
  readonly calls: SlotCalls;
  readonly log: string;
  readonly nonce: Buffer;
  /** An append that takes longer, ms, is looked after: its log may have been fenced and deleted meanwhile. */
  readonly doubtMs: number;
}

export class SlotLogWriter implements LogWriter {
  readonly #calls: SlotCalls;
  readonly #log: string;
  readonly #nonce: Buffer;
  readonly #doubtMs: number;
  #nextSlot = 1;
  #isAppending = false;
  /** Slots before it may be deleted, once an append says so. */
  #lowWater = 0;
  #durableLowWater = 0;
  /** The first slot that is not deleted, the head apart. */
  #firstSlot = 1;
  /** Bytes of the slots from the first one on. */
  readonly #slotBytes: number[] = [];
  #sizeBytes = SLOT_HEADER_BYTES;
  #trimming: Promise<void> | undefined;
  #isClosed = false;
  #hasReserved = false;
  /** The reason why every append is refused; undefined while the log is open. */
  #ended: string | undefined;

  private constructor({ calls, log, nonce, doubtMs }: SlotWriterOptions) {
    this.#calls = calls;
    this.#log = log;
    this.#nonce = nonce;
    this.#doubtMs = doubtMs;
  }

  /** Creates the log. ALREADY_EXISTS if it exists, or was fenced before. */
  static async open(options: SlotWriterOptions): Promise<SlotLogWriter> {
    const { calls, log } = options;
    const writer = new SlotLogWriter(options);
    const head = writer.#header('head', 0, 0, 0);
    if (await calls.create(log, 0, [head])) return writer;
    const found = await calls.read(log, 0, 0, SLOT_HEADER_BYTES);
    if (found === undefined) throw unavailable(`${log}: the log was deleted while it was opened`);
    if (!found.equals(head)) throw new BigtableError(Code.ALREADY_EXISTS, `${log}: the log exists already`);
    return writer;
  }

  async append(parts: readonly Uint8Array[], { reserved = false }: AppendOptions = {}): Promise<LogPosition> {
    assert(!this.#isAppending, `${this.#log}: two concurrent appends`);
    this.#checkOpen();
    this.#isAppending = true;
    try {
      return await this.#append(parts, reserved);
    } catch (error) {
      if (!(error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED))
        this.#ended ??= 'an earlier append failed';
      throw error;
    } finally {
      this.#isAppending = false;
    }
  }

  async reserve(bytes: number): Promise<void> {
    this.#checkOpen();
    this.#hasReserved = true;
    await this.#calls.reserve(this.#log, bytes);
  }

  async trimBefore(position: LogPosition): Promise<void> {
    this.#lowWater = Math.max(this.#lowWater, Math.min(position, this.#nextSlot - 1));
  }

  sizeBytes(): number {
    return this.#sizeBytes;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#ended ??= 'the log is closed';
    await this.#trimming;
    if (!this.#hasReserved) return;
    this.#hasReserved = false;
    await this.#calls.unreserve(this.#log);
  }

  async #append(parts: readonly Uint8Array[], reserved: boolean): Promise<LogPosition> {
    const { clock, checksum } = this.#calls;
    const startMs = clock.monotonicMs();
    const startMicros = clock.nowMicros();
    const slot = this.#nextSlot;
    const lowWater = this.#lowWater;
    const payloadBytes = parts.reduce((sum, part) => sum + part.length, 0);
    assert(payloadBytes <= MAX_SLOT_PAYLOAD_BYTES, `${this.#log}: an append of ${payloadBytes} bytes`);
    const header = this.#header('append', lowWater, payloadBytes, await checksumOf(parts, checksum, clock.yield));
    const isCreated = await this.#calls.create(this.#log, slot, [header, ...parts], {
      reserved,
      isStopped: () => this.#isClosed,
    });
    if (!isCreated) await this.#checkOwn(slot, header);
    const tookMs = Math.max(clock.monotonicMs() - startMs, (clock.nowMicros() - startMicros) / 1000);
    if (!isCreated || tookMs >= this.#doubtMs) await this.#checkNotDeleted(slot);
    this.#nextSlot = slot + 1;
    this.#durableLowWater = lowWater;
    this.#slotBytes.push(SLOT_HEADER_BYTES + payloadBytes);
    this.#sizeBytes += SLOT_HEADER_BYTES + payloadBytes;
    if (lowWater > this.#firstSlot) this.#trimming ??= this.#trim();
    return slot;
  }

  /** The slot existed: by an attempt whose answer was lost, or it is a marker that ends this log. */
  async #checkOwn(slot: number, header: Buffer): Promise<void> {
    const found = await this.#calls.read(this.#log, slot, 0, SLOT_HEADER_BYTES);
    if (found?.equals(header)) return;
    if (found === undefined) throw unavailable(`${this.#log}: the log was deleted`);
    const other = decodeSlotHeader(found, this.#log, slot, this.#calls.checksum);
    this.#ended = isMarker(other) ? 'the log is fenced' : `${slotName(this.#log, slot)} was written by another writer`;
    throw new BigtableError(Code.FAILED_PRECONDITION, `${this.#log}: ${this.#ended}`);
  }

  /**
   * A log that was deleted whole has lost its fence, too: an append that lands after that is not acknowledged. The slot
   * before it is deleted then; while the log lives it is kept, as the newest one was.
   */
  async #checkNotDeleted(slot: number): Promise<void> {
    if ((await this.#calls.read(this.#log, slot - 1, 0, 1)) !== undefined) return;
    this.#ended = 'the log was deleted';
    throw new BigtableError(Code.FAILED_PRECONDITION, `${this.#log}: ${this.#ended}`);
  }

  /** Deletes what the last durable append allows; never rejects. What fails is tried again after the next append. */
  async #trim(): Promise<void> {
    const end = this.#durableLowWater;
    while (this.#firstSlot < end && !this.#isClosed) {
      const count = Math.min(MAX_DELETED_SLOTS, end - this.#firstSlot);
      const slots = Array.from({ length: count }, (_, i) => this.#firstSlot + i);
      try {
        await this.#calls.delete(this.#log, slots, () => this.#isClosed);
      } catch {
        break;
      }
      this.#firstSlot += count;
      for (const bytes of this.#slotBytes.splice(0, count)) this.#sizeBytes -= bytes;
    }
    this.#trimming = undefined;
  }

  #header(kind: SlotKind, lowWater: number, payloadBytes: number, payloadChecksum: number): Buffer {
    const slot = kind === 'head' ? 0 : this.#nextSlot;
    const header = { kind, nonce: this.#nonce, slot, lowWater, payloadBytes, payloadChecksum };
    return encodeSlotHeader(header, this.#calls.checksum);
  }

  #checkOpen(): void {
    if (this.#ended) throw new BigtableError(Code.FAILED_PRECONDITION, `${this.#log}: ${this.#ended}`);
  }
}
