/** Work on things that have names: for each name it is done one after another. */
export class Turns {
  /** By name: the last work, whether it succeeds or not. */
  readonly #last = new Map<string, Promise<unknown>>();

  /** True while some work on that name is under way. */
  has(name: string): boolean {
    return this.#last.has(name);
  }

  /** Does the work when all earlier work on that name is over. */
  async inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name);
    const result = before ? before.then(work) : work();
    const settled = result.then(
      () => {},
      () => {},
    );
    this.#last.set(name, settled);
    try {
      return await result;
    } finally {
      if (this.#last.get(name) === settled) this.#last.delete(name);
    }
  }
}
