/**
 * Calls that wait for space, woken all together: each checks again by itself. A call that is cancelled, or whose
 * deadline passes, waits no longer.
 */
import { offAbort, onAbort } from '../base/index.ts';
import { callCancelled, type Clock, deadlineExceeded, type RequestContext } from '../env/index.ts';

export class WaitList {
  readonly #clock: Clock;
  /** The name of the event that the calls wait for: "a compaction". */
  readonly #what: string;
  readonly #waiting = new Set<() => void>();

  constructor(clock: Clock, what: string) {
    this.#clock = clock;
    this.#what = what;
  }

  wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** Resolves at the next `wake`; CANCELLED or DEADLINE_EXCEEDED if the caller stops waiting first. */
  next(context: RequestContext): Promise<void> {
    const { deadlineMs, signal } = context;
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        offAbort(signal, abort);
        timer?.cancel();
        this.#waiting.delete(wake);
        settle();
      };
      const wake = (): void => end(resolve);
      const abort = (): void => end(() => reject(callCancelled(this.#what)));
      const onDeadline = (): void => end(() => reject(deadlineExceeded(this.#what)));
      const timer =
        deadlineMs === Number.POSITIVE_INFINITY
          ? undefined
          : this.#clock.timer(deadlineMs - this.#clock.monotonicMs(), onDeadline);
      if (signal?.aborted) return abort();
      onAbort(signal, abort);
      this.#waiting.add(wake);
    });
  }
}
