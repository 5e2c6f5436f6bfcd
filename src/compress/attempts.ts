/**
 * Whether it is worth the time to try a block: after several in a row that did not shrink enough, only one in sixteen
 * is tried, until one of them does. Images and encrypted values so cost little, and a file that changes its contents
 * half way loses at most fifteen blocks.
 */
const FAILURES_BEFORE_SAMPLING = 8;
const SAMPLE_EVERY = 16;

export class Attempts {
  #failures = 0;
  #skipped = 0;

  /** To be asked once a block. */
  shouldTry(): boolean {
    if (this.#failures < FAILURES_BEFORE_SAMPLING) return true;
    this.#skipped++;
    if (this.#skipped < SAMPLE_EVERY) return false;
    this.#skipped = 0;
    return true;
  }

  /** What came of a try. */
  record(shrank: boolean): void {
    this.#failures = shrank ? 0 : this.#failures + 1;
    if (shrank) this.#skipped = 0;
  }
}
