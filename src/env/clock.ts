/**
 * The fourth seam: time and randomness. Nothing else in Edubba reads a clock, sets a timer or draws a number, so that the
 * simulator can own all of it.
 */

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Real time, microseconds since 1970. May jump. */
  nowMicros(): number;
  /** Milliseconds from some beginning, with fractions; never goes back. */
  monotonicMs(): number;
  /** Calls `wake` once, `delayMs` from now at the earliest. Does not keep the process alive. */
  timer(delayMs: number, wake: () => void): Timer;
  /** Resolves in a later turn of the event loop, after I/O had its chance. */
  yield(): Promise<void>;
}

export interface Random {
  /** Uniform in [0, 1). */
  float(): number;
  /** A name of 128 random bits in lower-case hexadecimal: never used again. */
  uniqueName(): string;
}

/** Resolves after `delayMs`; rejects with the signal's reason when it aborts first. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.timer(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** Default length of a step on the event loop, ms. */
export const STEP_MS = 10;

/**
 * Keeps work from holding the event loop: long loops ask `due()` every few items and `await pause()` when it says so.
 *
 *   if (pacer.due()) await pacer.pause();
 *
 * `due` is cheap: it reads the clock once in `every` calls.
 */
export class Pacer {
  readonly #clock: Clock;
  readonly #every: number;
  #calls = 0;
  #stepEndMs: number;

  constructor(clock: Clock, every = 64) {
    this.#clock = clock;
    this.#every = every;
    this.#stepEndMs = clock.monotonicMs() + STEP_MS;
  }

  /** `weight`: how many ordinary items this one counts for (a large value counts for many). */
  due(weight = 1): boolean {
    this.#calls += weight;
    if (this.#calls < this.#every) return false;
    this.#calls = 0;
    return this.#clock.monotonicMs() >= this.#stepEndMs;
  }

  async pause(): Promise<void> {
    await this.#clock.yield();
    this.restart();
  }

  /** Call after an await that really waited: a new step begins. */
  restart(): void {
    this.#stepEndMs = this.#clock.monotonicMs() + STEP_MS;
  }
}
