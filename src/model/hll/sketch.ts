/**
 * An HLL++ sketch: a set of hashes seen, as a sorted list of sparse values while that is small, else as 2^15 registers.
 * Merging is commutative and associative to the byte: the result is the union, and its encoding depends on the union
 * alone. Sketches are immutable.
 */
import { assert, varintLength } from '../../base/index.ts';
import { REGISTERS, rankOf, registerOf, sparseIndexOf } from './register.ts';

export interface Sketch {
  /** Inputs counted, equal ones too. Saturates at 2^53 - 1. */
  readonly inputs: number;
  /** Type of the inputs, by the format's numbers. 0 = unknown. */
  readonly valueType: number;
  readonly data: { readonly sparse: Uint32Array } | { readonly registers: Uint8Array };
}

/** Three quarters of the registers' bytes: beyond that a list is no gain. */
const MAX_SPARSE_BYTES = (REGISTERS * 3) / 4;

export function mergeSketches(a: Sketch, b: Sketch): Sketch {
  const inputs = Math.min(a.inputs + b.inputs, Number.MAX_SAFE_INTEGER);
  return { inputs, valueType: Math.max(a.valueType, b.valueType), data: mergeData(a.data, b.data) };
}

function mergeData(a: Sketch['data'], b: Sketch['data']): Sketch['data'] {
  if ('sparse' in a && 'sparse' in b) {
    const sparse = union(a.sparse, b.sparse);
    return listedBytes(sparse) <= MAX_SPARSE_BYTES
      ? { sparse }
      : { registers: addSparse(new Uint8Array(REGISTERS), sparse) };
  }
  const registers = new Uint8Array(REGISTERS);
  for (const side of [a, b]) {
    if ('sparse' in side) addSparse(registers, side.sparse);
    else addRegisters(registers, side.registers);
  }
  return { registers };
}

/** Merges both lists in order; of two values that differ only in rank, it keeps the higher. */
function union(a: Uint32Array, b: Uint32Array): Uint32Array {
  const merged = new Uint32Array(a.length + b.length);
  let size = 0;
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    const x = a[i] ?? Number.POSITIVE_INFINITY;
    const y = b[j] ?? Number.POSITIVE_INFINITY;
    const value = Math.min(x, y);
    if (x <= y) i++;
    if (y <= x) j++;
    if (size > 0 && sparseIndexOf(merged[size - 1]!) === sparseIndexOf(value)) size--;
    merged[size++] = value;
  }
  return merged.slice(0, size);
}

/**
 * Bytes of the list, difference-encoded, with every rank taken as zero: so the size only grows as values join, and
 * every order of merges ends in the same representation.
 */
function listedBytes(sparse: Uint32Array): number {
  let bytes = 0;
  let before = 0;
  for (const value of sparse) {
    const index = sparseIndexOf(value);
    bytes += varintLength(index - before);
    before = index;
  }
  return bytes;
}

function addSparse(registers: Uint8Array, sparse: Uint32Array): Uint8Array {
  for (const value of sparse) {
    const register = registerOf(value);
    const rank = rankOf(value);
    if (registers[register]! < rank) registers[register] = rank;
  }
  return registers;
}

function addRegisters(registers: Uint8Array, others: Uint8Array): void {
  assert(others.length === registers.length, 'registers of one precision');
  for (let i = 0; i < registers.length; i++) if (registers[i]! < others[i]!) registers[i] = others[i]!;
}
