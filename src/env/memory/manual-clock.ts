/**
 * A clock that stands still until it is advanced, for unit tests and the simulator.
 *
 * Invariant: timers fire in the order of their times, those of one time in the order they were set, each with the clock
 * standing at its time; a timer never fires inside the call that set it.
 */
import { assert } from '../../base/index.ts';
import type { Clock, Timer } from '../seams/clock.ts';
import { Slices } from '../seams/pacer.ts';

interface SetTimer {
  readonly atMs: number;
  readonly wake: () => void;
}

export class ManualClock implements Clock {
  /** Real time when the monotonic clock began. */
  #startMicros: number;
  #nowMs = 0;
  /** The latest first, so that the next one is taken from the end. */
  readonly #timers: SetTimer[] = [];
  #slices: Slices | undefined;

  /** `startMicros`: real time at the beginning, µs since 1970. Default: 1 January 2024. */
  constructor(startMicros = 1_704_067_200_000_000) {
    this.#startMicros = startMicros;
  }

  /** Made on first use, so that the first slice begins then. */
  get slices(): Slices {
    return (this.#slices ??= new Slices(this));
  }

  nowMicros(): number {
    return this.#startMicros + Math.floor(this.#nowMs * 1000);
  }

  /** Sets the machine's real time, forward or back; the monotonic clock and its timers continue unchanged. */
  setRealTime(micros: number): void {
    this.#startMicros += micros - this.nowMicros();
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  timer(delayMs: number, wake: () => void): Timer {
    const timer: SetTimer = { atMs: this.#nowMs + Math.max(0, delayMs), wake };
    let at = this.#timers.length;
    while (at > 0 && this.#timers[at - 1]!.atMs <= timer.atMs) at--;
    this.#timers.splice(at, 0, timer);
    return {
      cancel: () => {
        const index = this.#timers.indexOf(timer);
        if (index >= 0) this.#timers.splice(index, 1);
      },
    };
  }

  /** Resolves after a turn of microtasks; the time does not change. */
  yield(): Promise<void> {
    return Promise.resolve();
  }

  /** The time of the next timer, on the monotonic clock in ms; Infinity where none is set. */
  nextTimerMs(): number {
    return this.#timers.at(-1)?.atMs ?? Number.POSITIVE_INFINITY;
  }

  /** Advances the time and fires the timers that fall due, those set on the way included. */
  advance(ms: number): void {
    assert(ms >= 0 && Number.isFinite(ms), `a clock does not go ${ms} ms`);
    const untilMs = this.#nowMs + ms;
    while (this.nextTimerMs() <= untilMs) {
      const timer = this.#timers.pop()!;
      this.#nowMs = timer.atMs;
      timer.wake();
    }
    this.#nowMs = untilMs;
  }
}
