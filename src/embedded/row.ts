/**
 * Rows and cells as the library gives them out: a map of maps of maps (family, qualifier, timestamp -> value), newest version first.
 */
import { asBuffer, BigtableError, type ByteString, Code, toBigInt, toBytes, toText } from '../base/index.ts';
import type { Cell as ModelCell, RowFragment } from '../model/index.ts';
import { type Column, columnOf, ownBytes, type Timestamp, timestampOf } from './input.ts';

export class Cell {
  readonly #cell: ModelCell;

  constructor(cell: ModelCell) {
    this.#cell = cell;
  }

  get family(): string {
    return this.#cell.family;
  }

  get qualifier(): Buffer {
    return toBytes(this.#cell.qualifier);
  }

  /** "family:qualifier", the qualifier read as UTF-8. */
  get column(): string {
    return `${this.#cell.family}:${toText(this.#cell.qualifier)}`;
  }

  /** Microseconds since 1970. */
  get timestamp(): bigint {
    return toBigInt(this.#cell.timestamp);
  }

  get value(): Buffer {
    return asBuffer(this.#cell.value);
  }

  /** The value read as UTF-8. */
  get text(): string {
    return this.value.toString('utf8');
  }

  /** The value as a counter; FAILED_PRECONDITION where it is not 8 bytes. */
  get int(): bigint {
    if (this.value.length !== 8) throw new BigtableError(Code.FAILED_PRECONDITION, `${this.column} holds ${this.value.length} bytes, a counter has 8`);
    return this.value.readBigInt64BE(0);
  }
}

export class Row {
  readonly #key: ByteString;
  /** By family, qualifier, newest first. */
  readonly cells: readonly Cell[];
  readonly #columns = new Map<string, Cell[]>();

  constructor(key: ByteString, cells: readonly ModelCell[]) {
    this.#key = key;
    this.cells = cells.map((cell) => {
      const own = new Cell({ ...cell, value: ownBytes(cell.value) });
      const name = `${cell.family}:${cell.qualifier}`;
      const column = this.#columns.get(name);
      if (column) column.push(own);
      else this.#columns.set(name, [own]);
      return own;
    });
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
    return this.#columns.get(`${family}:${qualifier}`) ?? [];
  }

  /** The newest version of the column; with `at` the newest at or below it. Undefined where there is none. */
  get(column: Column, at?: Timestamp): Cell | undefined {
    const versions = this.versions(column);
    if (at === undefined) return versions[0];
    const newest = toBigInt(timestampOf(at));
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
