/** METADATA's own tablets as far as the master knows, by their keys: which of them holds the row of another tablet. */
import { assert } from '../base/index.ts';
import { isMetadataTablet, lookupKey, METADATA_TABLE_ID, type MetadataKey, ROOT_KEY } from '../metadata/index.ts';

export class MetadataTablets {
  /** Ascending. */
  #keys: readonly MetadataKey[] = [];
  /** Some may be known before. */
  #areAllKnown = false;

  /** With the root tablet, which is the first. */
  all(): MetadataKey[] {
    return [ROOT_KEY, ...this.#keys];
  }

  /** These are all, the root tablet aside. */
  replace(keys: readonly MetadataKey[]): void {
    assert(keys.every(isMetadataTablet), 'the keys are those of tablets of METADATA');
    this.#areAllKnown = true;
    this.#set(keys);
  }

  /** Some of these may be known. */
  add(keys: readonly MetadataKey[]): void {
    const added = keys.filter((key) => isMetadataTablet(key) && key !== ROOT_KEY);
    if (added.length > 0) this.#set([...this.#keys, ...added]);
  }

  /**
   * The tablet that holds the row with that key; undefined for the root tablet's row, and while not all are known. One
   * that was split since counts as a whole.
   */
  holderOf(key: MetadataKey): MetadataKey | undefined {
    if (key === ROOT_KEY) return undefined;
    if (isMetadataTablet(key)) return ROOT_KEY;
    if (!this.#areAllKnown) return undefined;
    const sought = lookupKey(METADATA_TABLE_ID, key);
    let [low, high] = [0, this.#keys.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#keys[middle]! <= sought) low = middle + 1;
      else high = middle;
    }
    return this.#keys[low];
  }

  #set(keys: readonly MetadataKey[]): void {
    this.#keys = [...new Set(keys)].sort();
  }
}
