/**
 * Garbage collection along a walk: the versions of the present column that the rule of its family keeps. Used by reads
 * and compactions, each with one "now" (docs/ARCHITECTURE.md, "Order and deletion").
 */
import type { Int64 } from '../../base/index.ts';
import type { VersionKeeper } from '../../model/index.ts';
import type { ReadFamilies, ReadFamily } from './read-families.ts';

const keepNone: VersionKeeper = () => false;

export class KeptVersions {
  /** Family of the present column; undefined if the table has dropped it. */
  family: ReadFamily | undefined;
  readonly #families: ReadFamilies;
  readonly #counts: boolean;
  #stored: string | undefined;
  #keeps: VersionKeeper = keepNone;
  #index = 0;

  /**
   * `counts`: whether versions are counted. If not, each one counts as the newest, so that only those are dropped that
   * the rule drops regardless of the others.
   */
  constructor(families: ReadFamilies, counts = true) {
    this.#families = families;
    this.#counts = counts;
  }

  /** Enters a column of the family stored under that name. Returns false if the table has no such family any more. */
  enterColumn(stored: string): boolean {
    if (stored !== this.#stored) {
      this.#stored = stored;
      this.family = this.#families.get(stored);
      this.#keeps = this.family?.keeps ?? keepNone;
    }
    this.#index = 0;
    return this.family !== undefined;
  }

  /** Called for the visible versions of a column, newest first. After one is dropped, all later ones are. */
  keeps(timestamp: Int64): boolean {
    if (!this.#keeps(this.#index, timestamp)) return false;
    if (this.#counts) this.#index++;
    return true;
  }
}
