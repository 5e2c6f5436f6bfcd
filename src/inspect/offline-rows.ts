/**
 * The cells of one METADATA tablet from its files and the log, without a server: the files of each locality group are
 * applied oldest first, then the groups are put together, then come the records after the redo point. All in memory:
 * rows are about a kilobyte, and a METADATA tablet is split long before it is large.
 *
 * Invariant: a deletion removes cells that were applied before it and none that is applied after it
 * (docs/ARCHITECTURE.md, "Order and deletion").
 */
import { type ByteString, CorruptionError, type Int64 } from '../base/index.ts';
import type { LogRecord } from '../commitlog/index.ts';
import { METADATA_SCHEMA } from '../metadata/index.ts';
import {
  type Cell,
  type ColumnKey,
  columnKey,
  type Entry,
  EntryKind,
  familyName,
  familyOf,
  familyOfTable,
  intersectRanges,
  isEmptyRange,
  type Mutation,
  qualifierOf,
  type RowRange,
  rangeContains,
  type RowRangeDeletion,
  type TimestampRange,
  versionKeeper,
} from '../model/index.ts';

type Versions = Map<Int64, Uint8Array>;
type Columns = Map<ColumnKey, Versions>;

export class OfflineRows {
  readonly #range: RowRange;
  readonly #rows = new Map<ByteString, Columns>();

  /** Rows outside of the range are skipped: files are shared after a split. */
  constructor(range: RowRange) {
    this.#range = range;
  }

  /** Adds the cells of another locality group of the same tablet, which has other families. */
  addAll(group: OfflineRows): void {
    for (const [row, columns] of group.#rows)
      for (const [column, versions] of columns)
        for (const [timestamp, value] of versions) this.#put(row, column, timestamp, value);
  }

  dropRows({ start, end }: RowRangeDeletion): void {
    for (const row of this.#rows.keys()) if (rangeContains({ start, end }, row)) this.#rows.delete(row);
  }

  /** The next entry of a file whose row-range deletions were applied before its first entry. */
  applyEntry(file: string, { row, column, kind, timestamp, rangeEnd, value }: Entry): void {
    if (!rangeContains(this.#range, row)) return;
    switch (kind) {
      case EntryKind.rowDeletion:
        this.#rows.delete(row);
        return;
      case EntryKind.familyDeletion:
        this.#deleteFamily(row, column);
        return;
      case EntryKind.columnDeletion:
        this.#deleteVersions(row, column, {});
        return;
      case EntryKind.rangeDeletion:
        this.#deleteVersions(row, column, { start: timestamp, end: rangeEnd });
        return;
      case EntryKind.put:
        this.#put(row, column, timestamp, value);
        return;
      default:
        throw new CorruptionError(file, 0, 'an aggregate in METADATA, which has none');
    }
  }

  /** True if the record changes a row in this tablet: a log also holds the records of others. */
  concerns({ body }: LogRecord): boolean {
    if (body.kind === 'dropRows') return !isEmptyRange(intersectRanges(body.range, this.#range));
    return body.rows.some(({ row }) => rangeContains(this.#range, row));
  }

  applyRecord(log: string, { body }: LogRecord): void {
    if (body.kind === 'dropRows') return this.dropRows(body.range);
    for (const { row, mutations } of body.rows) {
      if (!rangeContains(this.#range, row)) continue;
      for (const mutation of mutations) this.#apply(log, row, mutation);
    }
  }

  /**
   * Rows in key order with the cells that a read shows, newest versions first. `above`: only those above this row.
   * Default: all.
   */
  *rows(above?: ByteString): Iterable<{ readonly row: ByteString; readonly cells: readonly Cell[] }> {
    const rows = [...this.#rows.keys()];
    const wanted = above === undefined ? rows : rows.filter((row) => row > above);
    for (const row of wanted.sort(ascending)) {
      const cells = this.cells(row);
      if (cells.length > 0) yield { row, cells };
    }
  }

  cells(row: ByteString): readonly Cell[] {
    const columns = this.#rows.get(row) ?? new Map<ColumnKey, Versions>();
    return [...columns.keys()].sort(ascending).flatMap((column) => {
      const family = familyName(familyOf(column));
      const keeps = versionKeeper(familyOfTable(METADATA_SCHEMA, family)?.gcRule, 0);
      const versions = [...columns.get(column)!].sort(([a], [b]) => (a > b ? -1 : 1));
      return versions
        .filter(([timestamp], index) => keeps(index, timestamp))
        .map(([timestamp, value]): Cell => ({ family, qualifier: qualifierOf(column), timestamp, value }));
    });
  }

  #apply(log: string, row: ByteString, mutation: Mutation): void {
    switch (mutation.kind) {
      case 'setCell':
        if (mutation.timestamp === undefined)
          throw new CorruptionError(log, 0, 'a cell without its timestamp in the log');
        return this.#put(row, columnKey(mutation.family, mutation.qualifier), mutation.timestamp, mutation.value);
      case 'deleteFromRow':
        this.#rows.delete(row);
        return;
      case 'deleteFromFamily':
        return this.#deleteFamily(row, mutation.family);
      case 'deleteFromColumn':
        return this.#deleteVersions(row, columnKey(mutation.family, mutation.qualifier), mutation.range ?? {});
      default:
        throw new CorruptionError(log, 0, 'an aggregate in METADATA, which has none');
    }
  }

  #put(row: ByteString, column: ColumnKey, timestamp: Int64, value: Uint8Array): void {
    let columns = this.#rows.get(row);
    if (!columns) this.#rows.set(row, (columns = new Map()));
    let versions = columns.get(column);
    if (!versions) columns.set(column, (versions = new Map()));
    versions.set(timestamp, value);
  }

  #deleteFamily(row: ByteString, family: string): void {
    const columns = this.#rows.get(row);
    if (columns) for (const column of columns.keys()) if (familyOf(column) === family) columns.delete(column);
  }

  #deleteVersions(row: ByteString, column: ColumnKey, { start, end }: TimestampRange): void {
    const versions = this.#rows.get(row)?.get(column);
    if (!versions) return;
    for (const timestamp of versions.keys()) {
      if ((start === undefined || timestamp >= start) && (end === undefined || timestamp < end))
        versions.delete(timestamp);
    }
  }
}

function ascending(a: string, b: string): number {
  return a < b ? -1 : 1;
}
