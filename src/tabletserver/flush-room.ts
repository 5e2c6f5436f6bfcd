/**
 * Room for the flushes of a server. A large memtable is flushed alone, small ones at the same time: of many tablets
 * that are written evenly each has little, and a flush takes time that does not depend on its size.
 *
 * Invariant: room is given in the order in which it was requested.
 */
import { assert } from '../base/index.ts';

/** Limits of the flushes under way, if they are several. */
export interface FlushLimits {
  readonly count: number;
  readonly bytes: number;
}

export const DEFAULT_FLUSH_LIMITS: FlushLimits = { count: 64, bytes: 8 * 1024 * 1024 };

interface Waiting {
  readonly bytes: number;
  readonly enter: () => void;
}

export class FlushRoom {
  readonly limits: FlushLimits;
  #count = 0;
  #bytes = 0;
  #waiting: Waiting[] = [];

  constructor(limits = DEFAULT_FLUSH_LIMITS) {
    this.limits = limits;
  }

  /** True if a flush of that size could begin now. */
  hasRoom(bytes: number): boolean {
    return this.#waiting.length === 0 && this.#fits(bytes);
  }

  /** Takes room for a flush of that size, if there is some. */
  tryTake(bytes: number): boolean {
    if (!this.hasRoom(bytes)) return false;
    this.#enter(bytes);
    return true;
  }

  /** Takes room once there is some. */
  take(bytes: number): Promise<void> {
    if (this.tryTake(bytes)) return Promise.resolve();
    return new Promise((enter) => this.#waiting.push({ bytes, enter }));
  }

  /** The flush is over. */
  giveBack(bytes: number): void {
    this.#count--;
    this.#bytes -= bytes;
    assert(this.#count >= 0 && this.#bytes >= 0, 'room is given back once');
    let next = 0;
    for (let one = this.#waiting[next]; one !== undefined && this.#fits(one.bytes); one = this.#waiting[++next]) {
      this.#enter(one.bytes);
      one.enter();
    }
    if (next > 0) this.#waiting = this.#waiting.slice(next);
  }

  #enter(bytes: number): void {
    assert(bytes >= 0, 'memtables take no less than nothing');
    this.#count++;
    this.#bytes += bytes;
  }

  #fits(bytes: number): boolean {
    const { count, bytes: limitBytes } = this.limits;
    return this.#count === 0 || (this.#count < count && this.#bytes + bytes <= limitBytes);
  }
}
