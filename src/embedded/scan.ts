/**
 * What to read, in the words of the paper's Scanner (section 3, figure 3), turned into a read request of the service.
 */
import { BigtableError, type ByteString, Code, INT64_MAX, invalidArgument, prefixEnd, toBigInt, int64, utf8 } from '../base/index.ts';
import type { RowFilter } from '../filter/index.ts';
import type { RowRange } from '../model/index.ts';
import { rangeOfRow } from '../model/index.ts';
import type { ReadRequest } from '../service/index.ts';
import { type Bytes, type Column, columnOf, keyOf, type Timestamp, timestampOf } from './input.ts';
import type { TimeRange } from './row-mutation.ts';

export interface ScanOptions extends TimeRange {
  /** Only these rows. */
  readonly rows?: readonly Bytes[];
  readonly prefix?: Bytes;
  /** First row, inclusive. */
  readonly start?: Bytes;
  /** Last row, exclusive. */
  readonly end?: Bytes;
  readonly families?: readonly string[];
  readonly columns?: readonly Column[];
  /** RE2 expressions for family and qualifier, "family:qualifier" cut at the first colon, each matching whole: "anchor:.*\\.cnn\\.com". */
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
  /** Any filter of the API besides; byte strings in it have a character a byte. */
  readonly filter?: RowFilter;
  readonly signal?: AbortSignal;
}

export type RowOptions = Omit<ScanOptions, 'rows' | 'prefix' | 'start' | 'end' | 'limit' | 'reverse'>;

/** What is asked for where no options are given. */
export const NEWEST: RowOptions = Object.freeze({});

/** One row. */
export function rowRequest(table: string, row: Bytes, options: RowOptions): ReadRequest {
  return { table, ranges: [rangeOfRow(rowKeyOf(row))], filter: filterOf(options) };
}

export function readRequest(table: string, options: ScanOptions): ReadRequest {
  if (options.limit !== undefined && !(Number.isSafeInteger(options.limit) && options.limit > 0)) {
    throw invalidArgument(`limit must be a whole number above 0, not ${options.limit}`);
  }
  return {
    table,
    ranges: rangesOf(options),
    filter: filterOf(options),
    rowsLimit: options.limit,
    reversed: options.reverse,
  };
}

function rangesOf(options: ScanOptions): readonly RowRange[] | undefined {
  const { rows, prefix, start, end } = options;
  if (rows !== undefined) {
    if (prefix !== undefined || start !== undefined || end !== undefined) throw invalidArgument('give either rows, or prefix, or start and end');
    if (rows.length === 0) return [{ start: '', end: '' }];
    return rows.map((row) => rangeOfRow(rowKeyOf(row)));
  }
  if (prefix !== undefined) {
    if (start !== undefined || end !== undefined) throw invalidArgument('give either prefix, or start and end');
    const first = keyOf(prefix, 'prefix');
    return [{ start: first, end: prefixEnd(first) }];
  }
  if (start === undefined && end === undefined) return undefined;
  return [{ start: start === undefined ? '' : keyOf(start, 'start'), end: end === undefined ? undefined : keyOf(end, 'end') }];
}

function rowKeyOf(row: Bytes): ByteString {
  const key = keyOf(row, 'a row key');
  if (key === '') throw invalidArgument('a row key must not be empty: no row has such a key');
  return key;
}

/** Compiled filters are kept by identity: so the filters that most reads have are always the same objects. */
const NEWEST_VERSION: RowFilter = Object.freeze({ kind: 'cellsPerColumnLimit', cells: 1 });
const newestOfColumn = new Map<string, RowFilter>();
const MOST_COLUMNS = 1024;

function filterOf(options: ScanOptions): RowFilter | undefined {
  const name = onlyColumn(options);
  if (name === undefined) return makeFilter(options);
  let filter = name === '' ? NEWEST_VERSION : newestOfColumn.get(name);
  if (filter === undefined) {
    filter = makeFilter(options) as RowFilter;
    if (newestOfColumn.size === MOST_COLUMNS) newestOfColumn.clear();
    newestOfColumn.set(name, filter);
  }
  return filter;
}

const ROW_KEYS: ReadonlySet<string> = new Set(['rows', 'prefix', 'start', 'end', 'limit', 'reverse', 'signal']);

/** The name of the one column whose newest version is asked for, '' for the newest of all columns; undefined where anything else is. */
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

function makeFilter(options: ScanOptions): RowFilter | undefined {
  const filters: RowFilter[] = [...columnFilters(options)];
  const time = timeFilter(options);
  if (time) filters.push(time);
  if (options.filter) filters.push(options.filter);
  const versions = options.versions ?? 1;
  if (versions !== 'all') {
    if (!(Number.isSafeInteger(versions) && versions > 0)) throw invalidArgument(`versions must be a whole number above 0 or 'all', not ${versions}`);
    filters.push(versions === 1 ? NEWEST_VERSION : { kind: 'cellsPerColumnLimit', cells: versions });
  }
  if (options.cellsPerRow !== undefined) filters.push({ kind: 'cellsPerRowLimit', cells: options.cellsPerRow });
  return filters.length > 1 ? { kind: 'chain', filters } : filters[0];
}

function* columnFilters(options: ScanOptions): Generator<RowFilter> {
  if (options.families) {
    if (options.families.length === 0) yield { kind: 'blockAll' };
    else yield { kind: 'familyNameRegex', regex: options.families.map((family) => literal(utf8(family))).join('|') };
  }
  if (options.columns) yield oneOf(distinctColumns(options.columns).map(singleColumn));
  if (options.columnRange) {
    const { family, start, end } = options.columnRange;
    yield {
      kind: 'columnRange',
      family,
      ...(start === undefined ? {} : { start: { value: keyOf(start, 'columnRange.start'), closed: true } }),
      ...(end === undefined ? {} : { end: { value: keyOf(end, 'columnRange.end'), closed: false } }),
    };
  }
  if (options.columnRegex !== undefined) {
    const at = options.columnRegex.indexOf(':');
    if (at < 0) throw invalidArgument(`columnRegex "${options.columnRegex}" must be written family:qualifier`);
    yield { kind: 'familyNameRegex', regex: utf8(options.columnRegex.slice(0, at)) };
    yield { kind: 'columnQualifierRegex', regex: utf8(options.columnRegex.slice(at + 1)) };
  }
}

/** Asked for twice is read once: branches of an interleave would give its cells twice. */
function distinctColumns(columns: readonly Column[]): { family: string; qualifier: ByteString }[] {
  return [...new Map(columns.map((column) => columnOf(column)).map((name) => [`${name.family}:${name.qualifier}`, name])).values()];
}

function singleColumn({ family, qualifier }: { family: string; qualifier: ByteString }): RowFilter {
  return { kind: 'columnRange', family, start: { value: qualifier, closed: true }, end: { value: qualifier, closed: true } };
}

function timeFilter({ since, until, at }: ScanOptions): RowFilter | undefined {
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

function oneOf(filters: readonly RowFilter[]): RowFilter {
  if (filters.length === 0) return { kind: 'blockAll' };
  return filters.length === 1 ? (filters[0] as RowFilter) : { kind: 'interleave', filters };
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
