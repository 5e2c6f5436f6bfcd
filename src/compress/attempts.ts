/**
 * Decides whether to try to compress a block: after several blocks in a row that did not shrink enough, only one in
 * sixteen is tried, until one does. So images and encrypted values cost little, and a file whose contents change loses
 * at most fifteen blocks.
 *
 * A file after others that did not shrink begins with its first block, and then tries one in 64 until one shrinks.
 */
const FAILURES_BEFORE_SAMPLING = 8;
const SAMPLE_EVERY = 16;
const DOUBTFUL_SAMPLE_EVERY = 64;

export class Attempts {
  #failures = 0;
  #skipped = 0;
  #sampleEvery = SAMPLE_EVERY;

  /** `isDoubtful`: files of the same contents did not shrink. */
  constructor(isDoubtful: boolean) {
    if (!isDoubtful) return;
    this.#failures = FAILURES_BEFORE_SAMPLING;
    this.#sampleEvery = DOUBTFUL_SAMPLE_EVERY;
    this.#skipped = DOUBTFUL_SAMPLE_EVERY - 1;
  }

  /** Call it once for each block. */
  shouldTry(): boolean {
    if (this.#failures < FAILURES_BEFORE_SAMPLING) return true;
    this.#skipped++;
    if (this.#skipped < this.#sampleEvery) return false;
    this.#skipped = 0;
    return true;
  }

  /** Records the outcome of a try. */
  record(shrank: boolean): void {
    this.#failures = shrank ? 0 : this.#failures + 1;
    if (!shrank) return;
    this.#skipped = 0;
    this.#sampleEvery = SAMPLE_EVERY;
  }
}
