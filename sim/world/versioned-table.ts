/**
 * A table whose rows are written again and again, and what may be read of it. Each write has a number, greater than that
 * of all before, and is written to two families at once. A deletion is a write, too. One client writes to a row at a
 * time, so a read finds the last write that was acknowledged, a later one, or one of unknown outcome: that may take
 * effect at any time.
 */
import type { Row } from '../../src/embedded/index.ts';

export const FAMILIES = ['h', 'g'] as const;
export const COLUMNS = FAMILIES.map((family) => `${family}:x`);

/** By row: the number that was read; a row without cells is not there. */
export type Found = ReadonlyMap<string, number>;

/** By row: the last write that was acknowledged. */
export type Acknowledged = ReadonlyMap<string, number>;

export class VersionedTable {
  readonly name: string;
  /** False while it is deleted, or not known to exist. */
  isLive = true;
  /** Each time that it was deleted. */
  deletions = 0;
  /** A deletion that was made again may yet arrive, and delete what was undeleted since. */
  mayGo = false;
  #acknowledged = new Map<string, number>();
  /** Writes of unknown outcome. */
  readonly #doubtful = new Set<number>();
  /** By number: the row of a deletion. */
  readonly #rowDeletions = new Map<number, string>();
  /** By number: the row of a write. */
  readonly #rowOf = new Map<number, string>();

  constructor(name: string) {
    this.name = name;
  }

  begin(row: string, number: number, isDeletion: boolean): void {
    this.#rowOf.set(number, row);
    if (isDeletion) this.#rowDeletions.set(number, row);
  }

  wrote(number: number): void {
    this.#acknowledged.set(this.#rowOf.get(number)!, number);
  }

  /** The write may take effect, or may later. */
  mayHaveWritten(number: number): void {
    this.#doubtful.add(number);
  }

  /** The table is new, and has these rows. */
  begins(found: Found): void {
    this.#acknowledged = new Map(found);
    for (const [row, number] of found) this.#rowOf.set(number, row);
  }

  acknowledged(): Acknowledged {
    return new Map(this.#acknowledged);
  }

  /**
   * What is wrong with rows that were read; undefined: nothing. `acknowledged`: as it was before the read began. `last`:
   * the number of the last write that had begun when the read ended.
   */
  judge(found: Found, acknowledged: Acknowledged, last: number): string | undefined {
    for (const [row, number] of found) {
      const isKnown = this.#rowOf.get(number) === row && !this.#rowDeletions.has(number) && number <= last;
      const least = acknowledged.get(row) ?? 0;
      if (!isKnown || (number < least && !this.#doubtful.has(number)))
        return `row ${row} of table ${this.name} is read as ${number}, and was ${least} at least`;
    }
    for (const [row, least] of acknowledged) {
      if (found.has(row) || this.#mayBeDeleted(row, least, last)) continue;
      return `row ${row} of table ${this.name} is not there, and was ${least} at least`;
    }
    return undefined;
  }

  #mayBeDeleted(row: string, least: number, last: number): boolean {
    for (const [number, deleted] of this.#rowDeletions)
      if (deleted === row && number <= last && (number >= least || this.#doubtful.has(number))) return true;
    return false;
  }
}

/** The numbers in rows; a row whose families differ is not one write: it is reported. */
export function numbersIn(rows: readonly Row[], onTorn: (what: string) => void): Found {
  const found = new Map<string, number>();
  for (const row of rows) {
    const values = COLUMNS.map((column) => row.cells.find((cell) => cell.column === column)?.text);
    if (values.some((value) => value !== values[0]))
      onTorn(`row ${row.name} has half of a write: ${values.join(', ')}`);
    if (values[0] !== undefined) found.set(row.name, Number(values[0]));
  }
  return found;
}
