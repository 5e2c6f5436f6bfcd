/**
 * The master's work: when each kind of it is due, and which kinds exclude each other.
 *
 * Invariants: work of one lane comes one after another. Work that fails is due again after a second, and each failure
 * is logged once.
 */
import { assert, type BigtableError, Code, toBigtableError } from '../base/index.ts';
import type { Clock, Logger, Timer } from '../env/index.ts';

/** The delay between a failure and the next attempt. */
export const RETRY_MS = 1000;

interface Due {
  readonly atMs: number;
  readonly timer: Timer;
}

export interface WorkScheduleOptions<Work extends string> {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly run: (what: Work) => Promise<void>;
  /** Called before each work of a lane; throws while none may begin. */
  readonly check: () => void;
  /** Called after each failure; the work is due again, unless the schedule has been ended. */
  readonly onFailure: (what: Work, error: BigtableError) => void;
}

export class WorkSchedule<Work extends string, Lane extends string> {
  readonly #options: WorkScheduleOptions<Work>;
  readonly #due = new Map<Work, Due>();
  readonly #lastOfLane = new Map<Lane, Promise<unknown>>();
  /** The last failure logged for each kind of work. */
  readonly #loggedFailures = new Map<Work, string>();
  #ended = false;

  constructor(options: WorkScheduleOptions<Work>) {
    this.#options = options;
  }

  /** Does the work after that delay, or earlier if that was scheduled already. */
  later(what: Work, delayMs: number): void {
    if (this.#ended) return;
    const { clock } = this.#options;
    const atMs = clock.monotonicMs() + delayMs;
    assert(delayMs >= 0, 'work is not scheduled in the past');
    const due = this.#due.get(what);
    if (due !== undefined && due.atMs <= atMs) return;
    due?.timer.cancel();
    const timer = clock.timer(delayMs, () => {
      this.#due.delete(what);
      this.begin(what);
    });
    this.#due.set(what, { atMs, timer });
  }

  /** Does the work without a delay, and without a timer. */
  begin(what: Work): void {
    if (this.#ended) return;
    this.#options.run(what).then(
      () => this.#loggedFailures.delete(what),
      (thrown: unknown) => this.#failed(what, toBigtableError(thrown)),
    );
  }

  /** Does the work when all earlier work of the lane is over. */
  oneByOne<T>(lane: Lane, work: () => Promise<T>): Promise<T> {
    const result = (this.#lastOfLane.get(lane) ?? Promise.resolve()).then(() => {
      this.#options.check();
      return work();
    });
    this.#lastOfLane.set(
      lane,
      result.catch(() => {}),
    );
    return result;
  }

  /** Logs a failure of that kind of work, which will be tried again, unless it is the last one that was logged. */
  logFailure(what: Work, { code, message }: BigtableError): void {
    // an end that this master has made
    if (code === Code.CANCELLED || this.#loggedFailures.get(what) === message) return;
    this.#loggedFailures.set(what, message);
    this.#options.logger.warn(`the master could not ${what} and will try again`, { error: message });
  }

  /** No more work begins. */
  end(): void {
    this.#ended = true;
    for (const { timer } of this.#due.values()) timer.cancel();
  }

  /** Resolves when the work that has begun in lanes is over. */
  async over(): Promise<void> {
    assert(this.#ended, 'the end of all work is awaited when no more begins');
    await Promise.all(this.#lastOfLane.values());
  }

  #failed(what: Work, error: BigtableError): void {
    this.#options.onFailure(what, error);
    if (this.#ended) return;
    this.logFailure(what, error);
    this.later(what, RETRY_MS);
  }
}
