/**
 * Decides if a read may be made synchronously, with everything else on the event loop waiting for it. What the system
 * has in its cache comes within microseconds, and handing it to another thread and back costs several times that; what
 * must come from the disk takes as long as the disk does, and which of the two a read will be, no system call tells. So
 * it is tried, and found out by the time it took (docs/decisions/0016-reads-in-step.md).
 *
 * Invariant: synchronous reads that are slow take up at most a twentieth of the time, but for a short burst; what comes
 * when that is used up is left to other threads.
 */
const SLOW_MS = 0.1;
const SHARE = 1 / 20;
/** What may be used in one burst, after a time without slow reads. */
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

  /**
   * Makes the read, if now is the time for one. `prepare`: what it needs, whose time says nothing of where the bytes
   * are.
   */
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
