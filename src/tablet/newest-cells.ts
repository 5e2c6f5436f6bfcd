/** The newest visible cell of each of a few columns of one row: what a read-modify-write starts from. Seeks; never walks the row. */
import type { ByteString } from '../base/index.ts';
import { type Cell, type ColumnKey, CursorState, columnKey, familyOfTable, type Layer, storageFamily, type TableSchema } from '../model/index.ts';
import { MergeCursor } from './merge-cursor.ts';
import type { ReadFamilies } from './read-families.ts';

export interface ColumnName {
  readonly family: string;
  readonly qualifier: ByteString;
}

/** By `columnKey(family, qualifier)` of the names asked for; columns without a visible cell are left out. */
export async function newestCells(
  layers: readonly Layer[],
  row: ByteString,
  columns: readonly ColumnName[],
  families: ReadFamilies,
  schema: TableSchema,
): Promise<Map<ColumnKey, Cell>> {
  const wanted = new Map<ColumnKey, ColumnName>();
  for (const column of columns) wanted.set(columnKey(storageFamily(column.family, familyOfTable(schema, column.family)?.generation), column.qualifier), column);
  const cursor = new MergeCursor(layers, { aggregateOf: (stored) => families.get(stored)?.aggregate });
  const load = async (): Promise<void> => {
    while (cursor.state === CursorState.needsLoad) await cursor.load();
  };
  const found = new Map<ColumnKey, Cell>();
  try {
    cursor.seekRow(row);
    await load();
    for (const key of [...wanted.keys()].sort()) {
      if (cursor.state === CursorState.done || cursor.row !== row) break;
      if (cursor.column < key) {
        cursor.seekColumn(key);
        await load();
      }
      if (cursor.state !== CursorState.ready || cursor.row !== row || cursor.column !== key) continue;
      const { family, qualifier } = wanted.get(key) as ColumnName;
      const timestamp = cursor.timestamp;
      const keeps = families.get(storageFamily(family, familyOfTable(schema, family)?.generation))?.keeps;
      if (keeps?.(0, timestamp)) found.set(columnKey(family, qualifier), { family, qualifier, timestamp, value: cursor.value() });
    }
  } finally {
    cursor.close();
  }
  return found;
}
