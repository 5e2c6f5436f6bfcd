/**
 * Finds the row at which a tablet is split: near its middle by bytes, by the block boundaries of its SSTables; no data
 * is read.
 */
import { assert, type ByteString } from '../../base/index.ts';
import { type RowRange, rangeContains } from '../../model/index.ts';
import type { TabletFile } from './tablet-file.ts';

/** Undefined if no row with others below it is known: the tablet is empty, or has one row. */
export function middleRow(files: readonly TabletFile[], range: RowRange): ByteString | undefined {
  const blocks = files
    .flatMap((file) => boundariesIn(file, range))
    .sort((a, b) => (a.row < b.row ? -1 : a.row > b.row ? 1 : 0));
  const totalBytes = blocks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  let beforeBytes = 0;
  let best: ByteString | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const { row, sizeBytes } of blocks) {
    const distance = Math.abs(totalBytes / 2 - beforeBytes);
    if (row !== blocks[0]?.row && distance < bestDistance) {
      best = row;
      bestDistance = distance;
    }
    beforeBytes += sizeBytes;
  }
  assert(
    best === undefined || (rangeContains(range, best) && best > range.start),
    'a tablet is split at a row inside it',
  );
  return best;
}

interface Boundary {
  /** Inside the range. */
  readonly row: ByteString;
  /** Bytes from the row to the next boundary of the file. */
  readonly sizeBytes: number;
}

/**
 * The first rows of blocks, and the last row of the file, which is the only other row known if all are in one block.
 */
function boundariesIn(file: TabletFile, range: RowRange): Boundary[] {
  const blocks = file.blockBoundaries();
  const found: Boundary[] = [];
  for (const [i, { row, offsetBytes }] of blocks.entries()) {
    const next = blocks[i + 1];
    if (next !== undefined && next.row <= range.start) continue;
    // a block that begins below the range is named by the first row of the range
    const inRange = row < range.start ? range.start : row;
    if (rangeContains(range, inRange))
      found.push({ row: inRange, sizeBytes: (next?.offsetBytes ?? file.sizeBytes / file.share) - offsetBytes });
  }
  const { lastRow } = file;
  if (lastRow !== undefined && rangeContains(range, lastRow)) found.push({ row: lastRow, sizeBytes: 0 });
  return found;
}
