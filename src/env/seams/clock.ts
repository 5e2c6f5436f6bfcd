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
  /** Called behind a step that made much that stays, for what the runtime has to do with it; whether it took a while, after which others have their turn. */
  settle?(): boolean;
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

/** Length of a step on the event loop, ms: with a pause of the garbage collector on top it stays below 20. */
export const STEP_MS = 5;

/**
 * The steps of all work that shares an event loop: one after another, each STEP_MS at most together. Two loops that each kept to
 * steps of their own would hold the event loop for the sum of them.
 */
class Steps {
  readonly clock: Clock;
  /** When the present step began. Long ago after idle times: the first to ask then makes one pause too many, which costs little. */
  startMs: number;
  readonly #waiting: (() => void)[] = [];
  #scheduled = false;
  #keeps = false;

  constructor(clock: Clock) {
    this.clock = clock;
    this.startMs = clock.monotonicMs();
  }

  /** Resolves when it is the caller's turn to take a step: first come, first served, one a turn of the event loop. */
  next(keeps: boolean): Promise<void> {
    this.#keeps ||= keeps;
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0) return;
    this.#scheduled = true;
    void this.clock.yield().then(() => {
      const keeps = this.#keeps;
      this.#keeps = false;
      if (keeps && this.clock.settle?.()) void this.clock.yield().then(() => this.#begin());
      else this.#begin();
    });
  }

  #begin(): void {
    this.#scheduled = false;
    this.startMs = this.clock.monotonicMs();
    this.#waiting.shift()?.();
    this.#schedule();
  }
}

const stepsOf = new WeakMap<Clock, Steps>();
/** A process has one clock, and every read makes a pacer of it. */
let lastSteps: Steps | undefined;

function stepsAt(clock: Clock): Steps {
  lastSteps = stepsOf.get(clock);
  if (lastSteps === undefined) {
    lastSteps = new Steps(clock);
    stepsOf.set(clock, lastSteps);
  }
  return lastSteps;
}

/**
 * Keeps work from holding the event loop: long loops ask `due()` every few items and `await pause()` when it says so. Pacers of one clock share
 * their steps.
 *
 *   if (pacer.due()) await pacer.pause();
 *
 * `due` is cheap: it reads the clock once in `every` calls.
 */
export class Pacer {
  readonly #clock: Clock;
  readonly #steps: Steps;
  readonly #every: number;
  #calls = 0;

  constructor(clock: Clock, every = 64) {
    this.#clock = clock;
    this.#steps = lastSteps?.clock === clock ? lastSteps : stepsAt(clock);
    this.#every = every;
  }

  /** `weight`: how many ordinary items this one counts for (a large value counts for many). */
  due(weight = 1): boolean {
    this.#calls += weight;
    if (this.#calls < this.#every) return false;
    this.#calls = 0;
    return this.#clock.monotonicMs() - this.#steps.startMs >= STEP_MS;
  }

  /** `keeps`: most objects that the step made are there to stay. */
  pause(keeps = false): Promise<void> {
    return this.#steps.next(keeps);
  }
}

/** Items that one step handles without asking the clock. */
const SLICE = 1000;

/**
 * Has `work` go over `count` items, by parts [from, to), with pauses between them. Up to a slice it is one plain call and undefined is answered: the
 * common case stays synchronous.
 */
export function inParts(
  clock: Clock,
  count: number,
  work: (from: number, to: number) => void,
): Promise<void> | undefined {
  if (count > SLICE) return parts(clock, count, work);
  work(0, count);
  return undefined;
}

async function parts(clock: Clock, count: number, work: (from: number, to: number) => void): Promise<void> {
  const pacer = new Pacer(clock, 1);
  for (let from = 0; from < count; from += SLICE) {
    work(from, Math.min(from + SLICE, count));
    if (pacer.due()) await pacer.pause(true);
  }
}
