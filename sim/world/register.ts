/**
 * What may be found of something that one client alone changes, one call after another: what the last answered change
 * made of it, or what a change of unknown outcome may have made of it since then, or may yet make.
 */

/** A change of unknown outcome takes effect within this time after its call has ended, or never. */
export const LATE_MS = 30_000;

/** What is found where there is nothing. */
export const ABSENT = '';

interface Doubtful {
  readonly value: string;
  readonly untilMs: number;
}

export class Register {
  readonly #nowMs: () => number;
  #last = ABSENT;
  /** True since it went with what it was in. */
  isReset = false;
  #doubtful: Doubtful[] = [];
  /** What a call under way is making of it. */
  #begun: string | undefined;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  begin(value: string): void {
    this.#begun = value;
    this.isReset = false;
  }

  /** The change that was begun is answered. */
  done(): void {
    if (this.#begun !== undefined) this.#last = this.#begun;
    this.#begun = undefined;
    // an earlier one that may yet come about is the last one then
    this.#doubtful = this.#doubtful.filter(({ untilMs }) => untilMs >= this.#nowMs());
  }

  /** The change that was begun has failed in a way that says nothing of it. */
  mayBeDone(): void {
    if (this.#begun !== undefined) this.#doubtful.push({ value: this.#begun, untilMs: this.#nowMs() + LATE_MS });
    this.#begun = undefined;
  }

  /** The change that was begun was refused. */
  refused(): void {
    this.#begun = undefined;
  }

  /** What it is in was deleted: nothing comes late. `mayBeSeen`: what it was may still be seen for a time. */
  reset(mayBeSeen: boolean): void {
    const untilMs = this.#nowMs() + LATE_MS;
    this.#doubtful = mayBeSeen ? this.#possible().map((value) => ({ value, untilMs })) : [];
    this.isReset = true;
    this.#last = ABSENT;
    this.#begun = undefined;
  }

  /** What it surely is; undefined: nobody knows. */
  get known(): string | undefined {
    return this.#possible().length === 1 ? this.#last : undefined;
  }

  /** True where it may be that. */
  mayBe(value: string): boolean {
    return this.#possible().includes(value);
  }

  toString(): string {
    return this.#possible()
      .map((value) => (value === ABSENT ? 'nothing' : value))
      .join(' or ');
  }

  #possible(): string[] {
    return [...new Set([this.#last, ...this.#doubtful.map(({ value }) => value)])];
  }
}
