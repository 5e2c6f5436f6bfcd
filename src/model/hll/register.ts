/**
 * The position of a hash in an HLL++ sketch, in both of its encodings (docs/formats/aggregates.md): the register among
 * 2^15 and its rank, and the finer sparse value over 2^20 that small sketches list. Ranks count leading zeros, plus
 * one.
 */

/** Bits of the register's number; a normal sketch has 2^15 registers of a byte. */
export const PRECISION = 15;
/** Bits of a sparse value's index. */
export const SPARSE_PRECISION = 20;
export const REGISTERS = 1 << PRECISION;
/** The highest rank that a register can hold: all bits after the index are zero. */
export const MAX_RANK = 64 - PRECISION + 1;

const FINER_BITS = SPARSE_PRECISION - PRECISION;
const FINER_MASK = (1 << FINER_BITS) - 1;
const RANK_BITS = 6;
const RANK_MASK = (1 << RANK_BITS) - 1;
const MAX_SPARSE_RANK = 64 - SPARSE_PRECISION + 1;
/**
 * Marks a value that holds a register and a sparse rank, since its finer bits are all zero. Above every other bit of
 * either form.
 */
const RANK_FLAG = 1 << (PRECISION + RANK_BITS);

/** The sparse value of a hash: its first 20 bits, or, where the last five of them are zero, register and rank apart. */
export function sparseValueOf(hash: bigint): number {
  const index = Number(hash >> BigInt(64 - SPARSE_PRECISION));
  if ((index & FINER_MASK) !== 0) return index;
  const rest = BigInt.asUintN(64 - SPARSE_PRECISION, hash);
  const rank = rest === 0n ? MAX_SPARSE_RANK : 64 - SPARSE_PRECISION - rest.toString(2).length + 1;
  return RANK_FLAG | ((index >> FINER_BITS) << RANK_BITS) | rank;
}

export function registerOf(sparseValue: number): number {
  return (sparseValue & RANK_FLAG) === 0 ? sparseValue >> FINER_BITS : (sparseValue ^ RANK_FLAG) >> RANK_BITS;
}

/** The rank in the register of a normal sketch. */
export function rankOf(sparseValue: number): number {
  if ((sparseValue & RANK_FLAG) !== 0) return (sparseValue & RANK_MASK) + FINER_BITS;
  return Math.clz32((sparseValue & FINER_MASK) << (32 - FINER_BITS)) + 1;
}

/** The value without its rank. Of two values with equal indexes a sketch keeps the higher. */
export const sparseIndexOf = (sparseValue: number): number =>
  (sparseValue & RANK_FLAG) === 0 ? sparseValue : sparseValue & ~RANK_MASK;

/** True when some hash has this value. */
export function isSparseValue(value: number): boolean {
  if (value < 1 << SPARSE_PRECISION) return (value & FINER_MASK) !== 0;
  if (value < RANK_FLAG || value >= RANK_FLAG << 1) return false;
  const rank = value & RANK_MASK;
  return rank >= 1 && rank <= MAX_SPARSE_RANK;
}
