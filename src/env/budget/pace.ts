/**
 * Measures if a transfer is fast enough: a request that comes in, an answer that is read. Checked only when another
 * call waits for the memory that it holds.
 *
 * Invariant: no transfer is too slow before `graceMs` have passed, and one that stands still is too slow after three
 * times that: a quick beginning excuses no standstill, since at most twice the grace's bytes are counted.
 */

export interface PaceOptions {
  readonly graceMs: number;
  readonly bytesPerSecond: number;
}

export class Pace {
  readonly #graceMs: number;
  #bytesPerSecond: number;
  #sinceMs: number;
  #bytes = 0;

  constructor({ graceMs, bytesPerSecond }: PaceOptions, nowMs: number) {
    this.#graceMs = graceMs;
    this.#bytesPerSecond = bytesPerSecond;
    this.#sinceMs = nowMs;
  }

  /** Begins again, perhaps at another rate. */
  restart(nowMs: number, bytesPerSecond = this.#bytesPerSecond): void {
    this.#bytesPerSecond = bytesPerSecond;
    this.#sinceMs = nowMs;
    this.#bytes = 0;
  }

  moved(bytes: number, nowMs: number): void {
    this.#bytes = Math.min(this.#bytes + bytes, (2 * this.#graceMs * this.#bytesPerSecond) / 1000);
    if (nowMs - this.#sinceMs >= this.#graceMs && this.#keeps(nowMs)) this.restart(nowMs);
  }

  isTooSlow(nowMs: number): boolean {
    return nowMs - this.#sinceMs >= this.#graceMs && !this.#keeps(nowMs);
  }

  #keeps(nowMs: number): boolean {
    return this.#bytes * 1000 >= (nowMs - this.#sinceMs) * this.#bytesPerSecond;
  }
}
