/**
 * Memory for pages that are read one at a time, a few kilobytes each. Allocating costs more than reading a page, and
 * what is freed waits for a collection of the heap: so a page that leaves the block cache leaves its memory to the next
 * one.
 *
 * Invariant: memory is given back once, when neither the cache nor a cursor has the page (block.ts). Values of such
 * pages are copied for readers, who may keep them.
 */
import { assert } from '../../base/index.ts';

/** Sizes of memory are multiples of this. */
const STEP_BYTES = 512;
/** A larger page has memory of its own, which is not reused. */
const MAX_BYTES = 16 * 1024;
/** Memory may be larger than the page by this many steps. */
const MAX_LARGER_STEPS = 2;
/** The most memory that waits for a page. */
const MAX_FREE_BYTES = 1024 * 1024;

export class PageMemory {
  /** By size in steps. */
  readonly #free: ArrayBufferLike[][] = Array.from({ length: MAX_BYTES / STEP_BYTES + 1 }, () => []);
  #freeBytes = 0;

  /** True if memory of that size is reused. */
  static isReused(bytes: number): boolean {
    return bytes <= MAX_BYTES;
  }

  /** Memory for a page. */
  take(bytes: number): Buffer {
    if (!PageMemory.isReused(bytes)) return Buffer.allocUnsafeSlow(bytes);
    const steps = Math.ceil(bytes / STEP_BYTES);
    const most = Math.min(steps + MAX_LARGER_STEPS, this.#free.length - 1);
    for (let size = steps; size <= most; size++) {
      const memory = this.#free[size]!.pop();
      if (memory === undefined) continue;
      this.#freeBytes -= memory.byteLength;
      assert(this.#freeBytes >= 0, 'free memory is counted');
      return Buffer.from(memory, 0, bytes);
    }
    return Buffer.from(Buffer.allocUnsafeSlow(steps * STEP_BYTES).buffer, 0, bytes);
  }

  /** Takes back memory for `bytes` that `take` returned. Nothing may read it any more. */
  give(memory: ArrayBufferLike): void {
    if (memory.byteLength > MAX_BYTES || this.#freeBytes + memory.byteLength > MAX_FREE_BYTES) return;
    assert(memory.byteLength % STEP_BYTES === 0, 'memory of pages is measured in steps');
    this.#free[memory.byteLength / STEP_BYTES]!.push(memory);
    this.#freeBytes += memory.byteLength;
  }
}
