/**
 * The life cycle of a tablet, and the checks at the start and the end of each call: a tablet takes calls in the phases
 * `serving` and `dividing`, and answers while the lease of its server holds.
 */
import { assert, BigtableError, Code, unavailable } from '../../base/index.ts';
import { asRefusal, checkContext, type Clock, type RequestContext } from '../../env/index.ts';
import type { TabletHost } from './tablet-state.ts';

/**
 * loading: replays its records. dividing: serves; writes wait at the end. closing: takes no calls, completes those in
 * progress, flushes; after a failed flush `close` may be called again. ended: other tablets may own its files.
 */
export type TabletPhase = 'loading' | 'serving' | 'dividing' | 'closing' | 'ended';

const NEXT: Readonly<Record<TabletPhase, readonly TabletPhase[]>> = {
  loading: ['serving'],
  serving: ['dividing', 'closing'],
  dividing: ['serving', 'closing', 'ended'],
  closing: ['closing', 'ended'],
  ended: [],
};

export class ServingState {
  readonly #tableId: string;
  readonly #host: Pick<TabletHost, 'leaseHeld'>;
  readonly #clock: Clock;
  #phase: TabletPhase = 'loading';
  #failure: BigtableError | undefined;
  #notServing: BigtableError | undefined;

  constructor(tableId: string, host: Pick<TabletHost, 'leaseHeld'>, clock: Clock) {
    this.#tableId = tableId;
    this.#host = host;
    this.#clock = clock;
  }

  get phase(): TabletPhase {
    return this.#phase;
  }

  enter(phase: TabletPhase): void {
    assert(NEXT[this.#phase].includes(phase), `a tablet goes from ${this.#phase} to another phase, not to ${phase}`);
    this.#phase = phase;
  }

  /** The broken invariant: nothing that the tablet holds in memory is trusted any more. */
  get failure(): BigtableError | undefined {
    return this.#failure;
  }

  fail(error: BigtableError): void {
    assert(this.#failure === undefined, 'a tablet fails once');
    this.#failure = error;
  }

  get takesCalls(): boolean {
    if (this.#failure !== undefined) return false;
    return this.#phase === 'serving' || this.#phase === 'dividing';
  }

  /** Throws if no call may begin. */
  check(context: RequestContext): void {
    assert(this.#phase !== 'loading', 'a tablet takes no calls before its records are replayed');
    if (!this.takesCalls) throw this.notServingError();
    this.checkAnswering(context);
  }

  /** Throws if nothing may be answered. A read inside a row completes the row even when the tablet has ended. */
  checkAnswering(context: RequestContext): void {
    if (!this.#host.leaseHeld()) throw unavailable('the lease of the tablet server may have lapsed');
    checkContext(context, this.#clock);
  }

  /**
   * Called with the error of a read. Throws UNAVAILABLE if a file is gone and the lease may have lapsed: another server
   * may have the tablet, and a sweep has deleted what that one no longer needs.
   */
  checkMissed(error: unknown, context: RequestContext): void {
    if (error instanceof BigtableError && error.code === Code.NOT_FOUND) this.checkAnswering(context);
  }

  /**
   * The call was not carried out; its caller looks up the new server of the row. One object, since thousands of rows
   * may fail with it.
   */
  notServingError(): BigtableError {
    this.#notServing ??= asRefusal(
      new BigtableError(
        Code.UNAVAILABLE,
        `tablet of table ${this.#tableId} is being released by its server, or divided`,
        { details: { notServing: true } },
      ),
    );
    return this.#notServing;
  }
}
