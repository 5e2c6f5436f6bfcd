/**
 * Randomness from a seed, the same on every machine, for the simulator and the tests. The generator is PCG32 (XSH-RR,
 * 64 bits of state, 32 bits a draw; O'Neill 2014), kept in two 32-bit halves so that no draw allocates.
 *
 * Invariant: equal seeds draw equal sequences; a name is never drawn twice in practice (128 bits of the sequence).
 */
import type { Random } from '../seams/clock.ts';

const TWO_32 = 0x1_0000_0000;
/** The multiplier 6364136223846793005 and the increment 1442695040888963407, in halves. */
const MULTIPLIER_HIGH = 0x5851f42d;
const MULTIPLIER_LOW = 0x4c957f2d;
const INCREMENT_HIGH = 0x14057b7e;
const INCREMENT_LOW = 0xf767814f;

export class SeededRandom implements Random {
  #high = 0;
  #low = 0;

  /** `seed`: an integer; its low 53 bits count. */
  constructor(seed: number) {
    this.#step();
    const low = this.#low + (seed >>> 0);
    this.#low = low >>> 0;
    this.#high = (this.#high + Math.floor(seed / TWO_32) + (low >= TWO_32 ? 1 : 0)) >>> 0;
    this.#step();
  }

  float(): number {
    // 53 bits, as many as the fraction of a double holds
    return ((this.#draw() >>> 5) * 0x400_0000 + (this.#draw() >>> 6)) / 0x20_0000_0000_0000;
  }

  uniqueName(): string {
    let name = '';
    for (let i = 0; i < 4; i++) name += this.#draw().toString(16).padStart(8, '0');
    return name;
  }

  /** 32 bits. */
  #draw(): number {
    const high = this.#high;
    const low = this.#low;
    this.#step();
    // ((state >>> 18) ^ state) >>> 27, low 32 bits
    const mixedHigh = high ^ (high >>> 18);
    const mixedLow = low ^ ((low >>> 18) | (high << 14));
    const mixed = ((mixedLow >>> 27) | (mixedHigh << 5)) >>> 0;
    const turn = high >>> 27;
    return ((mixed >>> turn) | (mixed << (-turn & 31))) >>> 0;
  }

  /** state = state * multiplier + increment, modulo 2^64. */
  #step(): void {
    const low = this.#low;
    const product = multiplyHigh(low, MULTIPLIER_LOW);
    const nextLow = (Math.imul(low, MULTIPLIER_LOW) >>> 0) + INCREMENT_LOW;
    const carry = nextLow >= TWO_32 ? 1 : 0;
    this.#high =
      (product + Math.imul(this.#high, MULTIPLIER_LOW) + Math.imul(low, MULTIPLIER_HIGH) + INCREMENT_HIGH + carry) >>>
      0;
    this.#low = nextLow >>> 0;
  }
}

/** The upper 32 bits of the product of two unsigned 32-bit numbers. */
function multiplyHigh(a: number, b: number): number {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const other = aLow * bHigh + (middle & 0xffff);
  return (aHigh * bHigh + Math.floor(middle / 0x10000) + Math.floor(other / 0x10000)) >>> 0;
}
