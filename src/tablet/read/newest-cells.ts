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
  storageFamily,
  type TableSchema,
} from '../../model/index.ts';
import type { LayerHold } from '../layers/layer-set.ts';
import type { ReadCredits } from '../layers/read-credits.ts';
import type { RowsCursor } from './merge-cursor.ts';
import { layersOfNewest } from './newest-layer.ts';
import { cursorOver } from './one-row-cursor.ts';
import type { ReadFamilies } from './read-families.ts';
import type { Search } from './search.ts';

export interface ColumnName {
  readonly family: string;
  readonly qualifier: ByteString;
}

/** A column as it is stored, with its name in the call. */
interface Wanted extends ColumnName {
  readonly key: ColumnKey;
  readonly stored: string;
}

export class NewestCells implements Search {
  /** The result, by `columnKey(family, qualifier)` of the given names; columns without a visible cell are missing. */
  readonly found = new Map<ColumnKey, Cell>();
  readonly #context: RequestContext;
  readonly #clock: Clock;
  readonly #pacer: Pacer;
  readonly #hold: LayerHold;
  readonly #row: ByteString;
  readonly #families: ReadFamilies;
  readonly #cursor: RowsCursor;
  /** In the order of the row. */
  readonly #wanted: readonly Wanted[];
  /** Number of columns that are done. */
  #next = 0;
  #hasBegun = false;
  /** True if a pause comes before the search continues. */
  #yielding = false;

  /** Takes over `hold`, the layers of the row, and begins in the same slice. */
  constructor(
    context: RequestContext,
    clock: Clock,
    hold: LayerHold,
    row: ByteString,
    columns: readonly ColumnName[],
    families: ReadFamilies,
    schema: TableSchema,
    credits: ReadCredits,
  ) {
    this.#context = context;
    this.#clock = clock;
    this.#pacer = new Pacer(clock);
    this.#hold = hold;
    this.#row = row;
    this.#families = families;
    const wanted = columns.map(({ family, qualifier }): Wanted => {
      const stored = storageFamily(family, familyOfTable(schema, family)?.generation);
      return { family, qualifier, stored, key: columnKey(stored, qualifier) };
    });
    this.#wanted = wanted.length < 2 ? wanted : wanted.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
    const only = this.#wanted.length === 1 ? this.#wanted[0] : undefined;
    const layers = only === undefined ? hold.layers : layersOfNewest(hold.layers, row, only.key);
    this.#cursor = cursorOver(layers, row, families.aggregateOf, this.#pacer, credits);
  }

  advance(): boolean {
    const cursor = this.#cursor;
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      cursor.seekRow(this.#row);
    }
    for (let wanted = this.#wanted[this.#next]; wanted !== undefined; wanted = this.#wanted[this.#next]) {
      if (this.#yielding || cursor.state === CursorState.needsLoad) return false;
      if (cursor.state === CursorState.done || cursor.row !== this.#row) break;
      if (cursor.column < wanted.key) {
        cursor.seekColumn(wanted.key);
      } else {
        if (cursor.column === wanted.key) this.#take(wanted);
        this.#next++;
      }
      this.#yielding = this.#pacer.due();
    }
    return true;
  }

  async load(): Promise<void> {
    if (this.#yielding) await this.#pacer.pause();
    else await this.#cursor.load();
    this.#yielding = false;
    checkContext(this.#context, this.#clock);
  }

  close(): void {
    this.#cursor.close();
    this.#hold.release();
  }

  #take({ family, qualifier, stored }: Wanted): void {
    assert(this.#cursor.row === this.#row, 'the cells of a row are taken from that row');
    const { timestamp } = this.#cursor;
    if (this.#families.get(stored)?.keeps(0, timestamp))
      this.found.set(columnKey(family, qualifier), { family, qualifier, timestamp, value: this.#cursor.value() });
  }
}
