/**
 * A dense table for searching sorted rows. Each row has a digest: the six bytes after the common prefix of all rows, as
 * a number. A binary search in the table touches few cache lines, and mostly leaves one row to compare. The owner of
 * the table may mark rows. All of it is one array, since a look-up finds it cold.
 *
 * Invariant: digests ascend as rows do, not strictly.
 */
import type { ByteString } from '../../base/index.ts';

/** Bytes of a digest. One more bit is the mark. */
const DIGEST_BYTES = 6;

export class RowDigests {
  /** After `narrow`: rows up to this one are below the target. -1 = none. */
  low = -1;
  /** After `narrow`: rows from this one on are above the target. */
  high = 0;
  /** Length of the common prefix of all rows. */
  readonly #common: number;
  /** Number of table slots before the digests: they hold the common prefix, six bytes each. */
  readonly #from: number;
  /** The common prefix, then the digest and mark of each row. */
  readonly #table: Float64Array;

  /** `first` and `last` are the first and the last of `count` rows. Digests are added by `set`. */
  constructor(count: number, first: ByteString, last: ByteString) {
    let common = 0;
    while (common < first.length && common < last.length && first.charCodeAt(common) === last.charCodeAt(common))
      common++;
    this.#common = common;
    this.#from = Math.ceil(common / DIGEST_BYTES);
    this.#table = new Float64Array(this.#from + count);
    for (let i = 0; i < this.#from; i++) this.#table[i] = digestOf(first, i * DIGEST_BYTES, common);
  }

  get memoryBytes(): number {
    return this.#table.byteLength;
  }

  /** `mark`: 0 or 1. */
  set(number: number, bytes: Uint8Array, at: number, length: number, mark = 0): void {
    let digest = 0;
    const from = this.#common;
    for (let i = from; i < from + DIGEST_BYTES; i++) digest = digest * 256 + (i < length ? bytes[at + i]! : 0);
    this.#table[this.#from + number] = digest * 2 + mark;
  }

  isMarked(number: number): boolean {
    return this.#table[this.#from + number]! % 2 === 1;
  }

  /** Sets `low` and `high`. Digests do not distinguish the rows between them from `row`. */
  narrow(row: ByteString): void {
    const table = this.#table;
    const from = this.#from;
    const order = this.#compareCommon(row);
    if (order !== 0) {
      this.low = order > 0 ? -1 : table.length - from - 1;
      this.high = this.low + 1;
      return;
    }
    const target = digestOf(row, this.#common, row.length) * 2;
    let low = from - 1;
    let high = table.length;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (table[middle]! < target) low = middle;
      else high = middle;
    }
    this.low = low - from;
    low = high - 1;
    // skips equal digests: mostly one, several where a row is long
    for (let step = 1; high < table.length && table[high]! <= target + 1; step *= 2) {
      low = high;
      high = Math.min(high + step, table.length);
    }
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (table[middle]! <= target + 1) low = middle;
      else high = middle;
    }
    this.high = high - from;
  }

  /** Compares the common prefix with the beginning of `row`; a shorter row is below all. */
  #compareCommon(row: ByteString): number {
    const common = this.#common;
    for (let i = 0, at = 0; at < common; i++, at += DIGEST_BYTES) {
      const difference = this.#table[i]! - digestOf(row, at, common);
      if (difference !== 0) return difference;
    }
    return row.length < common ? 1 : 0;
  }
}

/** The six bytes at [from, end) of the row as a number, padded with zeros. */
function digestOf(row: ByteString, from: number, end: number): number {
  const most = end < row.length ? end : row.length;
  return threeBytes(row, from, most) * 0x1_00_00_00 + threeBytes(row, from + 3, most);
}

/** As an integer of 32 bits: that is much quicker than the same steps with floating-point numbers. */
function threeBytes(row: ByteString, at: number, end: number): number {
  if (at + 3 <= end) return (row.charCodeAt(at) << 16) | (row.charCodeAt(at + 1) << 8) | row.charCodeAt(at + 2);
  if (at >= end) return 0;
  const first = row.charCodeAt(at) << 16;
  return at + 1 < end ? first | (row.charCodeAt(at + 1) << 8) : first;
}
