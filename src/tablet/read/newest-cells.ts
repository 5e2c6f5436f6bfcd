/**
 * The newest visible cell of each of a few columns of one row: the start of a read-modify-write. Seeks; never walks the
 * row.
 */
import { assert, type ByteString } from '../../base/index.ts';
import { type Clock, checkContext, Pacer, type RequestContext } from '../../env/index.ts';
import {
  type Cell,
  type ColumnKey,
  CursorState,
  columnKey,
  familyOfTable,
  type Layer,
  storageFamily,
  type TableSchema,
} from '../../model/index.ts';
import type { ReadCredits } from '../layers/read-credits.ts';
import { cursorOver, type RowsCursor } from './one-row-cursor.ts';
import type { ReadFamilies } from './read-families.ts';

export interface ColumnName {
  readonly family: string;
  readonly qualifier: ByteString;
}

/**
 * By `columnKey(family, qualifier)` of the given names; columns without a visible cell are missing. Returns a promise
 * if blocks must be loaded, or if the columns take several slices.
 */
export function newestCells(
  context: RequestContext,
  clock: Clock,
  layers: readonly Layer[],
  row: ByteString,
  columns: readonly ColumnName[],
  families: ReadFamilies,
  schema: TableSchema,
  credits: ReadCredits,
): Map<ColumnKey, Cell> | Promise<Map<ColumnKey, Cell>> {
  const search = new NewestSearch(context, clock, layers, row, columns, families, schema, credits);
  return search.seeksOn() ? search.found : search.finish();
}

/** A column as it is stored, with its name in the call. */
interface Wanted extends ColumnName {
  readonly key: ColumnKey;
  readonly stored: string;
}

class NewestSearch {
  readonly found = new Map<ColumnKey, Cell>();
  readonly #context: RequestContext;
  readonly #clock: Clock;
  readonly #pacer: Pacer;
  readonly #row: ByteString;
  readonly #families: ReadFamilies;
  readonly #cursor: RowsCursor;
  /** In the order of the row. */
  readonly #wanted: readonly Wanted[];
  /** Number of columns that are done. */
  #next = 0;
  #hasEnded = false;
  /** True if a pause comes before the search continues. */
  #yielding = false;

  constructor(
    context: RequestContext,
    clock: Clock,
    layers: readonly Layer[],
    row: ByteString,
    columns: readonly ColumnName[],
    families: ReadFamilies,
    schema: TableSchema,
    credits: ReadCredits,
  ) {
    this.#context = context;
    this.#clock = clock;
    this.#pacer = new Pacer(clock);
    this.#row = row;
    this.#families = families;
    const wanted = columns.map(({ family, qualifier }): Wanted => {
      const stored = storageFamily(family, familyOfTable(schema, family)?.generation);
      return { family, qualifier, stored, key: columnKey(stored, qualifier) };
    });
    this.#wanted = wanted.length < 2 ? wanted : wanted.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
    this.#cursor = cursorOver(layers, row, families.aggregateOf, this.#pacer, credits);
    this.#cursor.seekRow(row);
  }

  /** Continues until a block must be loaded or the slice is over; returns true at the end. */
  seeksOn(): boolean {
    const cursor = this.#cursor;
    assert(!this.#hasEnded, 'a search that is over goes no further');
    try {
      for (let wanted = this.#wanted[this.#next]; wanted !== undefined; wanted = this.#wanted[this.#next]) {
        if (cursor.state === CursorState.needsLoad) return false;
        if (cursor.state === CursorState.done || cursor.row !== this.#row) break;
        if (cursor.column < wanted.key) {
          cursor.seekColumn(wanted.key);
        } else {
          if (cursor.column === wanted.key) this.#take(wanted);
          this.#next++;
        }
        this.#yielding = this.#pacer.due();
        if (this.#yielding) return false;
      }
    } catch (error) {
      cursor.close();
      throw error;
    }
    this.#hasEnded = true;
    cursor.close();
    return true;
  }

  async finish(): Promise<Map<ColumnKey, Cell>> {
    do {
      try {
        if (this.#yielding) await this.#pacer.pause();
        else await this.#cursor.load();
        this.#yielding = false;
        checkContext(this.#context, this.#clock);
      } catch (error) {
        this.#cursor.close();
        throw error;
      }
    } while (!this.seeksOn());
    return this.found;
  }

  #take({ family, qualifier, stored }: Wanted): void {
    assert(this.#cursor.row === this.#row, 'the cells of a row are taken from that row');
    const { timestamp } = this.#cursor;
    if (this.#families.get(stored)?.keeps(0, timestamp))
      this.found.set(columnKey(family, qualifier), { family, qualifier, timestamp, value: this.#cursor.value() });
  }
}
