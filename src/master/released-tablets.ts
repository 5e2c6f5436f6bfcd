/**
 * Tablets that the live server named in their rows has released, each at an epoch and for ever: they go to another
 * server, or to the same one at a later epoch.
 *
 * Invariant: an entry is needed for as long as METADATA shows the tablet at that epoch. Each walk over all rows
 * drops the entries that existed when it began and that no row confirms.
 */
import { assert } from '../base/index.ts';
import { keyOfRow, type MetadataKey, type MetadataRow } from '../metadata/index.ts';
import type { TabletRef } from '../protocol/index.ts';

export class ReleasedTablets {
  readonly #epochs = new Map<MetadataKey, number>();
  /** Entries that existed when the walk began and that no row has confirmed yet. */
  #unconfirmed = new Map<MetadataKey, number>();

  /** True between `begin` and `end`; a walk that fails does not reach `end`. */
  #isWalking = false;

  get size(): number {
    return this.#epochs.size;
  }

  add({ key, epoch }: TabletRef): void {
    this.#epochs.set(key, epoch);
    this.#unconfirmed.delete(key);
  }

  /** True when the tablet is released at the epoch of its row. */
  has(row: MetadataRow): boolean {
    const key = keyOfRow(row);
    if (this.#epochs.get(key) !== row.epoch) return false;
    this.#unconfirmed.delete(key);
    return true;
  }

  /** The tablet is another's, or at a later epoch. */
  delete(key: MetadataKey): void {
    this.#epochs.delete(key);
  }

  /** A walk over all rows begins: it calls `has` for each. */
  begin(): void {
    this.#unconfirmed = new Map(this.#epochs);
    this.#isWalking = true;
  }

  /** It has seen every row. */
  end(): void {
    assert(this.#isWalking, 'a walk over all rows ends when it has begun');
    this.#isWalking = false;
    for (const [key, epoch] of this.#unconfirmed) if (this.#epochs.get(key) === epoch) this.#epochs.delete(key);
    this.#unconfirmed.clear();
  }
}
