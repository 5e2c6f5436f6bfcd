/**
 * Aggregates: cells that are merged and never overwritten (API: AddToCell, MergeToCell, Type.Aggregate). A cell holds a
 * state, which a read returns: for sum, min and max an 8-byte big-endian integer, for hll a sketch
 * (docs/formats/aggregates.md). Sums wrap at 64 bits.
 */
import { addWrapping, asBuffer, int64Bytes, invalidArgument, readInt64BE, type Int64 } from '../base/index.ts';
import { checkHllInput, checkHllState, hllInput, mergeHll } from './hll/hll.ts';
import type { AggregateKind, AggregateType } from './schema.ts';

const INTEGER_BYTES = 8;

/** The state that one input makes. INVALID_ARGUMENT where the kind does not take such an input. */
export function aggregateInput(kind: AggregateKind, input: Int64 | Uint8Array): Uint8Array {
  return kind === 'hll' ? hllInput(input) : int64Bytes(integer(kind, input));
}

/** INVALID_ARGUMENT where the kind does not take such an input, or not in a family whose inputs are of `type`. */
export function checkAggregateInput(
  kind: AggregateKind,
  input: Int64 | Uint8Array,
  type?: AggregateType['input'],
): void {
  if (kind === 'hll') checkHllInput(input, type);
  else integer(kind, input);
}

function integer(kind: AggregateKind, input: Int64 | Uint8Array): Int64 {
  if (typeof input !== 'number' && typeof input !== 'bigint')
    throw invalidArgument(`aggregate ${kind} takes an int64 input, not bytes`);
  return input;
}

/** INVALID_ARGUMENT where the bytes are not a state of that kind, or not of a family whose inputs are of `type`. */
export function checkAggregateState(kind: AggregateKind, state: Uint8Array, type?: AggregateType['input']): void {
  if (kind === 'hll') checkHllState(state, type);
  else if (state.length !== INTEGER_BYTES)
    throw invalidArgument(`state of aggregate ${kind} must be ${INTEGER_BYTES} bytes, not ${state.length}`);
}

/** Combines two states. Associative and commutative, so layers may be merged in any grouping. */
export function mergeAggregates(kind: AggregateKind, a: Uint8Array, b: Uint8Array): Uint8Array {
  if (kind === 'hll') return mergeHll(a, b);
  const x = readInt64BE(asBuffer(a), 0);
  const y = readInt64BE(asBuffer(b), 0);
  switch (kind) {
    case 'sum':
      return int64Bytes(addWrapping(x, y));
    case 'min':
      return x < y ? a : b;
    case 'max':
      return x > y ? a : b;
  }
}
