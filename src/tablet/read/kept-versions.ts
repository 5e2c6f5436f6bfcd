/**
 * Garbage collection along a walk: which versions of the present column its family's rule keeps. Reads and compactions both go by it, each
 * with one "now" (docs/ARCHITECTURE.md, "Order and deletion").
 */
import type { Int64 } from '../../base/index.ts';
import type { VersionKeeper } from '../../model/index.ts';
import type { ReadFamilies, ReadFamily } from './read-families.ts';

const keepNone: VersionKeeper = () => false;

export class KeptVersions {
  /** Family of the present column; undefined: the table has dropped it. */
  family: ReadFamily | undefined;
  readonly #families: ReadFamilies;
  readonly #counts: boolean;
  #stored: string | undefined;
  #keeps: VersionKeeper = keepNone;
  #index = 0;

  /**
   * `counts`: whether versions are counted. Where they are not, every one is taken for the newest, so that only such are refused as the rule
   * refuses whatever stands beside them.
   */
  constructor(families: ReadFamilies, counts = true) {
    this.#families = families;
    this.#counts = counts;
  }

  /** Comes to a column of the family stored under that name. False where the table has no such family any more. */
  enterColumn(stored: string): boolean {
    if (stored !== this.#stored) {
      this.#stored = stored;
      this.family = this.#families.get(stored);
      this.#keeps = this.family?.keeps ?? keepNone;
    }
    this.#index = 0;
    return this.family !== undefined;
  }

  /** Asked for a column's visible versions, newest first. After one is refused, all later ones are. */
  keeps(timestamp: Int64): boolean {
    if (!this.#keeps(this.#index, timestamp)) return false;
    if (this.#counts) this.#index++;
    return true;
  }
}
