/**
 * Calls that wait for room, woken all together: each looks again by itself. A call that is given up, or whose deadline
 * passes, waits no longer.
 */
import { callCancelled, type Clock, deadlineExceeded, type RequestContext } from '../env/index.ts';

export class WaitList {
  readonly #clock: Clock;
  /** What the calls wait for, in words: "a compaction". */
  readonly #what: string;
  readonly #waiting = new Set<() => void>();

  constructor(clock: Clock, what: string) {
    this.#clock = clock;
    this.#what = what;
  }

  wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** Resolves at the next `wake`; CANCELLED or DEADLINE_EXCEEDED where the caller does not wait so long. */
  next(context: RequestContext): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        context.signal?.removeEventListener('abort', onAbort);
        timer?.cancel();
        this.#waiting.delete(wake);
        settle();
      };
      const wake = (): void => end(resolve);
      const onAbort = (): void => end(() => reject(callCancelled(this.#what)));
      const onDeadline = (): void => end(() => reject(deadlineExceeded(this.#what)));
      const { deadlineMs, signal } = context;
      const timer =
        deadlineMs === Number.POSITIVE_INFINITY
          ? undefined
          : this.#clock.timer(deadlineMs - this.#clock.monotonicMs(), onDeadline);
      if (signal?.aborted) return onAbort();
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(wake);
    });
  }
}
