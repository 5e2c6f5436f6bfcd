/**
 * Memory for pages that are read one at a time, a few kilobytes each. Allocating costs more than reading a page, so one
 * slab is allocated for several pages. The block cache counts a slab as it counts the memory of one large read.
 *
 * Invariant: memory that was kept is never handed out again.
 */
import { assert, viewOf } from '../../base/index.ts';
import { SharedRead } from './shared-read.ts';

const SLAB_BYTES = 64 * 1024;
/** A larger page gets memory of its own. */
const MAX_BYTES = 16 * 1024;

export class PageMemory {
  /** The slab of the last page, as a shared read; undefined if the page has memory of its own. */
  read: SharedRead | undefined;
  #slab = Buffer.alloc(0);
  #slabRead = new SharedRead();
  #at = 0;

  /** Memory for a page. The next call returns the same memory, unless `keep` is called. */
  take(bytes: number): Buffer {
    if (bytes > MAX_BYTES) {
      this.read = undefined;
      return Buffer.allocUnsafeSlow(bytes);
    }
    if (this.#at + bytes > this.#slab.length) {
      this.#slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
      this.#slabRead = new SharedRead();
      this.#at = 0;
    }
    this.read = this.#slabRead;
    return viewOf(this.#slab, this.#at, this.#at + bytes);
  }

  /** Keeps the memory that was taken last. */
  keep(taken: Buffer): void {
    if (this.read === undefined) return;
    assert(taken.byteOffset === this.#slab.byteOffset + this.#at, 'the memory was taken last');
    this.#at += taken.length;
    assert(this.#at <= this.#slab.length, 'a page lies in its slab');
  }
}
