/**
 * Shares a turn of the event loop among the connections that have received bytes: together they read for SLICE_MS a
 * turn at most, so that timers, answers and other work come in between, however many calls arrive together.
 *
 * Invariant: waiting connections continue in the order in which they began to wait, and before bytes that come later.
 */
import { type Clock, SLICE_MS } from '../../env/index.ts';

export class ReadTurns {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  /** True when reading has begun in the present turn, and its start. */
  #hasBegun = false;
  #startMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True when the present turn's time is spent. The first call in a turn begins it. */
  isSpent(): boolean {
    if (this.#hasBegun) return this.#clock.monotonicMs() - this.#startMs >= SLICE_MS;
    this.#hasBegun = true;
    this.#startMs = this.#clock.monotonicMs();
    void this.#clock.yield().then(() => this.#resumeWaiting());
    return false;
  }

  /** Calls `resume` in a later turn that has time left. Only while the present turn is over. */
  wait(resume: () => void): void {
    this.#waiting.push(resume);
  }

  #resumeWaiting(): void {
    this.#hasBegun = false;
    // connections that wait again, or begin to, get the next turn
    for (let count = this.#waiting.length; count > 0 && !this.isSpent(); count--) this.#waiting.shift()?.();
  }
}
