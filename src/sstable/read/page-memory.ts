/**
 * Memory for pages that are read one at a time: a few kilobytes each, of which a piece of memory holds some. Asking for memory costs more than reading
 * a page does, so it is asked for once for several; the block cache counts what they share as it counts that of one large read.
 *
 * Invariant: what was handed out and kept is never handed out again.
 */
import { viewOf } from '../../base/index.ts';
import { SharedRead } from './shared-read.ts';

const SLAB_BYTES = 64 * 1024;
/** What is larger gets memory of its own. */
const MAX_BYTES = 16 * 1024;

export class PageMemory {
  /** The read that the last page came from; undefined where the page is alone in its memory. */
  read: SharedRead | undefined;
  #slab = Buffer.alloc(0);
  #slabRead = new SharedRead();
  #at = 0;

  /** Room for a page. The next call gives it out again, unless it is kept. */
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

  /** What was taken last is in use from now on. */
  keep(taken: Buffer): void {
    if (this.read !== undefined) this.#at += taken.length;
  }
}
