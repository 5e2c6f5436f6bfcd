/** Where a tablet is split: at a row near its middle by bytes, by the block boundaries of its SSTables; no data is read. */
import { assert, type ByteString } from '../../base/index.ts';
import { type RowRange, rangeContains } from '../../model/index.ts';
import type { TabletFile } from './tablet-file.ts';

/** Undefined where no row is known that has others below it: the tablet is empty, or one row is all it has. */
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
  /** From it to the file's next boundary. */
  readonly sizeBytes: number;
}

/** The rows with which blocks begin, and the file's last row, which is the only other row that is known where all lie in one block. */
function boundariesIn(file: TabletFile, range: RowRange): Boundary[] {
  const blocks = file.blockBoundaries();
  const found: Boundary[] = [];
  for (const [i, { row, offsetBytes }] of blocks.entries()) {
    const next = blocks[i + 1];
    if (next !== undefined && next.row <= range.start) continue;
    // of a block that begins below the range the part inside has no row to name it by but the range's first
    const inRange = row < range.start ? range.start : row;
    if (rangeContains(range, inRange))
      found.push({ row: inRange, sizeBytes: (next?.offsetBytes ?? file.sizeBytes / file.share) - offsetBytes });
  }
  const { lastRow } = file;
  if (lastRow !== undefined && rangeContains(range, lastRow)) found.push({ row: lastRow, sizeBytes: 0 });
  return found;
}
