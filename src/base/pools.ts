/**
 * What modules may keep for all databases of their thread: pools, and constants that are made on first use.
 *
 * A pool holds objects for reuse: buffers and cursors that short work makes and gives back. It serves all
 * databases, so what it holds means nothing: bytes are stale, cursors closed.
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

/** A constant that `make` makes when it is first needed. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
