/**
 * Decides if an append to a log may be made synchronously, while everything else on the event loop waits. On a quick
 * disk a durable write takes about 0.1 ms, and handing it to another thread and back costs the processor half as much
 * again. On a slow disk, or one that hangs, all reads would wait for it. So appends are timed: they are synchronous in
 * long periods, and left to other threads in long periods (docs/decisions/0042-synchronous-appends.md).
 *
 * Invariants:
 * - Three slow appends in a row end a synchronous period, and so does the first one that takes HANG_MS.
 * - Slow synchronous appends take at most a tenth of the time, but for a short burst.
 */
import { assert } from '../../base/index.ts';
import { TimeAccount } from './posix-time-account.ts';

/** Larger appends are left to other threads. */
export const MAX_SYNCHRONOUS_BYTES = 256 << 10;
const SLOW_MS = 1;
const HANG_MS = 20;
const MAX_SLOW_IN_A_ROW = 3;
/** The part of the time that slow appends may take. */
const SHARE = 1 / 10;
/** The shortest period in which appends are left to other threads; it doubles while the disk stays slow. */
const MIN_REST_MS = 1000;
const MAX_REST_MS = 16_000;

export class QuickAppends {
  readonly #nowMs: () => number;
  /** The time that slow appends may take. */
  readonly #account: TimeAccount;
  #slowInARow = 0;
  #isResting = false;
  #restMs = MIN_REST_MS;
  #restEndMs = Number.NEGATIVE_INFINITY;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#account = new TimeAccount(SHARE, nowMs());
  }

  /** True if an append of that size may be synchronous now. */
  allows(bytes: number): boolean {
    if (bytes > MAX_SYNCHRONOUS_BYTES) return false;
    if (!this.#isResting) return true;
    if (this.#nowMs() < this.#restEndMs) return false;
    this.#isResting = false;
    this.#slowInARow = 0;
    return true;
  }

  /** Called after a synchronous append. */
  took(tookMs: number): void {
    assert(!this.#isResting, 'no append is synchronous in a rest');
    if (tookMs < SLOW_MS) {
      this.#slowInARow = 0;
      return;
    }
    this.#slowInARow++;
    const nowMs = this.#nowMs();
    this.#account.earn(nowMs);
    this.#account.spend(tookMs);
    if (tookMs >= HANG_MS || this.#slowInARow >= MAX_SLOW_IN_A_ROW || this.#account.isSpent) this.#rest(nowMs);
  }

  #rest(nowMs: number): void {
    // a period that was shorter than the rest before it was a mistake
    const wasShort = nowMs - this.#restEndMs < this.#restMs;
    this.#restMs = wasShort ? Math.min(MAX_REST_MS, 2 * this.#restMs) : MIN_REST_MS;
    this.#restEndMs = nowMs + this.#restMs;
    this.#isResting = true;
  }
}
