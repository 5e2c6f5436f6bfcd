/**
 * Decides if a read may be made synchronously, while everything else on the event loop waits. A read from the system's
 * cache takes microseconds, and handing it to another thread and back takes several times that; a read from the disk
 * takes as long as the disk does. No system call distinguishes the two beforehand, so the read is tried and timed
 * (docs/decisions/0016-reads-in-step.md).
 *
 * Invariant: slow synchronous reads take at most a twentieth of the time, but for a short burst; when that is used up,
 * reads are left to other threads.
 */
import { TimeAccount } from './posix-time-account.ts';

const SLOW_MS = 0.1;
/** The part of the time that slow reads may take. */
const SHARE = 1 / 20;

export class QuickReads {
  readonly #nowMs: () => number;
  /** The time that slow reads may take. */
  readonly #account: TimeAccount;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#account = new TimeAccount(SHARE, nowMs());
  }

  /** Makes the read, if a synchronous one is allowed now. `prepare` makes its arguments, outside the measured time. */
  run<P, T>(prepare: () => P, read: (prepared: P) => T): T | undefined {
    if (this.#account.isSpent) {
      this.#account.earn(this.#nowMs());
      if (this.#account.isSpent) return undefined;
    }
    const prepared = prepare();
    const startMs = this.#nowMs();
    try {
      return read(prepared);
    } finally {
      const endMs = this.#nowMs();
      if (endMs - startMs >= SLOW_MS) {
        this.#account.earn(endMs);
        this.#account.spend(endMs - startMs);
      }
    }
  }
}
