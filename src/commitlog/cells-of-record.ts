/** Gathers the set-cells of a record, as they are found in its append's bytes, into a CellBatch (model/cell-run.ts). */
import type { Int64 } from '../base/index.ts';
import type { CellBatch, CellColumn, CellRun } from '../model/index.ts';

export class CellsOfRecord {
  readonly #bytes: Buffer;
  readonly #columns: CellColumn[] = [];
  readonly #columnOf: number[] = [];
  readonly #timestamps: Int64[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #batch: CellBatch;
  /** Where the names of the last column stand, family and qualifier with their lengths. */
  #columnStart = 0;
  #columnEnd = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#batch = { bytes, columns: this.#columns, columnOf: this.#columnOf, timestamps: this.#timestamps, starts: this.#starts, ends: this.#ends };
  }

  /** Cells gathered. */
  get count(): number {
    return this.#starts.length;
  }

  /** Whether the names in [start, end) are those of the column that was added last: of neighbours mostly so. */
  isLastColumn(start: number, end: number): boolean {
    const bytes = this.#bytes;
    const length = end - start;
    if (this.#columns.length === 0 || length !== this.#columnEnd - this.#columnStart) return false;
    for (let i = 0; i < length; i++) if (bytes[start + i] !== bytes[this.#columnStart + i]) return false;
    return true;
  }

  addColumn(start: number, end: number, column: CellColumn): void {
    this.#columns.push(column);
    this.#columnStart = start;
    this.#columnEnd = end;
  }

  /** A cell of the column that was added last. */
  add(timestamp: Int64, valueStart: number, valueEnd: number): void {
    this.#columnOf.push(this.#columns.length - 1);
    this.#timestamps.push(timestamp);
    this.#starts.push(valueStart);
    this.#ends.push(valueEnd);
  }

  /** The cells from `from` on: those of one row. */
  runFrom(from: number): CellRun {
    return { batch: this.#batch, from, length: this.count - from, serverMicros: undefined };
  }

  /** Forgets the cells from `from` on, of which no run was made. */
  dropFrom(from: number): void {
    for (const list of [this.#columnOf, this.#timestamps, this.#starts, this.#ends]) list.length = from;
  }
}
