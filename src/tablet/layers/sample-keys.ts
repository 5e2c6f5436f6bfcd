/**
 * Samples keys that cut a tablet into parts of about equal size, from the block boundaries of its SSTables: no data is
 * read.
 */
import { assert, type ByteString } from '../../base/index.ts';
import { type RowRange, rangeContains } from '../../model/index.ts';
import type { TabletFile } from './tablet-file.ts';

export interface KeySample {
  /** The part ends before this row. */
  readonly row: ByteString;
  /** Approximate bytes of the files before it. */
  readonly offsetBytes: number;
}

/** Ascending, inside the range; empty if the tablet is smaller than two parts. */
export function sampleFiles(files: readonly TabletFile[], range: RowRange, partBytes: number): KeySample[] {
  const blocks = files.flatMap((file) => {
    let before = 0;
    return file.blockBoundaries().map(({ row, offsetBytes }) => {
      const sizeBytes = offsetBytes - before;
      before = offsetBytes;
      return { row, sizeBytes };
    });
  });
  blocks.sort((a, b) => (a.row < b.row ? -1 : a.row > b.row ? 1 : 0));
  const samples: KeySample[] = [];
  let offsetBytes = 0;
  let next = partBytes;
  for (const { row, sizeBytes } of blocks) {
    if (!rangeContains(range, row)) continue;
    offsetBytes += sizeBytes;
    const last = samples.at(-1);
    if (offsetBytes < next || row === range.start || last?.row === row) continue;
    assert(last === undefined || last.row < row, 'sampled rows ascend');
    samples.push({ row, offsetBytes });
    next = offsetBytes + partBytes;
  }
  return samples;
}
