/**
 * Mutations: the changes that are applied to one row, in order and atomically (paper section 3; API:
 * google.bigtable.v2.Mutation). Plain frozen data. A deletion hides cells written before it and none written after it,
 * whatever the timestamps.
 */
import { assert, type ByteString, type Int64 } from '../base/index.ts';

/** Microseconds, [start, end); undefined = open on that side. */
export interface TimestampRange {
  readonly start?: Int64 | undefined;
  readonly end?: Int64 | undefined;
}

export interface SetCell {
  readonly kind: 'setCell';
  readonly family: string;
  readonly qualifier: ByteString;
  /** Undefined: the server's time. */
  readonly timestamp?: Int64 | undefined;
  readonly value: Uint8Array;
}

/**
 * A SetCell. Every maker uses this function, so that all have one hidden class. (A spread that fills in the server's
 * time would make V8 move every object to another class when it is read.)
 */
export function setCell(
  family: string,
  qualifier: ByteString,
  timestamp: Int64 | undefined,
  value: Uint8Array,
): SetCell {
  return { kind: 'setCell', family, qualifier, timestamp, value };
}

/** Adds one input to an aggregate cell, e.g. 5 to a sum. Only in families with an aggregate type. */
export interface AddToCell {
  readonly kind: 'addToCell';
  readonly family: string;
  readonly qualifier: ByteString;
  readonly timestamp: Int64;
  /** The input, of the family's input type: int64 for sum, min and max; bytes or int64 for HLL++. */
  readonly input: Int64 | Uint8Array;
}

/**
 * Merges an accumulated state (the encoded value that a read of such a cell returns) into an aggregate cell. Merging
 * NULL is allowed and has no effect (API: Mutation.MergeToCell): the tablet server removes it once it has checked the
 * family, so logs and memtables never contain it.
 */
export interface MergeToCell {
  readonly kind: 'mergeToCell';
  readonly family: string;
  readonly qualifier: ByteString;
  readonly timestamp: Int64;
  /** Undefined: NULL. */
  readonly state: Uint8Array | undefined;
}

/** The state of a merge that has an effect. */
export function mergedState({ state }: MergeToCell): Uint8Array {
  assert(state !== undefined, 'a merge of NULL is left out before it is logged');
  return state;
}

export interface DeleteFromColumn {
  readonly kind: 'deleteFromColumn';
  readonly family: string;
  readonly qualifier: ByteString;
  /** Undefined: all versions. */
  readonly range?: TimestampRange | undefined;
}

export interface DeleteFromFamily {
  readonly kind: 'deleteFromFamily';
  readonly family: string;
}

export interface DeleteFromRow {
  readonly kind: 'deleteFromRow';
}

export type Mutation = SetCell | AddToCell | MergeToCell | DeleteFromColumn | DeleteFromFamily | DeleteFromRow;

/** A rule of ReadModifyWriteRow: append to a value, or add to the 8-byte big-endian integer in it. */
export interface ReadModifyWriteRule {
  readonly family: string;
  readonly qualifier: ByteString;
  readonly change:
    | { readonly kind: 'append'; readonly suffix: Uint8Array }
    | { readonly kind: 'increment'; readonly amount: Int64 };
}
