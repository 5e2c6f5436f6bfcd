/**
 * The memtable: the newest writes of a tablet, in memory, as one layer of the merged read (model/entry.ts).
 *
 * Rows are in a tree that is changed in place. The entries of a row are an immutable generation: a write replaces it by
 * the next one. So a reader has a row as of one instant by taking its generation; that costs nothing and blocks no
 * write. row-tree.ts tells how a cursor goes from row to row while the tree changes. A change of any size is made next
 * to the row (`edit`) and appears atomically.
 */
import { assert, type ByteString } from '../base/index.ts';
import {
  type AggregateKind,
  isCellRun,
  type Layer,
  type Mutations,
  normalizeRanges,
  type RowRange,
  type RowRangeDeletion,
} from '../model/index.ts';
import { EntryTree, forEachEntry } from './entry-tree.ts';
import { ENTRY_BYTES, type MemEntry } from './mem-entry.ts';
import { MemtableCursor } from './memtable-cursor.ts';
import { checkMutation, checkRun, isSmallRow, RowEdit, RowStore, type RowVersion } from './row-edit.ts';
import { keyIndex, RowTree } from './row-tree.ts';

/** The aggregate of a family; undefined = ordinary cells. */
export type AggregateOf = (family: string) => AggregateKind | undefined;

/**
 * Heap bytes of a row without the characters of its key and its entries: the header of the key and its slots in the
 * tree.
 */
const ROW_BYTES = 40;
const RANGE_BYTES = 160;

/** A change of one row that is made in several slices of the event loop: add in order, then commit. */
export interface RowChangeInProgress {
  add(mutations: Mutations): void;
  /** Makes all of it visible atomically. Called once. */
  commit(): void;
}

export class Memtable implements Layer {
  readonly #rows = new RowTree<RowVersion>();
  readonly #store = new RowStore();
  #droppedRanges: readonly RowRangeDeletion[] = [];
  #droppedRangeBytes = 0;
  #rowBytes = 0;
  #frozen = false;

  /** True if there is neither a row nor a dropped range. */
  get isEmpty(): boolean {
    return this.#rows.size === 0 && this.#droppedRanges.length === 0;
  }

  get rowCount(): number {
    return this.#rows.size;
  }

  /** Bytes of values with the free space of their slabs, and an estimate of the objects on a 64-bit heap. */
  get sizeBytes(): number {
    return (
      this.#store.values.sizeBytes +
      this.#store.entryBytes +
      this.#store.columns.madeBytes +
      this.#rowBytes +
      this.#droppedRangeBytes
    );
  }

  /**
   * Applies the mutations in order; readers see all or none. Every SetCell has its timestamp. Inputs of aggregates were
   * checked; those to a family that is not an aggregate (any more) are skipped. Values are copied, except those above
   * 16 KiB that fill at least eight ninths of their backing buffer: those are kept, and the caller must not change them
   * afterwards.
   */
  apply(row: ByteString, mutations: Mutations, aggregateOf: AggregateOf): void {
    assert(!this.#frozen, 'a frozen memtable takes no writes');
    if (mutations.length === 0) return;
    if (isCellRun(mutations)) checkRun(mutations);
    else for (const mutation of mutations) checkMutation(mutation, aggregateOf);
    const base = this.#rows.get(row);
    if (base === undefined && mutations.length === 1 && isCellRun(mutations)) {
      this.#rows.set(row, this.#store.rowOf(mutations));
      this.#rowBytes += ROW_BYTES + row.length;
      return;
    }
    const edit = new RowEdit(this.#store, base, aggregateOf, true);
    addAll(edit, mutations);
    this.#replace(row, base, edit);
  }

  /**
   * Begins a change that is too large for one slice. Until it is committed nothing else may change the row (asserted),
   * and the memtable is not frozen.
   */
  edit(row: ByteString, aggregateOf: AggregateOf): RowChangeInProgress {
    assert(!this.#frozen, 'a frozen memtable takes no writes');
    const base = this.#rows.get(row);
    const edit = new RowEdit(this.#store, base, aggregateOf, false);
    let count = 0;
    let isCommitted = false;
    return {
      add: (mutations) => {
        assert(!isCommitted, 'a change of a row grows no more once it is committed');
        count += mutations.length;
        addAll(edit, mutations);
      },
      commit: () => {
        assert(!isCommitted, 'a change of a row is committed once');
        isCommitted = true;
        assert(!this.#frozen, 'a frozen memtable takes no writes');
        assert(this.#rows.get(row) === base, 'a row is not changed by others while an edit of it is open');
        if (count > 0) this.#replace(row, base, edit);
      },
    };
  }

  /** Removes the rows of the range here and hides them in older layers. */
  dropRows(range: RowRange): void {
    assert(!this.#frozen, 'a frozen memtable takes no writes');
    const release = (entry: MemEntry): void => {
      this.#store.entryBytes -= ENTRY_BYTES;
      this.#store.values.release(entry.slab, entry.length);
    };
    this.#rows.removeRange(range.start, range.end, (row, key) => {
      this.#rowBytes -= ROW_BYTES + key.length;
      if (row instanceof EntryTree) forEachEntry(row.root, release);
      else if (isSmallRow(row)) row.forEach(release);
      else release(row);
    });
    assert(this.#rowBytes >= 0 && this.#store.entryBytes >= 0, 'a memtable holds no less than nothing');
    assert(this.#rows.size > 0 || this.#rowBytes === 0, 'rows that are gone take no memory');
    this.#droppedRanges = normalizeRanges([...this.#droppedRanges, range]);
    this.#droppedRangeBytes = this.#droppedRanges.reduce(
      (sum, { start, end }) => sum + RANGE_BYTES + start.length + (end?.length ?? 0),
      0,
    );
  }

  get isFrozen(): boolean {
    return this.#frozen;
  }

  /** Takes no writes any more (asserted). */
  freeze(): void {
    assert(!this.#frozen, 'a memtable is frozen once');
    this.#frozen = true;
  }

  get hasOnlyPuts(): boolean {
    return this.#store.hasOnlyPuts && this.#droppedRanges.length === 0;
  }

  rowRangeDeletions(): readonly RowRangeDeletion[] {
    return this.#droppedRanges;
  }

  mayContainRows(start: ByteString, end: ByteString | undefined): boolean {
    let leaf = this.#rows.leafOf(start);
    let index = keyIndex(leaf.keys, start);
    if (index === leaf.keys.length && leaf.next) {
      leaf = leaf.next;
      index = 0;
    }
    const first = leaf.keys[index];
    return first !== undefined && (end === undefined || first < end);
  }

  mayContainRow(row: ByteString): boolean {
    return this.#rows.find(row);
  }

  cursor(): MemtableCursor {
    return new MemtableCursor(this.#rows, true);
  }

  rowCursor(row: ByteString): MemtableCursor {
    return new MemtableCursor(this.#rows, true, row);
  }

  /** A cursor for callers that copy: its values must not be kept beyond its next move. */
  copyCursor(): MemtableCursor {
    return new MemtableCursor(this.#rows, false);
  }

  /**
   * The frozen memtable is in files and no read uses it: its memory is reused. Values that were read before stay valid.
   */
  recycle(): void {
    assert(this.#frozen, 'a memtable is recycled when it is in files');
    this.#store.values.recycle();
  }

  #replace(row: ByteString, base: RowVersion | undefined, edit: RowEdit): void {
    const version = edit.end();
    // a deletion of no timestamps at all leaves a new row with nothing in it
    if (version === undefined) return;
    this.#rows.set(row, version);
    if (base === undefined) this.#rowBytes += ROW_BYTES + row.length;
  }
}

function addAll(edit: RowEdit, mutations: Mutations): void {
  if (isCellRun(mutations)) edit.addCells(mutations);
  else for (const mutation of mutations) edit.add(mutation);
}
