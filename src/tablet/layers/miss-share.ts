/** The share of requests to the caches of files that were misses. It costs reads nothing: it compares counters. */
import { assert } from '../../base/index.ts';
import type { Counter, Metrics } from '../../env/index.ts';

export class MissShare {
  readonly #blockHits: Counter;
  readonly #blockMisses: Counter;
  readonly #rowHits: Counter;
  #hitsSeen: number;
  #missesSeen: number;

  constructor(metrics: Metrics) {
    this.#blockHits = metrics.counter('blockCache.hits');
    this.#blockMisses = metrics.counter('blockCache.misses');
    this.#rowHits = metrics.counter('rowCache.hits');
    this.#hitsSeen = this.#hits;
    this.#missesSeen = this.#blockMisses.value;
  }

  get #hits(): number {
    return this.#blockHits.value + this.#rowHits.value;
  }

  /** The share of the requests since the last call, 0 to 1; 0 if there were none. */
  take(): number {
    const hits = this.#hits - this.#hitsSeen;
    const misses = this.#blockMisses.value - this.#missesSeen;
    assert(hits >= 0 && misses >= 0, 'counters of a cache never fall');
    this.#hitsSeen += hits;
    this.#missesSeen += misses;
    return misses === 0 ? 0 : misses / (hits + misses);
  }
}
