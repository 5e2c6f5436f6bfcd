/**
 * Tables whose schema this master may write at any moment.
 *
 * Invariant: no row of such a table is removed because the table has no schema.
 */
import { assert } from '../base/index.ts';

export class Creations {
  readonly #running = new Set<string>();
  /** The write of their schema failed with an unknown outcome: it may happen as long as this master has its lock. */
  readonly #unknown = new Set<string>();

  begin(tableId: string): void {
    assert(!this.#running.has(tableId), 'a table id is given once');
    this.#running.add(tableId);
  }

  end(tableId: string): void {
    this.#running.delete(tableId);
  }

  outcomeUnknown(tableId: string): void {
    assert(this.#running.has(tableId), 'the schema of a table is written while the table is created');
    this.#unknown.add(tableId);
  }

  /** True when the schema may yet be written. */
  mayHappen(tableId: string): boolean {
    return this.#running.has(tableId) || this.#unknown.has(tableId);
  }
}
