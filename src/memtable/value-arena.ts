/**
 * The memory of the values of a memtable: small values share slabs, large ones have a buffer each. A cell then needs a
 * few numbers instead of a Uint8Array, and a value never keeps the network frame of its caller in memory.
 *
 * Slabs grow from 4 KiB to 256 KiB, so that a thousand idle tablets cost little. `sizeBytes` counts a slab until the
 * last value in it is released; the slab itself is freed when nothing refers to it.
 *
 * Slabs of a memtable that is in files are reused by the next one (`recycle`): memory outside of the heap that is
 * allocated and freed makes V8 mark all of the heap every 64 MiB. A slab with a value that a reader was given is not
 * reused: the reader may keep it.
 */
import { asBuffer, assert, copyBytes, Pool, viewOf } from '../base/index.ts';

export interface Slab {
  readonly bytes: Buffer;
  /** The memory of `bytes`. A slab of several values begins with its first byte. Kept here: Buffer.buffer is slow. */
  readonly memory: ArrayBufferLike;
  /** Upper bound of the bytes of values in use. */
  liveBytes: number;
  /** A reader may have a view of a value in it. */
  isLent: boolean;
  /** Its bytes belong to another memtable now. */
  isRecycled: boolean;
}

const FIRST_SLAB_BYTES = 4 * 1024;
const SLAB_BYTES = 256 * 1024;
/** Values above this size get a buffer of their own. */
const LARGE_VALUE_BYTES = 16 * 1024;
/** The most slabs kept for the next memtable in this thread: as many as one flush leaves. */
const MAX_FREE_SLABS = 128;
const freeSlabs = new Pool<Buffer>(MAX_FREE_SLABS);
/** Heap bytes of a Buffer and the object of the slab. */
const SLAB_OVERHEAD_BYTES = 256;

export const EMPTY_SLAB: Slab = slabOf(Buffer.alloc(0));

export class ValueArena {
  /** The slab and the offset at which the last `add` put its value. */
  slab: Slab = EMPTY_SLAB;
  offset = 0;
  #current: Slab = EMPTY_SLAB;
  /** Slabs of full size with values in use, and the current one. */
  readonly #slabs: Slab[] = [];
  #used = 0;
  #nextBytes = FIRST_SLAB_BYTES;
  #isRecycled = false;
  #sizeBytes = 0;

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /**
   * Adds bytes [from, to) as a value; `slab` and `offset` then say where it is. Copies it, unless it is large and fills
   * at least eight ninths of its backing buffer: such a buffer is kept, and the caller must not change it afterwards.
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

  /** Releases the value of that length in that slab; readers may still hold it. */
  release(slab: Slab, length: number): void {
    if (length === 0) return;
    slab.liveBytes -= length;
    assert(slab.liveBytes >= 0, 'the live bytes of a slab never fall below 0');
    if (slab.liveBytes === 0 && slab !== this.#current) this.#drop(slab);
  }

  /** No value is read again: slabs of which no reader has a view are reused. The arena must not be used any more. */
  recycle(): void {
    assert(!this.#isRecycled, 'the slabs of a memtable are recycled once');
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
    assert(!this.#isRecycled, 'a memtable that was recycled takes no values');
    const last = this.#current;
    // it was counted while it was the current one, with or without values in use
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

/** The value at (slab, offset, length), without a copy: valid until the arena is recycled. */
export function valueAt(slab: Slab, offset: number, length: number): Uint8Array {
  assert(!slab.isRecycled, 'a value is read before its memtable is recycled');
  return length === slab.bytes.length ? slab.bytes : Buffer.from(slab.memory, offset, length);
}
