/**
 * What a reader has learned of where a row's appends are: for some slots, the append in each. Numbers of appends ascend
 * with those of slots, so a later reading lists the row from one of these slots on, and not from its beginning.
 *
 * Invariant: at most MAX_PLACES, by slot; the highest that was noted is among them.
 */
import { assert } from '../../base/index.ts';
import type { LogPosition } from '../seams/file-system.ts';

export interface RowPlace {
  readonly slot: number;
  readonly position: LogPosition;
}

const MAX_PLACES = 128;

export class RowPlaces {
  #places: RowPlace[] = [];

  /** The highest slot that is known. */
  get top(): RowPlace | undefined {
    return this.#places.at(-1);
  }

  /** The highest slot that is known to have an append below `position`. */
  below(position: LogPosition): RowPlace | undefined {
    return this.#places[this.#firstFrom(position) - 1];
  }

  note(place: RowPlace): void {
    const at = this.#firstFrom(place.position);
    const next = this.#places[at];
    if (next?.position === place.position) return;
    assert((next?.slot ?? Infinity) > place.slot, 'the numbers of appends ascend with those of slots');
    this.#places.splice(at, 0, place);
    if (this.#places.length > MAX_PLACES) this.#places = this.#places.filter((_, i, all) => (all.length - i) % 2 === 1);
  }

  #firstFrom(position: LogPosition): number {
    let [low, high] = [0, this.#places.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#places[middle]!.position < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
