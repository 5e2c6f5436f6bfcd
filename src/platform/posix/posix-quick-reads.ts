/**
 * Decides if a read may be made synchronously, while everything else on the event loop waits. A read from the system's
 * cache takes microseconds, and handing it to another thread and back takes several times that; a read from the disk
 * takes as long as the disk does. No system call distinguishes the two beforehand, so the read is tried and timed
 * (docs/decisions/0016-reads-in-step.md).
 *
 * Invariant: slow synchronous reads take at most a twentieth of the time, but for a short burst; when that is used up,
 * reads are left to other threads.
 */
const SLOW_MS = 0.1;
const SHARE = 1 / 20;
/** Time that one burst may use, after a time without slow reads. */
const BURST_MS = 20;

export class QuickReads {
  readonly #nowMs: () => number;
  /** Time that slow reads may take from now on, as of `#asOfMs`. */
  #leftMs = BURST_MS;
  #asOfMs: number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#asOfMs = nowMs();
  }

  /** Makes the read, if a synchronous one is allowed now. `prepare` makes its arguments, outside the measured time. */
  run<P, T>(prepare: () => P, read: (prepared: P) => T): T | undefined {
    if (this.#leftMs <= 0) {
      this.#earn(this.#nowMs());
      if (this.#leftMs <= 0) return undefined;
    }
    const prepared = prepare();
    const startMs = this.#nowMs();
    try {
      return read(prepared);
    } finally {
      const endMs = this.#nowMs();
      if (endMs - startMs >= SLOW_MS) {
        this.#earn(endMs);
        this.#leftMs -= endMs - startMs;
      }
    }
  }

  #earn(nowMs: number): void {
    this.#leftMs = Math.min(BURST_MS, this.#leftMs + (nowMs - this.#asOfMs) * SHARE);
    this.#asOfMs = nowMs;
  }
}
