/**
 * The options of a scan, after the paper's Scanner (section 3, figure 3), converted to a read request of the service.
 */
import {
  BigtableError,
  type ByteString,
  checkOptions,
  Code,
  describeValue,
  INT64_MAX,
  int64,
  invalidArgument,
  type OptionTable,
  prefixEnd,
  quote,
  toBigInt,
  utf8,
} from '../../base/index.ts';
import type { RowFilter as ModelFilter } from '../../filter/index.ts';
import type { RowRange } from '../../model/index.ts';
import { rangeOfRow } from '../../model/index.ts';
import type { ReadRequest } from '../../service/index.ts';
import type { CallOptions } from '../calls/call-options.ts';
import { type RowFilter, rowFilterOf } from './filter.ts';
import {
  boundOf,
  type Bytes,
  type Column,
  columnOf,
  keyOf,
  listOf,
  textOf,
  type Timestamp,
  timestampOf,
} from '../values/input.ts';
import type { TimeRange } from './row-mutation.ts';
import { bytePattern } from '../values/text-pattern.ts';

/** Rows by their keys: those with a prefix, or from `start` up to and without `end`. Never all rows. */
export type RowBounds =
  | { readonly prefix: Bytes; readonly start?: never; readonly end?: never }
  | { readonly start: Bytes; readonly end?: Bytes; readonly prefix?: never }
  | { readonly end: Bytes; readonly start?: Bytes; readonly prefix?: never };

export interface ScanOptions extends TimeRange, CallOptions {
  /** Only these rows. */
  readonly rows?: readonly Bytes[];
  readonly prefix?: Bytes;
  /** First row, inclusive. */
  readonly start?: Bytes;
  /** Last row, exclusive. */
  readonly end?: Bytes;
  readonly families?: readonly string[];
  readonly columns?: readonly Column[];
  /**
   * RE2 expressions for family and qualifier, "family:qualifier" cut at the first colon, each matching whole:
   * "anchor:.*\\.cnn\\.com". They are text, and so of characters (see `RowFilter`).
   */
  readonly columnRegex?: string;
  /** Columns of one family from `start` up to and without `end`. */
  readonly columnRange?: { readonly family: string; readonly start?: Bytes; readonly end?: Bytes };
  /** Versions a column, newest first: a number, or 'all'. Default 1. */
  readonly versions?: number | 'all';
  /** The newest version at or below this time, in place of `since` and `until`. */
  readonly at?: Timestamp;
  /** Most rows. */
  readonly limit?: number;
  /** Most cells a row. */
  readonly cellsPerRow?: number;
  readonly reverse?: boolean;
  /** Any filter of the API besides. */
  readonly filter?: RowFilter;
}

export type RowOptions = Omit<ScanOptions, 'rows' | 'prefix' | 'start' | 'end' | 'limit' | 'reverse'>;

const OF_ROW = {
  families: 'bound',
  columns: 'bound',
  columnRegex: 'bound',
  columnRange: 'bound',
  since: 'bound',
  until: 'bound',
  at: 'bound',
  cellsPerRow: 'bound',
  filter: 'bound',
  versions: 'free',
  signal: 'free',
  timeoutMs: 'free',
} satisfies OptionTable<RowOptions>;
const OF_SCAN = {
  rows: 'bound',
  prefix: 'bound',
  start: 'bound',
  end: 'bound',
  limit: 'bound',
  reverse: 'free',
  ...OF_ROW,
} satisfies OptionTable<ScanOptions>;
type ColumnRange = NonNullable<ScanOptions['columnRange']>;
const COLUMN_RANGE = { family: 'bound', start: 'bound', end: 'bound' } satisfies OptionTable<ColumnRange>;
const ROW_BOUNDS = { prefix: 'bound', start: 'bound', end: 'bound' } satisfies OptionTable<RowBounds>;

/** The default options. */
export const NEWEST: RowOptions = Object.freeze({});

/** One row. */
export function rowRequest(table: string, row: Bytes, options: RowOptions, kept: KeptFilters): ReadRequest {
  if (options !== NEWEST) checkRowOptions(options, 'get');
  return { table, ranges: [rangeOfRow(rowKeyOf(row))], filter: filterOf(options, kept) };
}

/** Rows by their keys. */
export function rowsRequest(
  table: string,
  keys: readonly ByteString[],
  options: RowOptions,
  kept: KeptFilters,
): ReadRequest {
  // no ranges at all would ask for every row
  const ranges = keys.length === 0 ? [{ start: '', end: '' }] : keys.map(rangeOfRow);
  return { table, ranges, filter: filterOf(options, kept) };
}

/** INVALID_ARGUMENT for options that are not those of `call`. */
export function checkRowOptions(options: RowOptions, call: string): void {
  checkOptions(options, OF_ROW, call);
}

export function readRequest(table: string, options: ScanOptions, kept: KeptFilters): ReadRequest {
  checkOptions(options, OF_SCAN, 'scan');
  const { limit, reverse } = options;
  if (limit !== undefined) aboveZero(limit, 'limit');
  if (reverse !== undefined && reverse !== null && typeof reverse !== 'boolean')
    throw invalidArgument(`reverse must be true or false, not ${describeValue(reverse)}`);
  return {
    table,
    ranges: rangesOf(options),
    filter: filterOf(options, kept),
    rowsLimit: options.limit,
    reversed: options.reverse,
  };
}

function rangesOf({ rows, ...bounds }: ScanOptions): readonly RowRange[] | undefined {
  const { prefix, start, end } = bounds;
  const isBounded = prefix !== undefined || start !== undefined || end !== undefined;
  if (rows === undefined) return isBounded ? [boundedRange(bounds)] : undefined;
  if (isBounded) throw invalidArgument('give either rows, or prefix, or start and end');
  // no ranges at all would ask for every row
  const keys = listOf(rows, 'rows');
  if (keys.length === 0) return [{ start: '', end: '' }];
  return keys.map((row) => rangeOfRow(rowKeyOf(row)));
}

function boundedRange({ prefix, start, end }: Pick<ScanOptions, keyof RowBounds>): RowRange {
  if (prefix !== undefined) {
    if (start !== undefined || end !== undefined) throw invalidArgument('give either prefix, or start and end');
    const first = boundOf(prefix, 'prefix');
    return { start: first, end: prefixEnd(first) };
  }
  return {
    start: start === undefined ? '' : boundOf(start, 'start'),
    end: end === undefined ? undefined : boundOf(end, 'end'),
  };
}

/** INVALID_ARGUMENT without any bound: `deleteAllRows` deletes all rows. */
export function rangeToDelete(bounds: RowBounds): RowRange {
  checkOptions(bounds, ROW_BOUNDS, 'deleteRows');
  const { prefix, start, end } = bounds;
  if (prefix === undefined && start === undefined && end === undefined) {
    throw invalidArgument('deleteRows must have prefix, start or end; deleteAllRows() deletes all rows of the table');
  }
  const range = boundedRange(bounds);
  if (range.end !== undefined && range.start > range.end) {
    throw invalidArgument(`start ${quote(range.start)} is above end ${quote(range.end)}`);
  }
  return range;
}

export function rowKeyOf(row: Bytes): ByteString {
  const key = keyOf(row, 'a row key');
  if (key === '') throw invalidArgument('a row key must not be empty: no row has such a key');
  return key;
}

/**
 * The program of a filter is kept by the filter's identity: the filters that most reads have are always the same
 * objects.
 */
const NEWEST_VERSION: ModelFilter = Object.freeze({ kind: 'cellsPerColumnLimit', cells: 1 });
const MAX_COLUMNS = 1024;

export type KeptFilters = Map<string, ModelFilter>;

function filterOf(options: ScanOptions, newestOfColumn: KeptFilters): ModelFilter | undefined {
  const name = onlyColumn(options);
  if (name === undefined) return makeFilter(options);
  let filter = name === '' ? NEWEST_VERSION : newestOfColumn.get(name);
  if (filter === undefined) {
    filter = makeFilter(options)!;
    if (newestOfColumn.size === MAX_COLUMNS) newestOfColumn.clear();
    newestOfColumn.set(name, filter);
  }
  return filter;
}

const ROW_KEYS: ReadonlySet<string> = new Set([
  'rows',
  'prefix',
  'start',
  'end',
  'limit',
  'reverse',
  'signal',
  'timeoutMs',
]);

/**
 * The name of the one column whose newest version is requested, '' for the newest of all columns; undefined for any
 * other request.
 */
function onlyColumn(options: ScanOptions): string | undefined {
  let name = '';
  for (const key in options) {
    if (ROW_KEYS.has(key) || options[key as keyof ScanOptions] === undefined) continue;
    const column = key === 'columns' && options.columns?.length === 1 ? options.columns[0] : undefined;
    if (typeof column !== 'string' || column === '') return undefined;
    name = column;
  }
  return name;
}

function makeFilter(options: ScanOptions): ModelFilter | undefined {
  const filters: ModelFilter[] = [...columnFilters(options)];
  const time = timeFilter(options);
  if (time) filters.push(time);
  if (options.filter !== undefined) filters.push(rowFilterOf(options.filter));
  const versions = options.versions ?? 1;
  if (versions !== 'all') {
    aboveZero(versions, 'versions', { or: " or 'all'", most: MAX_CELLS });
    filters.push(versions === 1 ? NEWEST_VERSION : { kind: 'cellsPerColumnLimit', cells: versions });
  }
  if (options.cellsPerRow !== undefined) {
    filters.push({
      kind: 'cellsPerRowLimit',
      cells: aboveZero(options.cellsPerRow, 'cellsPerRow', { most: MAX_CELLS }),
    });
  }
  return filters.length > 1 ? { kind: 'chain', filters } : filters[0];
}

/** The API's numbers of cells are int32. */
const MAX_CELLS = 2 ** 31 - 1;

function aboveZero(value: number, what: string, { or = '', most = Number.MAX_SAFE_INTEGER } = {}): number {
  if (!(Number.isSafeInteger(value) && value > 0)) {
    throw invalidArgument(`${what} must be a whole number above 0${or}, not ${describeValue(value)}`);
  }
  if (value > most) throw invalidArgument(`${what} must be at most ${most}${or}, not ${value}`);
  return value;
}

function* columnFilters(options: ScanOptions): Generator<ModelFilter> {
  if (options.families !== undefined) {
    const families = listOf(options.families, 'families').map((family) => textOf(family, 'a family'));
    if (families.length === 0) yield { kind: 'blockAll' };
    else yield { kind: 'familyNameRegex', regex: families.map((family) => literal(utf8(family))).join('|') };
  }
  if (options.columns !== undefined) yield oneOf(distinctColumns(listOf(options.columns, 'columns')).map(singleColumn));
  if (options.columnRange !== undefined) {
    checkOptions(options.columnRange, COLUMN_RANGE, 'columnRange', 'field');
    const { family, start, end } = options.columnRange;
    yield {
      kind: 'columnRange',
      family: textOf(family, 'columnRange.family'),
      ...(start === undefined ? {} : { start: { value: boundOf(start, 'columnRange.start'), closed: true } }),
      ...(end === undefined ? {} : { end: { value: boundOf(end, 'columnRange.end'), closed: false } }),
    };
  }
  if (options.columnRegex !== undefined) {
    const at = textOf(options.columnRegex, 'columnRegex').indexOf(':');
    if (at < 0) throw invalidArgument(`columnRegex "${options.columnRegex}" must be written family:qualifier`);
    yield { kind: 'familyNameRegex', regex: bytePattern(options.columnRegex.slice(0, at), 'columnRegex') };
    yield { kind: 'columnQualifierRegex', regex: bytePattern(options.columnRegex.slice(at + 1), 'columnRegex') };
  }
}

/** Asked for twice is read once: branches of an interleave would give its cells twice. */
function distinctColumns(columns: readonly Column[]): { family: string; qualifier: ByteString }[] {
  return [
    ...new Map(
      columns.map((column) => columnOf(column)).map((name) => [`${name.family}:${name.qualifier}`, name]),
    ).values(),
  ];
}

function singleColumn({ family, qualifier }: { family: string; qualifier: ByteString }): ModelFilter {
  return {
    kind: 'columnRange',
    family,
    start: { value: qualifier, closed: true },
    end: { value: qualifier, closed: true },
  };
}

function timeFilter({ since, until, at }: ScanOptions): ModelFilter | undefined {
  if (at !== undefined) {
    if (since !== undefined || until !== undefined) throw invalidArgument('give either at, or since and until');
    const newest = toBigInt(timestampOf(at, 'at'));
    return newest === INT64_MAX ? undefined : { kind: 'timestampRange', range: { end: int64(newest + 1n) } };
  }
  if (since === undefined && until === undefined) return undefined;
  const start = since === undefined ? undefined : timestampOf(since, 'since');
  const end = until === undefined ? undefined : timestampOf(until, 'until');
  if (start !== undefined && end !== undefined && start > end) {
    throw new BigtableError(Code.INVALID_ARGUMENT, `since (${start}) is after until (${end})`);
  }
  return { kind: 'timestampRange', range: { start, end } };
}

function oneOf(filters: readonly ModelFilter[]): ModelFilter {
  if (filters.length === 0) return { kind: 'blockAll' };
  return filters.length === 1 ? filters[0]! : { kind: 'interleave', filters };
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
