/**
 * The contexts of the calls that a server or a master makes for itself. They have no deadline, until it ends: from then
 * on it waits for no other process for longer than END_WAIT_MS, since that one may wait for its end.
 *
 * Invariant: after `over` no timer is left.
 */
import { assert } from '../../base/index.ts';
import type { ByteBudget } from '../budget/budget.ts';
import type { Clock, Timer } from '../seams/clock.ts';
import { type RequestContext, requestContext } from './context.ts';

/** Time for the answers of calls under way when their caller ends, and of each call that it makes while it ends. */
export const END_WAIT_MS = 5000;

export interface OwnContextsOptions {
  readonly clock: Clock;
  readonly requestBudget: ByteBudget;
  readonly principal: string;
}

export class OwnContexts {
  readonly #options: OwnContextsOptions;
  readonly #calls = new AbortController();
  #giveUp: Timer | undefined;
  #isOver = false;

  constructor(options: OwnContextsOptions) {
    this.#options = options;
  }

  /** The context of one call: made when it begins. */
  next(): RequestContext {
    const { clock, requestBudget: budget, principal } = this.#options;
    return this.#giveUp === undefined
      ? requestContext({ budget, principal, signal: this.#calls.signal })
      : requestContext({ budget, principal, deadlineMs: clock.monotonicMs() + END_WAIT_MS });
  }

  /** The caller begins to end. A second call does nothing. */
  end(): void {
    assert(!this.#isOver, 'an end begins before it is over');
    this.#giveUp ??= this.#options.clock.timer(END_WAIT_MS, () => this.#calls.abort());
  }

  /** The caller has ended, and waits for no call. */
  over(): void {
    this.#isOver = true;
    this.#giveUp?.cancel();
  }
}
