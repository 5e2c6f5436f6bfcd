/** The answer of ReadModifyWriteRow: the cells of a google.bigtable.v2.Row, which groups them by family and column. */
import { fromBytes, int64, utf8 } from '../../base/index.ts';
import type { Cell } from '../../model/index.ts';
import type { Row } from '../generated/google/bigtable/v2/data_pb.ts';

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
