/**
 * A simulated process: an owner of events with a clock of its own, which may be wrong, run too fast, or be set. It can
 * stand still for a while and go on as if nothing had happened, and it can die; what it has begun elsewhere goes on.
 */
import { type Clock, clockOf, type Timer } from '../../src/env/index.ts';
import { assert } from '../../src/base/index.ts';
import type { Owner, Scheduler } from './scheduler.ts';

/** Real time at the beginning: 1 January 2024, µs since 1970. */
const START_MICROS = 1_704_067_200_000_000;
/** A timer wakes at most this late. */
const MAX_LATE_MS = 0.5;
const MAX_YIELD_MS = 0.05;

/** What a process does that others notice: a fault can begin in its midst. */
export type Action =
  | 'append'
  | 'file'
  | 'message'
  | 'lock service'
  /** A change of a file of the lock service that makes, changes or deletes a table. */
  | 'table change'
  /** A reading of the root file. */
  | 'root file';

interface AwaitedAction {
  readonly action: Action;
  left: number;
  readonly run: () => void;
}

export interface ClockErrors {
  /** The wall clock is off by this much at the beginning, ms. */
  readonly offsetMs: number;
  /** Both clocks run faster by this share of the time: 500e-6 gains 0.5 ms a second. */
  readonly drift: number;
}

export class SimProcess implements Owner {
  /** The machine, and which of its processes this is: "server-1.3". */
  readonly name: string;
  readonly machine: string;
  readonly clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #onDeath: (() => void)[] = [];
  readonly #awaited = new Set<AwaitedAction>();
  readonly #drift: number;
  /** The monotonic clock began at some time of its own. */
  readonly #beginMs: number;
  readonly #offsetMicros: number;
  /** How far the wall clock was set forward. */
  #setMicros = 0;
  isDead = false;
  pausedUntilMs = 0;
  afterEvent: (() => void) | undefined;

  constructor(scheduler: Scheduler, name: string, { offsetMs, drift }: ClockErrors) {
    assert(drift > -0.5 && drift < 0.5, 'a clock drifts by a small share');
    this.name = name;
    this.machine = name.split('.')[0]!;
    this.#scheduler = scheduler;
    this.#drift = drift;
    this.#beginMs = Math.floor(scheduler.random.float() * 1e6);
    this.#offsetMicros = Math.round(offsetMs * 1000);
    this.clock = clockOf({
      nowMicros: () => START_MICROS + this.#offsetMicros + this.#setMicros + Math.floor(this.#elapsedMs() * 1000),
      monotonicMs: () => this.#beginMs + this.#elapsedMs(),
      // half of the time, whatever it does
      busyMs: () => scheduler.nowMs / 2,
      timer: (delayMs, wake) => this.#timer(delayMs, wake),
      yield: () => this.#yield(),
    });
  }

  /** Nothing of it happens any more. What it has sent is on its way. */
  kill(): void {
    if (this.isDead) return;
    this.isDead = true;
    for (const notify of this.#onDeath) notify();
  }

  /** Called, in the world, at the moment of its death. */
  onDeath(notify: () => void): void {
    this.#onDeath.push(notify);
  }

  /** Calls `run`, in the world, when the process has done that `count` times more. */
  afterActions(action: Action, count: number, run: () => void): void {
    this.#awaited.add({ action, left: count, run });
  }

  /** It has begun something that will take effect elsewhere. */
  acts(action: Action): void {
    if (this.#awaited.size === 0) return;
    for (const awaited of this.#awaited) {
      if (awaited.action !== action || --awaited.left > 0) continue;
      this.#awaited.delete(awaited);
      awaited.run();
    }
  }

  /** It stands still; its clock goes on. */
  pause(delayMs: number): void {
    this.pausedUntilMs = Math.max(this.pausedUntilMs, this.#scheduler.nowMs + delayMs);
  }

  /** Its clock for a part that waits for the end of the event alone. */
  clockOfTurns(): Clock {
    return { ...this.clock, yield: () => this.#scheduler.endOfTurn() };
  }

  /** Runs `run` in the process, `delayMs` from now. */
  later(delayMs: number, what: string, run: () => void): void {
    this.#scheduler.after(delayMs, this, what, run);
  }

  /** The wall clock is as it would be if it had never been set. */
  setClockRight(): void {
    this.#setMicros = 0;
  }

  /** Sets the wall clock forward, or back where negative. The monotonic clock goes on. */
  setClockForward(ms: number): void {
    this.#setMicros += Math.round(ms * 1000);
  }

  #timer(delayMs: number, wake: () => void): Timer {
    const lateMs = this.#scheduler.random.float() * MAX_LATE_MS;
    return this.#scheduler.after(Math.max(0, delayMs) / (1 + this.#drift) + lateMs, this, 'timer', wake);
  }

  #yield(): Promise<void> {
    return new Promise((resolve) => {
      this.#scheduler.after(this.#scheduler.random.float() * MAX_YIELD_MS, this, 'yield', resolve);
    });
  }

  #elapsedMs(): number {
    return this.#scheduler.tick() * (1 + this.#drift);
  }
}
