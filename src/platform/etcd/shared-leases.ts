/**
 * The ends of a process's leases, in memory that its threads share: one keeps them alive and publishes their ends,
 * another asks in any tick whether they hold, and neither waits for the other.
 *
 * Invariants: a lease holds before both of its ends, that of the monotonic and that of the wall clock (endOfLease of
 * env/calls/lease). Each end is written and read whole; a reader that sees a new and an old one sees a lease that ends
 * too early. Threads use a monotonic clock of the process: `performance.now()` counts from the start of its thread.
 */
import { hrtime } from 'node:process';
import { assert } from '../../base/index.ts';
import { endOfLease, type Instant } from '../../env/index.ts';

/** Leases that a process may have together. */
export const MAX_LEASES = 1024;
/** The ends of one lease, µs. */
const WORDS = 2;

export function leaseMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(MAX_LEASES * WORDS * BigInt64Array.BYTES_PER_ELEMENT);
}

/** The same for all threads of the process. */
export function processInstant(): Instant {
  const [seconds, nanos] = hrtime();
  return { monotonicMs: seconds * 1000 + nanos / 1e6, wallMs: Date.now() };
}

export class SharedLeases {
  readonly #ends: BigInt64Array;
  readonly #now: () => Instant;

  /** `memory`: of `leaseMemory`; no lease in it holds. */
  constructor(memory: SharedArrayBuffer, now: () => Instant = processInstant) {
    this.#ends = new BigInt64Array(memory);
    assert(this.#ends.length === MAX_LEASES * WORDS, 'the memory is that of leases');
    this.#now = now;
  }

  /** Read before a keep-alive is sent. */
  now(): Instant {
    return this.#now();
  }

  /** A keep-alive that was sent then has been answered: the lease lasts that long. To be called in their order. */
  renewed(slot: number, sent: Instant, leaseMs: number): void {
    const { monotonicMs, wallMs } = endOfLease(sent, leaseMs);
    Atomics.store(this.#ends, WORDS * slot, micros(monotonicMs));
    Atomics.store(this.#ends, WORDS * slot + 1, micros(wallMs));
  }

  /** The lease is known to have ended. */
  ended(slot: number): void {
    for (let i = 0; i < WORDS; i++) Atomics.store(this.#ends, WORDS * slot + i, 0n);
  }

  holds(slot: number): boolean {
    const { monotonicMs, wallMs } = this.#now();
    return (
      monotonicMs * 1000 < Number(Atomics.load(this.#ends, WORDS * slot)) &&
      wallMs * 1000 < Number(Atomics.load(this.#ends, WORDS * slot + 1))
    );
  }
}

function micros(ms: number): bigint {
  return BigInt(Math.floor(ms * 1000));
}
