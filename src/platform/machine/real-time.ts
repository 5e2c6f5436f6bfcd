/**
 * Real time in microseconds out of two clocks: a coarse one, in whole milliseconds (Date.now), and a fine one that
 * counts from some beginning (performance.now). The beginning, in real time, has to be found and kept.
 *
 * The coarse clock shows the true time cut to a millisecond, so each pair of readings bounds the beginning from below,
 * and most closely just after the millisecond has changed. It is found by reading until that happens, once; from then
 * on each reading checks it.
 *
 * Invariant: a time lies in the millisecond that Date.now showed around it. So it is late at most by the inaccuracy of
 * the search (a fraction of a microsecond, more where the thread was suspended, until a later reading shows it), and it
 * is ahead only after the real-time clock was set back by less than a millisecond, until a reading shows that.
 */
export interface Readings {
  /** Real time since 1970, cut to whole milliseconds. */
  coarseMs(): number;
  /** Time since some beginning, with fractions; never goes back. */
  fineMs(): number;
}

/**
 * Readings after which the search for a change of the millisecond ends: no clock stands still that long, unless a user
 * holds it.
 */
const MAX_READINGS = 100_000;
/** The largest difference between two clocks by drift. A larger one was a jump of one of them. */
const DRIFT_MS = 0.1;
const MICRO_MS = 0.001;

export class RealTime {
  readonly #readings: Readings;
  /** Real time at which the fine clock began. */
  #originMs = Number.NEGATIVE_INFINITY;

  constructor(readings: Readings) {
    this.#readings = readings;
  }

  /** Whole microseconds since 1970. */
  nowMicros(): number {
    const { coarseMs, fineMs } = this.#readings;
    // in this order: the coarse reading is not above the true time of the fine reading
    const earliestMs = coarseMs();
    const sinceMs = fineMs();
    let nowMs = this.#originMs + sinceMs;
    if (nowMs < earliestMs) nowMs = this.#lateTime(earliestMs, sinceMs);
    else if (nowMs >= earliestMs + 1) nowMs = this.#maybeAhead(nowMs, sinceMs);
    return Math.floor(nowMs * 1000);
  }

  #lateTime(earliestMs: number, sinceMs: number): number {
    if (this.#originMs + sinceMs < earliestMs - DRIFT_MS) return this.#search();
    this.#originMs = earliestMs - sinceMs;
    return earliestMs;
  }

  /** The time where it is ahead, or where the millisecond has changed between the two readings. */
  #maybeAhead(nowMs: number, sinceMs: number): number {
    const latestMs = this.#readings.coarseMs() + 1;
    if (nowMs < latestMs) return nowMs;
    if (nowMs >= latestMs + DRIFT_MS) return this.#search();
    this.#originMs = latestMs - MICRO_MS - sinceMs;
    return latestMs - MICRO_MS;
  }

  /**
   * At the beginning, and after a jump of one of the clocks: reads, for a millisecond at most, until the millisecond
   * changes.
   */
  #search(): number {
    const { coarseMs, fineMs } = this.#readings;
    const firstMs = coarseMs();
    let earliestMs = firstMs;
    for (let looks = 0; earliestMs === firstMs && looks < MAX_READINGS; looks++) earliestMs = coarseMs();
    this.#originMs = earliestMs - fineMs();
    return earliestMs;
  }
}
