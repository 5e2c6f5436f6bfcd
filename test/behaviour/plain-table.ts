/** A table in its plainest form: rows (plain-row.ts) by key. */
import {
  byteOrder,
  cellsOf,
  changed,
  doubted,
  incremented,
  NO_CELLS,
  type PlainCell,
  type PlainFamilies,
  type PlainRow,
  resolved,
  type Step,
} from './plain-row.ts';

export class PlainTable {
  readonly #rows = new Map<string, PlainRow>();
  #families: PlainFamilies;
  readonly #now: () => number;

  /** `now`: real time in microseconds, for rules. */
  constructor(families: PlainFamilies, now: () => number = () => 0) {
    this.#families = families;
    this.#now = now;
  }

  get families(): PlainFamilies {
    return this.#families;
  }

  /** Keys of rows that may hold something, in order. */
  keys(): string[] {
    return [...this.#rows.keys()].sort(byteOrder);
  }

  row(key: string): PlainRow {
    return this.#rows.get(key) ?? NO_CELLS;
  }

  setRow(key: string, row: PlainRow): void {
    if (row.size > 0) this.#rows.set(key, row);
    else this.#rows.delete(key);
  }

  apply(key: string, steps: readonly Step[]): void {
    this.setRow(key, changed(this.row(key), steps, this.#families, this.#now()));
  }

  increment(key: string, family: string, qualifier: string, amount: bigint, nowMicros: number): bigint {
    const [row, value] = incremented(this.row(key), this.#families, { family, qualifier, amount, nowMicros });
    this.setRow(key, row);
    return value;
  }

  dropRows(start: string, end: string | undefined): void {
    for (const key of this.keys())
      if (byteOrder(key, start) >= 0 && (end === undefined || byteOrder(key, end) < 0)) this.#rows.delete(key);
  }

  /** Families and their rules change. What is in a family that is no more is gone. */
  setFamilies(families: PlainFamilies): void {
    for (const key of this.keys()) {
      const row = doubted(this.row(key), this.#families, this.#now());
      this.setRow(key, new Map([...row].filter(([family]) => families.has(family))));
    }
    this.#families = families;
  }

  /** All visible cells in order, where nothing in doubt was removed. */
  cells(): PlainCell[] {
    return this.keys().flatMap((key) => cellsOf(key, this.row(key), this.#families, this.#now()));
  }

  /** Cells in doubt that a read of the whole row lacks are gone. */
  resolve(key: string, cells: readonly PlainCell[]): void {
    this.setRow(key, resolved(this.row(key), cells, this.#families, this.#now()));
  }
}
