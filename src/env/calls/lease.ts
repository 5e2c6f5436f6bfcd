/**
 * A session's lease as its owner sees it: counted from when the keep-alive was sent, not from when its answer came,
 * and by the earlier of two clocks. The monotonic one stops while a machine is suspended, the wall clock may be set
 * back; both at the same time is not considered.
 */
import { assert } from '../../base/index.ts';
import type { Clock } from '../seams/clock.ts';

/** The difference in speed of two machines' clocks: 500 ppm, the most that NTP corrects. */
const MAX_DRIFT = 500e-6;
/** The time between a look at the clocks and the effect of what it allows. */
const MARGIN_MS = 100;

export interface Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** The end of a lease of `leaseMs` as its owner sees it, whose keep-alive was sent then and has been answered. */
export function endOfLease({ monotonicMs, wallMs }: Instant, leaseMs: number): Instant {
  assert(leaseMs > 2 * MARGIN_MS, 'a lease is longer than its margin');
  const safeMs = leaseMs * (1 - MAX_DRIFT) - MARGIN_MS;
  return { monotonicMs: monotonicMs + safeMs, wallMs: wallMs + safeMs };
}

export class Lease {
  readonly #clock: Clock;
  readonly #leaseMs: number;
  #until: Instant = { monotonicMs: Number.NEGATIVE_INFINITY, wallMs: Number.NEGATIVE_INFINITY };

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock;
    this.#leaseMs = leaseMs;
  }

  /** Read before a keep-alive is sent. */
  now(): Instant {
    return { monotonicMs: this.#clock.monotonicMs(), wallMs: this.#clock.nowMicros() / 1000 };
  }

  /** A keep-alive that was sent then has been answered. Answers may come in any order. */
  renewed(sent: Instant): void {
    const until = endOfLease(sent, this.#leaseMs);
    if (until.monotonicMs >= this.#until.monotonicMs) this.#until = until;
  }

  holds(): boolean {
    const { monotonicMs, wallMs } = this.now();
    return monotonicMs < this.#until.monotonicMs && wallMs < this.#until.wallMs;
  }
}
