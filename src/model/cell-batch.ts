/**
 * Gathers set-cells, as they are found in the bytes of a request or of a log's append, into a CellBatch (cell-run.ts).
 *
 * Columns are told apart by the bytes of their names, before any text is made of them: where a name stood before, and a
 * small table of such places.
 */
import type { Int64 } from '../base/index.ts';
import type { CellBatch, CellColumn, CellRun } from './cell-run.ts';

/** Columns that are made at once, and known again wherever they come. Of others, only the last one is. */
const MADE_COLUMNS = 64;
const SLOTS = 256;

/** Where the names of a column stand, with what stands around them and says the same. */
interface ColumnPlace {
  readonly index: number;
  readonly family: string;
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
  /** That of the cells that are added now. */
  #column: ColumnPlace | undefined;
  /** The columns added last, by the last bytes of their qualifiers. Undefined as long as there is one column. */
  #slots: (ColumnPlace | undefined)[] | undefined;

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

  /** Cells gathered. */
  get count(): number {
    return this.#starts.length;
  }

  /**
   * Whether the names that stand there are those of a column that is known: cells are added to that one from now on.
   */
  toColumn(familyStart: number, familyEnd: number, qualifierStart: number, qualifierEnd: number): boolean {
    const last = this.#column;
    if (last === undefined) return false;
    if (this.#isAt(last, familyStart, familyEnd, qualifierStart, qualifierEnd)) return true;
    const known = this.#slots?.[this.#slot(qualifierStart, qualifierEnd)];
    if (known === undefined || !this.#isAt(known, familyStart, familyEnd, qualifierStart, qualifierEnd)) return false;
    this.#column = known;
    return true;
  }

  /** The present column's family, if its name stands there, too. */
  lastFamily(familyStart: number, familyEnd: number): string | undefined {
    const last = this.#column;
    return last !== undefined && this.#isSame(familyStart, familyEnd, last.familyStart, last.familyEnd)
      ? last.family
      : undefined;
  }

  /**
   * A column that `toColumn` did not know, and where its names stand for it. The qualifier is the bytes [from, to).
   * Cells are added to it from now on.
   */
  addColumn(
    familyStart: number,
    familyEnd: number,
    qualifierStart: number,
    qualifierEnd: number,
    family: string,
    from: number,
    to: number,
  ): void {
    const index = this.#columns.length + this.#moreFamilies.length;
    const place = { index, family, familyStart, familyEnd, qualifierStart, qualifierEnd };
    if (index < MADE_COLUMNS) {
      this.#columns.push({ family, qualifier: this.#bytes.latin1Slice(from, to) });
      this.#remember(place);
    } else {
      this.#moreFamilies.push(family);
      this.#moreQualifiers.push(from, to);
    }
    this.#column = place;
  }

  /** A cell of the present column; undefined: at the server's time. */
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

  /** Forgets the cells from `from` on, of which no run may have been made. */
  dropFrom(from: number): void {
    for (const list of [this.#columnOf, this.#timestamps, this.#starts, this.#ends]) list.length = from;
  }

  /** Batches of one column, which most requests are, have no table. */
  #remember(place: ColumnPlace): void {
    const first = this.#column;
    if (first === undefined) return;
    if (this.#slots === undefined) {
      this.#slots = new Array<ColumnPlace | undefined>(SLOTS).fill(undefined);
      this.#slots[this.#slot(first.qualifierStart, first.qualifierEnd)] = first;
    }
    this.#slots[this.#slot(place.qualifierStart, place.qualifierEnd)] = place;
  }

  #slot(start: number, end: number): number {
    if (end - start < 2) return end - start;
    return (this.#bytes[end - 1]! + this.#bytes[end - 2]! * 16) & (SLOTS - 1);
  }

  #isAt(
    place: ColumnPlace,
    familyStart: number,
    familyEnd: number,
    qualifierStart: number,
    qualifierEnd: number,
  ): boolean {
    return (
      this.#isSame(familyStart, familyEnd, place.familyStart, place.familyEnd) &&
      this.#isSame(qualifierStart, qualifierEnd, place.qualifierStart, place.qualifierEnd)
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
