/**
 * Aggregates: cells that are merged and never overwritten (API: AddToCell, MergeToCell, Type.Aggregate). The state of sum, min and
 * max is the 8-byte big-endian integer that a read answers. Sums wrap at 64 bits.
 */
import { addWrapping, BigtableError, Code, int64Bytes, invalidArgument, readInt64BE, asBuffer, type Int64 } from '../base/index.ts';
import type { AggregateKind } from './schema.ts';

/** The state that one input makes. INVALID_ARGUMENT where the kind does not take such an input. */
export function aggregateInput(kind: AggregateKind, input: Int64 | Uint8Array): Uint8Array {
  if (kind === 'hll') throw new BigtableError(Code.UNIMPLEMENTED, 'HLL++ aggregates are not implemented yet');
  if (typeof input !== 'number' && typeof input !== 'bigint') throw invalidArgument(`aggregate ${kind} takes an int64 input, not bytes`);
  return int64Bytes(input);
}

/** INVALID_ARGUMENT where the bytes are no state of that kind. */
export function checkAggregateState(kind: AggregateKind, state: Uint8Array): void {
  if (kind === 'hll') throw new BigtableError(Code.UNIMPLEMENTED, 'HLL++ aggregates are not implemented yet');
  if (state.length !== 8) throw invalidArgument(`state of aggregate ${kind} must be 8 bytes, not ${state.length}`);
}

/** Combines two states. Associative and commutative, so layers may be merged in any grouping. */
export function mergeAggregates(kind: AggregateKind, a: Uint8Array, b: Uint8Array): Uint8Array {
  const x = readInt64BE(asBuffer(a), 0);
  const y = readInt64BE(asBuffer(b), 0);
  switch (kind) {
    case 'sum':
      return int64Bytes(addWrapping(x, y));
    case 'min':
      return x < y ? a : b;
    case 'max':
      return x > y ? a : b;
    case 'hll':
      throw new BigtableError(Code.UNIMPLEMENTED, 'HLL++ aggregates are not implemented yet');
  }
}
