/**
 * The target of a seek: the first entry that is not before it. Index and blocks search with `isBefore`, which is true
 * up to some entry and false from there on.
 *
 * A target without a column is the beginning of a row. One without a timestamp is the first entry of a column,
 * deletions included. One with a timestamp is the first cell of the column at or below it, or the first entry after the
 * column.
 */
import type { ByteString, Int64 } from '../../base/index.ts';
import { type ColumnKey, type EntryKind, isDeletion } from '../../model/index.ts';

export class SeekTarget {
  row: ByteString = '';
  column: ColumnKey | undefined;
  timestamp: Int64 | undefined;

  set(row: ByteString, column?: ColumnKey, timestamp?: Int64): void {
    this.row = row;
    this.column = column;
    this.timestamp = timestamp;
  }

  /** True if an entry of the target's row and column is before the target. */
  isVersionBefore(kind: EntryKind, timestamp: Int64): boolean {
    return this.timestamp !== undefined && (isDeletion(kind) || timestamp > this.timestamp);
  }
}

/** Compares `length` bytes from `at` on with `text` from character `from` on: negative, 0 or positive. */
export function compareBytesTo(bytes: Uint8Array, at: number, length: number, text: ByteString, from = 0): number {
  const left = text.length - from;
  const common = length < left ? length : left;
  for (let i = 0; i < common; i++) {
    const difference = bytes[at + i]! - text.charCodeAt(from + i);
    if (difference !== 0) return difference;
  }
  return length - left;
}
