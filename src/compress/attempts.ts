/**
 * Decides whether to try to compress a block: after several blocks in a row that did not shrink enough, only one in
 * sixteen is tried, until one does. So images and encrypted values cost little, and a file whose contents change loses
 * at most fifteen blocks.
 */
const FAILURES_BEFORE_SAMPLING = 8;
const SAMPLE_EVERY = 16;

export class Attempts {
  #failures = 0;
  #skipped = 0;

  /** Call it once for each block. */
  shouldTry(): boolean {
    if (this.#failures < FAILURES_BEFORE_SAMPLING) return true;
    this.#skipped++;
    if (this.#skipped < SAMPLE_EVERY) return false;
    this.#skipped = 0;
    return true;
  }

  /** Records the outcome of a try. */
  record(shrank: boolean): void {
    this.#failures = shrank ? 0 : this.#failures + 1;
    if (shrank) this.#skipped = 0;
  }
}
