/**
 * Row filters in the library's words: the twenty kinds of google.bigtable.v2.RowFilter as plain data, with text where
 * the API has bytes.
 *
 * Every filter of a user is converted here to the model's filter. So a malformed filter is refused with the name of the
 * field, and a filter changed between two reads affects the second.
 */
import {
  type BigtableError,
  type ByteString,
  checkOptions,
  describeValue,
  fromBytes,
  invalidArgument,
  isObjectOfNames,
  type OptionKind,
  type OptionTable,
  ownOf,
} from '../../base/index.ts';
import type { Bound as ModelBound, RowFilter as ModelFilter } from '../../filter/index.ts';
import { LIMITS, type TimestampRange } from '../../model/index.ts';
import { type Bytes, isBytes, keyOf, listOf, numberOf, textOf, type Timestamp, timestampOf } from '../values/input.ts';
import { bytePattern } from '../values/text-pattern.ts';

/** One end of a range; a range without it is open to that side. */
export interface FilterBound {
  readonly value: Bytes;
  /** True when `value` itself is in the range. */
  readonly closed: boolean;
}

/** Microseconds or Dates, from `start` up to and without `end`; a side left out is open. */
export interface FilterTimeRange {
  readonly start?: Timestamp;
  readonly end?: Timestamp;
}

/**
 * A filter of the API (google.bigtable.v2.RowFilter). `columnRange` and `valueRange` without a bound take all columns
 * of the family and all values.
 *
 * An expression (`regex`) is RE2 syntax and must match the whole key, name or value. Given as **text** it is of
 * characters: `'Zürich'`, `'[äö]x'` and `'Z.rich'` find what they say in UTF-8, and `.*` takes any bytes but a newline
 * (`\C*` those too). Escapes above `\x7f` and classes of Unicode (`\p{L}`) are refused in text. Given as **bytes** it
 * is of bytes, exactly as the API and its clients have it: `.` is one byte, `\xff` the byte 0xFF.
 */
export type RowFilter =
  /** Each filter takes what the one before it let through. Two or more. */
  | { readonly kind: 'chain'; readonly filters: readonly RowFilter[] }
  /** Each filter takes all cells; what they let through comes together. Two or more. */
  | { readonly kind: 'interleave'; readonly filters: readonly RowFilter[] }
  /**
   * `whenTrue` for rows of which the predicate lets any cell through, else `whenFalse`; a side left out lets nothing
   * through.
   */
  | {
      readonly kind: 'condition';
      readonly predicate: RowFilter;
      readonly whenTrue?: RowFilter;
      readonly whenFalse?: RowFilter;
    }
  /** Cells that come here are in the answer, whatever filters follow. */
  | { readonly kind: 'sink' }
  | { readonly kind: 'passAll' }
  | { readonly kind: 'blockAll' }
  | { readonly kind: 'rowKeyRegex'; readonly regex: Bytes }
  /** Passes whole rows by chance; above 0 and below 1. */
  | { readonly kind: 'rowSample'; readonly probability: number }
  | { readonly kind: 'familyNameRegex'; readonly regex: Bytes }
  | { readonly kind: 'columnQualifierRegex'; readonly regex: Bytes }
  | { readonly kind: 'columnRange'; readonly family: string; readonly start?: FilterBound; readonly end?: FilterBound }
  | { readonly kind: 'timestampRange'; readonly range: FilterTimeRange }
  | { readonly kind: 'valueRegex'; readonly regex: Bytes }
  | { readonly kind: 'valueRange'; readonly start?: FilterBound; readonly end?: FilterBound }
  /** Values of the mask's length that have all of its bits. */
  | { readonly kind: 'valueBitmask'; readonly mask: Bytes }
  | { readonly kind: 'cellsPerRowOffset'; readonly cells: number }
  | { readonly kind: 'cellsPerRowLimit'; readonly cells: number }
  | { readonly kind: 'cellsPerColumnLimit'; readonly cells: number }
  | { readonly kind: 'stripValue' }
  | { readonly kind: 'applyLabel'; readonly label: string };

type OfKind<K extends RowFilter['kind']> = Extract<RowFilter, { readonly kind: K }>;

const FIELDS: { readonly [K in RowFilter['kind']]: OptionTable<OfKind<K>> } = {
  chain: { kind: 'bound', filters: 'bound' },
  interleave: { kind: 'bound', filters: 'bound' },
  condition: { kind: 'bound', predicate: 'bound', whenTrue: 'bound', whenFalse: 'bound' },
  sink: { kind: 'bound' },
  passAll: { kind: 'bound' },
  blockAll: { kind: 'bound' },
  rowKeyRegex: { kind: 'bound', regex: 'bound' },
  rowSample: { kind: 'bound', probability: 'bound' },
  familyNameRegex: { kind: 'bound', regex: 'bound' },
  columnQualifierRegex: { kind: 'bound', regex: 'bound' },
  columnRange: { kind: 'bound', family: 'bound', start: 'bound', end: 'bound' },
  timestampRange: { kind: 'bound', range: 'bound' },
  valueRegex: { kind: 'bound', regex: 'bound' },
  valueRange: { kind: 'bound', start: 'bound', end: 'bound' },
  valueBitmask: { kind: 'bound', mask: 'bound' },
  cellsPerRowOffset: { kind: 'bound', cells: 'bound' },
  cellsPerRowLimit: { kind: 'bound', cells: 'bound' },
  cellsPerColumnLimit: { kind: 'bound', cells: 'bound' },
  stripValue: { kind: 'bound' },
  applyLabel: { kind: 'bound', label: 'bound' },
};
const BOUND = { value: 'bound', closed: 'bound' } satisfies OptionTable<FilterBound>;
const TIME_RANGE = { start: 'bound', end: 'bound' } satisfies OptionTable<FilterTimeRange>;

const { filterDepth: MAX_DEPTH, filterBytes } = LIMITS.default;
/** A filter inside another takes four bytes at the least. */
const MAX_FILTERS = filterBytes / 4;

/** The model's filter. INVALID_ARGUMENT names the field if it is malformed; the compiler checks its meaning. */
export function rowFilterOf(filter: RowFilter, where = 'filter'): ModelFilter {
  return new Reader().read(filter, where, 0);
}

class Reader {
  #count = 0;

  /** `depth`: how many filters this one lies in. */
  read(filter: RowFilter, where: string, depth: number): ModelFilter {
    if (depth > MAX_DEPTH) throw invalidArgument(`filters are nested more than ${MAX_DEPTH} deep: ${where}`);
    if (++this.#count > MAX_FILTERS)
      throw invalidArgument(`a filter consists of at most ${MAX_FILTERS} filters, as it may take ${filterBytes} bytes`);
    if (!isObjectOfNames(filter))
      throw invalidArgument(`${where} must be a filter, an object with a kind, not ${describeValue(filter)}`);
    const { kind } = filter;
    const fields = typeof kind === 'string' ? ownOf<Readonly<Record<string, OptionKind>>>(FIELDS, kind) : undefined;
    if (fields === undefined) throw unknownKind(where, kind);
    checkOptions(filter, fields, `${where} (${kind})`, 'field');
    switch (filter.kind) {
      case 'chain':
      case 'interleave':
        return {
          kind: filter.kind,
          filters: listOf(filter.filters, `${where}.filters`).map((part, i) =>
            this.read(part, `${where}.filters[${i}]`, depth + 1),
          ),
        };
      case 'condition': {
        const { predicate, whenTrue, whenFalse } = filter;
        return {
          kind: 'condition',
          predicate: this.read(predicate, `${where}.predicate`, depth + 1),
          ...(whenTrue !== undefined && { whenTrue: this.read(whenTrue, `${where}.whenTrue`, depth + 1) }),
          ...(whenFalse !== undefined && { whenFalse: this.read(whenFalse, `${where}.whenFalse`, depth + 1) }),
        };
      }
      default:
        return simpleFilter(filter, where);
    }
  }
}

function simpleFilter(
  filter: Exclude<RowFilter, { readonly kind: 'chain' | 'interleave' | 'condition' }>,
  where: string,
): ModelFilter {
  switch (filter.kind) {
    case 'rowKeyRegex':
    case 'familyNameRegex':
    case 'columnQualifierRegex':
    case 'valueRegex':
      return { kind: filter.kind, regex: regexOf(filter.regex, `${where}.regex`) };
    case 'columnRange':
      return { kind: 'columnRange', family: textOf(filter.family, `${where}.family`), ...boundsOf(filter, where) };
    case 'valueRange':
      return { kind: 'valueRange', ...boundsOf(filter, where) };
    case 'timestampRange':
      return { kind: 'timestampRange', range: timesOf(filter.range, `${where}.range`) };
    case 'valueBitmask':
      return { kind: 'valueBitmask', mask: keyOf(filter.mask, `${where}.mask`) };
    case 'applyLabel':
      return { kind: 'applyLabel', label: textOf(filter.label, `${where}.label`) };
    case 'rowSample':
      return { kind: 'rowSample', probability: numberOf(filter.probability, `${where}.probability`) };
    case 'cellsPerRowOffset':
    case 'cellsPerRowLimit':
    case 'cellsPerColumnLimit':
      return { kind: filter.kind, cells: cellsOf(filter.cells, `${where}.cells`) };
    default:
      return { kind: filter.kind };
  }
}

/** The API's numbers of cells are int32. Which of them mean something is checked where filters are compiled. */
const MAX_CELLS = 2 ** 31 - 1;

function cellsOf(cells: number, where: string): number {
  if (!Number.isInteger(numberOf(cells, where)) || Math.abs(cells) > MAX_CELLS)
    throw invalidArgument(`${where} must be a whole number up to ${MAX_CELLS}, not ${cells}`);
  return cells;
}

function unknownKind(where: string, kind: unknown): BigtableError {
  return invalidArgument(
    `${where}: unknown kind of filter ${describeValue(kind)}; known: ${Object.keys(FIELDS).join(', ')}`,
  );
}

function regexOf(regex: Bytes, where: string): ByteString {
  if (typeof regex === 'string') return bytePattern(regex, where);
  if (isBytes(regex)) return fromBytes(regex);
  throw invalidArgument(`${where} must be text or bytes, not ${describeValue(regex)}`);
}

function boundsOf(
  { start, end }: { readonly start?: FilterBound; readonly end?: FilterBound },
  where: string,
): { start?: ModelBound; end?: ModelBound } {
  return {
    ...(start !== undefined && { start: boundOf(start, `${where}.start`) }),
    ...(end !== undefined && { end: boundOf(end, `${where}.end`) }),
  };
}

function boundOf(bound: FilterBound, where: string): ModelBound {
  checkOptions(bound, BOUND, where, 'field');
  if (typeof bound.closed !== 'boolean')
    throw invalidArgument(`${where}.closed must be true or false, not ${describeValue(bound.closed)}`);
  return { value: keyOf(bound.value, `${where}.value`), closed: bound.closed };
}

function timesOf(range: FilterTimeRange, where: string): TimestampRange {
  checkOptions(range, TIME_RANGE, where, 'field');
  const { start, end } = range;
  return {
    ...(start === undefined ? {} : { start: timestampOf(start, `${where}.start`) }),
    ...(end === undefined ? {} : { end: timestampOf(end, `${where}.end`) }),
  };
}
