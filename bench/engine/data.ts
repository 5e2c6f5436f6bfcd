/**
 * Keys in order or at random and values that do not compress, cheap enough to make that they do not weigh on the
 * figures: values are windows into 16 MiB of random bytes, so two equal windows lie far outside what a compressor of
 * blocks looks back on.
 */
import { randomFillSync } from 'node:crypto';
import { CELL_BYTES, CELLS_A_ROW, VALUE_BYTES } from './job.ts';

const POOL_BYTES = 16 * 1024 * 1024;

/** The same numbers for the same seed (mulberry32). */
export class Numbers {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * limit);
  }
}

/** Row numbers below `rows`, each once, in an order that looks random. */
export function shuffled(rows: number, seed: number): Uint32Array {
  const order = Uint32Array.from({ length: rows }, (_, i) => i);
  const numbers = new Numbers(seed);
  for (let i = rows - 1; i > 0; i--) {
    const j = numbers.below(i + 1);
    const kept = order[i] as number;
    order[i] = order[j] as number;
    order[j] = kept;
  }
  return order;
}

export class Values {
  readonly #pool = randomFillSync(Buffer.allocUnsafe(POOL_BYTES));
  readonly #numbers = new Numbers(1);

  value(): Buffer {
    return this.#window(VALUE_BYTES);
  }

  cells(): Buffer[] {
    return Array.from({ length: CELLS_A_ROW }, () => this.#window(CELL_BYTES));
  }

  #window(length: number): Buffer {
    const at = this.#numbers.below(POOL_BYTES - length);
    return this.#pool.subarray(at, at + length);
  }
}
