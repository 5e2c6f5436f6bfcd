/**
 * Where a memtable keeps the values of its cells: small ones side by side in slabs, large ones in a buffer each. A cell then costs a few
 * numbers in place of a Uint8Array of its own (some 100 bytes), and a caller's network frame is never kept alive by one value in it.
 *
 * Slabs grow from 4 KiB to 256 KiB, so that a thousand idle tablets cost little. `sizeBytes` counts a slab from its making until the
 * last value in it was given up; the slab itself goes when nobody refers to it any more.
 *
 * Slabs of a memtable that is in files are used again by the next one (`recycle`): memory outside of the heap that comes and goes makes V8 mark all of
 * the heap every 64 MiB. A slab of which a value was ever handed to a reader is not: who has it may keep it.
 */
import { asBuffer, assert, copyBytes, Pool, viewOf } from '../base/index.ts';

export interface Slab {
  readonly bytes: Buffer;
  /** That of `bytes`, whose first byte it begins with where there are several values: known here, since asking a Buffer for it costs half a view. */
  readonly memory: ArrayBufferLike;
  /** Bytes of values in use, at most. */
  liveBytes: number;
  /** Somebody may have a view of a value in it. */
  isLent: boolean;
  /** Its bytes are another memtable's now. */
  isRecycled: boolean;
}

const FIRST_SLAB_BYTES = 4 * 1024;
const SLAB_BYTES = 256 * 1024;
/** Values above this size get a buffer of their own. */
const LARGE_VALUE_BYTES = 16 * 1024;
/** Kept for the next memtable, of all that were given up in this thread: what one flush leaves. */
const MAX_FREE_SLABS = 128;
const freeSlabs = new Pool<Buffer>(MAX_FREE_SLABS);
/** The heap's part of a Buffer and the slab's object. */
const SLAB_OVERHEAD_BYTES = 256;

export const EMPTY_SLAB: Slab = slabOf(Buffer.alloc(0));

export class ValueArena {
  /** The slab and the offset at which the last `add` put its value. */
  slab: Slab = EMPTY_SLAB;
  offset = 0;
  #current: Slab = EMPTY_SLAB;
  /** Those of full size with values in use, the current one among them. */
  readonly #slabs: Slab[] = [];
  #used = 0;
  #nextBytes = FIRST_SLAB_BYTES;
  #isRecycled = false;
  #sizeBytes = 0;

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /**
   * Takes bytes [from, to) in as a value; `slab` and `offset` then say where it lies. Copies it, except where it is large and fills its backing buffer but
   * for an eighth: such a buffer is kept as it is, so the caller must not change it afterwards.
   */
  add(bytes: Uint8Array, from = 0, to = bytes.length): void {
    const length = to - from;
    if (length > LARGE_VALUE_BYTES) {
      this.#addLarge(length === bytes.length ? bytes : viewOf(bytes, from, to));
      return;
    }
    if (length === 0) {
      this.slab = EMPTY_SLAB;
      this.offset = 0;
      return;
    }
    if (this.#used + length > this.#current.bytes.length) this.#newSlab(length);
    const slab = this.#current;
    copyBytes(bytes, from, to, slab.bytes, this.#used);
    slab.liveBytes += length;
    this.slab = slab;
    this.offset = this.#used;
    this.#used += length;
  }

  /** The value of that length in that slab is no longer part of the memtable; readers may still hold it. */
  release(slab: Slab, length: number): void {
    if (length === 0) return;
    slab.liveBytes -= length;
    assert(slab.liveBytes >= 0, `a slab's live bytes never fall below 0, got ${slab.liveBytes}`);
    if (slab.liveBytes === 0 && slab !== this.#current) this.#drop(slab);
  }

  /** Nobody will look at a value again: slabs that nobody has a view of are used again. The arena must not be used any more. */
  recycle(): void {
    assert(!this.#isRecycled, 'the slabs of a memtable are given up once');
    this.#isRecycled = true;
    for (const slab of this.#slabs) {
      if (!slab.isLent && freeSlabs.give(slab.bytes)) slab.isRecycled = true;
    }
    this.#slabs.length = 0;
  }

  #drop(slab: Slab): void {
    this.#sizeBytes -= slab.bytes.buffer.byteLength + SLAB_OVERHEAD_BYTES;
    assert(this.#sizeBytes >= 0, 'a slab is dropped once');
    const at = this.#slabs.indexOf(slab);
    if (at < 0) return;
    const last = this.#slabs.pop()!;
    if (last !== slab) this.#slabs[at] = last;
  }

  #addLarge(value: Uint8Array): void {
    const keep = value.buffer.byteLength <= value.length * 1.125;
    const bytes = keep ? asBuffer(value) : Buffer.allocUnsafeSlow(value.length);
    if (!keep) bytes.set(value);
    this.slab = slabOf(bytes, value.length);
    this.offset = 0;
    this.#sizeBytes += bytes.buffer.byteLength + SLAB_OVERHEAD_BYTES;
  }

  #newSlab(least: number): void {
    assert(!this.#isRecycled, 'a memtable that was given up takes no values');
    const last = this.#current;
    // it was counted while it was the current one, whether or not anything in it lived
    if (last !== EMPTY_SLAB && last.liveBytes === 0) this.#drop(last);
    const size = Math.max(this.#nextBytes, least);
    this.#current = slabOf((size === SLAB_BYTES ? freeSlabs.take() : undefined) ?? Buffer.allocUnsafeSlow(size));
    if (size === SLAB_BYTES) this.#slabs.push(this.#current);
    this.#used = 0;
    this.#sizeBytes += size + SLAB_OVERHEAD_BYTES;
    this.#nextBytes = Math.min(SLAB_BYTES, this.#nextBytes * 2);
  }
}

function slabOf(bytes: Buffer, liveBytes = 0): Slab {
  return { bytes, memory: bytes.buffer, liveBytes, isLent: false, isRecycled: false };
}

/** The value at (slab, offset, length), without a copy: to be used before the arena is given up. */
export function valueAt(slab: Slab, offset: number, length: number): Uint8Array {
  assert(!slab.isRecycled, 'a value is looked at while its memtable is there');
  return length === slab.bytes.length ? slab.bytes : Buffer.from(slab.memory, offset, length);
}
