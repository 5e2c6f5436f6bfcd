/**
 * The section "row-range-deletions" of an SSTable: ranges of rows that the file hides in older layers. Format:
 * docs/formats/sstable.md.
 *
 * Invariant, asserted by the writer and checked by the reader: disjoint, ascending, none empty.
 */
import { assert } from '../../base/index.ts';
import type { RowRangeDeletion } from '../../model/index.ts';
import type { ByteReader } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';

export function encodeRowRangeDeletions(deletions: readonly RowRangeDeletion[]): Buffer {
  assert(areOrdered(deletions), 'row-range deletions are disjoint and ascending');
  const out = new ByteWriter();
  out.varint(deletions.length);
  for (const { start, end } of deletions) {
    out.string(start);
    out.byte(end === undefined ? 0 : 1);
    if (end !== undefined) out.string(end);
  }
  return out.written();
}

export function decodeRowRangeDeletions(reader: ByteReader): readonly RowRangeDeletion[] {
  const deletions: RowRangeDeletion[] = [];
  for (let left = reader.varint(); left > 0; left--) {
    deletions.push(Object.freeze({ start: reader.string(), end: reader.flag() ? reader.string() : undefined }));
  }
  if (!areOrdered(deletions)) throw new RangeError('the ranges are not disjoint and ascending');
  return Object.freeze(deletions);
}

function areOrdered(deletions: readonly RowRangeDeletion[]): boolean {
  return deletions.every(({ start, end }, i) => {
    const before = deletions[i - 1];
    return (
      (end === undefined || start < end) && (before === undefined || (before.end !== undefined && before.end <= start))
    );
  });
}
