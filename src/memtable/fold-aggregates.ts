/** Folds two states of an aggregate cell, in the same way for the memtable and for merged reads. */
import { type AggregateKind, mergeAggregates } from '../model/index.ts';

const STATE_BYTES = 8;

/**
 * Returns `older` combined with `newer`. If they do not combine (the family is not an aggregate any more, or was none
 * when one of them was written), returns `newer`, as when an ordinary cell is overwritten.
 */
export function foldAggregates(kind: AggregateKind | undefined, older: Uint8Array, newer: Uint8Array): Uint8Array {
  if (kind === undefined) return newer;
  if (kind !== 'hll' && (older.length !== STATE_BYTES || newer.length !== STATE_BYTES)) return newer;
  return mergeAggregates(kind, older, newer);
}
