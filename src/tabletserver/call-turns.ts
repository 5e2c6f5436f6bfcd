/**
 * The order in which calls of different priorities are carried out (the app profile's `priority`, API:
 * `AppProfile.StandardIsolation`; docs/decisions/0109-priorities.md): a call of lower priority begins, and a read goes
 * on after each batch, when no call of a higher one has been made for a moment.
 *
 * Invariants:
 * - None starves: one after the other goes on, each some time after the one before it, whatever else there is.
 * - Calls of the highest priority never wait, and as long as there are no others they cost nothing: not even a look at
 *   the clock.
 *
 * Hot path: every call of a row.
 */
import { assert } from '../base/index.ts';
import { type Clock, type Priority, PullStream, pullStreamOf, type RequestContext, within } from '../env/index.ts';

/** Without a call of a higher priority for so long, one waiting call goes on, and then another one. */
const QUIET_MS = 2;
/** Without one for so long, all go on: callers that wait for their answers send the next call within this time. */
const CALM_MS = 20;
/** After a call of lower priority the higher ones are noted for so long. */
const WATCH_MS = 10_000;
/** While higher ones are made all the time, one call, or batch of a read, goes on in this time. */
const INTERVAL_MS = { medium: 3, low: 10 } as const;
const RANKS = { high: 0, medium: 1, low: 2 } as const;

type Lower = Exclude<Priority, 'high'>;

interface Waiter {
  readonly priority: Lower;
  readonly go: () => void;
}

export class CallTurns {
  readonly #clock: Clock;
  #isWatching = false;
  #watchUntilMs = 0;
  /** By rank, when the last call of a priority was made. */
  readonly #lastMs = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  /** When the last one of a priority went on, or began to wait where none did. */
  readonly #wentMs = { medium: 0, low: 0 };
  /** In the order of their arrival. */
  readonly #waiters: Waiter[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The call as a handler takes it. */
  call<M, A>(
    answer: (message: M, context: RequestContext) => Promise<A>,
  ): (message: M, context: RequestContext) => Promise<A> {
    return (message, context) => {
      const { priority } = context;
      if (priority !== 'high') return this.#turn(priority, context).then(() => answer(message, context));
      if (this.#isWatching) this.#note(0);
      return answer(message, context);
    };
  }

  /** The stream as a handler takes it. */
  stream<M, I>(
    answer: (message: M, context: RequestContext) => AsyncIterable<I>,
  ): (message: M, context: RequestContext) => AsyncIterable<I> {
    return (message, context) => {
      const { priority } = context;
      if (priority === 'high' && !this.#isWatching) return answer(message, context);
      const before =
        priority === 'high' ? (): void => this.#note(0) : (): Promise<void> => this.#turn(priority, context);
      return new StreamInTurns(before, () => pullStreamOf(answer(message, context)));
    };
  }

  #note(rank: 0 | 1): void {
    const nowMs = this.#clock.monotonicMs();
    this.#lastMs[rank] = nowMs;
    if (nowMs > this.#watchUntilMs) this.#isWatching = false;
  }

  /** Resolves when it is the turn of a call of that priority. */
  async #turn(priority: Lower, context: RequestContext): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    this.#isWatching = true;
    this.#watchUntilMs = nowMs + WATCH_MS;
    if (this.#quietMs(priority, nowMs) < CALM_MS) {
      if (!this.#waiters.some((other) => other.priority === priority)) this.#wentMs[priority] = nowMs;
      const turn = new Promise<void>((go) => {
        this.#waiters.push({ priority, go });
      });
      if (this.#waiters.length === 1) this.#lookLater();
      await within(turn, context, this.#clock);
    } else if (priority === 'medium') this.#note(RANKS.medium);
  }

  /** The time since a call of a higher priority than this one. */
  #quietMs(priority: Lower, nowMs: number): number {
    return nowMs - Math.max(...this.#lastMs.slice(0, RANKS[priority]));
  }

  /** True if the first that waits, of those of that priority, may go on. */
  #mayGo(priority: Lower, nowMs: number): boolean {
    const sinceMs = nowMs - this.#wentMs[priority];
    return sinceMs >= (this.#quietMs(priority, nowMs) < QUIET_MS ? INTERVAL_MS[priority] : QUIET_MS);
  }

  #lookLater(): void {
    this.#clock.timer(QUIET_MS, () => this.#look());
  }

  #look(): void {
    assert(this.#waiters.length > 0, 'calls wait as long as there is a look to come');
    const nowMs = this.#clock.monotonicMs();
    const waiters = this.#waiters.splice(0);
    for (const rank of ['medium', 'low'] as const) {
      for (const waiter of waiters) {
        const { priority, go } = waiter;
        if (priority !== rank) continue;
        if (this.#quietMs(priority, nowMs) < CALM_MS && !this.#mayGo(priority, nowMs)) {
          this.#waiters.push(waiter);
        } else {
          go();
          this.#wentMs[priority] = nowMs;
          if (priority === 'medium') this.#note(RANKS.medium);
        }
      }
    }
    if (this.#waiters.length > 0) this.#lookLater();
  }
}

/** A stream whose items come one after another, each after its turn. */
class StreamInTurns<I> extends PullStream<I> {
  readonly #before: () => void | Promise<void>;
  readonly #begin: () => PullStream<I>;
  #items: PullStream<I> | undefined;
  #hasEnded = false;

  constructor(before: () => void | Promise<void>, begin: () => PullStream<I>) {
    super();
    this.#before = before;
    this.#begin = begin;
  }

  pull(): I | undefined | Promise<I | undefined> {
    if (this.#hasEnded) return undefined;
    const turn = this.#before();
    return turn === undefined ? this.#next() : turn.then(() => this.#next());
  }

  end(): void | Promise<void> {
    this.#hasEnded = true;
    return this.#items?.end();
  }

  #next(): I | undefined | Promise<I | undefined> {
    if (this.#hasEnded) return undefined;
    this.#items ??= this.#begin();
    return this.#items.pull();
  }
}
