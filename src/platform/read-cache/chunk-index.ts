/**
 * Which chunk lies in which slot of a read cache, and which one is evicted for another. Pure, and in typed arrays: 77
 * to 81 bytes a slot, whatever it holds.
 *
 * A chunk enters on probation. A use moves it to the main part; each part evicts the one that was not used for longest.
 * New chunks take PROBATION_SHARE of the slots at most once there is no free slot, so that a flood of them leaves the
 * rest alone.
 *
 * Invariants: a slot is free, held, on probation or in the main part. A held slot is its holder's alone: it is found by
 * no one and not evicted. A chunk lies in one slot at most.
 */
import { assert } from '../../base/index.ts';
import { type ChunkRecord, type FileKey, KEY_WORDS, PIECES } from './index-record.ts';

export const NO_SLOT = -1;
const PROBATION_SHARE = 0.2;
/** 2^32 divided by the golden ratio: spreads neighbours. */
const SPREAD = 0x9e3779b1;

const Part = { free: 0, held: 1, probation: 2, main: 3 } as const;
type Part = (typeof Part)[keyof typeof Part];

/** A number of 32 bits that spreads the chunks of all files. */
export function hashOfChunk(file: FileKey, chunk: number): number {
  return (file[0]! ^ Math.imul(chunk + 1, SPREAD)) >>> 0;
}

export class ChunkIndex {
  readonly slots: number;
  readonly #probationSlots: number;
  readonly #onEvicted: () => void;
  readonly #files: Uint32Array;
  readonly #chunks: Uint32Array;
  readonly #lengths: Uint32Array;
  readonly #sums: Uint32Array;
  readonly #parts: Uint8Array;
  /** Grows when the slot's chunk leaves it. */
  readonly #generations: Uint32Array;
  /** Neighbours in the slot's part, and of free slots the next one. */
  readonly #newer: Int32Array;
  readonly #older: Int32Array;
  /** The first slot of each bucket, and the next one of the same bucket. */
  readonly #buckets: Int32Array;
  readonly #nextInBucket: Int32Array;
  readonly #newest = new Int32Array(4).fill(NO_SLOT);
  readonly #oldest = new Int32Array(4).fill(NO_SLOT);
  readonly #counts = new Uint32Array(4);
  #firstFree = NO_SLOT;
  /** Slots from here on were never taken. */
  #untouched = 0;

  constructor(slots: number, onEvicted: () => void = () => {}) {
    this.slots = slots;
    this.#probationSlots = Math.max(1, Math.floor(slots * PROBATION_SHARE));
    this.#onEvicted = onEvicted;
    this.#files = new Uint32Array(slots * KEY_WORDS);
    this.#chunks = new Uint32Array(slots);
    this.#lengths = new Uint32Array(slots);
    this.#sums = new Uint32Array(slots * PIECES);
    this.#parts = new Uint8Array(slots);
    this.#generations = new Uint32Array(slots);
    this.#newer = new Int32Array(slots);
    this.#older = new Int32Array(slots);
    this.#buckets = new Int32Array(2 ** Math.ceil(Math.log2(slots))).fill(NO_SLOT);
    this.#nextInBucket = new Int32Array(slots);
    this.#counts[Part.free] = slots;
  }

  /** Slots with a chunk. */
  get filledSlots(): number {
    return this.#counts[Part.probation]! + this.#counts[Part.main]!;
  }

  /** Slots that are not free. */
  get takenSlots(): number {
    return this.slots - this.#counts[Part.free]!;
  }

  /** The slot that holds the chunk, or NO_SLOT. */
  find(file: FileKey, chunk: number): number {
    let slot = this.#buckets[this.#bucketOf(file, chunk)]!;
    while (slot !== NO_SLOT && !(this.#chunks[slot] === chunk && this.#isOf(slot, file)))
      slot = this.#nextInBucket[slot]!;
    return slot;
  }

  /** Another number as soon as the slot's chunk has left it. */
  generationOf(slot: number): number {
    return this.#generations[slot]!;
  }

  lengthOf(slot: number): number {
    return this.#lengths[slot]!;
  }

  sumOf(slot: number, piece: number): number {
    return this.#sums[slot * PIECES + piece]!;
  }

  /** Notes a use of the slot's chunk. */
  use(slot: number): void {
    this.#leave(slot);
    this.#enter(slot, Part.main);
  }

  /**
   * Holds a slot for a new chunk: a free one, or that of a chunk that is evicted. NO_SLOT where there is none to be
   * had. `mayGrow`: false for the slot of an evicted chunk alone, which has its space on the disk.
   */
  take(mayGrow: boolean): number {
    const slot = mayGrow && this.#counts[Part.free]! > 0 ? this.#takeFree() : this.#evict();
    if (slot === NO_SLOT) return NO_SLOT;
    this.#parts[slot] = Part.held;
    this.#counts[Part.held]!++;
    return slot;
  }

  /** Fills a held slot. The index must not have the chunk yet. */
  add(slot: number, { file, chunk, lengthBytes, sums }: ChunkRecord): void {
    assert(this.#parts[slot] === Part.held && this.find(file, chunk) === NO_SLOT, 'a held slot gets a new chunk');
    this.#counts[Part.held]!--;
    this.#files.set(file, slot * KEY_WORDS);
    this.#chunks[slot] = chunk;
    this.#lengths[slot] = lengthBytes;
    this.#sums.set(sums, slot * PIECES);
    const bucket = this.#bucketOf(file, chunk);
    this.#nextInBucket[slot] = this.#buckets[bucket]!;
    this.#buckets[bucket] = slot;
    this.#enter(slot, Part.probation);
  }

  /** Removes the slot's chunk, and holds the slot. */
  remove(slot: number): void {
    this.#forget(slot);
    this.#parts[slot] = Part.held;
    this.#counts[Part.held]!++;
  }

  /** Frees a held slot. */
  release(slot: number): void {
    assert(this.#parts[slot] === Part.held, 'only a held slot is released');
    this.#parts[slot] = Part.free;
    this.#counts[Part.held]!--;
    this.#counts[Part.free]!++;
    this.#older[slot] = this.#firstFree;
    this.#firstFree = slot;
  }

  /** The slots of all chunks of the file: a look at every slot. */
  slotsOf(file: FileKey): number[] {
    const found: number[] = [];
    for (let slot = 0; slot < this.#untouched; slot++)
      if (this.#files[slot * KEY_WORDS] === file[0] && this.#isFilled(slot) && this.#isOf(slot, file)) found.push(slot);
    return found;
  }

  /** Walks all parts: for tests. */
  assertConsistent(): void {
    const counts = [0, 0, 0, 0];
    for (let slot = 0; slot < this.slots; slot++) {
      counts[this.#parts[slot]!]!++;
      if (!this.#isFilled(slot)) continue;
      const file = this.#files.subarray(slot * KEY_WORDS, (slot + 1) * KEY_WORDS);
      assert(this.find(file, this.#chunks[slot]!) === slot, 'a filled slot is found');
    }
    for (const part of Object.values(Part)) assert(this.#counts[part] === counts[part], 'slots are counted by part');
    for (const part of [Part.probation, Part.main]) {
      let [length, newer] = [0, NO_SLOT];
      for (let slot = this.#newest[part]!; slot !== NO_SLOT; newer = slot, slot = this.#older[slot]!) {
        assert(this.#parts[slot] === part && this.#newer[slot] === newer, 'neighbours know each other');
        length++;
      }
      assert(this.#oldest[part] === newer && length === counts[part], 'a part has all of its slots');
    }
  }

  #takeFree(): number {
    this.#counts[Part.free]!--;
    const slot = this.#firstFree;
    if (slot === NO_SLOT) return this.#untouched++;
    this.#firstFree = this.#older[slot]!;
    return slot;
  }

  #evict(): number {
    const arriving = this.#counts[Part.probation]! + this.#counts[Part.held]!;
    let slot = this.#oldest[Part.probation]!;
    if (arriving < this.#probationSlots && this.#oldest[Part.main] !== NO_SLOT) slot = this.#oldest[Part.main]!;
    if (slot === NO_SLOT) return NO_SLOT;
    this.#forget(slot);
    this.#onEvicted();
    return slot;
  }

  /** The slot's chunk is found no longer. */
  #forget(slot: number): void {
    assert(this.#isFilled(slot), 'a chunk is removed once');
    this.#leave(slot);
    this.#generations[slot]!++;
    const bucket = this.#bucketOf(this.#files.subarray(slot * KEY_WORDS, (slot + 1) * KEY_WORDS), this.#chunks[slot]!);
    const next = this.#nextInBucket[slot]!;
    let before = this.#buckets[bucket]!;
    if (before === slot) {
      this.#buckets[bucket] = next;
      return;
    }
    while (this.#nextInBucket[before] !== slot) before = this.#nextInBucket[before]!;
    this.#nextInBucket[before] = next;
  }

  #enter(slot: number, part: Part): void {
    const newest = this.#newest[part]!;
    this.#parts[slot] = part;
    this.#counts[part]!++;
    this.#newer[slot] = NO_SLOT;
    this.#older[slot] = newest;
    if (newest === NO_SLOT) this.#oldest[part] = slot;
    else this.#newer[newest] = slot;
    this.#newest[part] = slot;
  }

  #leave(slot: number): void {
    const part = this.#parts[slot]!;
    const [newer, older] = [this.#newer[slot]!, this.#older[slot]!];
    this.#counts[part]!--;
    if (newer === NO_SLOT) this.#newest[part] = older;
    else this.#older[newer] = older;
    if (older === NO_SLOT) this.#oldest[part] = newer;
    else this.#newer[older] = newer;
  }

  #isFilled(slot: number): boolean {
    return this.#parts[slot]! >= Part.probation;
  }

  #isOf(slot: number, file: FileKey): boolean {
    const at = slot * KEY_WORDS;
    for (let i = 0; i < KEY_WORDS; i++) if (this.#files[at + i] !== file[i]) return false;
    return true;
  }

  #bucketOf(file: FileKey, chunk: number): number {
    return hashOfChunk(file, chunk) & (this.#buckets.length - 1);
  }
}
