/**
 * The layers of a tablet, newest first: the active memtable, frozen ones on their way to disk, SSTables. A read takes the list once,
 * synchronously, and holds its files until it ends; the list itself is replaced, never changed.
 *
 * Invariant: a file stays held while any list that somebody reads contains it; `released` is called once it is in none.
 */
import { assert } from '../base/index.ts';
import type { Memtable } from '../memtable/index.ts';
import { isEmptyRange, intersectRanges, type Layer, type RowRange, type RowRangeDeletion } from '../model/index.ts';
import type { SsTable } from '../sstable/index.ts';

/** A memtable and what of the log it covers. */
export interface MemtableLayer {
  readonly memtable: Memtable;
  /** Position in the server's log of the first record applied; undefined where there is none (or it came from an older log). */
  firstPosition: number | undefined;
}

export interface LayerHold {
  readonly layers: readonly Layer[];
  release(): void;
}

export class LayerSet {
  #active: MemtableLayer;
  /** Newest first. */
  #frozen: readonly MemtableLayer[] = [];
  #tables: readonly SsTable[];
  readonly #reads = new Map<SsTable, number>();
  readonly #dropped = new Set<SsTable>();
  readonly #released: (files: readonly string[]) => void;

  constructor(active: MemtableLayer, tables: readonly SsTable[], released: (files: readonly string[]) => void) {
    this.#active = active;
    this.#tables = tables;
    this.#released = released;
  }

  get active(): MemtableLayer {
    return this.#active;
  }

  get oldestFrozen(): MemtableLayer | undefined {
    return this.#frozen.at(-1);
  }

  /** Newest first. */
  get tables(): readonly SsTable[] {
    return this.#tables;
  }

  get memtableBytes(): number {
    return this.#frozen.reduce((sum, { memtable }) => sum + memtable.sizeBytes, this.#active.memtable.sizeBytes);
  }

  /** The lowest log position that a memtable still needs. */
  get firstPosition(): number | undefined {
    let first = this.#active.firstPosition;
    for (const { firstPosition } of this.#frozen) {
      if (firstPosition !== undefined && (first === undefined || firstPosition < first)) first = firstPosition;
    }
    return first;
  }

  /** Files in the list or still read. */
  heldFiles(): string[] {
    return [...this.#tables, ...this.#dropped].map((table) => table.path);
  }

  /** The layers that may hold rows of the range, held until released. */
  hold(range: RowRange): LayerHold {
    const tables = this.#tables.filter((table) => table.mayContainRows(range.start, range.end) || hidesRows(table, range));
    for (const table of tables) this.#reads.set(table, (this.#reads.get(table) ?? 0) + 1);
    const layers = [this.#active.memtable, ...this.#frozen.map(({ memtable }) => memtable), ...tables];
    let held = true;
    return {
      layers,
      release: () => {
        if (!held) return;
        held = false;
        for (const table of tables) this.#release(table);
      },
    };
  }

  /** The active memtable is frozen, `next` takes its place. */
  freeze(next: MemtableLayer): MemtableLayer {
    const frozen = this.#active;
    frozen.memtable.freeze();
    this.#frozen = [frozen, ...this.#frozen];
    this.#active = next;
    return frozen;
  }

  /** The oldest frozen memtable is in `table` now (undefined: it held nothing); `covered` tables are wholly hidden by it. */
  replaceOldestFrozen(table: SsTable | undefined, covered: readonly SsTable[]): void {
    assert(this.#frozen.length > 0, 'no frozen memtable to replace');
    this.#frozen = this.#frozen.slice(0, -1);
    const kept = this.#tables.filter((old) => !covered.includes(old));
    this.#tables = table === undefined ? kept : [table, ...kept];
    for (const old of covered) {
      this.#dropped.add(old);
      if (!this.#reads.has(old)) this.#letGo(old);
    }
  }

  /** Gives up the files' cached blocks. Reads under way go on. */
  close(): void {
    for (const table of this.#tables) table.close();
  }

  #release(table: SsTable): void {
    const left = (this.#reads.get(table) ?? 0) - 1;
    assert(left >= 0, `file ${table.path} is released more often than held`);
    if (left > 0) {
      this.#reads.set(table, left);
      return;
    }
    this.#reads.delete(table);
    if (this.#dropped.has(table)) this.#letGo(table);
  }

  #letGo(table: SsTable): void {
    this.#dropped.delete(table);
    table.close();
    this.#released([table.path]);
  }
}

function hidesRows(layer: Layer, range: RowRange): boolean {
  return layer.rowRangeDeletions().some((deletion) => !isEmptyRange(intersectRanges(deletion, range)));
}

/** Tables that one of the deletions hides whole. Those that delete row ranges themselves are kept: they may speak of more than they hold. */
export function coveredTables(tables: readonly SsTable[], deletions: readonly RowRangeDeletion[]): SsTable[] {
  return tables.filter((table) => {
    const { firstRow, lastRow } = table;
    if (firstRow === undefined || lastRow === undefined || table.rowRangeDeletions().length > 0) return false;
    return deletions.some(({ start, end }) => start <= firstRow && (end === undefined || lastRow < end));
  });
}
