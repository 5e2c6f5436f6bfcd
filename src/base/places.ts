/** Lets a number of pieces of work run at a time; others wait, and begin in the order in which they came. */
import { assert } from './errors.ts';

export class Places {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    assert(count > 0, 'work waits for a place that there is');
    this.#free = count;
  }

  /** Returns what the work does, or throws as it does; its place is free then. */
  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free === 0) await new Promise<void>((begin) => this.#waiting.push(begin));
    else this.#free--;
    assert(this.#free >= 0, 'no more pieces of work run than there are places');
    try {
      return await work();
    } finally {
      // the next one takes the place of this one
      const begin = this.#waiting.shift();
      if (begin === undefined) this.#free++;
      else begin();
    }
  }
}
