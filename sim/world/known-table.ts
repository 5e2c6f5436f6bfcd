/**
 * A table of the operator, and what must be found in it. Only one client writes to it, one call after another, and each
 * row at most once: so each row is known to be there, known to be gone, or not known, after a call of unknown outcome.
 */
export const FAMILY = 'h';
export const COLUMN = `${FAMILY}:x`;

export class KnownTable {
  readonly name: string;
  /** By row, the values that were acknowledged. */
  readonly rows = new Map<string, string>();
  /** By row, every value that a write was begun with. */
  readonly #begun = new Map<string, string>();
  /** Rows whose write, and later deletion, were acknowledged. */
  readonly #gone = new Set<string>();

  constructor(name: string) {
    this.name = name;
  }

  begin(row: string, value: string): void {
    this.#begun.set(row, value);
  }

  wrote(row: string): void {
    this.rows.set(row, this.#begun.get(row)!);
  }

  /** A deletion of these rows has begun: until it is answered nothing is known of them. Returns them. */
  beginDeletion(isDeleted: (row: string) => boolean): readonly string[] {
    const deleted = [...this.rows.keys()].filter(isDeleted);
    for (const row of deleted) this.rows.delete(row);
    return deleted;
  }

  deleted(rows: readonly string[]): void {
    for (const row of rows) this.#gone.add(row);
  }

  /** What is wrong with rows that a read found where it looked at all rows for which `covers`; undefined: nothing. */
  judge(found: ReadonlyMap<string, string | undefined>, covers: (row: string) => boolean): string | undefined {
    for (const [row, value] of this.rows)
      if (covers(row) && found.get(row) !== value)
        return `row ${row} of table ${this.name} was written as ${value} and acknowledged, and is read as ${found.get(row)}`;
    for (const [row, value] of found) {
      if (!covers(row)) return `row ${row} of table ${this.name} was not asked for`;
      if (this.#gone.has(row)) return `row ${row} of table ${this.name} was deleted, and is read as ${value}`;
      if (this.#begun.get(row) !== value)
        return `row ${row} of table ${this.name} is read as ${value}, and was written as ${this.#begun.get(row)}`;
    }
    return undefined;
  }
}
