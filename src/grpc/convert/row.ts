/** The answer of ReadModifyWriteRow: cells as a google.bigtable.v2.Row, grouped by family and column, and back. */
import { create } from '@bufbuild/protobuf';
import { type ByteString, fromBytes, int64, toBigInt, toBytes, toText, utf8 } from '../../base/index.ts';
import type { Cell } from '../../model/index.ts';
import { ColumnSchema, FamilySchema, type Row, RowSchema } from '../generated/google/bigtable/v2/data_pb.ts';

/** Families and columns in the order of their bytes, versions in the order given. */
export function rowMessage(key: ByteString, cells: readonly Cell[]): Row {
  const row = create(RowSchema, { key: toBytes(key) });
  const sorted = [...cells].sort((a, b) => order(a.family, b.family) || order(a.qualifier, b.qualifier));
  let before: Cell | undefined;
  for (const cell of sorted) {
    if (cell.family !== before?.family) row.families.push(create(FamilySchema, { name: toText(cell.family) }));
    const family = row.families.at(-1);
    if (cell.family !== before?.family || cell.qualifier !== before.qualifier)
      family?.columns.push(create(ColumnSchema, { qualifier: toBytes(cell.qualifier) }));
    const given = { timestampMicros: toBigInt(cell.timestamp), value: cell.value, labels: [...(cell.labels ?? [])] };
    family?.columns.at(-1)?.cells.push({ $typeName: 'google.bigtable.v2.Cell', ...given });
    before = cell;
  }
  return row;
}

export function cellsOf(row: Row | undefined): Cell[] {
  const cells: Cell[] = [];
  for (const family of row?.families ?? []) {
    for (const column of family.columns) {
      for (const { timestampMicros, value, labels } of column.cells) {
        cells.push({
          family: utf8(family.name),
          qualifier: fromBytes(column.qualifier),
          timestamp: int64(timestampMicros),
          value,
          ...(labels.length > 0 && { labels }),
        });
      }
    }
  }
  return cells;
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
