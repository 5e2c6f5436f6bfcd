/**
 * The order in which calls of different priorities are carried out (the app profile's `priority`, API:
 * `AppProfile.StandardIsolation`; docs/decisions/0109-priorities.md): a call of lower priority begins, and a read goes
 * on after each batch, when no call of a higher one has been made for a moment.
 *
 * Invariants:
 * - None starves: one after the other goes on, each some time after the one before it, whatever else there is.
 * - Calls of the highest priority never wait, and as long as there are no others they cost nothing: not even a look at
 *   the clock.
 * - No read of METADATA waits: callers of any priority share it.
 *
 * Hot path: every call of a row.
 */
import { assert } from '../base/index.ts';
import { type Clock, type Priority, pullStreamOf, type RequestContext, within } from '../env/index.ts';
import { METADATA_TABLE_ID } from '../metadata/index.ts';
import { GatedStream } from './gated-stream.ts';

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
type RowCall = { readonly tableId: string };

export class CallTurns {
  readonly #clock: Clock;
  #isWatching = false;
  #watchUntilMs = 0;
  /** By rank, when the last call of a priority was made. */
  readonly #lastMs = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  /** When the last one of a priority went on, or began to wait where none did. */
  readonly #wentMs = { medium: 0, low: 0 };
  /** In the order of their arrival, what lets each go on. */
  readonly #waiting = { medium: new Set<() => void>(), low: new Set<() => void>() };
  #isLookDue = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The call as a handler takes it. */
  call<M extends RowCall, A>(
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
  stream<M extends RowCall, I>(
    answer: (message: M, context: RequestContext) => AsyncIterable<I>,
  ): (message: M, context: RequestContext) => AsyncIterable<I> {
    return (message, context) => {
      const priority = message.tableId === METADATA_TABLE_ID ? 'high' : context.priority;
      if (priority === 'high' && !this.#isWatching) return answer(message, context);
      const gate = () => (priority === 'high' ? this.#note(0) : this.#turn(priority, context));
      return new GatedStream(gate, () => pullStreamOf(answer(message, context)));
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
    if (this.#quietMs(priority, nowMs) >= CALM_MS) {
      if (priority === 'medium') this.#note(RANKS.medium);
      return;
    }
    const waiting = this.#waiting[priority];
    if (waiting.size === 0) this.#wentMs[priority] = nowMs;
    let begin = (): void => {};
    const turn = new Promise<void>((resolve) => (begin = resolve));
    waiting.add(begin);
    this.#lookLater();
    // one that was cancelled takes no turn of the others
    await within(turn, context, this.#clock).finally(() => waiting.delete(begin));
  }

  /** The time since a call of a higher priority than this one. */
  #quietMs(priority: Lower, nowMs: number): number {
    return nowMs - Math.max(...this.#lastMs.slice(0, RANKS[priority]));
  }

  /** True if the first that waits, of those of that priority, may go on. */
  #mayGo(priority: Lower, nowMs: number): boolean {
    const [quietMs, sinceMs] = [this.#quietMs(priority, nowMs), nowMs - this.#wentMs[priority]];
    return quietMs >= CALM_MS || sinceMs >= (quietMs < QUIET_MS ? INTERVAL_MS[priority] : QUIET_MS);
  }

  #lookLater(): void {
    if (this.#isLookDue) return;
    this.#isLookDue = true;
    this.#clock.timer(QUIET_MS, () => this.#look());
  }

  #look(): void {
    assert(this.#isLookDue, 'one look follows another one');
    this.#isLookDue = false;
    const nowMs = this.#clock.monotonicMs();
    for (const priority of ['medium', 'low'] as const) {
      const waiting = this.#waiting[priority];
      for (const begin of waiting) {
        if (!this.#mayGo(priority, nowMs)) break;
        waiting.delete(begin);
        begin();
        this.#wentMs[priority] = nowMs;
        if (priority === 'medium') this.#note(RANKS.medium);
      }
      if (waiting.size > 0) this.#lookLater();
    }
  }
}
