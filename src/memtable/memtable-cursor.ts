/**
 * A cursor over a memtable (LayerCursor of model/entry.ts) that never needs a load. It sees each row as of the moment
 * when it arrives there: a scan is not a snapshot of the table, but each of its rows is a snapshot of the row.
 */
import { assert, type ByteString, type Int64 } from '../base/index.ts';
import { type ColumnKey, CursorState, EntryKind, type LayerCursor } from '../model/index.ts';
import { type Branch, childIndex, EntryTree, isBranch, leafIndex } from './entry-tree.ts';
import { columnStart, compareInRow, lowerBound, type MemEntry, probe } from './mem-entry.ts';
import { isSmallRow, type RowVersion } from './row-edit.ts';
import { keyIndex, type RowLeaf, type RowTree } from './row-tree.ts';
import { valueAt } from './value-arena.ts';

const EMPTY_ENTRIES: readonly MemEntry[] = [];

export class MemtableCursor implements LayerCursor {
  state: CursorState = CursorState.done;
  row: ByteString = '';
  #entry: MemEntry | undefined;
  // the position of the row among the rows, valid while the shape of the tree is #shape
  readonly #rows: RowTree<RowVersion>;
  #leaf: RowLeaf<RowVersion> | undefined;
  #leafIndex = 0;
  #shape = -1;
  // the entries of the row: all of a small row, the present leaf of a large one, EMPTY_ENTRIES of a row with one entry
  #entries: readonly MemEntry[] = EMPTY_ENTRIES;
  #index = 0;
  #tree: EntryTree | undefined;
  // the branches above the present leaf of a large row, and the child taken in each
  readonly #path: Branch[] = [];
  readonly #taken: number[] = [];
  readonly #lends: boolean;
  /** The only row that this cursor sees. */
  readonly #only: ByteString | undefined;

  /** `lends`: callers may keep the values. */
  constructor(rows: RowTree<RowVersion>, lends: boolean, only?: ByteString) {
    this.#rows = rows;
    this.#lends = lends;
    this.#only = only;
  }

  get column(): ColumnKey {
    return this.#present().column;
  }

  get kind(): EntryKind {
    return this.#present().kind;
  }

  get timestamp(): Int64 {
    return this.#present().timestamp;
  }

  get rangeEnd(): Int64 | undefined {
    return this.#present().rangeEnd;
  }

  get valueLength(): number {
    return this.#present().length;
  }

  value(): Uint8Array {
    const { slab, offset, length } = this.#present();
    if (this.#lends) slab.isLent = true;
    return valueAt(slab, offset, length);
  }

  seekRow(row: ByteString): void {
    if (this.#only !== undefined) return this.#seekOnly(this.#only, row <= this.#only);
    const leaf = this.#rows.leafOf(row);
    this.#standAtOrAfter(leaf, keyIndex(leaf.keys, row));
  }

  seekRowBefore(row: ByteString | undefined): void {
    if (this.#only !== undefined) return this.#seekOnly(this.#only, row === undefined || this.#only < row);
    let leaf: RowLeaf<RowVersion> | undefined = row === undefined ? this.#rows.lastLeaf() : this.#rows.leafOf(row);
    let index = (row === undefined ? leaf.keys.length : keyIndex(leaf.keys, row)) - 1;
    if (index < 0) {
      leaf = leaf.previous;
      index = leaf ? leaf.keys.length - 1 : -1;
    }
    if (leaf === undefined || index < 0) this.#finish();
    else this.#stand(leaf, index);
  }

  seekColumn(column: ColumnKey, timestamp?: Int64): void {
    if (this.#entry === undefined) return;
    const key = timestamp === undefined ? columnStart(column) : probe(column, EntryKind.put, timestamp);
    if (compareInRow(this.#entry, key) >= 0) return;
    if (this.#tree !== undefined && compareInRow(this.#entries[this.#entries.length - 1]!, key) < 0)
      this.#descend(this.#tree, key);
    else this.#index = lowerBound(this.#entries, key);
    this.#advance();
  }

  next(): void {
    const entry = this.#entries[++this.#index];
    if (entry !== undefined) this.#entry = entry;
    else this.#advance();
  }

  load(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {
    this.#finish();
  }

  #present(): MemEntry {
    const entry = this.#entry;
    assert(entry !== undefined, 'a cursor is read only where it stands on an entry');
    return entry;
  }

  #finish(): void {
    this.state = CursorState.done;
    this.#entry = undefined;
    this.#leaf = undefined;
    this.#entries = EMPTY_ENTRIES;
    this.#tree = undefined;
    if (this.#path.length === 0) return;
    this.#path.length = 0;
    this.#taken.length = 0;
  }

  /** Moves to the only row, if it lies in the direction of the seek. */
  #seekOnly(only: ByteString, isThere: boolean): void {
    // the read has searched for the row before, to see whether it is here
    if (isThere && this.#rows.find(only)) this.#stand(this.#rows.foundLeaf, this.#rows.foundIndex);
    else this.#finish();
  }

  #standAtOrAfter(leaf: RowLeaf<RowVersion>, index: number): void {
    if (index < leaf.keys.length) this.#stand(leaf, index);
    else if (leaf.next) this.#stand(leaf.next, 0);
    else this.#finish();
  }

  #stand(leaf: RowLeaf<RowVersion>, index: number): void {
    this.#leaf = leaf;
    this.#leafIndex = index;
    this.#shape = this.#rows.shape;
    this.row = leaf.keys[index]!;
    const version = leaf.values[index]!;
    this.state = CursorState.ready;
    this.#tree = undefined;
    this.#index = 0;
    if (isSmallRow(version)) {
      this.#entries = version;
      this.#entry = version[0];
    } else if (version instanceof EntryTree) {
      version.take();
      this.#tree = version;
      this.#descend(version, undefined);
      this.#entry = this.#entries[0];
    } else {
      this.#entries = EMPTY_ENTRIES;
      this.#entry = version;
    }
    assert(this.#entry !== undefined, 'a row in the memtable has at least one entry');
  }

  /** Moves to the entry at the index, or to the next one if the index is past the present entries. */
  #advance(): void {
    if (this.#index >= this.#entries.length && !this.#nextLeaf()) this.#nextRow();
    else this.#entry = this.#entries[this.#index];
  }

  #nextRow(): void {
    const leaf = this.#leaf;
    if (leaf === undefined) return;
    if (this.#only !== undefined) return this.#finish();
    if (this.#shape === this.#rows.shape) {
      this.#standAtOrAfter(leaf, this.#leafIndex + 1);
      return;
    }
    const found = this.#rows.leafOf(this.row);
    const index = keyIndex(found.keys, this.row);
    this.#standAtOrAfter(found, found.keys[index] === this.row ? index + 1 : index);
  }

  /** Moves to the leaf of `key`, or to the first one, and to the index of `key` in it. */
  #descend(tree: EntryTree, key: MemEntry | undefined): void {
    this.#path.length = 0;
    this.#taken.length = 0;
    let node = tree.root;
    while (isBranch(node)) {
      const index = key === undefined ? 0 : childIndex(node, key);
      this.#path.push(node);
      this.#taken.push(index);
      node = node.children[index] as typeof node;
    }
    this.#entries = node.entries;
    this.#index = key === undefined ? 0 : leafIndex(node, key);
  }

  /** Moves to the first entry of the next leaf of a large row; returns false if there is none. */
  #nextLeaf(): boolean {
    if (this.#tree === undefined) return false;
    for (let level = this.#path.length - 1; level >= 0; level--) {
      const branch = this.#path[level]!;
      const taken = this.#taken[level]! + 1;
      if (taken >= branch.children.length) continue;
      this.#taken[level] = taken;
      let node = branch.children[taken]!;
      for (let below = level + 1; isBranch(node); below++) {
        this.#path[below] = node;
        this.#taken[below] = 0;
        node = node.children[0] as typeof node;
      }
      this.#entries = node.entries;
      this.#index = 0;
      return true;
    }
    return false;
  }
}
