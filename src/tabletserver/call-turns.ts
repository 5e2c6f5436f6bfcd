/**
 * The order in which calls of different priorities are carried out (the app profile's `priority`, API:
 * `AppProfile.StandardIsolation`; docs/decisions/0109-priorities.md): a call of lower priority begins, and a read goes
 * on after each batch, when no call of a higher one has been made for a moment.
 *
 * Invariants:
 * - None starves: after a bounded wait a call goes on, whatever else there is.
 * - Calls of the highest priority never wait, and as long as there are no others they cost nothing: not even a look at
 *   the clock.
 *
 * Hot path: every call of a row.
 */
import { assert } from '../base/index.ts';
import { type Clock, type Priority, PullStream, pullStreamOf, type RequestContext, within } from '../env/index.ts';

/** Callers that wait for their answers send the next call within this time. */
const QUIET_MS = 2;
/** After a call of lower priority the higher ones are noted for so long. */
const WATCH_MS = 10_000;
/** The longest wait, of a call or of a batch of a read. */
const MAX_WAIT_MS = { high: 0, medium: 25, low: 100 } as const;
const RANKS = { high: 0, medium: 1, low: 2 } as const;

type Lower = Exclude<Priority, 'high'>;

interface Waiter {
  readonly priority: Lower;
  readonly sinceMs: number;
  readonly go: () => void;
}

export class CallTurns {
  readonly #clock: Clock;
  #isWatching = false;
  #watchUntilMs = 0;
  /** By rank, when the last call of a priority was made. */
  readonly #lastMs = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
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
    const sinceMs = this.#clock.monotonicMs();
    this.#isWatching = true;
    this.#watchUntilMs = sinceMs + WATCH_MS;
    if (this.#isBusy(priority, sinceMs)) {
      const turn = new Promise<void>((go) => {
        this.#waiters.push({ priority, sinceMs, go });
      });
      if (this.#waiters.length === 1) this.#lookLater();
      await within(turn, context, this.#clock);
    } else if (priority === 'medium') this.#note(RANKS.medium);
  }

  /** True while calls of a higher priority than this one are made. */
  #isBusy(priority: Lower, nowMs: number): boolean {
    for (let rank = 0; rank < RANKS[priority]; rank++) if (nowMs - this.#lastMs[rank]! < QUIET_MS) return true;
    return false;
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
        const { priority, sinceMs, go } = waiter;
        if (priority !== rank) continue;
        if (this.#isBusy(priority, nowMs) && nowMs - sinceMs < MAX_WAIT_MS[priority]) {
          this.#waiters.push(waiter);
        } else {
          go();
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
