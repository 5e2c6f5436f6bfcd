/** Gathers set-cells, as they are found in the bytes of a request or of a log's append, into a CellBatch (cell-run.ts). */
import type { Int64 } from '../base/index.ts';
import type { CellBatch, CellColumn, CellRun } from './cell-run.ts';

export class CellBatchBuilder {
  readonly #bytes: Buffer;
  readonly #columns: CellColumn[] = [];
  readonly #columnOf: number[] = [];
  readonly #timestamps: Int64[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #batch: CellBatch;
  // where the names of the last column stand
  #familyStart = 0;
  #familyEnd = 0;
  #qualifierStart = 0;
  #qualifierEnd = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#batch = { bytes, columns: this.#columns, columnOf: this.#columnOf, timestamps: this.#timestamps, starts: this.#starts, ends: this.#ends };
  }

  /** Cells gathered. */
  get count(): number {
    return this.#starts.length;
  }

  /** Whether the names that stand there are those of the column that was added last: of neighbours mostly so. */
  isLastColumn(familyStart: number, familyEnd: number, qualifierStart: number, qualifierEnd: number): boolean {
    return (
      this.#columns.length > 0 &&
      this.#isSame(familyStart, familyEnd, this.#familyStart, this.#familyEnd) &&
      this.#isSame(qualifierStart, qualifierEnd, this.#qualifierStart, this.#qualifierEnd)
    );
  }

  /** A column, and where its names stand. */
  addColumn(familyStart: number, familyEnd: number, qualifierStart: number, qualifierEnd: number, column: CellColumn): void {
    this.#columns.push(column);
    this.#familyStart = familyStart;
    this.#familyEnd = familyEnd;
    this.#qualifierStart = qualifierStart;
    this.#qualifierEnd = qualifierEnd;
  }

  /** A cell of the column that was added last; undefined: at the server's time. */
  add(timestamp: Int64 | undefined, valueStart: number, valueEnd: number): void {
    this.#columnOf.push(this.#columns.length - 1);
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

  #isSame(start: number, end: number, lastStart: number, lastEnd: number): boolean {
    const length = end - start;
    if (length !== lastEnd - lastStart) return false;
    const bytes = this.#bytes;
    for (let i = 0; i < length; i++) if (bytes[start + i] !== bytes[lastStart + i]) return false;
    return true;
  }
}
