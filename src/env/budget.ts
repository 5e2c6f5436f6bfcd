/**
 * A budget of bytes shared by all requests of a process: what is in flight and what is answered and not yet sent. Whoever
 * wants to hold bytes reserves them first and waits its turn (first come, first served) when the budget is spent.
 *
 * Invariant: the sum of all reservations is at most the limit, but for one request alone that is larger than the whole budget and
 * runs when nothing else does, so that no request waits for ever.
 */
import { BigtableError, Code } from '../base/index.ts';

interface Waiter {
  readonly bytes: number;
  readonly grant: () => void;
}

export class ByteBudget {
  readonly limitBytes: number;
  #usedBytes = 0;
  readonly #waiters: Waiter[] = [];

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  reservation(): Reservation {
    return new Reservation(this);
  }

  /** Takes the bytes at once, or answers false. */
  tryTake(bytes: number): boolean {
    if (this.#waiters.length > 0 || !this.#fits(bytes)) return false;
    this.#usedBytes += bytes;
    return true;
  }

  /** Takes the bytes, waiting for them; CANCELLED when the signal aborts first. */
  take(bytes: number, signal?: AbortSignal): Promise<void> {
    if (this.tryTake(bytes)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        const at = this.#waiters.indexOf(waiter);
        if (at < 0) return;
        this.#waiters.splice(at, 1);
        reject(new BigtableError(Code.CANCELLED, 'the caller gave the call up while it waited for memory'));
        this.#wake();
      };
      const waiter: Waiter = {
        bytes,
        grant: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      if (signal?.aborted) return reject(new BigtableError(Code.CANCELLED, 'the caller gave the call up'));
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiters.push(waiter);
    });
  }

  give(bytes: number): void {
    this.#usedBytes -= bytes;
    this.#wake();
  }

  #fits(bytes: number): boolean {
    return this.#usedBytes === 0 || this.#usedBytes + bytes <= this.limitBytes;
  }

  #wake(): void {
    for (let first = this.#waiters[0]; first && this.#fits(first.bytes); first = this.#waiters[0]) {
      this.#waiters.shift();
      this.#usedBytes += first.bytes;
      first.grant();
    }
  }
}

/**
 * What one request holds of a budget. `release` gives everything back and may be called again.
 *
 * Waiting while holding is how deadlocks are made: `grow` waits, so it is for admission, before the request holds anything;
 * a request under way uses `tryGrow`, and when refused waits for its own answers to drain, or fails with RESOURCE_EXHAUSTED.
 */
export class Reservation {
  readonly #budget: ByteBudget;
  #heldBytes = 0;
  #released = false;

  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Takes more at once where the budget has it, else false. */
  tryGrow(bytes: number): boolean {
    if (this.#released || !this.#budget.tryTake(bytes)) return false;
    this.#heldBytes += bytes;
    return true;
  }

  async grow(bytes: number, signal?: AbortSignal): Promise<void> {
    await this.#budget.take(bytes, signal);
    if (this.#released) this.#budget.give(bytes);
    else this.#heldBytes += bytes;
  }

  shrink(bytes: number): void {
    const given = Math.min(bytes, this.#heldBytes);
    this.#heldBytes -= given;
    if (given > 0) this.#budget.give(given);
  }

  release(): void {
    this.#released = true;
    this.shrink(this.#heldBytes);
  }
}
