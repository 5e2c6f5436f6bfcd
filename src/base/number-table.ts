/**
 * A map from small whole numbers, for entries that come and go with every call: streams of a connection, blocks that
 * are being loaded.
 *
 * Why not Map: a Map rehashes with every deletion that empties it, and its old table keeps a link to the new one. Once
 * an old table has been moved to the old generation, everything that it refers to outlives young collections, deleted
 * entries too, until the whole heap is marked: all objects of all calls were copied twice. Here a deleted entry leaves
 * no reference.
 */
const NO_KEY = -1;
const FIRST_CAPACITY = 16;
/** 2^32 divided by the golden ratio: spreads neighbours. */
const SPREAD = 0x9e3779b1;

/** Keys from 0 to 2^31 - 1. The table grows with the most entries it ever held, and does not shrink. */
export class NumberTable<V> {
  #keys = new Int32Array(FIRST_CAPACITY).fill(NO_KEY);
  #values: (V | undefined)[] = new Array<V | undefined>(FIRST_CAPACITY).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: number): V | undefined {
    return this.#values[this.#find(key)];
  }

  has(key: number): boolean {
    return this.#keys[this.#find(key)] === key;
  }

  set(key: number, value: V): void {
    let at = this.#find(key);
    if (this.#keys[at] !== key) {
      if (++this.#size * 2 > this.#keys.length) {
        this.#grow();
        at = this.#find(key);
      }
      this.#keys[at] = key;
    }
    this.#values[at] = value;
  }

  /** True when there was one. */
  delete(key: number): boolean {
    const at = this.#find(key);
    if (this.#keys[at] !== key) return false;
    this.#size--;
    this.#close(at);
    return true;
  }

  clear(): void {
    this.#keys.fill(NO_KEY);
    this.#values.fill(undefined);
    this.#size = 0;
  }

  /** A copy of the present values, in no order. */
  values(): V[] {
    return this.#values.filter((_, at) => this.#keys[at] !== NO_KEY) as V[];
  }

  /** The index of the key, or the one where it would be inserted. */
  #find(key: number): number {
    const keys = this.#keys;
    const mask = keys.length - 1;
    let at = home(key, mask);
    while (keys[at] !== key && keys[at] !== NO_KEY) at = (at + 1) & mask;
    return at;
  }

  /** Moves up the entries after the gap that were pushed past it, so that each is found from its home without a gap. */
  #close(from: number): void {
    const keys = this.#keys;
    const values = this.#values;
    const mask = keys.length - 1;
    let gap = from;
    for (let at = (from + 1) & mask; keys[at] !== NO_KEY; at = (at + 1) & mask) {
      const key = keys[at]!;
      if (((at - home(key, mask)) & mask) < ((at - gap) & mask)) continue;
      keys[gap] = key;
      values[gap] = values[at];
      gap = at;
    }
    keys[gap] = NO_KEY;
    values[gap] = undefined;
  }

  #grow(): void {
    const [keys, values] = [this.#keys, this.#values];
    this.#keys = new Int32Array(keys.length * 2).fill(NO_KEY);
    this.#values = new Array<V | undefined>(keys.length * 2).fill(undefined);
    keys.forEach((key, from) => {
      if (key === NO_KEY) return;
      const at = this.#find(key);
      this.#keys[at] = key;
      this.#values[at] = values[from];
    });
  }
}

function home(key: number, mask: number): number {
  return (Math.imul(key, SPREAD) >>> 8) & mask;
}
