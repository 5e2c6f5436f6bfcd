/**
 * Cells and their coordinates: (row, column family, qualifier, timestamp) -> value (paper section 2).
 *
 * Inside a row columns are ordered by family, then qualifier, as unsigned bytes; versions newest first. The storage
 * layers use one byte string for both: the column key `family NUL qualifier`. Family names have no byte below "-", so
 * column keys order as (family, qualifier) does, and the family name alone sorts directly before all of its columns.
 */
import type { ByteString, Int64 } from '../base/index.ts';

export interface Cell {
  readonly family: string;
  readonly qualifier: ByteString;
  /** Microseconds. */
  readonly timestamp: Int64;
  /** Never changed after it was passed on. */
  readonly value: Uint8Array;
  /** Set by apply_label filters alone. */
  readonly labels?: readonly string[];
}

export type ColumnKey = ByteString;

export function columnKey(family: string, qualifier: ByteString): ColumnKey {
  return `${family}\0${qualifier}`;
}

export function familyOf(column: ColumnKey): string {
  const at = column.indexOf('\0');
  return at < 0 ? column : column.slice(0, at);
}

export function qualifierOf(column: ColumnKey): ByteString {
  return column.slice(column.indexOf('\0') + 1);
}

/** The smallest column key above every column of the family. */
export function familyEnd(family: string): ColumnKey {
  return `${family}\x01`;
}

/** Part of a row in a stream of rows. A row comes in one or more fragments; only the last has `last` set. */
export interface RowFragment {
  readonly row: ByteString;
  readonly cells: readonly Cell[];
  readonly last: boolean;
}

/** A batch of a read: fragments in order. */
export interface ReadBatch {
  readonly fragments: readonly RowFragment[];
  /**
   * Rows up to this key (in the read's direction) were read, whether or not they had cells; for progress
   * messages.
   */
  readonly scannedTo?: ByteString;
}
