/**
 * Ranges of a table's tablets: neighbours meet, no row is left out. Checks for the code that makes or keeps such
 * ranges.
 */
import { assert } from '../base/index.ts';
import type { RowRange } from '../model/index.ts';
import { METADATA_TABLE_ID, USER_RANGE } from './keys.ts';
import type { TabletLocation } from './metadata-row.ts';

/** Asserts that the ranges, in order, make up `whole`: none is empty, each begins where the one before it ends. */
export function assertPartition(ranges: readonly RowRange[], whole: RowRange): void {
  assert(
    ranges.length > 0 && ranges[0]?.start === whole.start && ranges.at(-1)?.end === whole.end,
    'the parts of a range make up the whole',
  );
  assertDisjoint(ranges);
  for (const [i, { start }] of ranges.entries()) {
    assert(i === 0 || ranges[i - 1]?.end === start, 'the parts of a range meet');
  }
}

/** Asserts that the ranges are in order, and none is empty or overlaps another. There may be gaps. */
export function assertDisjoint(ranges: readonly RowRange[]): void {
  for (const [i, { start, end }] of ranges.entries()) {
    assert(
      end === undefined ? i === ranges.length - 1 : start < end,
      'a range holds rows, and only the last has no end',
    );
    const before = ranges[i - 1];
    assert(
      before === undefined || (before.end !== undefined && before.end <= start),
      'ranges ascend and do not overlap',
    );
  }
}

/**
 * True when the tablet begins where the one that a scan has read before it ends, or is the first of its table. False:
 * METADATA was changed between the reads of the two rows, or its table is being created or deleted.
 */
export function continues(tablet: TabletLocation, before: TabletLocation | undefined): boolean {
  const { tableId, range } = tablet;
  if (before === undefined || before.tableId !== tableId)
    return range.start === (tableId === METADATA_TABLE_ID ? USER_RANGE.start : '');
  return before.range.end === range.start;
}
