/**
 * 64-bit signed integers: timestamps and counters cover all of int64, which a JavaScript number does not.
 *
 * An `Int64` is a number where that is exact (a safe integer) and a bigint elsewhere: the canonical form, so that `===`
 * and `<` between two of them are right (JavaScript orders numbers and bigints together exactly). Timestamps of our
 * time in microseconds are numbers, so the hot paths never see a bigint. Never add or subtract two without `toBigInt`.
 */

export type Int64 = number | bigint;

export const INT64_MIN = -(2n ** 63n);
export const INT64_MAX = 2n ** 63n - 1n;

const SAFE_MAX = BigInt(Number.MAX_SAFE_INTEGER);
const TWO_32 = 0x1_0000_0000;

/** The canonical form. The argument must be within int64, as `isInt64` checks. */
export function int64(value: number | bigint): Int64 {
  if (typeof value === 'number') return value;
  return value >= -SAFE_MAX && value <= SAFE_MAX ? Number(value) : value;
}

/** True when the value is an integer within int64 (a number must be a safe integer to be exact). */
export function isInt64(value: unknown): value is Int64 {
  if (typeof value === 'number') return Number.isSafeInteger(value);
  return typeof value === 'bigint' && value >= INT64_MIN && value <= INT64_MAX;
}

export function toBigInt(value: Int64): bigint {
  return typeof value === 'bigint' ? value : BigInt(value);
}

/** a + b, wrapped to 64 bits as two's complement arithmetic does. */
export function addWrapping(a: Int64, b: Int64): Int64 {
  if (typeof a === 'number' && typeof b === 'number') {
    const sum = a + b;
    if (Number.isSafeInteger(sum)) return sum;
  }
  return int64(BigInt.asIntN(64, toBigInt(a) + toBigInt(b)));
}

/** Eight bytes, big-endian two's complement, at `offset`. */
export function readInt64BE(bytes: Buffer, offset: number): Int64 {
  const high = bytes.readInt32BE(offset);
  // 2^21 * 2^32 = 2^53: beyond that a number is no longer exact
  if (high >= -0x1f_ffff && high < 0x20_0000) return high * TWO_32 + bytes.readUInt32BE(offset + 4);
  return int64(bytes.readBigInt64BE(offset));
}

export function writeInt64BE(bytes: Buffer, offset: number, value: Int64): void {
  if (typeof value === 'number') {
    const high = Math.floor(value / TWO_32);
    bytes.writeInt32BE(high, offset);
    bytes.writeUInt32BE(value - high * TWO_32, offset + 4);
  } else {
    bytes.writeBigInt64BE(value, offset);
  }
}

/** The eight big-endian bytes, newly allocated: a counter's value in a cell. */
export function int64Bytes(value: Int64): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  writeInt64BE(bytes, 0, value);
  return bytes;
}
