/** A point where all actors stop while one does something that nothing may run next to. */
export class Barrier {
  readonly #actors: number;
  #parked = 0;
  #wanted: { readonly over: Promise<void>; readonly end: () => void } | undefined;
  #tellParked: (() => void) | undefined;

  constructor(actors: number) {
    this.#actors = actors;
  }

  /** True when actors should come to `pass` soon. */
  get isClosed(): boolean {
    return this.#wanted !== undefined;
  }

  /** Actors call it between two things they do. */
  async pass(): Promise<void> {
    if (this.#wanted === undefined) return;
    const { over } = this.#wanted;
    if (++this.#parked === this.#actors) this.#tellParked?.();
    await over;
    this.#parked--;
  }

  /** An actor that comes no more. */
  leave(): void {
    if (++this.#parked === this.#actors) this.#tellParked?.();
  }

  close(): void {
    let end = (): void => {};
    const over = new Promise<void>((resolve) => (end = resolve));
    this.#wanted = { over, end };
  }

  async allParked(): Promise<void> {
    if (this.#parked < this.#actors) await new Promise<void>((resolve) => (this.#tellParked = resolve));
    this.#tellParked = undefined;
  }

  open(): void {
    this.#wanted?.end();
    this.#wanted = undefined;
  }
}
