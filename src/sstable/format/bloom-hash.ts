/**
 * The hash of a Bloom filter's keys: two lanes of 32 bits over the key's bytes, four at a time. It is part of the
 * format (docs/formats/sstable.md, "bloom", specifies it byte by byte): never change it.
 *
 * Hot path: a read computes it for every layer. The result is in two fields, and nothing is allocated.
 */
import type { ByteString } from '../../base/index.ts';

const SEED_1 = 0x6a09e667;
const SEED_2 = 0xbb67ae85 | 0;
const WORD = 0x9e3779b1 | 0;
const LANE_1 = 0x85ebca77 | 0;
const LANE_2 = 0xc2b2ae3d | 0;

export class BloomHash {
  /** Chooses the line of the filter. */
  first = 0;
  /** Chooses the bits in it. */
  second = 0;
  /** The lanes of the row last hashed, for hashing its columns. */
  #row1 = 0;
  #row2 = 0;
  #hashedRow: ByteString | undefined;

  /** Hashes a row. The same row again is not hashed again. */
  row(row: ByteString): void {
    if (row === this.#hashedRow) {
      this.first = this.#row1;
      this.second = this.#row2;
      return;
    }
    this.#absorb(row, SEED_1, SEED_2);
    this.#hashedRow = row;
    this.#row1 = this.first;
    this.#row2 = this.second;
  }

  /** The pair of the row last hashed and this column. */
  column(column: ByteString): void {
    this.#absorb(column, this.#row1, this.#row2);
  }

  #absorb(text: ByteString, from1: number, from2: number): void {
    const { length } = text;
    let a = from1;
    let b = from2 ^ length;
    let i = 0;
    for (const whole = length - 3; i < whole; i += 4) {
      const word =
        text.charCodeAt(i) |
        (text.charCodeAt(i + 1) << 8) |
        (text.charCodeAt(i + 2) << 16) |
        (text.charCodeAt(i + 3) << 24);
      let k = Math.imul(word, WORD);
      k ^= k >>> 15;
      a = Math.imul(((a << 13) | (a >>> 19)) ^ k, LANE_1);
      b = Math.imul(((b << 17) | (b >>> 15)) + k, LANE_2);
    }
    if (i < length) {
      let word = 0;
      for (let shift = 0; i < length; i++, shift += 8) word |= text.charCodeAt(i) << shift;
      let k = Math.imul(word, WORD);
      k ^= k >>> 15;
      a = Math.imul(((a << 13) | (a >>> 19)) ^ k, LANE_1);
      b = Math.imul(((b << 17) | (b >>> 15)) + k, LANE_2);
    }
    a = finished(a + b);
    b = finished(b ^ a);
    this.first = a;
    this.second = b;
  }
}

function finished(lane: number): number {
  let mixed = Math.imul(lane ^ (lane >>> 16), LANE_1);
  mixed = Math.imul(mixed ^ (mixed >>> 13), LANE_2);
  return mixed ^ (mixed >>> 16);
}
