/**
 * Memory for the records of the tablets that are being loaded: first come, first served. A tablet that needs more than
 * there is waits until no other one holds any.
 */
import { assert } from '../base/index.ts';

interface Waiting {
  readonly bytes: number;
  readonly go: () => void;
}

export class ReplayMemory {
  readonly #limitBytes: number;
  #heldBytes = 0;
  readonly #waiting: Waiting[] = [];

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Resolves when the bytes may be used. */
  async take(bytes: number): Promise<void> {
    await new Promise<void>((go) => {
      this.#waiting.push({ bytes, go });
      this.#grant();
    });
  }

  giveBack(bytes: number): void {
    this.#heldBytes -= bytes;
    assert(this.#heldBytes >= 0, 'no more memory is given back than was taken');
    this.#grant();
  }

  #grant(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (this.#heldBytes > 0 && this.#heldBytes + next.bytes > this.#limitBytes) return;
      this.#waiting.shift();
      this.#heldBytes += next.bytes;
      next.go();
    }
  }
}
