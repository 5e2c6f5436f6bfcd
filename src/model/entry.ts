/**
 * Entries: the content of a storage layer (a memtable or an SSTable), and the cursor that reads layers.
 *
 * A layer's entries are ordered by row, then column key, then kind rank, then timestamp descending:
 *
 *   row deletion      column ''            hides the row in all older layers
 *   family deletion   column 'fam'         hides the family
 *   column deletion   column 'fam NUL q'   hides the column
 *   range deletion    column 'fam NUL q'   hides versions with start <= timestamp < end; disjoint, ascending
 *   put, merge        column 'fam NUL q'   a cell; merge = an aggregate's operand for what older layers hold
 *
 * Invariant: a deletion entry applies only to the layers OLDER than its own; inside one layer deletions have been
 * applied already, so the cells next to it in the layer stay visible (docs/ARCHITECTURE.md, "Order and deletion").
 * Hence no cell needs a sequence number and a merged read is a walk over layers, newest first; only layers that are
 * neighbours in age are ever merged. A merge entry's value is the aggregate's encoded state. Within a layer there is at
 * most one put or merge entry for a (row, column, timestamp): a put followed by merges is folded into a put.
 */
import type { ByteString, Int64 } from '../base/index.ts';
import type { ColumnKey } from './cell.ts';

/** Stored in SSTables and logs: never renumber. */
export const EntryKind = {
  rowDeletion: 1,
  familyDeletion: 2,
  columnDeletion: 3,
  rangeDeletion: 4,
  put: 16,
  merge: 17,
} as const;
export type EntryKind = (typeof EntryKind)[keyof typeof EntryKind];

export function isDeletion(kind: EntryKind): boolean {
  return kind < EntryKind.put;
}

export interface Entry {
  readonly row: ByteString;
  readonly column: ColumnKey;
  readonly kind: EntryKind;
  /** A cell's timestamp; the start of a range deletion; 0 elsewhere. */
  readonly timestamp: Int64;
  /** A cell's value; empty elsewhere. */
  readonly value: Uint8Array;
  /** The exclusive end of a range deletion; undefined = no end, and for other kinds. */
  readonly rangeEnd?: Int64 | undefined;
}

/** A deletion of all rows in [start, end) of older layers. Layers hold a list of them, disjoint and ascending. */
export interface RowRangeDeletion {
  readonly start: ByteString;
  /** Exclusive; undefined = to the end of the table. */
  readonly end: ByteString | undefined;
}

/** The position of an entry in its layer: the fields that an Entry and a LayerCursor have in common. */
export type EntryPosition = Pick<Entry, 'row' | 'column' | 'kind' | 'timestamp'>;

/** Order of two entries of a layer, by the rule above. */
export function compareEntries(a: EntryPosition, b: EntryPosition): number {
  if (a.row !== b.row) return a.row < b.row ? -1 : 1;
  if (a.column !== b.column) return a.column < b.column ? -1 : 1;
  const aCell = a.kind >= EntryKind.put;
  const bCell = b.kind >= EntryKind.put;
  if (!aCell || !bCell) {
    if (aCell !== bCell) return aCell ? 1 : -1;
    if (a.kind !== b.kind) return a.kind - b.kind;
    return a.timestamp < b.timestamp ? -1 : a.timestamp > b.timestamp ? 1 : 0;
  }
  return a.timestamp > b.timestamp ? -1 : a.timestamp < b.timestamp ? 1 : 0;
}

export const CursorState = {
  /** The fields are those of the entry under the cursor. */
  ready: 0,
  /** The entry lies in a part that is not in memory: `await load()`, then read `state` again. */
  needsLoad: 1,
  /** Nothing is left in this direction. */
  done: 2,
} as const;
export type CursorState = (typeof CursorState)[keyof typeof CursorState];

/**
 * A position in one layer. Moves are synchronous and leave the cursor ready, done, or in need of a load, so that a scan
 * awaits once a block and not once an entry:
 *
 *   cursor.seekRow(start);
 *   for (;;) {
 *     if (cursor.state === CursorState.needsLoad) await cursor.load();
 *     else if (cursor.state === CursorState.done) break;
 *     else { use(cursor.row, cursor.column, …); cursor.next(); }
 *   }
 *
 * Fields are valid only while `state` is ready and until the next move. A cursor sees each row as of one instant, from
 * its first position on the row until it moves off it. A move that is made while a load is needed replaces the one
 * before. `load` may leave the cursor in need of a further load. Failures reject `load` with the error of the file
 * system or a CorruptionError.
 */
export interface LayerCursor {
  readonly state: CursorState;
  readonly row: ByteString;
  readonly column: ColumnKey;
  readonly kind: EntryKind;
  readonly timestamp: Int64;
  readonly rangeEnd: Int64 | undefined;
  /** The value's size without touching it. */
  readonly valueLength: number;
  /** The value; never changed afterwards, but it may pin a larger buffer in memory. */
  value(): Uint8Array;

  /** To the first entry of the first row at or above `row`. */
  seekRow(row: ByteString): void;
  /** To the first entry of the last row below `row`; undefined = the last row of all. For reverse scans. */
  seekRowBefore(row: ByteString | undefined): void;
  /**
   * Inside the present row, forward only: to the first entry at or after (column, and if given, below or at that
   * timestamp in the order of versions). Deletion entries of `column` itself are skipped when a timestamp is given.
   * Stops at the first entry of the next row when the row has none; never moves back.
   */
  seekColumn(column: ColumnKey, timestamp?: Int64): void;
  next(): void;
  load(): Promise<void>;
  /** Releases its resources (a snapshot, files). Must be called once. */
  close(): void;
  /** A row that the cursor is probably on: if it is, `row` returns this string, and none of its own is made. */
  expectRow?(row: ByteString): void;
}

/**
 * A walk over all entries to write, from one end to the other: the part of a cursor that the writer of a file needs.
 */
export type EntryStream = Omit<LayerCursor, 'seekRowBefore' | 'seekColumn'>;

/** A layer as seen by the merged read. */
export interface Layer {
  /** The locality group to whose older layers its deletions of rows apply; undefined = all older layers. */
  readonly group?: string | undefined;
  /**
   * True while the layer has nothing but puts: no deletions, of rows neither, and no merge operands. A memtable may get
   * others later: a reader that has taken a row by then does not see them.
   */
  readonly hasOnlyPuts?: boolean;
  /** No cell has a higher timestamp. Undefined where that is not known. */
  readonly maxTimestamp?: Int64 | undefined;
  /** Rows of older layers that this layer hides. A snapshot: the array is never changed afterwards. */
  rowRangeDeletions(): readonly RowRangeDeletion[];
  /** The first and the last row of a layer that never changes; undefined where it may change, or has no rows. */
  readonly firstRow?: ByteString | undefined;
  readonly lastRow?: ByteString | undefined;
  /** True when an entry may lie in [start, end). Cheap; false is always right. */
  mayContainRows(start: ByteString, end: ByteString | undefined): boolean;
  /** True when an entry may lie in the row. Cheap; false is always right. */
  mayContainRow?(row: ByteString): boolean;
  /**
   * True when the row may have an entry that affects the column, deletions of its family and of the row included.
   * Cheap; false is always right.
   */
  mayContainColumn?(row: ByteString, column: ColumnKey): boolean;
  cursor(): LayerCursor;
  /** A cursor over the entries of this one row. */
  rowCursor?(row: ByteString): LayerCursor;
}
