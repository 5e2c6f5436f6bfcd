/**
 * The plain model of filters for tests and fuzzing: lists of cells in, lists out, one function a kind, written from the
 * documentation of the API.
 */
import assert from 'node:assert/strict';
import { fromBytes, type Int64, toBytes } from '../base/index.ts';
import type { Cell, TimestampRange } from '../model/index.ts';
import { containsKind } from './check.ts';
import type { Bound, RowFilter } from './filter.ts';

export const HALF = { float: () => 0.5 };
export const FAMILIES = ['a', 'ab', 'b'];

/** Patterns with equivalent JavaScript expressions. */
export const EXPRESSIONS: readonly (readonly [string, RegExp])[] = [
  ['a', /^a$/],
  ['b', /^b$/],
  ['a|b', /^(a|b)$/],
  ['a.*', /^a.*$/],
  ['.*b', /^.*b$/],
  ['.*', /^.*$/],
  ['\\C*', /^[\s\S]*$/],
  ['[^b]+', /^[^b]+$/],
  ['x|y', /^(x|y)$/],
  ['x.*', /^x.*$/],
  ['x\\C*', /^x[\s\S]*$/],
  ['.', /^.$/],
  ['\\C', /^[\s\S]$/],
  ['', /^$/],
  ['\\xff', /^\xff$/],
  ['(?i)X', /^x$/i],
  ['nothing', /^nothing$/],
];

/** A cell on its way; `at` is its place in the input of the interleave it is inside of, `from` that input's own. */
interface Item {
  readonly cell: Cell;
  readonly at: number;
  readonly from: Item | undefined;
}

export function order(a: Cell, b: Cell): number {
  if (a.family !== b.family) return a.family < b.family ? -1 : 1;
  if (a.qualifier !== b.qualifier) return a.qualifier < b.qualifier ? -1 : 1;
  return a.timestamp > b.timestamp ? -1 : a.timestamp < b.timestamp ? 1 : 0;
}

function inBounds(text: string, start: Bound | undefined, end: Bound | undefined): boolean {
  if (start && !(start.closed ? text >= start.value : text > start.value)) return false;
  return !end || (end.closed ? text <= end.value : text < end.value);
}

function isWithin(timestamp: Int64, { start, end }: TimestampRange): boolean {
  return (start === undefined || timestamp >= start) && (end === undefined || timestamp < end);
}

function expression(regex: string): RegExp {
  const found = EXPRESSIONS.find(([pattern]) => pattern === regex);
  assert.ok(found, `no model of ${regex}`);
  return found[1];
}

function hasBits(value: Uint8Array, mask: Buffer): boolean {
  return value.length === mask.length && mask.every((bits, i) => (value[i]! & bits) === bits);
}

/** The output of the filter for a row. `sunk` gets the cells that sinks take. */
function model(filter: RowFilter, row: string, input: readonly Item[], sunk: Cell[]): readonly Item[] {
  const keep = (passes: (cell: Cell) => boolean): readonly Item[] => input.filter((item) => passes(item.cell));
  const change = (to: (cell: Cell) => Cell): readonly Item[] => input.map((item) => ({ ...item, cell: to(item.cell) }));
  switch (filter.kind) {
    case 'chain':
      return filter.filters.reduce((items, part) => model(part, row, items, sunk), input);
    case 'interleave':
      return interleave(filter, row, input, sunk);
    case 'condition': {
      const branch = model(filter.predicate, row, input, sunk).length > 0 ? filter.whenTrue : filter.whenFalse;
      return branch ? model(branch, row, input, sunk) : [];
    }
    case 'sink':
      sunk.push(...input.map((item) => item.cell));
      return [];
    case 'passAll':
      return input;
    case 'blockAll':
      return [];
    case 'rowKeyRegex':
      return expression(filter.regex).test(row) ? input : [];
    case 'rowSample':
      return HALF.float() < filter.probability ? input : [];
    case 'familyNameRegex':
      return keep((cell) => expression(filter.regex).test(cell.family));
    case 'columnQualifierRegex':
      return keep((cell) => expression(filter.regex).test(cell.qualifier));
    case 'columnRange':
      return keep((cell) => cell.family === filter.family && inBounds(cell.qualifier, filter.start, filter.end));
    case 'timestampRange':
      return keep(({ timestamp }) => isWithin(timestamp, filter.range));
    case 'valueRegex':
      return keep((cell) => expression(filter.regex).test(fromBytes(cell.value)));
    case 'valueRange':
      return keep((cell) => inBounds(fromBytes(cell.value), filter.start, filter.end));
    case 'valueBitmask':
      return keep((cell) => hasBits(cell.value, toBytes(filter.mask)));
    case 'cellsPerRowOffset':
      return input.slice(filter.cells);
    case 'cellsPerRowLimit':
      return input.slice(0, filter.cells);
    case 'cellsPerColumnLimit':
      return input.filter(
        (item, i) => input.slice(0, i).filter((other) => sameColumn(other.cell, item.cell)).length < filter.cells,
      );
    case 'stripValue':
      return change((cell) => ({ ...cell, value: Buffer.alloc(0) }));
    case 'applyLabel':
      return change((cell) => ({ ...cell, labels: [filter.label] }));
  }
}

export function sameColumn(a: Cell, b: Cell): boolean {
  return a.family === b.family && a.qualifier === b.qualifier;
}

/**
 * The API leaves open the order of copies of a cell. Ours: by input cell, then by branch; by branch alone if one of
 * them waits for a predicate.
 */
function interleave(
  filter: RowFilter & { kind: 'interleave' },
  row: string,
  input: readonly Item[],
  sunk: Cell[],
): readonly Item[] {
  const inner = input.map((from, at): Item => ({ cell: from.cell, at, from }));
  const pooled = filter.filters.flatMap((part) => model(part, row, inner, sunk));
  const waits = filter.filters.some((part) => containsKind(part, 'condition'));
  const sorted = waits ? pooled.sort((a, b) => order(a.cell, b.cell)) : pooled.sort((a, b) => a.at - b.at);
  return sorted.map((item): Item => ({ cell: item.cell, at: item.from?.at ?? 0, from: item.from?.from }));
}

/** The output for a row: at the end of the filter, and in its sinks. */
export function expected(filter: RowFilter, row: string, cells: readonly Cell[]): { main: Cell[]; sunk: Cell[] } {
  const sunk: Cell[] = [];
  const items = cells.map((cell, at): Item => ({ cell, at, from: undefined }));
  return { main: model(filter, row, items, sunk).map((item) => item.cell), sunk };
}
