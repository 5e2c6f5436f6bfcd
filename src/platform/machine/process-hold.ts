/**
 * Keeps the process alive while a caller awaits something: the waits of the library are on timers that let a process end, so that an open database
 * does not keep a program from ending. Without a hold a program with nothing else to do would end in the midst of an `await`.
 */
const NEVER_MS = 2 ** 31 - 1;

export class ProcessHold {
  #count = 0;
  readonly #timer = setInterval(() => {}, NEVER_MS).unref();
  readonly #leave = (): void => this.leave();

  /** Something is awaited, until `leave`. */
  enter(): void {
    if (this.#count++ === 0) this.#timer.ref();
  }

  leave(): void {
    if (--this.#count === 0) this.#timer.unref();
  }

  /** Answers the promise as it is. */
  while<T>(work: Promise<T>): Promise<T> {
    this.enter();
    work.then(this.#leave, this.#leave);
    return work;
  }
}
