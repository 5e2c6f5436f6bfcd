/**
 * Gathers the set-cells in the bytes of a request or of a log's append into a CellBatch (cell-run.ts).
 *
 * Hot path: columns are distinguished by the bytes of their names, before any text is made of them. A small table holds
 * the positions where names occurred.
 */
import { assert, type Int64 } from '../base/index.ts';
import type { CellBatch, CellColumn, CellRun } from './cell-run.ts';

/**
 * Columns that become objects, and are recognized wherever they recur. Of the others only the last one is recognized.
 */
const MAX_MADE_COLUMNS = 64;
const SLOTS = 256;

/** The positions of a column's names in the bytes. They may include more than the name, such as its encoded length. */
interface ColumnPosition {
  index: number;
  family: string;
  readonly familyStart: number;
  readonly familyEnd: number;
  readonly qualifierStart: number;
  readonly qualifierEnd: number;
}

export class CellBatchBuilder {
  readonly #bytes: Buffer;
  readonly #columns: CellColumn[] = [];
  readonly #moreFamilies: string[] = [];
  readonly #moreQualifiers: number[] = [];
  readonly #columnOf: number[] = [];
  readonly #timestamps: Int64[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #batch: CellBatch;
  /** The column of the cells that are added now. */
  #column: ColumnPosition | undefined;
  /** The column that `toColumn` did not find. */
  #newColumn: ColumnPosition | undefined;
  /** The columns added last, by the last bytes of their qualifiers. Undefined as long as there is one column. */
  #slots: (ColumnPosition | undefined)[] | undefined;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    const [columns, moreFamilies, moreQualifiers] = [this.#columns, this.#moreFamilies, this.#moreQualifiers];
    this.#batch = {
      bytes,
      columns,
      moreFamilies,
      moreQualifiers,
      columnOf: this.#columnOf,
      timestamps: this.#timestamps,
      starts: this.#starts,
      ends: this.#ends,
    };
  }

  get count(): number {
    return this.#starts.length;
  }

  /**
   * Searches the column with the names at those positions. True: later cells belong to it. False: it is new, and
   * `addColumn` adds it.
   */
  toColumn(familyStart: number, familyEnd: number, qualifierStart: number, qualifierEnd: number): boolean {
    const last = this.#column;
    if (last !== undefined && this.#isAt(last, familyStart, familyEnd, qualifierStart, qualifierEnd)) return true;
    const known = this.#slots?.[this.#slot(qualifierStart, qualifierEnd)];
    if (known !== undefined && this.#isAt(known, familyStart, familyEnd, qualifierStart, qualifierEnd)) {
      this.#column = known;
      return true;
    }
    this.#newColumn = { index: -1, family: '', familyStart, familyEnd, qualifierStart, qualifierEnd };
    return false;
  }

  /** The family of the present column, if it is the new one's too. */
  familyOfNew(): string | undefined {
    const [last, found] = [this.#column, this.#newColumn];
    assert(found !== undefined, 'addColumn follows a toColumn that found a new column');
    if (last === undefined) return undefined;
    return this.#isSame(found.familyStart, found.familyEnd, last.familyStart, last.familyEnd) ? last.family : undefined;
  }

  /**
   * Adds the column that `toColumn` has just not found; later cells belong to it. Its qualifier is the bytes from
   * `qualifierFrom` to the end of its position.
   */
  addColumn(family: string, qualifierFrom: number): void {
    const position = this.#newColumn;
    assert(position !== undefined, 'toColumn comes before addColumn');
    this.#newColumn = undefined;
    position.index = this.#columns.length + this.#moreFamilies.length;
    position.family = family;
    if (position.index < MAX_MADE_COLUMNS) {
      this.#columns.push({ family, qualifier: this.#bytes.latin1Slice(qualifierFrom, position.qualifierEnd) });
      this.#remember(position);
    } else {
      this.#moreFamilies.push(family);
      this.#moreQualifiers.push(qualifierFrom, position.qualifierEnd);
    }
    this.#column = position;
  }

  /** Adds a cell of the present column. `timestamp` undefined: the server's time. */
  add(timestamp: Int64 | undefined, valueStart: number, valueEnd: number): void {
    this.#columnOf.push(this.#column!.index);
    this.#timestamps.push(timestamp ?? Number.NaN);
    this.#starts.push(valueStart);
    this.#ends.push(valueEnd);
  }

  /** The cells from `from` on: those of one row. */
  runFrom(from: number): CellRun {
    return { batch: this.#batch, from, length: this.count - from, serverMicros: undefined };
  }

  /** Removes the cells from `from` on, of which no run may have been made. */
  dropFrom(from: number): void {
    for (const list of [this.#columnOf, this.#timestamps, this.#starts, this.#ends]) list.length = from;
  }

  /** Batches of one column, as most requests are, have no table. */
  #remember(position: ColumnPosition): void {
    const first = this.#column;
    if (first === undefined) return;
    if (this.#slots === undefined) {
      this.#slots = new Array<ColumnPosition | undefined>(SLOTS).fill(undefined);
      this.#slots[this.#slot(first.qualifierStart, first.qualifierEnd)] = first;
    }
    this.#slots[this.#slot(position.qualifierStart, position.qualifierEnd)] = position;
  }

  #slot(start: number, end: number): number {
    if (end - start < 2) return end - start;
    return (this.#bytes[end - 1]! + this.#bytes[end - 2]! * 16) & (SLOTS - 1);
  }

  #isAt(
    position: ColumnPosition,
    familyStart: number,
    familyEnd: number,
    qualifierStart: number,
    qualifierEnd: number,
  ): boolean {
    return (
      this.#isSame(familyStart, familyEnd, position.familyStart, position.familyEnd) &&
      this.#isSame(qualifierStart, qualifierEnd, position.qualifierStart, position.qualifierEnd)
    );
  }

  #isSame(start: number, end: number, otherStart: number, otherEnd: number): boolean {
    const length = end - start;
    if (length !== otherEnd - otherStart) return false;
    const bytes = this.#bytes;
    for (let i = 0; i < length; i++) if (bytes[start + i] !== bytes[otherStart + i]) return false;
    return true;
  }
}
