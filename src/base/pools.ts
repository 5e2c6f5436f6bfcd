/**
 * Objects kept for reuse: buffers and cursors that short work makes and gives back. A pool of a module serves all databases of
 * its thread, so what it holds means nothing: bytes are stale, cursors closed.
 *
 * Invariant: an item has one owner, the pool or the caller that took it.
 */
import { assert } from './errors.ts';
import { checksInvariants } from './invariants.ts';

export class Pool<T> {
  readonly #items: T[] = [];
  readonly #maxItems: number;

  constructor(maxItems: number) {
    this.#maxItems = maxItems;
  }

  /** The item given last; undefined when there is none. */
  take(): T | undefined {
    return this.#items.pop();
  }

  /** The giver must not use the item any more. False when the pool is full, and the item is not kept. */
  give(item: T): boolean {
    if (checksInvariants) assert(!this.#items.includes(item), 'an item was given twice');
    if (this.#items.length === this.#maxItems) return false;
    this.#items.push(item);
    return true;
  }
}
