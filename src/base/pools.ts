/**
 * The only state that modules may keep for all databases of their thread: pools, and constants that are made on first
 * use.
 *
 * Memos of functions of immutable values are here, too: their results could be computed anew at any time.
 *
 * A pool holds objects for reuse: buffers and cursors that short work takes and returns. It serves all databases, so
 * its objects carry no meaning: bytes are stale, cursors closed.
 *
 * Invariant: an item has one owner, the pool or the caller that took it.
 */
import { isText } from './bytes.ts';
import { assert } from './errors.ts';
import { checksInvariants } from './invariants.ts';

export class Pool<T> {
  readonly #items: T[] = [];
  readonly #maxItems: number;

  constructor(maxItems: number) {
    this.#maxItems = maxItems;
  }

  /** The item returned last; undefined when the pool is empty. */
  take(): T | undefined {
    return this.#items.pop();
  }

  /**
   * Returns the item to the pool; the caller must not use it any more. False when the pool is full and drops the item.
   */
  give(item: T): boolean {
    if (checksInvariants) assert(!this.#items.includes(item), 'an item is given once');
    if (this.#items.length === this.#maxItems) return false;
    this.#items.push(item);
    return true;
  }
}

/**
 * A pool whose items leave their callers: an item is lent under a key, and the last owner of the key returns it. If the
 * key is dropped, the pool drops the item.
 */
export class LendingPool<K extends object, T> {
  readonly #free: Pool<T>;
  readonly #lent = new WeakMap<K, T>();

  constructor(maxItems: number) {
    this.#free = new Pool(maxItems);
  }

  take(): T | undefined {
    return this.#free.take();
  }

  /** From now on the item belongs to the owner of the key. */
  lend(key: K, item: T): void {
    assert(!this.#lent.has(key), 'a key stands for one item');
    this.#lent.set(key, item);
  }

  /** The item of the key, which belongs to the caller now; undefined when it has none. */
  reclaim(key: K): T | undefined {
    const item = this.#lent.get(key);
    if (item !== undefined) this.#lent.delete(key);
    return item;
  }

  /** Returns an item that was taken or reclaimed to the pool. */
  give(item: T): void {
    this.#free.give(item);
  }
}

/** A constant that `make` makes on first use. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

/** `make` called once for each object, which must never change. The result lives as long as the object. */
export function derived<K extends object, V>(make: (from: K) => V): (from: K) => V {
  const made = new WeakMap<K, { readonly value: V }>();
  return (from) => {
    let result = made.get(from);
    if (result === undefined) made.set(from, (result = { value: make(from) }));
    return result.value;
  };
}

/** A power of two. */
const RECENT_TEXTS = 512;
const recentTexts: string[] = new Array<string>(RECENT_TEXTS).fill('');

/**
 * The first `length` bytes as a string of Latin-1: the same string object as the last time, if that was recent. For
 * keys that recur, as column names do: the string need not be made again, and compares fastest with itself.
 */
export function recurringText(bytes: Buffer, length: number): string {
  let hash = length;
  for (let i = 0; i < length; i++) hash = Math.imul(hash, 31) + bytes[i]!;
  const at = (hash ^ (hash >>> 9)) & (RECENT_TEXTS - 1);
  const known = recentTexts[at]!;
  if (isText(bytes, length, known)) return known;
  const text = bytes.latin1Slice(0, length);
  recentTexts[at] = text;
  return text;
}
