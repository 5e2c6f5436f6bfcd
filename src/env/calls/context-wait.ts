/**
 * Waits under a context: the waiter is notified the moment the context's deadline passes or its caller cancels.
 *
 * Invariant: after `stop`, and after the interruption, no timer and no listener is left.
 */
import { type BigtableError, offAbort, onAbort } from '../../base/index.ts';
import type { Clock, Timer } from '../seams/clock.ts';
import { callCancelled, deadlineExceeded } from './call-errors.ts';
import { CallContext, checkContext, type Interruptible, type RequestContext } from './context.ts';

/** Notifies `waiter` once when the context's deadline passes or its caller cancels, until it is stopped. */
export class ContextWait {
  readonly #context: RequestContext;
  readonly #waiter: Interruptible;
  #timer: Timer | undefined;
  #onAbort: (() => void) | undefined;

  constructor(context: RequestContext, clock: Clock, waiter: Interruptible) {
    this.#context = context;
    this.#waiter = waiter;
    if (context instanceof CallContext) {
      context.listen(waiter);
      return;
    }
    const { deadlineMs, signal } = context;
    if (signal) {
      this.#onAbort = () => this.#interrupt(callCancelled());
      onAbort(signal, this.#onAbort);
    }
    if (deadlineMs !== Number.POSITIVE_INFINITY) {
      this.#timer = clock.timer(deadlineMs - clock.monotonicMs(), () => this.#interrupt(deadlineExceeded()));
    }
  }

  stop(): void {
    if (this.#context instanceof CallContext) {
      this.#context.unlisten(this.#waiter);
      return;
    }
    this.#timer?.cancel();
    if (this.#onAbort) offAbort(this.#context.signal, this.#onAbort);
    this.#onAbort = undefined;
  }

  #interrupt(error: BigtableError): void {
    this.stop();
    this.#waiter.interrupt(error);
  }
}

/**
 * Waits for work that is shared, or that cannot be cancelled: settles as `work` does, or rejects when this caller's
 * context ends first. The work itself continues.
 */
export function within<T>(work: Promise<T>, context: RequestContext, clock: Clock): Promise<T> {
  if (isEndless(context)) return work;
  return new Promise((resolve, reject) => {
    // a caller that waits no longer must not leave an unhandled rejection
    work.catch(() => {});
    checkContext(context, clock);
    const wait = new ContextWait(context, clock, { interrupt: reject });
    work.then(
      (value) => {
        wait.stop();
        resolve(value);
      },
      (error: unknown) => {
        wait.stop();
        reject(error);
      },
    );
  });
}

/** True when only the answer ends a call of this context. */
export function isEndless(context: RequestContext): boolean {
  return (
    context.deadlineMs === Number.POSITIVE_INFINITY && !(context instanceof CallContext) && context.signal === undefined
  );
}
