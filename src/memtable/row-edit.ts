/**
 * A change of one row: takes mutations one by one, in order, and makes the next generation of the row next to the
 * present one, so that readers see all of it or nothing. The rules are those of docs/ARCHITECTURE.md, "Order and
 * deletion", and model/entry.ts:
 *
 * - A deletion removes entries of this memtable and leaves an entry that hides those of older layers. Later cells may
 *   stand next to it.
 * - A coarser deletion removes the finer ones, and no finer one is added to it: row, family, column, range.
 * - The ranges of a column are disjoint, never touch, and never cover all of int64 (that is a deletion of the column).
 * - An input of an aggregate folds into a put or merge entry of its cell, which keeps its kind; else it becomes a merge
 *   entry. In a family that is not an aggregate it is skipped: the family was dropped after the change was logged, and
 *   its content is never read.
 *
 * A small row is one array; above SMALL_ROW entries it is a tree.
 */
import { assert, type ByteString, INT64_MAX, INT64_MIN, type Int64 } from '../base/index.ts';
import {
  type AddToCell,
  type AggregateKind,
  aggregateInput,
  type CellRun,
  checkAggregateInput,
  checkAggregateState,
  columnAt,
  type ColumnKey,
  type DeleteFromColumn,
  EntryKind,
  familyEnd,
  type MergeToCell,
  mergedState,
  type Mutation,
  type SetCell,
  timestampAt,
} from '../model/index.ts';
import { ColumnNames } from './column-names.ts';
import { EntryTree, EntryTreeEdit } from './entry-tree.ts';
import { foldAggregates } from './fold-aggregates.ts';
import { insertAt } from './insert-at.ts';
import {
  cellEntry,
  columnStart,
  compareInRow,
  deletionEntry,
  ENTRY_BYTES,
  lowerBound,
  type MemEntry,
  probe,
  timestampAfter,
  timestampBefore,
} from './mem-entry.ts';
import { ValueArena, valueAt as valueIn } from './value-arena.ts';

/** A row between two changes: its only entry, the array of a small row, or a tree. The first two never change. */
export type RowVersion = MemEntry | readonly MemEntry[] | EntryTree;

export function isSmallRow(version: RowVersion): version is readonly MemEntry[] {
  return Array.isArray(version);
}

/** The most entries of a row that is an array: copying that costs about as much as a change of a tree. */
const SMALL_ROW = 48;

/** The state that the edits of one memtable share. */
export class RowStore {
  readonly values = new ValueArena();
  readonly columns = new ColumnNames();
  /** Heap bytes of all entries without their values and names. */
  entryBytes = 0;
  /** False once an edit added another entry than a put. */
  hasOnlyPuts = true;

  /** Makes an entry for the cell, which is in no row yet, with a copy of its value, bytes [from, to). */
  cell(
    family: string,
    qualifier: ByteString,
    timestamp: Int64,
    bytes: Uint8Array,
    from = 0,
    to = bytes.length,
  ): MemEntry {
    const { values } = this;
    values.add(bytes, from, to);
    return cellEntry(
      this.columns.key(family, qualifier),
      EntryKind.put,
      timestamp,
      values.slab,
      values.offset,
      to - from,
    );
  }

  /** Makes a row of one cell without an edit: most rows of a batch are so. */
  rowOf(run: CellRun): MemEntry {
    assert(run.length === 1, 'a row of one cell');
    this.entryBytes += ENTRY_BYTES;
    return this.cellAt(run, run.from);
  }

  /** For `RowEdit` only. */
  cellAt(run: CellRun, at: number): MemEntry {
    const { family, qualifier } = columnAt(run, at);
    const { bytes, starts, ends } = run.batch;
    return this.cell(family, qualifier, timestampAt(run, at)!, bytes, starts[at], ends[at]);
  }
}

export class RowEdit {
  readonly #store: RowStore;
  readonly #aggregateOf: (family: string) => AggregateKind | undefined;
  readonly #inPlace: boolean;
  /** The working copy of a small row, changed in place. */
  #entries: MemEntry[];
  /** True if #entries has grown, and so may have spare capacity. */
  #grown = false;
  /** Defined for a large row; `#entries` is empty then. */
  #tree: EntryTreeEdit | undefined;

  /** `inPlace`: the edit begins and ends in one slice of the event loop, and its mutations were checked. */
  constructor(
    store: RowStore,
    base: RowVersion | undefined,
    aggregateOf: (family: string) => AggregateKind | undefined,
    inPlace: boolean,
  ) {
    this.#store = store;
    this.#aggregateOf = aggregateOf;
    this.#inPlace = inPlace;
    this.#tree = undefined;
    if (base === undefined) this.#entries = [];
    else if (isSmallRow(base)) this.#entries = base.slice();
    else if (base instanceof EntryTree) {
      this.#entries = [];
      this.#tree = new EntryTreeEdit(base, inPlace);
    } else this.#entries = [base];
  }

  /** The next generation of the row; undefined if a row that had no entries still has none. Ends the edit. */
  end(): RowVersion | undefined {
    if (this.#tree) return this.#tree.end();
    if (this.#entries.length <= 1) return this.#entries[0];
    return this.#grown ? this.#entries.slice() : this.#entries;
  }

  add(mutation: Mutation): void {
    if (mutation.kind !== 'setCell') this.#store.hasOnlyPuts = false;
    switch (mutation.kind) {
      case 'setCell':
        return this.#setCell(mutation);
      case 'addToCell':
      case 'mergeToCell':
        return this.#mergeCell(mutation);
      case 'deleteFromColumn':
        return this.#deleteFromColumn(mutation);
      case 'deleteFromFamily':
        return this.#deleteFromFamily(mutation.family);
      case 'deleteFromRow':
        return this.#deleteFromRow();
    }
  }

  #setCell(mutation: SetCell): void {
    this.#put(this.#store.cell(mutation.family, mutation.qualifier, finalTimestamp(mutation), mutation.value));
  }

  /** The same as adding each as a SetCell. */
  addCells(run: CellRun): void {
    for (let at = run.from; at < run.from + run.length; at++) this.#put(this.#store.cellAt(run, at));
  }

  #mergeCell(mutation: AddToCell | MergeToCell): void {
    const kind = this.#aggregateOf(mutation.family);
    if (kind === undefined) return;
    const input = mutation.kind === 'addToCell' ? aggregateInput(kind, mutation.input) : mergedState(mutation);
    const column = this.#store.columns.key(mutation.family, mutation.qualifier);
    const present = this.#get(probe(column, EntryKind.merge, mutation.timestamp));
    const state =
      present === undefined
        ? input
        : foldAggregates(kind, valueIn(present.slab, present.offset, present.length), input);
    const values = this.#store.values;
    values.add(state);
    this.#put(
      cellEntry(column, present?.kind ?? EntryKind.merge, mutation.timestamp, values.slab, values.offset, state.length),
    );
  }

  #deleteFromRow(): void {
    for (const entry of this.#entries) this.#release(entry);
    this.#tree?.forEach((entry) => this.#release(entry));
    this.#entries = [];
    this.#tree = undefined;
    this.#put(deletionEntry('', EntryKind.rowDeletion));
  }

  #deleteFromFamily(family: string): void {
    this.#removeRange(columnStart(family), columnStart(familyEnd(family)));
    if (!this.#has('', EntryKind.rowDeletion)) this.#put(deletionEntry(family, EntryKind.familyDeletion));
  }

  #deleteFromColumn(mutation: DeleteFromColumn): void {
    const column = this.#store.columns.key(mutation.family, mutation.qualifier);
    const start = mutation.range?.start ?? INT64_MIN;
    const end = mutation.range?.end;
    if (start === INT64_MIN && end === undefined) {
      this.#removeRange(columnStart(column), columnStart(`${column}\0`));
      if (!this.#hidesFamily(mutation.family)) this.#put(deletionEntry(column, EntryKind.columnDeletion));
      return;
    }
    if (end !== undefined && end <= start) return;
    const newest = end === undefined ? INT64_MAX : timestampBefore(end);
    this.#removeRange(probe(column, EntryKind.put, newest), probe(column, EntryKind.put, timestampBefore(start)));
    if (this.#hidesFamily(mutation.family) || this.#has(column, EntryKind.columnDeletion)) return;
    this.#putRange(column, start, end);
  }

  /** Adds a range deletion, joined with those that it overlaps or touches. */
  #putRange(column: ColumnKey, start: Int64, end: Int64 | undefined): void {
    const before = this.#floor(probe(column, EntryKind.rangeDeletion, start));
    if (isRange(before, column) && (before.rangeEnd === undefined || before.rangeEnd >= start))
      start = before.timestamp;
    const last = this.#floor(probe(column, EntryKind.rangeDeletion, end ?? INT64_MAX));
    if (
      isRange(last, column) &&
      last.timestamp >= start &&
      end !== undefined &&
      (last.rangeEnd === undefined || last.rangeEnd > end)
    )
      end = last.rangeEnd;
    const after =
      end === undefined
        ? probe(column, EntryKind.put, INT64_MAX)
        : probe(column, EntryKind.rangeDeletion, timestampAfter(end));
    this.#removeRange(probe(column, EntryKind.rangeDeletion, start), after);
    if (start === INT64_MIN && end === undefined) this.#put(deletionEntry(column, EntryKind.columnDeletion));
    else this.#put(deletionEntry(column, EntryKind.rangeDeletion, start, end));
  }

  #hidesFamily(family: string): boolean {
    return this.#has('', EntryKind.rowDeletion) || this.#has(family, EntryKind.familyDeletion);
  }

  #has(column: ColumnKey, kind: EntryKind): boolean {
    return this.#get(probe(column, kind, 0)) !== undefined;
  }

  #get(key: MemEntry): MemEntry | undefined {
    const entry = this.#floor(key);
    return entry !== undefined && compareInRow(entry, key) === 0 ? entry : undefined;
  }

  /** The last entry at or before `key`. */
  #floor(key: MemEntry): MemEntry | undefined {
    if (this.#tree) return this.#tree.floor(key);
    const index = lowerBound(this.#entries, key);
    const entry = this.#entries[index];
    return entry !== undefined && compareInRow(entry, key) === 0 ? entry : this.#entries[index - 1];
  }

  #put(entry: MemEntry): void {
    this.#store.entryBytes += ENTRY_BYTES;
    if (this.#tree) {
      const replaced = this.#tree.put(entry);
      if (replaced) this.#release(replaced);
      return;
    }
    const entries = this.#entries;
    const last = entries[entries.length - 1];
    // cells mostly come in order: then the index is after the last one
    const index = last !== undefined && compareInRow(last, entry) < 0 ? entries.length : lowerBound(entries, entry);
    const present = entries[index];
    if (present !== undefined && compareInRow(present, entry) === 0) {
      this.#release(present);
      entries[index] = entry;
      return;
    }
    if (entries.length === 0) {
      this.#entries = [entry];
      return;
    }
    insertAt(entries, index, entry);
    this.#grown = true;
    if (entries.length <= SMALL_ROW) return;
    this.#tree = new EntryTreeEdit(entries, this.#inPlace);
    this.#entries = [];
  }

  /** Removes the entries at or after `from` and before `to`. */
  #removeRange(from: MemEntry, to: MemEntry): void {
    if (this.#tree) {
      this.#tree.removeRange(from, to, (entry) => this.#release(entry));
      return;
    }
    const first = lowerBound(this.#entries, from);
    const end = lowerBound(this.#entries, to);
    if (first >= end) return;
    for (const entry of this.#entries.splice(first, end - first)) this.#release(entry);
  }

  #release(entry: MemEntry): void {
    this.#store.entryBytes -= ENTRY_BYTES;
    assert(this.#store.entryBytes >= 0, 'no more entries are removed than were added');
    this.#store.values.release(entry.slab, entry.length);
  }
}

/** Throws the errors of `add` before anything has changed. */
export function checkMutation(mutation: Mutation, aggregateOf: (family: string) => AggregateKind | undefined): void {
  if (mutation.kind === 'setCell') {
    finalTimestamp(mutation);
  } else if (mutation.kind === 'addToCell' || mutation.kind === 'mergeToCell') {
    const kind = aggregateOf(mutation.family);
    if (kind === undefined) return;
    if (mutation.kind === 'addToCell') checkAggregateInput(kind, mutation.input);
    else checkAggregateState(kind, mergedState(mutation));
  }
}

export function checkRun(run: CellRun): void {
  for (let at = run.from; at < run.from + run.length; at++)
    assert(timestampAt(run, at) !== undefined, 'a memtable gets cells with their final timestamps');
}

function finalTimestamp(mutation: SetCell): Int64 {
  assert(mutation.timestamp !== undefined, 'a memtable gets cells with their final timestamps');
  return mutation.timestamp;
}

function isRange(entry: MemEntry | undefined, column: ColumnKey): entry is MemEntry {
  return entry !== undefined && entry.kind === EntryKind.rangeDeletion && entry.column === column;
}
