/** Joins fragments to rows. For METADATA, whose rows are small. */
import type { ByteString } from '../base/index.ts';
import type { Cell, ReadBatch } from '../model/index.ts';

export interface WholeRow {
  readonly row: ByteString;
  readonly cells: readonly Cell[];
}

export class RowCollector {
  #whole: WholeRow[] = [];
  #cells: Cell[] = [];

  add(batch: ReadBatch): void {
    for (const { row, cells, last } of batch.fragments) {
      this.#cells.push(...cells);
      if (!last) continue;
      this.#whole.push({ row, cells: this.#cells });
      this.#cells = [];
    }
  }

  /** Returns the rows that are whole, each once. */
  take(): WholeRow[] {
    const rows = this.#whole;
    this.#whole = [];
    return rows;
  }
}
