/**
 * Decodes the bodies of records: rows with their mutations, and ranges of rows that are dropped. Format:
 * docs/formats/commit-log.md. Every method begins at the body's first byte, where the reader must stand.
 */
import {
  CellBatchBuilder,
  intersectRanges,
  isEmptyRange,
  type Mutation,
  type Mutations,
  rangeContains,
  type RowMutations,
  type RowRange,
  setCell,
  type TimestampRange,
} from '../model/index.ts';
import { MutationKind, RangeFlag, RecordKind } from './append-format.ts';
import { type AppendReader, INT64_BYTES } from './append-reader.ts';
import type { RecordBody, RowSpan } from './record.ts';

/** Span of a record without rows, the only one whose first row is above its last. */
const NO_ROWS: RowSpan = { first: '\xff', last: '' };

export class BodyDecoder {
  readonly #reader: AppendReader;

  constructor(reader: AppendReader) {
    this.#reader = reader;
  }

  /** True if a record of this kind changes a row of the range. */
  touches(kind: number, range: RowRange): boolean {
    const reader = this.#reader;
    if (kind === RecordKind.dropRows) return !isEmptyRange(intersectRanges(this.#rowRange(), range));
    if (kind !== RecordKind.rows) throw reader.tooNew(`a record of kind ${kind}`);
    for (let left = reader.varint(); left > 0; left--) {
      if (rangeContains(range, reader.text())) return true;
      this.#skipMutations();
    }
    return false;
  }

  /** True if the first row of a record of rows is in the range. */
  beginsIn(range: RowRange): boolean {
    return this.#reader.varint() > 0 && rangeContains(range, this.#reader.text());
  }

  /** The span of a record of rows. */
  span(): RowSpan {
    const reader = this.#reader;
    let left = reader.varint();
    if (left === 0) return NO_ROWS;
    let first = reader.text();
    let last = first;
    for (this.#skipMutations(); --left > 0; this.#skipMutations()) {
      const row = reader.text();
      if (row > last) last = row;
      else if (row < first) first = row;
    }
    return { first, last };
  }

  /** The body of a record of this kind, its mutations as objects. */
  body(kind: number): RecordBody {
    const reader = this.#reader;
    if (kind === RecordKind.dropRows) return { kind: 'dropRows', range: this.#rowRange() };
    if (kind !== RecordKind.rows) throw reader.tooNew(`a record of kind ${kind}`);
    const rows: RowMutations<readonly Mutation[]>[] = [];
    for (let left = reader.varint(); left > 0; left--)
      rows.push({ row: reader.text(), mutations: this.#list(reader.varint()) });
    return { kind: 'rows', rows };
  }

  #list(count: number): Mutation[] {
    const mutations: Mutation[] = [];
    for (let left = count; left > 0; left--) mutations.push(this.#mutation());
    return mutations;
  }

  /** The rows of a record; mutations that only set cells are runs of cells in the append's bytes. */
  rowsOfRuns(): RecordBody<Mutations> {
    const reader = this.#reader;
    const cells = new CellBatchBuilder(reader.bytes);
    const rows: RowMutations[] = [];
    for (let left = reader.varint(); left > 0; left--) {
      const row = reader.text();
      const count = reader.varint();
      const at = reader.offset;
      const from = cells.count;
      if (this.#cells(cells, count)) rows.push({ row, mutations: cells.runFrom(from) });
      else {
        cells.dropFrom(from);
        reader.offset = at;
        rows.push({ row, mutations: this.#list(count) });
      }
    }
    return { kind: 'rows', rows };
  }

  /** Adds the mutations as cells. False if one of them is not a set-cell, or there are none. */
  #cells(cells: CellBatchBuilder, count: number): boolean {
    const reader = this.#reader;
    for (let left = count; left > 0; left--) {
      if (reader.byte() !== MutationKind.setCell) return false;
      const start = reader.offset;
      reader.skipBytes();
      const middle = reader.offset;
      reader.skipBytes();
      const end = reader.offset;
      // family and qualifier are compared as encoded, with their lengths
      if (!cells.toColumn(start, middle, middle, end)) {
        reader.offset = start;
        const family = reader.family();
        const qualifier = reader.take(reader.varint());
        cells.addColumn(family, qualifier);
      }
      const timestamp = reader.int64();
      const value = reader.take(reader.varint());
      cells.add(timestamp, value, reader.offset);
    }
    return count > 0;
  }

  #rowRange(): RowRange {
    const reader = this.#reader;
    const start = reader.text();
    const hasEnd = reader.byte();
    if (hasEnd > 1) throw reader.corrupt(`a row range with the flag ${hasEnd}`);
    return { start, end: hasEnd ? reader.text() : undefined };
  }

  #mutation(): Mutation {
    const reader = this.#reader;
    const kind = reader.byte();
    switch (kind) {
      case MutationKind.setCell:
        return setCell(reader.family(), reader.text(), reader.int64(), reader.value());
      case MutationKind.addIntegerToCell:
        return {
          kind: 'addToCell',
          family: reader.family(),
          qualifier: reader.text(),
          timestamp: reader.int64(),
          input: reader.int64(),
        };
      case MutationKind.addBytesToCell:
        return {
          kind: 'addToCell',
          family: reader.family(),
          qualifier: reader.text(),
          timestamp: reader.int64(),
          input: reader.value(),
        };
      case MutationKind.mergeToCell:
        return {
          kind: 'mergeToCell',
          family: reader.family(),
          qualifier: reader.text(),
          timestamp: reader.int64(),
          state: reader.value(),
        };
      case MutationKind.deleteFromColumn:
        return this.#deleteFromColumn();
      case MutationKind.deleteFromFamily:
        return { kind: 'deleteFromFamily', family: reader.family() };
      case MutationKind.deleteFromRow:
        return { kind: 'deleteFromRow' };
      default:
        throw reader.tooNew(`a mutation of kind ${kind}`);
    }
  }

  #deleteFromColumn(): Mutation {
    const reader = this.#reader;
    const family = reader.family();
    const qualifier = reader.text();
    const flags = reader.byte();
    if (flags > (RangeFlag.start | RangeFlag.end))
      throw reader.corrupt(`a range of timestamps with the flags ${flags}`);
    if (flags === 0) return { kind: 'deleteFromColumn', family, qualifier };
    const range: TimestampRange = {
      ...(flags & RangeFlag.start ? { start: reader.int64() } : {}),
      ...(flags & RangeFlag.end ? { end: reader.int64() } : {}),
    };
    return { kind: 'deleteFromColumn', family, qualifier, range };
  }

  #skipMutations(): void {
    for (let more = this.#reader.varint(); more > 0; more--) this.#skipMutation();
  }

  #skipMutation(): void {
    const reader = this.#reader;
    const kind = reader.byte();
    switch (kind) {
      case MutationKind.setCell:
      case MutationKind.addIntegerToCell:
      case MutationKind.addBytesToCell:
      case MutationKind.mergeToCell:
        reader.skipBytes();
        reader.skipBytes();
        reader.take(INT64_BYTES);
        if (kind === MutationKind.addIntegerToCell) reader.take(INT64_BYTES);
        else reader.skipBytes();
        return;
      case MutationKind.deleteFromColumn: {
        reader.skipBytes();
        reader.skipBytes();
        const flags = reader.byte();
        if (flags & RangeFlag.start) reader.take(INT64_BYTES);
        if (flags & RangeFlag.end) reader.take(INT64_BYTES);
        return;
      }
      case MutationKind.deleteFromFamily:
        return reader.skipBytes();
      case MutationKind.deleteFromRow:
        return;
      default:
        throw reader.tooNew(`a mutation of kind ${kind}`);
    }
  }
}
