/** Two states of an aggregate cell made one, the same way in the memtable and in merged reads. */
import { type AggregateKind, mergeAggregates } from '../model/index.ts';

const STATE_BYTES = 8;

/**
 * `older` combined with `newer`. Where they do not combine (the family is no aggregate any more, or was none when one of them was
 * written) the newer stands alone, as an ordinary cell written over another does.
 */
export function foldAggregates(kind: AggregateKind | undefined, older: Uint8Array, newer: Uint8Array): Uint8Array {
  if (kind === undefined) return newer;
  if (kind !== 'hll' && (older.length !== STATE_BYTES || newer.length !== STATE_BYTES)) return newer;
  return mergeAggregates(kind, older, newer);
}
