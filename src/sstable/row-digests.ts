/**
 * A dense table for searching sorted rows: of each row the six bytes behind what all of them begin with, as a number. A binary search in
 * it touches a few cache lines where one in the rows themselves touches as many as it takes steps; most often one row is left at the end of it.
 *
 * Invariant: digests ascend as rows do, not strictly.
 */
import type { ByteString } from '../base/index.ts';

const DIGEST_BYTES = 6;

export class RowDigests {
  /** After `narrow`: rows up to this one are below the target. -1 = none. */
  low = -1;
  /** After `narrow`: rows from this one on are above the target. */
  high = 0;
  readonly #digests: Float64Array;
  /** What all rows begin with. */
  readonly #common: Buffer;

  /** `first` and `last` of `count` rows; the others follow by `set`. */
  constructor(count: number, first: ByteString, last: ByteString) {
    this.#digests = new Float64Array(count);
    let common = 0;
    while (common < first.length && common < last.length && first.charCodeAt(common) === last.charCodeAt(common)) common++;
    this.#common = Buffer.from(first.slice(0, common), 'latin1');
  }

  get sizeBytes(): number {
    return this.#digests.byteLength;
  }

  set(number: number, bytes: Uint8Array, at: number, length: number): void {
    let digest = 0;
    const from = this.#common.length;
    for (let i = from; i < from + DIGEST_BYTES; i++) digest = digest * 256 + (i < length ? (bytes[at + i] as number) : 0);
    this.#digests[number] = digest;
  }

  /** Sets `low` and `high`: what lies between them is not told apart from `row` by its digest. */
  narrow(row: ByteString): void {
    const digests = this.#digests;
    const count = digests.length;
    const from = this.#common.length;
    const order = this.#compareCommon(row);
    if (order !== 0) {
      this.low = order > 0 ? -1 : count - 1;
      this.high = this.low + 1;
      return;
    }
    let target = 0;
    for (let i = from; i < from + DIGEST_BYTES; i++) target = target * 256 + (i < row.length ? row.charCodeAt(i) : 0);
    let low = -1;
    let high = count;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if ((digests[middle] as number) < target) low = middle;
      else high = middle;
    }
    this.low = low;
    low = high - 1;
    // the equal ones: mostly one, and as many as there are where a row is long
    for (let step = 1; high < count && digests[high] === target; step *= 2) {
      low = high;
      high = Math.min(high + step, count);
    }
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if ((digests[middle] as number) <= target) low = middle;
      else high = middle;
    }
    this.high = high;
  }

  /** Order of what all rows begin with and the beginning of `row`; a shorter row is below all. */
  #compareCommon(row: ByteString): number {
    const common = this.#common;
    for (let i = 0; i < common.length; i++) {
      if (i >= row.length) return 1;
      const difference = (common[i] as number) - row.charCodeAt(i);
      if (difference !== 0) return difference;
    }
    return 0;
  }
}
