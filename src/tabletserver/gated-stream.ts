import { PullStream } from '../env/index.ts';

/**
 * A stream that passes a gate before each item: it begins, and goes on, when that resolves. Ends with the gate's
 * failure.
 */
export class GatedStream<I> extends PullStream<I> {
  readonly #gate: () => void | Promise<void>;
  readonly #begin: () => PullStream<I>;
  #items: PullStream<I> | undefined;
  #hasEnded = false;

  /** `gate` returns nothing where there is nothing to wait for. */
  constructor(gate: () => void | Promise<void>, begin: () => PullStream<I>) {
    super();
    this.#gate = gate;
    this.#begin = begin;
  }

  pull(): I | undefined | Promise<I | undefined> {
    if (this.#hasEnded) return undefined;
    const passed = this.#gate();
    if (passed !== undefined) return this.#after(passed);
    this.#items ??= this.#begin();
    return this.#items.pull();
  }

  end(): void | Promise<void> {
    this.#hasEnded = true;
    return this.#items?.end();
  }

  async #after(passed: Promise<void>): Promise<I | undefined> {
    try {
      await passed;
      if (this.#hasEnded) return undefined;
      this.#items ??= this.#begin();
    } catch (error) {
      this.#hasEnded = true;
      throw error;
    }
    return this.#items.pull();
  }
}
