/**
 * The fourth seam: time and randomness. Nothing else in Edubba reads a clock, sets a timer or draws a number, so that
 * the simulator can own all of it.
 */
import { offAbort, onAbort } from '../../base/index.ts';
import { type CollectYoung, Slices } from './pacer.ts';

export interface Timer {
  cancel(): void;
}

/** The machine's clocks and timers. */
export interface Time {
  /** Real time, microseconds since 1970. May jump. */
  nowMicros(): number;
  /** Milliseconds from some beginning, with fractions; never goes back. */
  monotonicMs(): number;
  /**
   * Milliseconds for which this thread has worked and not waited, since some beginning, with fractions. Left out where
   * no one measures it.
   */
  readonly busyMs?: (() => number) | undefined;
  /** Calls `wake` once, `delayMs` from now at the earliest. Does not keep the process alive. */
  timer(delayMs: number, wake: () => void): Timer;
  /** Resolves in a later turn of the event loop, after I/O had its chance. */
  yield(): Promise<void>;
}

export interface Clock extends Time {
  /** Shared by all pacers of this clock. */
  readonly slices: Slices;
}

/** A clock over `time`, with slices of its own. */
export function clockOf(time: Time, collectYoung?: CollectYoung): Clock {
  return { ...time, slices: new Slices(time, collectYoung) };
}

export interface Random {
  /** Uniform in [0, 1). */
  float(): number;
  /** A name of 128 random bits in lower-case hexadecimal: never reused. */
  uniqueName(): string;
}

/** Resolves after `delayMs`; rejects with the signal's reason when it aborts first. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.timer(delayMs, () => {
      offAbort(signal, abort);
      resolve();
    });
    onAbort(signal, abort);
  });
}
