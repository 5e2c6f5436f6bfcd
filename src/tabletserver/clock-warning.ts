/**
 * Warns of a wall clock that is earlier than the times that this server, or an earlier owner of a tablet, has given: it
 * was set back, or it is another machine's.
 *
 * Invariant: it warns once each time the clock falls back, whatever the number of tablets and writes.
 */
import { assert } from '../base/index.ts';
import type { Logger, Metrics } from '../env/index.ts';

/** Clocks of machines in good order differ by less than this. */
const WORTH_A_WARNING_MICROS = 1_000_000;

export class ClockWarning {
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  /** The time at which the clock will have caught up with the last warning. */
  #untilMicros = 0;

  constructor({ logger, metrics }: { readonly logger: Logger; readonly metrics: Metrics }) {
    this.#logger = logger;
    this.#metrics = metrics;
  }

  /** A cell was to get the time `nowMicros`, and the later time `lastMicros` had been given in its tablet before. */
  isBehind(nowMicros: number, lastMicros: number): void {
    assert(nowMicros < lastMicros, 'a clock is reported as behind only where it is');
    this.#metrics.add('tabletserver.timesAheadOfTheClock');
    const isKnown = nowMicros < this.#untilMicros && lastMicros < this.#untilMicros + WORTH_A_WARNING_MICROS;
    const behindMicros = lastMicros - nowMicros;
    if (!isKnown && behindMicros < WORTH_A_WARNING_MICROS) return;
    // each write takes another microsecond
    this.#untilMicros = isKnown ? Math.max(this.#untilMicros, lastMicros) : lastMicros;
    if (isKnown) return;
    const what =
      'the wall clock is behind the newest time that a server gave in a tablet: until it has caught up, cells without a timestamp get that time + 1 microsecond';
    this.#logger.warn(what, { behindMs: Math.round(behindMicros / 1000), newestTimeMicros: lastMicros });
  }
}
