/**
 * Tablets that the live server named in their rows has given up, each at an epoch and for ever: they go to another
 * server, or to the same one at a later epoch.
 *
 * Invariant: an entry is needed for as long as METADATA shows the tablet at that epoch. Each assignment of all tablets
 * looks at every row, and drops the entries that were there when it began and that no row bears out.
 */
import { assert } from '../base/index.ts';
import { keyOfRow, type MetadataKey, type MetadataRow } from '../metadata/index.ts';
import type { TabletRef } from '../protocol/index.ts';

export class GivenUp {
  readonly #epochs = new Map<MetadataKey, number>();
  /** Entries that were there when the assignment of all began and that no row has borne out yet. */
  #unconfirmed = new Map<MetadataKey, number>();

  /** Between `begin` and `end`; a look that was broken off has no end. */
  #isLooking = false;

  get size(): number {
    return this.#epochs.size;
  }

  add({ key, epoch }: TabletRef): void {
    this.#epochs.set(key, epoch);
    this.#unconfirmed.delete(key);
  }

  /** Whether the tablet is given up as the row shows it. */
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

  /** From here on all rows are looked at. */
  begin(): void {
    this.#unconfirmed = new Map(this.#epochs);
    this.#isLooking = true;
  }

  /** All have been. */
  end(): void {
    assert(this.#isLooking, 'a look at all rows ends that has not begun');
    this.#isLooking = false;
    for (const [key, epoch] of this.#unconfirmed) if (this.#epochs.get(key) === epoch) this.#epochs.delete(key);
    this.#unconfirmed.clear();
  }
}
