/**
 * An account of the time that slow synchronous calls may take: a share of all time, and a short burst after a time
 * without them.
 *
 * Invariant: what is spent between any two moments is at most the share of the time between them, the burst and the
 * call that used up the account.
 */
import { assert } from '../../base/index.ts';

/** Most time that is saved for a burst. */
const BURST_MS = 20;

export class TimeAccount {
  readonly #share: number;
  /** Time that calls may take from now on, as of `#asOfMs`. */
  #leftMs = BURST_MS;
  #asOfMs: number;

  /** `share`: the part of the time that calls may take, between 0 and 1. */
  constructor(share: number, nowMs: number) {
    this.#share = share;
    this.#asOfMs = nowMs;
  }

  /** True when no call may take time now; `earn` may change that. */
  get isSpent(): boolean {
    return this.#leftMs <= 0;
  }

  /** Adds the share of the time since the last call of `earn`. */
  earn(nowMs: number): void {
    assert(nowMs >= this.#asOfMs, 'the time of an account ascends');
    this.#leftMs = Math.min(BURST_MS, this.#leftMs + (nowMs - this.#asOfMs) * this.#share);
    this.#asOfMs = nowMs;
  }

  /** Subtracts the time that a call took. What is missing is earned before the next call. */
  spend(tookMs: number): void {
    this.#leftMs -= tookMs;
  }
}
