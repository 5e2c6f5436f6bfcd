/**
 * A table of the operator, and what must be found in it. Only one client writes to it, one call after another, and each
 * row at most once: so each row is known to be there, known to be gone, or not known, after a call of unknown outcome, or
 * after a server may have lost what it had acknowledged.
 */
export const FAMILY = 'h';
export const COLUMN = `${FAMILY}:x`;
/** Letters that rows begin with: some in each tablet. */
export const LETTERS = 'afmtz';

export class KnownTable {
  readonly name: string;
  /** By row, the values that were acknowledged. */
  readonly rows = new Map<string, string>();
  /** By row, every value that a write was begun with. */
  readonly #begun = new Map<string, string>();
  /** Rows whose write was acknowledged. */
  readonly #written = new Set<string>();
  /** Rows whose write, and later deletion, were acknowledged. */
  readonly #gone = new Set<string>();
  /** Rows that were begun before acknowledged changes were lost, perhaps theirs. */
  readonly #doubtful = new Set<string>();

  /**
   * `former`: the table that had this name before, and was deleted. Of that one, writes of unknown outcome may yet come:
   * they name the table.
   */
  constructor(name: string, former?: KnownTable) {
    this.name = name;
    if (former === undefined) return;
    for (const [row, value] of former.#begun) if (!former.#written.has(row)) this.#begun.set(row, value);
  }

  begin(row: string, value: string): void {
    this.#begun.set(row, value);
  }

  wrote(row: string): void {
    this.#written.add(row);
    if (!this.#doubtful.has(row)) this.rows.set(row, this.#begun.get(row)!);
  }

  /** A deletion of these rows has begun: until it is answered nothing is known of them. Returns them. */
  beginDeletion(isDeleted: (row: string) => boolean): readonly string[] {
    const deleted = [...this.rows.keys()].filter(isDeleted);
    for (const row of deleted) this.rows.delete(row);
    return deleted;
  }

  deleted(rows: readonly string[]): void {
    for (const row of rows) if (!this.#doubtful.has(row)) this.#gone.add(row);
  }

  /** Changes that were acknowledged may be lost: nothing is known any more of the rows so far. */
  lose(): void {
    for (const row of this.#begun.keys()) this.#doubtful.add(row);
    this.rows.clear();
    this.#gone.clear();
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
