/**
 * A slot store in memory, for tests and the simulator. Several `SlotLogs` over one of them are several machines.
 *
 * Invariant: every call takes effect in the turn in which it is made.
 */
import { assert, BigtableError, Code } from '../../base/index.ts';
import type { SlotPage, SlotStore } from '../seams/slot-store.ts';

interface StoredLog {
  readonly slots: Map<number, Buffer>;
  /** The numbers of the slots, ascending. */
  readonly numbers: number[];
  /** Free bytes that are reserved for its writer. */
  reservedBytes: number;
}

export class MemorySlotStore implements SlotStore {
  /** Bytes that may still be written or reserved; deletions return theirs. A test sets it to fill the storage. */
  freeBytes = Number.POSITIVE_INFINITY;
  readonly #logs = new Map<string, StoredLog>();
  readonly #pageSize: number;

  /** `pageSize`: slots or logs in a page of a list. Default: 1000. */
  constructor({ pageSize = 1000 }: { readonly pageSize?: number } = {}) {
    assert(pageSize > 0, 'a page has room');
    this.#pageSize = pageSize;
  }

  async create(
    log: string,
    slot: number,
    parts: readonly Uint8Array[],
    { reserved = false }: { readonly reserved?: boolean } = {},
  ): Promise<boolean> {
    assert(Number.isSafeInteger(slot) && slot >= 0, 'a slot is a safe integer');
    const stored = this.#logs.get(log) ?? { slots: new Map(), numbers: [], reservedBytes: 0 };
    if (stored.slots.has(slot)) return false;
    const bytes = Buffer.concat(parts);
    // what lands after the log was deleted finds nothing reserved
    if (reserved && stored.slots.has(0)) {
      assert(bytes.length <= stored.reservedBytes, `${log}: ${bytes.length} bytes of ${stored.reservedBytes} reserved`);
      stored.reservedBytes -= bytes.length;
    } else {
      this.#take(log, bytes.length);
    }
    stored.slots.set(slot, bytes);
    stored.numbers.splice(firstAtOrAbove(stored.numbers, slot), 0, slot);
    this.#logs.set(log, stored);
    return true;
  }

  async read(log: string, slot: number, offset: number, length: number): Promise<Buffer | undefined> {
    const bytes = this.#logs.get(log)?.slots.get(slot);
    return bytes && Buffer.from(bytes.subarray(offset, offset + length));
  }

  async listSlots(log: string, from: number): Promise<SlotPage> {
    const numbers = this.#logs.get(log)?.numbers ?? [];
    const begin = firstAtOrAbove(numbers, from);
    const end = begin + this.#pageSize;
    return { slots: numbers.slice(begin, end), isLast: numbers.length <= end };
  }

  async listLogs(prefix: string, after: string): Promise<string[]> {
    const logs = [...this.#logs.keys()].filter((log) => log.startsWith(prefix) && log > after);
    return logs.sort().slice(0, this.#pageSize);
  }

  async delete(log: string, slots: readonly number[]): Promise<void> {
    const stored = this.#logs.get(log);
    if (!stored) return;
    for (const slot of slots) {
      this.freeBytes += stored.slots.get(slot)?.length ?? 0;
      removeSlot(stored, slot);
      if (slot === 0) await this.unreserve(log);
    }
    if (stored.slots.size === 0) this.#logs.delete(log);
  }

  async reserve(log: string, bytes: number): Promise<void> {
    const stored = this.#logs.get(log);
    const moreBytes = Math.max(0, bytes - (stored?.reservedBytes ?? 0));
    this.#take(log, moreBytes);
    if (stored) stored.reservedBytes += moreBytes;
    else this.freeBytes += moreBytes;
  }

  async unreserve(log: string): Promise<void> {
    const stored = this.#logs.get(log);
    if (!stored) return;
    this.freeBytes += stored.reservedBytes;
    stored.reservedBytes = 0;
  }

  /** Replaces the bytes of a slot, or removes it, as damage to the storage does. */
  damage(log: string, slot: number, change: (bytes: Buffer) => Buffer | undefined): void {
    const stored = this.#logs.get(log);
    const bytes = stored?.slots.get(slot);
    assert(stored && bytes, `${log} has no slot ${slot}`);
    const changed = change(Buffer.from(bytes));
    if (changed) stored.slots.set(slot, changed);
    else removeSlot(stored, slot);
  }

  #take(log: string, bytes: number): void {
    if (bytes > this.freeBytes)
      throw new BigtableError(Code.RESOURCE_EXHAUSTED, `${log}: no space for ${bytes}, ${this.freeBytes} are free`);
    this.freeBytes -= bytes;
  }
}

function removeSlot({ slots, numbers }: StoredLog, slot: number): void {
  if (slots.delete(slot)) numbers.splice(firstAtOrAbove(numbers, slot), 1);
}

/** The index of the first of ascending `numbers` that is `least` or above. */
function firstAtOrAbove(numbers: readonly number[], least: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numbers[middle]! < least) low = middle + 1;
    else high = middle;
  }
  return low;
}
