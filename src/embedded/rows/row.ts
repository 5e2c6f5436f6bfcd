/**
 * Rows and cells as the library returns them: a map of maps of maps (family, qualifier, timestamp -> value), newest
 * version first.
 */
import {
  asBuffer,
  BigtableError,
  type ByteString,
  Code,
  type Int64,
  jsonField,
  toBigInt,
  toBytes,
  toText,
} from '../../base/index.ts';
import type { Cell as ModelCell, RowFragment } from '../../model/index.ts';
import { type Column, columnOf, ownBytes, type Timestamp, timestampOf } from '../values/input.ts';
import { INSPECT, type Inspect, type InspectOptions, inspected, readable, readableTime } from '../values/show.ts';

/** Family and qualifier of a cell, a character a byte. */
let nameOf: (cell: Cell) => string;
let isIn: (cell: Cell, family: string, qualifier: ByteString) => boolean;

export class Cell {
  readonly family: string;
  readonly #qualifier: ByteString;
  readonly #timestamp: Int64;
  readonly #value: Uint8Array;

  static {
    nameOf = (cell) => `${cell.family}:${cell.#qualifier}`;
    isIn = (cell, family, qualifier) => cell.#qualifier === qualifier && cell.family === family;
  }

  /**
   * `value`: the cell's, in memory of the caller's own. Nothing else of the given cell is kept: its value may pin a
   * whole block.
   */
  constructor(cell: ModelCell, value = cell.value) {
    this.family = cell.family;
    this.#qualifier = cell.qualifier;
    this.#timestamp = cell.timestamp;
    this.#value = value;
  }

  get qualifier(): Buffer {
    return toBytes(this.#qualifier);
  }

  /** "family:qualifier", the qualifier read as UTF-8. */
  get column(): string {
    return `${this.family}:${toText(this.#qualifier)}`;
  }

  /** Microseconds since 1970. */
  get timestamp(): bigint {
    return toBigInt(this.#timestamp);
  }

  get value(): Buffer {
    return asBuffer(this.#value);
  }

  /** The value read as UTF-8. */
  get text(): string {
    return this.value.toString('utf8');
  }

  /** The value as a counter; FAILED_PRECONDITION if it is not 8 bytes. */
  get int(): bigint {
    if (this.value.length !== 8)
      throw new BigtableError(
        Code.FAILED_PRECONDITION,
        `${this.column} holds ${this.value.length} bytes, a counter has 8`,
      );
    return this.value.readBigInt64BE(0);
  }

  /**
   * `{ family, qualifier, timestamp, value }`, all of text; bytes that are not UTF-8 are in `qualifierBase64` or
   * `valueBase64`.
   */
  toJSON(): object {
    return {
      family: this.family,
      ...jsonField('qualifier', this.qualifier),
      timestamp: String(this.#timestamp),
      ...jsonField('value', this.#value),
    };
  }

  [INSPECT](depth: number, options: InspectOptions, inspect: Inspect): string {
    const value = readable(this.#value);
    const qualifier = readable(this.qualifier);
    const fields = {
      ...(typeof qualifier === 'string' ? { column: this.column } : { family: this.family, qualifier }),
      timestamp: readableTime(this.#timestamp),
      ...(typeof value === 'string' ? { text: value } : { value }),
    };
    return inspected('Cell', fields, depth, options, inspect);
  }
}

/** Up to this number of cells a column is found by a linear search. */
const FEW_CELLS = 8;
/** Values of a row up to this size together are copied into one buffer. */
const COPIED_BYTES = 32 * 1024;

export class Row {
  readonly #key: ByteString;
  /** Sorted by family, qualifier, newest first. */
  readonly cells: readonly Cell[];
  /** Made at the first look-up of a column in a row of many cells. */
  #columns: Map<string, Cell[]> | undefined;

  constructor(key: ByteString, cells: readonly ModelCell[]) {
    this.#key = key;
    this.cells = ownCells(cells);
  }

  get key(): Buffer {
    return toBytes(this.#key);
  }

  /** The key read as UTF-8. */
  get name(): string {
    return toText(this.#key);
  }

  /** All versions of the column that were read, newest first. */
  versions(column: Column): readonly Cell[] {
    const { family, qualifier } = columnOf(column);
    if (this.cells.length <= FEW_CELLS) return this.cells.filter((cell) => isIn(cell, family, qualifier));
    this.#columns ??= byColumn(this.cells);
    return this.#columns.get(`${family}:${qualifier}`) ?? [];
  }

  /**
   * The newest version of the column; with `at` the newest at or below it. Undefined if there is none. INVALID_ARGUMENT
   * for an `at` that is undefined.
   */
  get(column: Column, ...at: [] | [at: Timestamp]): Cell | undefined {
    const versions = this.versions(column);
    if (at.length === 0) return versions[0];
    const newest = toBigInt(timestampOf(at[0], 'at'));
    return versions.find((cell) => cell.timestamp <= newest);
  }

  /** The row as a map of maps of maps: family -> qualifier (UTF-8) -> timestamp -> value. */
  toMap(): Map<string, Map<string, Map<bigint, Buffer>>> {
    const families = new Map<string, Map<string, Map<bigint, Buffer>>>();
    for (const cell of this.cells) {
      let family = families.get(cell.family);
      if (!family) families.set(cell.family, (family = new Map()));
      const qualifier = cell.qualifier.toString('utf8');
      let versions = family.get(qualifier);
      if (!versions) family.set(qualifier, (versions = new Map()));
      versions.set(cell.timestamp, cell.value);
    }
    return families;
  }

  /** `{ key, cells }`; a key that is not UTF-8 is in `keyBase64`. */
  toJSON(): object {
    return { ...jsonField('key', this.key), cells: this.cells };
  }

  [INSPECT](depth: number, options: InspectOptions, inspect: Inspect): string {
    const key = readable(this.key);
    const fields = { ...(typeof key === 'string' ? { name: key } : { key }), cells: this.cells };
    return inspected('Row', fields, depth, options, inspect);
  }
}

/** The cells with values of the caller's own: those of a table are views of blocks that others read. */
function ownCells(cells: readonly ModelCell[]): Cell[] {
  let bytes = 0;
  for (const { value } of cells) bytes += value.length;
  if (bytes > COPIED_BYTES) return cells.map((cell) => new Cell(cell, ownBytes(cell.value)));
  const own: Cell[] = [];
  const copies = Buffer.allocUnsafe(bytes);
  let at = 0;
  for (const cell of cells) {
    const { value } = cell;
    copies.set(value, at);
    // as `subarray` does, for less
    own.push(
      new Cell(
        cell,
        value.length === bytes ? copies : Buffer.from(copies.buffer, copies.byteOffset + at, value.length),
      ),
    );
    at += value.length;
  }
  return own;
}

function byColumn(cells: readonly Cell[]): Map<string, Cell[]> {
  const columns = new Map<string, Cell[]>();
  for (const cell of cells) {
    const name = nameOf(cell);
    const column = columns.get(name);
    if (column) column.push(cell);
    else columns.set(name, [cell]);
  }
  return columns;
}

/** Joins the fragments of a stream into whole rows. */
export class RowBuilder {
  #cells: ModelCell[] = [];

  /** The row, once its last fragment has come. */
  add(fragment: RowFragment): Row | undefined {
    if (fragment.last && this.#cells.length === 0) return new Row(fragment.row, fragment.cells);
    for (const cell of fragment.cells) this.#cells.push(cell);
    if (!fragment.last) return undefined;
    const cells = this.#cells;
    this.#cells = [];
    return new Row(fragment.row, cells);
  }
}
