/** Gathers the set-cells of a MutateRows request, as they are found in its bytes, into a CellBatch (model/cell-run.ts). */
import type { Int64 } from '../../base/index.ts';
import type { CellBatch, CellColumn, CellRun } from '../../model/index.ts';
import type { SetCellFields } from './set-cell-reader.ts';

export class CellBatchBuilder {
  readonly #bytes: Buffer;
  readonly #columns: CellColumn[] = [];
  readonly #columnOf: number[] = [];
  readonly #timestamps: Int64[] = [];
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #batch: CellBatch;
  // where the last column's names stand
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

  add(cell: SetCellFields): void {
    if (!this.#isLastColumn(cell)) this.#addColumn(cell);
    this.#columnOf.push(this.#columns.length - 1);
    this.#timestamps.push(cell.timestamp ?? Number.NaN);
    this.#starts.push(cell.valueStart);
    this.#ends.push(cell.valueEnd);
  }

  /** The cells from `from` on: those of one row. */
  runFrom(from: number): CellRun {
    return { batch: this.#batch, from, length: this.count - from, serverMicros: undefined };
  }

  /** Forgets the cells from `from` on, of which no run may have been made. */
  dropFrom(from: number): void {
    for (const list of [this.#columnOf, this.#timestamps, this.#starts, this.#ends]) list.length = from;
  }

  #isLastColumn(cell: SetCellFields): boolean {
    return (
      this.#columns.length > 0 &&
      this.#isSame(cell.familyStart, cell.familyEnd, this.#familyStart, this.#familyEnd) &&
      this.#isSame(cell.qualifierStart, cell.qualifierEnd, this.#qualifierStart, this.#qualifierEnd)
    );
  }

  #isSame(start: number, end: number, lastStart: number, lastEnd: number): boolean {
    const length = end - start;
    if (length !== lastEnd - lastStart) return false;
    const bytes = this.#bytes;
    for (let i = 0; i < length; i++) if (bytes[start + i] !== bytes[lastStart + i]) return false;
    return true;
  }

  #addColumn(cell: SetCellFields): void {
    const bytes = this.#bytes;
    this.#columns.push({ family: bytes.latin1Slice(cell.familyStart, cell.familyEnd), qualifier: bytes.latin1Slice(cell.qualifierStart, cell.qualifierEnd) });
    this.#familyStart = cell.familyStart;
    this.#familyEnd = cell.familyEnd;
    this.#qualifierStart = cell.qualifierStart;
    this.#qualifierEnd = cell.qualifierEnd;
  }
}
