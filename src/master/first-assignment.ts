/** The outcome of a master's first assignment of all tablets. */
import { type BigtableError, Code } from '../base/index.ts';

export class FirstAssignment {
  readonly promise: Promise<void>;
  #isDone = false;
  #isOver = false;
  #resolve = (): void => {};
  #reject: (error: BigtableError) => void = () => {};

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // its owner may not ask
    this.promise.catch(() => {});
  }

  /** True once its outcome is known. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** True once it was made, though it may have failed before. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Returns true the first time. */
  done(): boolean {
    const isFirst = !this.#isDone;
    this.#isDone = true;
    this.#isOver = true;
    this.#resolve();
    return isFirst;
  }

  /** Without effect if its outcome is known. */
  failed(error: BigtableError): void {
    this.#isOver = true;
    this.#reject(error);
  }
}

/** Another attempt does not mend it. */
export function isLasting({ retry, code }: BigtableError): boolean {
  return !retry && code !== Code.CANCELLED && code !== Code.DEADLINE_EXCEEDED;
}
