/**
 * Keeps the process alive while a caller awaits something. The library waits on timers that let a process end, so that
 * an open database does not keep a program from ending; a program with nothing else to do would otherwise end in the
 * midst of an `await`.
 */
import { assert } from '../../base/index.ts';

const NEVER_MS = 2 ** 31 - 1;

export class KeepAlive {
  #count = 0;
  readonly #timer = setInterval(() => {}, NEVER_MS).unref();
  readonly #release = (): void => this.release();

  /** Keeps the process alive until `release`. */
  hold(): void {
    if (this.#count++ === 0) this.#timer.ref();
  }

  release(): void {
    assert(this.#count > 0, 'nothing is released more often than held');
    if (--this.#count === 0) this.#timer.unref();
  }

  /** Holds until the promise settles, and returns it. */
  while<T>(work: Promise<T>): Promise<T> {
    this.hold();
    work.then(this.#release, this.#release);
    return work;
  }
}
