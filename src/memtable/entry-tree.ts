/**
 * The entries of a large row: a B+tree with copy-on-write. A reader takes a tree (`take`) and keeps the row as it was,
 * at no cost and without blocking edits. The next edit then copies each node that it touches once; until another reader
 * comes, the edits after it change their nodes in place.
 *
 * Invariants: every node except a lone root leaf has at least one child or entry. Entries ascend by `compareInRow`.
 * `lows[i]`, i > 0, is at most the first entry of `children[i]` and above the last one of `children[i - 1]` (`lows[0]`
 * is not used). Nodes are never joined when entries are removed, only dropped when empty: the next compaction rewrites
 * rows that shrink.
 */
import { assert, checksInvariants } from '../base/index.ts';
import type { ColumnKey } from '../model/index.ts';
import { insertAt } from './insert-at.ts';
import { compareInColumn, compareInRow, type MemEntry, probe } from './mem-entry.ts';

/** The most entries of a leaf and children of a branch. */
const NODE_SIZE = 48;

export interface Leaf {
  /** The generation of the edit that made the node. */
  readonly version: number;
  readonly entries: MemEntry[];
  /** The column of each entry: in a wide row a search reads nothing else, one memory access instead of two. */
  readonly columns: ColumnKey[];
}

export interface Branch {
  readonly version: number;
  readonly lows: MemEntry[];
  readonly lowColumns: ColumnKey[];
  readonly children: Node[];
}

export type Node = Leaf | Branch;

export function isBranch(node: Node): node is Branch {
  return 'children' in node;
}

/** The index of the child that holds `key`. */
export function childIndex(branch: Branch, key: MemEntry): number {
  const { lows, lowColumns } = branch;
  const column = key.column;
  let low = 1;
  let high = lows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const there = lowColumns[middle]!;
    if (there < column || (there === column && compareInColumn(lows[middle]!, key) <= 0)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The index of the first entry of the leaf at or after `key`. */
export function leafIndex(leaf: Leaf, key: MemEntry): number {
  const { entries, columns } = leaf;
  const column = key.column;
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const there = columns[middle]!;
    if (there < column || (there === column && compareInColumn(entries[middle]!, key) < 0)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The row after one edit. */
export class EntryTree {
  readonly root: Node;
  readonly version: number;
  #taken = false;

  get taken(): boolean {
    return this.#taken;
  }

  /** From now on nothing below `root` changes. Without it a reader is safe within its slice only. */
  take(): void {
    if (checksInvariants && !this.#taken) assertTree(this.root);
    this.#taken = true;
  }

  constructor(root: Node, version: number) {
    this.root = root;
    this.version = version;
  }
}

/**
 * Walks over every node: none except a lone root leaf is empty or too large, entries ascend, separators lie between
 * children.
 */
export function assertTree(root: Node): void {
  let last: MemEntry | undefined;
  const visit = (node: Node): void => {
    if (isBranch(node)) {
      const { children, lows, lowColumns } = node;
      assert(children.length > 0 && children.length <= NODE_SIZE, 'a branch of a row has 1 to NODE_SIZE children');
      assert(lows.length === children.length && lowColumns.length === lows.length, 'each child has its separator');
      for (let i = 0; i < children.length; i++) {
        const low = lows[i]!;
        assert(lowColumns[i] === low.column, 'the column of a separator is kept next to it');
        assert(
          i === 0 || last === undefined || compareInRow(last, low) < 0,
          'a separator lies above the child before it',
        );
        const child = children[i]!;
        assert(i === 0 || compareInRow(low, firstEntry(child)) <= 0, 'a separator lies at or below its own child');
        visit(child);
      }
      return;
    }
    assert(node === root || node.entries.length > 0, 'a leaf of a row is dropped when it is empty');
    assert(node.columns.length === node.entries.length, 'each entry of a leaf has its column');
    for (let i = 0; i < node.entries.length; i++) {
      const entry = node.entries[i]!;
      assert(node.columns[i] === entry.column, 'the column of an entry is kept next to it');
      assert(last === undefined || compareInRow(last, entry) < 0, 'the entries of a row ascend');
      last = entry;
    }
  };
  visit(root);
}

/** Calls `use` for every entry below the node, in order. */
export function forEachEntry(node: Node, use: (entry: MemEntry) => void): void {
  if (isBranch(node)) for (const child of node.children) forEachEntry(child, use);
  else node.entries.forEach(use);
}

/** One change of a row, from a tree to the next. No reader sees nodes of its own generation, so it may change them. */
export class EntryTreeEdit {
  readonly #version: number;
  #root: Node;
  #ended = false;

  /**
   * `from`: the tree that the edit starts from, or ascending entries. `inPlace`: the edit begins and ends in one slice
   * of the event loop and does not fail; then it may change a tree that no reader has taken, and that tree must not be
   * used afterwards.
   */
  constructor(from: EntryTree | readonly MemEntry[], inPlace: boolean) {
    if (from instanceof EntryTree) {
      this.#version = inPlace && !from.taken ? from.version : from.version + 1;
      this.#root = from.root;
    } else {
      this.#version = 0;
      this.#root = { version: 0, entries: [], columns: [] };
      for (const entry of from) this.put(entry);
    }
  }

  /** The next tree of the row. Ends the edit. */
  end(): EntryTree {
    assert(!this.#ended, 'an edit of a row ends once');
    this.#ended = true;
    return new EntryTree(this.#root, this.#version);
  }

  /** The last entry at or before `key`. */
  floor(key: MemEntry): MemEntry | undefined {
    let node = this.#root;
    let left: Node | undefined;
    while (isBranch(node)) {
      const index = childIndex(node, key);
      if (index > 0) left = node.children[index - 1];
      node = node.children[index]!;
    }
    const index = leafIndex(node, key);
    const entry = node.entries[index];
    if (entry !== undefined && compareInRow(entry, key) === 0) return entry;
    if (index > 0) return node.entries[index - 1];
    return left && lastEntry(left);
  }

  forEach(use: (entry: MemEntry) => void): void {
    forEachEntry(this.#root, use);
  }

  /** Adds the entry, or replaces the one that compares equal, which is returned. */
  put(entry: MemEntry): MemEntry | undefined {
    assert(!this.#ended, 'an edit of a row is not used after its end');
    let node = this.#own(this.#root);
    if (isFull(node)) {
      const right = this.#split(node, entry, true);
      const lows = [lowOf(node), lowOf(right)];
      node = { version: this.#version, lows, lowColumns: lows.map((low) => low.column), children: [node, right] };
    }
    this.#root = node;
    let rightmost = true;
    while (isBranch(node)) {
      let index = childIndex(node, entry);
      rightmost &&= index === node.children.length - 1;
      let child = this.#own(node.children[index]!);
      node.children[index] = child;
      if (isFull(child)) {
        const right = this.#split(child, entry, rightmost);
        const low = lowOf(right);
        insertAt(node.children, index + 1, right);
        insertAt(node.lows, index + 1, low);
        insertAt(node.lowColumns, index + 1, low.column);
        if (compareInRow(low, entry) <= 0) {
          child = right;
          index++;
        }
        rightmost &&= index === node.children.length - 1;
      }
      node = child;
    }
    const index = leafIndex(node, entry);
    const found = node.entries[index];
    if (found !== undefined && compareInRow(found, entry) === 0) {
      node.entries[index] = entry;
      node.columns[index] = entry.column;
      return found;
    }
    insertAt(node.entries, index, entry);
    insertAt(node.columns, index, entry.column);
    return undefined;
  }

  /** Removes the entries at or after `from` and before `to`; `removed` is called with each. */
  removeRange(from: MemEntry, to: MemEntry, removed: (entry: MemEntry) => void): void {
    assert(!this.#ended, 'an edit of a row is not used after its end');
    let root = this.#cut(this.#root, from, to, removed) ?? { version: this.#version, entries: [], columns: [] };
    while (isBranch(root) && root.children.length === 1) root = root.children[0]!;
    this.#root = root;
  }

  /** The node without the range; undefined if nothing is left. */
  #cut(node: Node, from: MemEntry, to: MemEntry, removed: (entry: MemEntry) => void): Node | undefined {
    if (!isBranch(node)) {
      const first = leafIndex(node, from);
      const end = leafIndex(node, to);
      if (first >= end) return node;
      for (let i = first; i < end; i++) removed(node.entries[i]!);
      if (end - first === node.entries.length) return undefined;
      const owned = this.#own(node) as Leaf;
      owned.entries.splice(first, end - first);
      owned.columns.splice(first, end - first);
      return owned;
    }
    const first = childIndex(node, from);
    const last = childIndex(node, to);
    if (first > last) return node;
    const children: Node[] = [];
    const lows: MemEntry[] = [];
    let changed = false;
    for (let i = first; i <= last; i++) {
      const child = node.children[i]!;
      let left: Node | undefined;
      if (i > first && i < last) forEachEntry(child, removed);
      else left = this.#cut(child, from, to, removed);
      changed ||= left !== child;
      if (left === undefined) continue;
      children.push(left);
      lows.push(node.lows[i]!);
    }
    if (!changed) return node;
    if (children.length === 0 && last - first + 1 === node.children.length) return undefined;
    const owned = this.#own(node) as Branch;
    owned.children.splice(first, last - first + 1, ...children);
    owned.lows.splice(first, last - first + 1, ...lows);
    owned.lowColumns.splice(first, last - first + 1, ...lows.map((low) => low.column));
    return owned;
  }

  /** The node, or a copy that this edit may change. */
  #own(node: Node): Node {
    if (node.version === this.#version) return node;
    if (isBranch(node)) {
      return {
        version: this.#version,
        lows: node.lows.slice(),
        lowColumns: node.lowColumns.slice(),
        children: node.children.slice(),
      };
    }
    return { version: this.#version, entries: node.entries.slice(), columns: node.columns.slice() };
  }

  /**
   * Moves the upper half of the node to a new one; at the right edge of the tree, where entries come in order, only the
   * last item.
   */
  #split(node: Node, entry: MemEntry, rightmost: boolean): Node {
    if (isBranch(node)) {
      const appends = rightmost && compareInRow(node.lows[NODE_SIZE - 1]!, entry) <= 0;
      const at = appends ? NODE_SIZE - 1 : NODE_SIZE / 2;
      return {
        version: this.#version,
        lows: node.lows.splice(at),
        lowColumns: node.lowColumns.splice(at),
        children: node.children.splice(at),
      };
    }
    const appends = rightmost && compareInRow(node.entries[NODE_SIZE - 1]!, entry) < 0;
    const at = appends ? NODE_SIZE - 1 : NODE_SIZE / 2;
    return { version: this.#version, entries: node.entries.splice(at), columns: node.columns.splice(at) };
  }
}

function isFull(node: Node): boolean {
  return (isBranch(node) ? node.children : node.entries).length >= NODE_SIZE;
}

function lastEntry(node: Node): MemEntry {
  while (isBranch(node)) node = node.children[node.children.length - 1]!;
  return node.entries[node.entries.length - 1]!;
}

function firstEntry(node: Node): MemEntry {
  while (isBranch(node)) node = node.children[0]!;
  const first = node.entries[0];
  assert(first !== undefined, 'a node of a row holds an entry');
  return first;
}

/** The first entry of the node as a probe, which holds no value: a separator outlives the entry that it was made of. */
function lowOf(node: Node): MemEntry {
  const first = firstEntry(node);
  return probe(first.column, first.kind, first.timestamp);
}
