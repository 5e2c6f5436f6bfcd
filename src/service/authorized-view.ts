/**
 * Authorized views (API: google.bigtable.admin.v2.AuthorizedView): a part of a table, by prefixes of row keys and by
 * columns. Who reads through one sees that part as if it were the table; a change of anything else is refused.
 */
import { BigtableError, type ByteString, Code, prefixEnd, quote, successor } from '../base/index.ts';
import { checkFilter, type RowFilter } from '../filter/index.ts';
import {
  ALL_ROWS,
  columnAt,
  intersectRanges,
  isCellRun,
  isEmptyRange,
  LIMITS,
  type Mutation,
  type Mutations,
  normalizeRanges,
  rangeContains,
  type ReadModifyWriteRule,
  type RowMutations,
  type RowRange,
} from '../model/index.ts';
import type { Slicer } from './check-data.ts';
import type { KeySample, ReadRequest } from './service.ts';

/** The columns of a family that are in a view. */
export interface FamilySubset {
  readonly family: string;
  readonly qualifiers: readonly ByteString[];
  /** '' = all columns. */
  readonly qualifierPrefixes: readonly ByteString[];
}

export interface SubsetView {
  readonly name: string;
  readonly table: string;
  /** '' = all rows. */
  readonly rowPrefixes: readonly ByteString[];
  readonly families: readonly FamilySubset[];
}

/** A range that holds no row. A read without ranges is one of all rows. */
const NO_ROW: RowRange = { start: '\0', end: '\0' };

export class AuthorizedView {
  readonly name: string;
  readonly table: string;
  /** In order, disjoint. */
  readonly #rows: readonly RowRange[];
  /** Ranges of qualifiers by family, in order, disjoint. */
  readonly #columns: ReadonlyMap<string, readonly RowRange[]>;
  /** Passes the cells of the view. */
  readonly #filter: RowFilter;

  constructor({ name, table, rowPrefixes, families }: SubsetView) {
    this.name = name;
    this.table = table;
    this.#rows = normalizeRanges(rowPrefixes.map(rangeOfPrefix));
    this.#columns = new Map(families.map((subset) => [subset.family, columnsOf(subset)]));
    this.#filter = filterOf(this.#columns);
  }

  /** The read as one of the table that sees nothing else than the view. There may be a million ranges. */
  async read(request: ReadRequest, slicer: Slicer): Promise<ReadRequest> {
    const { ranges = [], filter } = request;
    const wanted = ranges.length === 0 ? [ALL_ROWS] : ranges;
    const common = new CommonRanges(this.#rows);
    await slicer(wanted.length, (from, to) => {
      for (let at = from; at < to; at++) common.add(wanted[at]!);
    });
    const found = common.ranges();
    return {
      ...request,
      table: this.table,
      ranges: found.length === 0 ? [NO_ROW] : found,
      filter: this.narrow(filter),
    };
  }

  /** The filter, of cells of the view alone; it sees no other cell. */
  narrow(filter: RowFilter | undefined): RowFilter {
    if (filter === undefined) return this.#filter;
    // an error names the place in the request, not that in the chain
    checkFilter(filter, LIMITS.default);
    return { kind: 'chain', filters: [this.#filter, ...(filter.kind === 'chain' ? filter.filters : [filter])] };
  }

  /**
   * The samples of the table that lie in the view and in the range, and the end of each common part. Offsets count from
   * the start of the first.
   */
  samples(samples: readonly KeySample[], within: RowRange = ALL_ROWS): readonly KeySample[] {
    const parts = this.#rows.map((own) => intersectRanges(own, within)).filter((part) => !isEmptyRange(part));
    let beforeBytes = 0;
    return parts.flatMap((part) => {
      const clipped = clipSamples(samples, part, beforeBytes);
      beforeBytes = clipped.at(-1)!.offsetBytes;
      return clipped;
    });
  }

  /** PERMISSION_DENIED where a change lies outside of the view. */
  checkRow({ row, mutations }: RowMutations): void {
    this.#checkKey(row);
    if (!isCellRun(mutations)) {
      for (const mutation of mutations) this.#checkMutation(mutation);
      return;
    }
    this.#checkCells(mutations);
  }

  /** The same for the rules of a read-modify-write. */
  checkRules(row: ByteString, rules: readonly ReadModifyWriteRule[]): void {
    this.#checkKey(row);
    for (const { family, qualifier } of rules) this.#checkColumn(family, qualifier);
  }

  #checkKey(row: ByteString): void {
    if (!contain(this.#rows, row)) throw this.#denied(`row ${quote(row, 64)}`);
  }

  #checkCells(mutations: Exclude<Mutations, readonly Mutation[]>): void {
    let checked: ReturnType<typeof columnAt> | undefined;
    for (let at = mutations.from; at < mutations.from + mutations.length; at++) {
      const column = columnAt(mutations, at);
      if (column !== checked) this.#checkColumn(column.family, column.qualifier);
      checked = column;
    }
  }

  /** A row and a family may hold columns that are not in the view, now or later. */
  #checkMutation(mutation: Mutation): void {
    if (mutation.kind === 'deleteFromRow') throw this.#denied('all columns of a row');
    if (mutation.kind !== 'deleteFromFamily') return this.#checkColumn(mutation.family, mutation.qualifier);
    const [range] = this.#columns.get(mutation.family) ?? [];
    if (range?.start !== '' || range.end !== undefined)
      throw this.#denied(`all columns of family ${quote(mutation.family)}`);
  }

  #checkColumn(family: string, qualifier: ByteString): void {
    if (!contain(this.#columns.get(family) ?? [], qualifier))
      throw this.#denied(`column ${quote(family)}:${quote(qualifier, 64)}`);
  }

  #denied(what: string): BigtableError {
    return new BigtableError(Code.PERMISSION_DENIED, `${what} is not in authorized view ${this.name}`);
  }
}

/**
 * The common parts of a view's ranges and those of a read, which may overlap: at most the view's own, and two for each
 * of the read.
 */
class CommonRanges {
  /** In order, disjoint. */
  readonly #own: readonly RowRange[];
  /** Differences of the number of ranges that cover the whole of the own range at an index, to that before it. */
  readonly #covers: number[];
  readonly #parts: RowRange[] = [];

  constructor(own: readonly RowRange[]) {
    this.#own = own;
    this.#covers = new Array(own.length + 1).fill(0);
  }

  add(range: RowRange): void {
    if (isEmptyRange(range)) return;
    const from = this.#firstEndingAbove(range.start);
    let to = from;
    // all between the first and the last are covered
    const last = range.end === undefined ? this.#own.length - 1 : this.#lastStartingBelow(range.end);
    if (last < from) return;
    for (const at of last === from ? [from] : [from, last]) {
      const own = this.#own[at]!;
      const part = intersectRanges(own, range);
      if (part === own) this.#cover(at, at);
      else this.#parts.push(part);
      to = at;
    }
    if (to > from + 1) this.#cover(from + 1, to - 1);
  }

  ranges(): RowRange[] {
    let covers = 0;
    const whole = this.#own.filter((_range, at) => {
      covers += this.#covers[at]!;
      return covers > 0;
    });
    return [...whole, ...this.#parts];
  }

  #cover(from: number, to: number): void {
    this.#covers[from]!++;
    this.#covers[to + 1]!--;
  }

  #firstEndingAbove(row: ByteString): number {
    return countWhile(this.#own, ({ end }) => end !== undefined && end <= row);
  }

  #lastStartingBelow(row: ByteString): number {
    return countWhile(this.#own, ({ start }) => start < row) - 1;
  }
}

/** True where one of the ranges, which are in order and disjoint, contains the key. */
function contain(ranges: readonly RowRange[], key: ByteString): boolean {
  const last = ranges[countWhile(ranges, ({ start }) => start <= key) - 1];
  return last !== undefined && rangeContains(last, key);
}

/** The number of ranges for which `holds`, which is true for the first ones and false for the rest. */
function countWhile(ranges: readonly RowRange[], holds: (range: RowRange) => boolean): number {
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(ranges[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Samples inside the range, then its end, also where it holds no row. Offsets count from the sample before the range's
 * start, and from `beforeBytes`.
 */
export function clipSamples(samples: readonly KeySample[], range: RowRange, beforeBytes = 0): KeySample[] {
  if (isEmptyRange(range)) return [{ row: range.end!, offsetBytes: beforeBytes }];
  const isInside = ({ row }: KeySample): boolean =>
    row !== '' && row > range.start && (range.end === undefined || row < range.end);
  const before = samples.findLast(({ row }) => row !== '' && row <= range.start)?.offsetBytes ?? 0;
  const after = samples.find(({ row }) => row === '' || (range.end !== undefined && row >= range.end));
  const end = { row: range.end ?? '', offsetBytes: after?.offsetBytes ?? before };
  return [...samples.filter(isInside), end].map(({ row, offsetBytes }) => ({
    row,
    offsetBytes: offsetBytes - before + beforeBytes,
  }));
}

function rangeOfPrefix(prefix: ByteString): RowRange {
  return { start: prefix, end: prefixEnd(prefix) };
}

function columnsOf({ qualifiers, qualifierPrefixes }: FamilySubset): readonly RowRange[] {
  const exact = qualifiers.map((qualifier) => ({ start: qualifier, end: successor(qualifier) }));
  return normalizeRanges([...exact, ...qualifierPrefixes.map(rangeOfPrefix)]);
}

/** The ranges are disjoint: no cell passes two of them. */
function filterOf(columns: ReadonlyMap<string, readonly RowRange[]>): RowFilter {
  const filters = [...columns].flatMap(([family, ranges]) =>
    ranges.map(
      ({ start, end }): RowFilter => ({
        kind: 'columnRange',
        family,
        start: { value: start, closed: true },
        end: end === undefined ? undefined : { value: end, closed: false },
      }),
    ),
  );
  // alternatives, also where there is only one: a view may be of a family that does not exist
  return filters.length === 0
    ? { kind: 'blockAll' }
    : { kind: 'interleave', filters: [...filters, { kind: 'blockAll' }] };
}
