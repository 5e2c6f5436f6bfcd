/**
 * One entry of a row in the memtable, and the order of entries inside a row (model/entry.ts): column, then deletions by
 * kind and start, then cells newest first. Entries never change, so generations of a row share them.
 *
 * A probe is an entry for comparisons only. Its timestamp may lie one beyond int64, which means "after the last" or
 * "before the first" without special cases.
 */
import { type Int64, toBigInt } from '../base/index.ts';
import { type ColumnKey, EntryKind } from '../model/index.ts';
import { EMPTY_SLAB, type Slab } from './value-arena.ts';

export interface MemEntry {
  readonly column: ColumnKey;
  readonly kind: EntryKind;
  readonly timestamp: Int64;
  readonly rangeEnd: Int64 | undefined;
  readonly slab: Slab;
  readonly offset: number;
  readonly length: number;
}

/**
 * Heap bytes of an entry without its value and the name of its column: the object, its boxed timestamp, its slots in
 * the row.
 */
export const ENTRY_BYTES = 120;

/** Always literals of this one shape, so that comparisons see one hidden class. */
export function cellEntry(
  column: ColumnKey,
  kind: EntryKind,
  timestamp: Int64,
  slab: Slab,
  offset: number,
  length: number,
): MemEntry {
  return { column, kind, timestamp, rangeEnd: undefined, slab, offset, length };
}

export function deletionEntry(column: ColumnKey, kind: EntryKind, start: Int64 = 0, rangeEnd?: Int64): MemEntry {
  return { column, kind, timestamp: start, rangeEnd, slab: EMPTY_SLAB, offset: 0, length: 0 };
}

/** A probe that compares equal to an entry; it holds no value, so it may outlive the entry. */
export function probe(column: ColumnKey, kind: EntryKind, timestamp: Int64): MemEntry {
  return deletionEntry(column, kind, timestamp);
}

/** A probe before everything of that column. */
export function columnStart(column: ColumnKey): MemEntry {
  return deletionEntry(column, EntryKind.rowDeletion);
}

/** The next int64, or 2^63: for probes only. */
export function timestampAfter(timestamp: Int64): Int64 {
  const next = typeof timestamp === 'number' ? timestamp + 1 : timestamp;
  return typeof next === 'number' && Number.isSafeInteger(next) ? next : toBigInt(timestamp) + 1n;
}

/** The int64 before, or -2^63 - 1: for probes only. */
export function timestampBefore(timestamp: Int64): Int64 {
  const last = typeof timestamp === 'number' ? timestamp - 1 : timestamp;
  return typeof last === 'number' && Number.isSafeInteger(last) ? last : toBigInt(timestamp) - 1n;
}

/** Negative if a is smaller. Two numbers, the usual case, are compared in code that never sees a bigint. */
function compareTimestamps(a: Int64, b: Int64): number {
  if (typeof a === 'number' && typeof b === 'number') return a < b ? -1 : a > b ? 1 : 0;
  return compareWide(a, b);
}

function compareWide(a: Int64, b: Int64): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The order inside a row. Put and merge compare equal: a row holds at most one of them at a timestamp. */
export function compareInRow(a: MemEntry, b: MemEntry): number {
  // in a wide row columns mostly differ: with `<` first, half of all comparisons end there
  if (a.column < b.column) return -1;
  if (a.column !== b.column) return 1;
  return compareInColumn(a, b);
}

/** The same for two entries of one column. */
export function compareInColumn(a: MemEntry, b: MemEntry): number {
  if (a.kind >= EntryKind.put) return b.kind >= EntryKind.put ? compareTimestamps(b.timestamp, a.timestamp) : 1;
  if (b.kind >= EntryKind.put) return -1;
  return a.kind !== b.kind ? a.kind - b.kind : compareTimestamps(a.timestamp, b.timestamp);
}

/** Index of the first entry at or after `key`. */
export function lowerBound(entries: readonly MemEntry[], key: MemEntry): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareInRow(entries[middle]!, key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
