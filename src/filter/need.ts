/**
 * Finds what a filter needs of a row, before the read: columns and timestamps outside it have no effect, so the read
 * seeks past them.
 *
 * It is computed from the end of each chain to its beginning: a filter needs the cells that may have an effect when
 * they enter it, given what the rest of the chain needs. A filter that counts cells needs every cell if a filter after
 * it needs any. The result is a superset: boxes (an interval of families by an interval of qualifiers) and one interval
 * of timestamps.
 */
import { type ByteString, type Int64, prefixEnd, successor } from '../base/index.ts';
import { columnKey, familyEnd, normalizeRanges, type TimestampRange } from '../model/index.ts';
import type { Bound, RowFilter } from './filter.ts';
import type { ColumnSpan } from './program.ts';
import type { Matcher } from './matcher.ts';

/** Half-open; undefined = no end. */
interface Interval {
  readonly from: ByteString;
  readonly to: ByteString | undefined;
}

interface Box {
  readonly families: Interval;
  readonly qualifiers: Interval;
}

export interface Need {
  /** Empty: no cell is needed. */
  readonly boxes: readonly Box[];
  readonly start: Int64 | undefined;
  readonly end: Int64 | undefined;
}

const ANY: Interval = { from: '', to: undefined };
const ANYWHERE: readonly Box[] = [{ families: ANY, qualifiers: ANY }];
const ALL: Need = { boxes: ANYWHERE, start: undefined, end: undefined };
const EMPTY_NEED: Need = { boxes: [], start: undefined, end: undefined };
/** A filter that needs more boxes is taken to need all columns. */
const MAX_BOXES = 256;
/** Boxes made for a filter altogether. A filter that takes more is taken to need all columns. */
const MAX_BOXES_MADE = 16_384;
/**
 * Most spans. A box of qualifiers without a family becomes one span for each family; beyond the limit, one over all.
 */
const MAX_SPANS = 1024;

export type MatcherOf = (filter: RowFilter & { readonly regex: ByteString }) => Matcher;

/** The need of the whole filter. It is empty exactly if the filter's form shows that it yields no output. */
export function needOf(filter: RowFilter, matcherOf: MatcherOf): Need {
  return need(filter, ALL, { matcherOf, boxesLeft: MAX_BOXES_MADE });
}

interface Search {
  readonly matcherOf: MatcherOf;
  boxesLeft: number;
}

function need(filter: RowFilter, rest: Need, search: Search): Need {
  switch (filter.kind) {
    case 'sink':
      return ALL;
    case 'blockAll':
      return EMPTY_NEED;
    case 'chain':
      return filter.filters.reduceRight((after, part) => need(part, after, search), rest);
    case 'interleave':
      return union(
        filter.filters.map((part) => need(part, rest, search)),
        search,
      );
    case 'condition': {
      const branches = [filter.whenTrue, filter.whenFalse].map((branch) =>
        branch ? need(branch, rest, search) : EMPTY_NEED,
      );
      const both = union(branches, search);
      return isEmptyNeed(both) ? EMPTY_NEED : union([both, need(filter.predicate, ALL, search)], search);
    }
    default:
      return isEmptyNeed(rest) ? EMPTY_NEED : needOfSimple(filter, rest, search);
  }
}

function needOfSimple(filter: RowFilter, rest: Need, search: Search): Need {
  switch (filter.kind) {
    case 'familyNameRegex':
      return within(
        rest,
        intervalsOf(search.matcherOf(filter)).map((families) => ({ families, qualifiers: ANY })),
        search,
      );
    case 'columnQualifierRegex':
      return within(
        rest,
        intervalsOf(search.matcherOf(filter)).map((qualifiers) => ({ families: ANY, qualifiers })),
        search,
      );
    case 'columnRange':
      return within(
        rest,
        [{ families: only(filter.family), qualifiers: intervalOf(filter.start, filter.end) }],
        search,
      );
    case 'timestampRange':
      return {
        boxes: rest.boxes,
        start: later(rest.start, filter.range.start),
        end: earlier(rest.end, filter.range.end),
      };
    case 'cellsPerColumnLimit':
      return { boxes: rest.boxes, start: undefined, end: undefined };
    case 'cellsPerRowOffset':
    case 'cellsPerRowLimit':
      return ALL;
    default:
      return rest;
  }
}

function isEmptyNeed(need: Need): boolean {
  return need.boxes.length === 0 || (need.start !== undefined && need.end !== undefined && need.start >= need.end);
}

function only(key: ByteString): Interval {
  return { from: key, to: successor(key) };
}

function intervalsOf(matcher: Matcher): readonly Interval[] {
  if (matcher.literals) return matcher.literals.map(only);
  return [{ from: matcher.prefix, to: matcher.prefix === '' ? undefined : prefixEnd(matcher.prefix) }];
}

function intervalOf(start: Bound | undefined, end: Bound | undefined): Interval {
  return {
    from: start === undefined ? '' : start.closed ? start.value : successor(start.value),
    to: end === undefined ? undefined : end.closed ? successor(end.value) : end.value,
  };
}

function later(a: Int64 | undefined, b: Int64 | undefined): Int64 | undefined {
  return a === undefined || (b !== undefined && b > a) ? b : a;
}

function earlier(a: Int64 | undefined, b: Int64 | undefined): Int64 | undefined {
  return a === undefined || (b !== undefined && b < a) ? b : a;
}

function intersect(a: Interval, b: Interval): Interval {
  return {
    from: a.from > b.from ? a.from : b.from,
    to: a.to === undefined || (b.to !== undefined && b.to < a.to) ? b.to : a.to,
  };
}

function isEmpty(interval: Interval): boolean {
  return interval.to !== undefined && interval.to <= interval.from;
}

/** The part of `need` inside any of the boxes. */
function within(need: Need, boxes: readonly Box[], search: Search): Need {
  const made = need.boxes.length * boxes.length;
  if (made > MAX_BOXES || made > search.boxesLeft) return need;
  search.boxesLeft -= made;
  const meet = (a: Box, b: Box): Box => ({
    families: intersect(a.families, b.families),
    qualifiers: intersect(a.qualifiers, b.qualifiers),
  });
  const common = need.boxes === ANYWHERE ? boxes : need.boxes.flatMap((a) => boxes.map((b) => meet(a, b)));
  return { ...need, boxes: common.filter((box) => !isEmpty(box.families) && !isEmpty(box.qualifiers)) };
}

function union(all: readonly Need[], search: Search): Need {
  const some = all.filter((part) => !isEmptyNeed(part));
  if (some.length === 0) return EMPTY_NEED;
  const count = some.reduce((sum, part) => sum + part.boxes.length, 0);
  const isMuch = count > MAX_BOXES || count > search.boxesLeft;
  if (!isMuch) search.boxesLeft -= count;
  return {
    boxes: isMuch ? ANYWHERE : some.flatMap((part) => part.boxes),
    start: some.some((part) => part.start === undefined)
      ? undefined
      : some.map((part) => part.start!).reduce((a, b) => (b < a ? b : a)),
    end: some.some((part) => part.end === undefined)
      ? undefined
      : some.map((part) => part.end!).reduce((a, b) => (b > a ? b : a)),
  };
}

export function blocksAll(need: Need): boolean {
  return isEmptyNeed(need);
}

export function timestampsOf(need: Need): TimestampRange | undefined {
  if (need.start === undefined && need.end === undefined) return undefined;
  return { start: need.start, end: need.end };
}

/**
 * The boxes as spans of column keys; undefined = all. `families` are those of the table, so that a qualifier without a
 * family is sought in each.
 */
export function spansOf(need: Need, families: readonly string[] | undefined): readonly ColumnSpan[] | undefined {
  const spans: { start: string; end: string | undefined }[] = [];
  for (const { families: among, qualifiers } of need.boxes) {
    if (among.to === successor(among.from)) spans.push(spanIn(among.from, qualifiers));
    else if (qualifiers.from === '' && qualifiers.to === undefined) spans.push({ start: among.from, end: among.to });
    else if (families && spans.length + families.length <= MAX_SPANS)
      for (const family of families) isIn(family, among) && spans.push(spanIn(family, qualifiers));
    else spans.push({ start: among.from, end: among.to });
  }
  const sorted = normalizeRanges(spans);
  return sorted.length === 1 && sorted[0]?.start === '' && sorted[0].end === undefined ? undefined : sorted;
}

function isIn(family: string, among: Interval): boolean {
  return family >= among.from && (among.to === undefined || family < among.to);
}

function spanIn(family: string, qualifiers: Interval): { start: string; end: string } {
  return {
    start: columnKey(family, qualifiers.from),
    end: qualifiers.to === undefined ? familyEnd(family) : columnKey(family, qualifiers.to),
  };
}
