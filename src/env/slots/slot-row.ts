/**
 * One of the two rows of slots that a log's writer writes: creations in the next slot, whose outcome may be unknown for
 * a while.
 *
 * Invariants:
 * - One creation is under way, and no slot is skipped: a marker in the next slot stops this row.
 * - The bytes of a slot, once sent, change only if the store surely refused them. So an attempt that lands late is the
 *   append that was written, or finds the slot taken.
 * - An append is written only if its slot has this writer's bytes; if that was in doubt, only if the row existed then,
 *   too.
 * - The newest slot and the head are not deleted while the log lives.
 */
import { assert, BigtableError, Code, toBigtableError, unavailable } from '../../base/index.ts';
import { MAX_DELETED_SLOTS } from '../seams/slot-store.ts';
import type { SlotCalls } from './slot-calls.ts';
import { decodeSlotHeader, encodeSlotHeader, isMarker, SLOT_HEADER_BYTES, slotName } from './slot-format.ts';

export interface SlotRowOptions {
  readonly calls: SlotCalls;
  readonly nonce: Buffer;
  /** A row that has shown no life for this time, ms, is checked: it may have been fenced and deleted meanwhile. */
  readonly doubtMs: number;
}

/** An append, as both rows write it. */
export interface AppendToWrite {
  readonly sequence: number;
  readonly lowWater: number;
  readonly payload: Buffer;
  readonly payloadChecksum: number;
  readonly reserved: boolean;
}

interface Instant {
  readonly monotonicMs: number;
  readonly realMs: number;
}

interface WrittenSlot {
  readonly slot: number;
  readonly sequence: number;
  /** What it counts in the size of the row. */
  readonly bytes: number;
  /** The same of it and all slots before it, those that were deleted among them. */
  readonly endBytes: number;
}

export class SlotRow {
  readonly row: string;
  readonly #calls: SlotCalls;
  readonly #nonce: Buffer;
  readonly #doubtMs: number;
  /** Written and not deleted, ascending. */
  readonly #slots: WrittenSlot[] = [];
  #nextSlot = 1;
  #isWriting = false;
  /** When the last creation began that found the row alive, by both clocks. */
  #alive: Instant;
  #trimming: Promise<void> | undefined;
  #isClosed = false;
  /** Why it takes no more appends; undefined while it does. */
  #failure: BigtableError | undefined;
  sizeBytes = SLOT_HEADER_BYTES;
  #writtenBytes = 0;
  /** What the creation under way takes of the row's reserved room. */
  reservedUnderWayBytes = 0;

  constructor(row: string, { calls, nonce, doubtMs }: SlotRowOptions) {
    this.row = row;
    this.#calls = calls;
    this.#nonce = nonce;
    this.#doubtMs = doubtMs;
    this.#alive = this.#now();
  }

  /** Creates the head. ALREADY_EXISTS if there is a row, or it was fenced before. */
  async open(): Promise<void> {
    const head = encodeSlotHeader(
      { kind: 'head', nonce: this.#nonce, slot: 0, sequence: 0, lowWater: 0, payloadBytes: 0, payloadChecksum: 0 },
      this.#calls.checksum,
    );
    if (await this.#calls.create(this.row, 0, [head])) return;
    const found = await this.#calls.read(this.row, 0, 0, SLOT_HEADER_BYTES);
    if (found === undefined) throw unavailable(`${this.row}: the log was deleted while it was opened`);
    if (!found.equals(head)) throw new BigtableError(Code.ALREADY_EXISTS, `${this.row}: the log exists already`);
  }

  /** True: nothing is under way, and an append can be written. */
  get isFree(): boolean {
    return !this.#isWriting && this.#failure === undefined;
  }

  /** Set once a marker or another writer's slot was met: the log has ended. */
  get ended(): BigtableError | undefined {
    return this.#failure?.code === Code.FAILED_PRECONDITION ? this.#failure : undefined;
  }

  /** RESOURCE_EXHAUSTED: surely not written. Anything else: outcome unknown, or the log has ended. */
  async write(append: AppendToWrite): Promise<void> {
    assert(this.isFree, `${this.row}: one creation is under way`);
    this.#isWriting = true;
    if (append.reserved) this.reservedUnderWayBytes = SLOT_HEADER_BYTES + append.payload.length;
    try {
      await this.#create(append);
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (error.code !== Code.RESOURCE_EXHAUSTED) this.#failure = error;
      throw error;
    } finally {
      this.#isWriting = false;
      this.reservedUnderWayBytes = 0;
    }
  }

  /** Deletes, in the background, slots whose appends lie before `lowWater`, which is durable. */
  trim(lowWater: number): void {
    this.#trimming ??= this.#trim(lowWater).then(() => {
      this.#trimming = undefined;
    });
  }

  /** What the slots of that append and of later ones count. */
  sizeFrom(sequence: number): number {
    let [below, end] = [0, this.#slots.length];
    while (below < end) {
      const middle = (below + end) >> 1;
      if (this.#slots[middle]!.sequence < sequence) below = middle + 1;
      else end = middle;
    }
    const first = this.#slots[below];
    return first === undefined ? 0 : this.#writtenBytes - first.endBytes + first.bytes;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#trimming;
  }

  async #create({ sequence, lowWater, payload, payloadChecksum, reserved }: AppendToWrite): Promise<void> {
    const start = this.#now();
    const slot = this.#nextSlot;
    const payloadBytes = payload.length;
    const header = encodeSlotHeader(
      { kind: 'append', nonce: this.#nonce, slot, sequence, lowWater, payloadBytes, payloadChecksum },
      this.#calls.checksum,
    );
    const isCreated = await this.#calls.create(this.row, slot, [header, payload], {
      reserved,
      isStopped: () => this.#isClosed,
    });
    if (!isCreated) await this.#checkOwn(slot, header);
    const now = this.#now();
    const sinceMs = Math.max(now.monotonicMs - this.#alive.monotonicMs, now.realMs - this.#alive.realMs);
    if (!isCreated || sinceMs >= this.#doubtMs) await this.#checkNotDeleted(slot);
    this.#alive = start;
    this.#nextSlot = slot + 1;
    const bytes = Math.max(SLOT_HEADER_BYTES + payloadBytes, this.#calls.slotCostBytes);
    this.#writtenBytes += bytes;
    this.#slots.push({ slot, sequence, bytes, endBytes: this.#writtenBytes });
    this.sizeBytes += bytes;
  }

  /** The slot existed: by an attempt whose answer was lost, or it is a marker that ends this row. */
  async #checkOwn(slot: number, header: Buffer): Promise<void> {
    const found = await this.#calls.read(this.row, slot, 0, SLOT_HEADER_BYTES);
    if (found?.equals(header)) return;
    if (found === undefined) throw unavailable(`${this.row}: the log was deleted`);
    const other = decodeSlotHeader(found, this.row, slot, this.#calls.checksum);
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      isMarker(other) ? `${this.row}: the log is fenced` : `${slotName(this.row, slot)} was written by another writer`,
    );
  }

  /**
   * A log that was deleted whole has lost its fence, too: an append that lands after that is not acknowledged. The slot
   * before it is deleted then; while the log lives it is kept, as the newest one was.
   */
  async #checkNotDeleted(slot: number): Promise<void> {
    if ((await this.#calls.read(this.row, slot - 1, 0, 1)) !== undefined) return;
    throw new BigtableError(Code.FAILED_PRECONDITION, `${this.row}: the log was deleted`);
  }

  #now(): Instant {
    const { clock } = this.#calls;
    return { monotonicMs: clock.monotonicMs(), realMs: clock.nowMicros() / 1000 };
  }

  /** Never rejects. What fails is tried again after the next append. */
  async #trim(lowWater: number): Promise<void> {
    while (!this.#isClosed) {
      const kept = this.#slots.findIndex(({ sequence }, i) => sequence >= lowWater || i === this.#slots.length - 1);
      const before = this.#slots.slice(0, Math.min(Math.max(kept, 0), MAX_DELETED_SLOTS));
      if (before.length === 0) break;
      try {
        await this.#calls.delete(
          this.row,
          before.map(({ slot }) => slot),
          () => this.#isClosed,
        );
      } catch {
        break;
      }
      this.#slots.splice(0, before.length);
      for (const { bytes } of before) this.sizeBytes -= bytes;
    }
  }
}
