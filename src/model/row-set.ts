/**
 * Row ranges and sets. Every range is half-open, [start, end), with undefined for no end: an open start `k` is the
 * closed start successor(k), a closed end `k` the open end successor(k), so one form is enough.
 */
import { type ByteString, isSuccessor, successor } from '../base/index.ts';

export interface RowRange {
  readonly start: ByteString;
  /** Exclusive; undefined = to the end of the table. */
  readonly end: ByteString | undefined;
}

export const ALL_ROWS: RowRange = Object.freeze({ start: '', end: undefined });

export function rangeOfRow(row: ByteString): RowRange {
  return { start: row, end: successor(row) };
}

/** The one row that the range can hold; undefined where it can hold several, or none. */
export function rowOfRange({ start, end }: RowRange): ByteString | undefined {
  return end !== undefined && isSuccessor(end, start) ? start : undefined;
}

export function isEmptyRange(range: RowRange): boolean {
  return range.end !== undefined && range.end <= range.start;
}

export function rangeContains(range: RowRange, row: ByteString): boolean {
  return row >= range.start && (range.end === undefined || row < range.end);
}

/** The common part, which is `a` itself where it lies in `b`. An empty one has end <= start. */
export function intersectRanges(a: RowRange, b: RowRange): RowRange {
  if (a.start >= b.start && (b.end === undefined || (a.end !== undefined && a.end <= b.end))) return a;
  const start = a.start > b.start ? a.start : b.start;
  const end = a.end === undefined ? b.end : b.end === undefined || a.end < b.end ? a.end : b.end;
  return { start, end };
}

/**
 * The ranges sorted, disjoint, never touching, none empty, for a read to walk over. Keys requested twice are read once.
 */
export function normalizeRanges(ranges: readonly RowRange[]): RowRange[] {
  if (ranges.length === 1) return isEmptyRange(ranges[0]!) ? [] : [...ranges];
  const sorted = ranges.filter((range) => !isEmptyRange(range)).sort(compareStarts);
  const out: RowRange[] = [];
  for (const range of sorted) joinRange(out, range);
  return out;
}

export function compareStarts(a: RowRange, b: RowRange): number {
  return a.start < b.start ? -1 : a.start > b.start ? 1 : 0;
}

/** Adds a range that starts no earlier than the last one, joined with that where they meet. */
export function joinRange(ranges: RowRange[], range: RowRange): void {
  const last = ranges.at(-1);
  if (last && (last.end === undefined || range.start <= last.end)) {
    if (last.end !== undefined && (range.end === undefined || range.end > last.end))
      ranges[ranges.length - 1] = { start: last.start, end: range.end };
  } else {
    ranges.push(range);
  }
}
