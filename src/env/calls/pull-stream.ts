/**
 * A stream of values that are mostly ready when they are requested: `pull` returns a ready value without a promise, so
 * that a read of one row, through all the rooms it crosses, costs none. It is an async iterable as well, for callers
 * that iterate.
 *
 * Values are never undefined, nor promises. Invariant: one pull at a time; after the end, an error or `end()` every
 * pull returns undefined.
 */
export abstract class PullStream<T> implements AsyncIterableIterator<T, undefined> {
  /**
   * The next value; undefined at the end. A promise where it must be waited for. Throws or rejects where the stream
   * fails.
   */
  abstract pull(): T | undefined | Promise<T | undefined>;

  /** Releases the stream, at its end too: every reader calls this when it is done. Harmless a second time. */
  abstract end(): void | Promise<void>;

  next(): Promise<IteratorResult<T, undefined>> {
    try {
      const value = this.pull();
      return value instanceof Promise ? value.then(resultOf) : Promise.resolve(resultOf(value));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    await this.end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

function resultOf<T>(value: T | undefined): IteratorResult<T, undefined> {
  return value === undefined ? { done: true, value: undefined } : { done: false, value };
}

/** The stream itself where it is one, else a stream of the same values with a promise each. */
export function pullStreamOf<T>(values: AsyncIterable<T>): PullStream<T> {
  return values instanceof PullStream ? (values as PullStream<T>) : new Iterated(values[Symbol.asyncIterator]());
}

class Iterated<T> extends PullStream<T> {
  readonly #values: AsyncIterator<T>;
  #ended = false;

  constructor(values: AsyncIterator<T>) {
    super();
    this.#values = values;
  }

  async pull(): Promise<T | undefined> {
    if (this.#ended) return undefined;
    try {
      const { done, value } = await this.#values.next();
      if (!done) return value;
    } catch (error) {
      this.#ended = true;
      throw error;
    }
    this.#ended = true;
    return undefined;
  }

  async end(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.#values.return?.();
  }
}

/** The values of `values`, each changed. A change that throws ends the stream. */
export class ChangedStream<T> extends PullStream<T> {
  readonly #values: PullStream<unknown>;
  readonly #change: (value: unknown) => T;

  constructor(values: PullStream<unknown>, change: (value: unknown) => T) {
    super();
    this.#values = values;
    this.#change = change;
  }

  pull(): T | undefined | Promise<T | undefined> {
    const value = this.#values.pull();
    return value instanceof Promise ? value.then((late) => this.#changed(late)) : this.#changed(value);
  }

  end(): void | Promise<void> {
    return this.#values.end();
  }

  #changed(value: unknown): T | undefined {
    if (value === undefined) return undefined;
    try {
      return this.#change(value);
    } catch (error) {
      // no caller waits for the clean-up
      const ending = this.end();
      if (ending instanceof Promise) ending.catch(() => {});
      throw error;
    }
  }
}
