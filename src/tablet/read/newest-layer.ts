/**
 * The layers that decide over the newest cell of one column. Where the newest memtable with the column has a cell that
 * is not older than any cell of the layers below it, that memtable alone: a counter that is increased again and again
 * is read in no file.
 *
 * Invariant: the newest visible cell of the column is the same in the result as in all layers.
 */
import type { ByteString, Int64 } from '../../base/index.ts';
import { type ColumnKey, CursorState, type Layer } from '../../model/index.ts';
import { isPlain } from './put-merge.ts';

/** `layers`: newest first; they are read in this slice of the event loop. */
export function layersOfNewest(layers: readonly Layer[], row: ByteString, column: ColumnKey): readonly Layer[] {
  for (let age = 0; age < layers.length - 1; age++) {
    const layer = layers[age]!;
    // a file is not searched in vain, and a deletion in a newer layer may hide what is found
    if (layer.group !== undefined || !isPlain(layer)) return layers;
    const timestamp = newestIn(layer, row, column);
    if (timestamp === undefined) continue;
    for (let older = age + 1; older < layers.length; older++) {
      const { maxTimestamp } = layers[older]!;
      // of equal cells the newer layer's counts
      if (maxTimestamp === undefined || maxTimestamp > timestamp) return layers;
    }
    return [layer];
  }
  return layers;
}

function newestIn(layer: Layer, row: ByteString, column: ColumnKey): Int64 | undefined {
  const cursor = layer.rowCursor!(row);
  try {
    cursor.seekRow(row);
    if (cursor.state === CursorState.ready) cursor.seekColumn(column);
    return cursor.state === CursorState.ready && cursor.column === column ? cursor.timestamp : undefined;
  } finally {
    cursor.close();
  }
}
