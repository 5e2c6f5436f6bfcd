/**
 * The rows of a memtable: a B+tree by row key, changed in place. Its leaves form a list, so that rows are walked in
 * either direction at the speed of arrays.
 *
 * Readers keep a position (leaf, index) and compare `shape` before they use it: if rows were added or removed since,
 * they seek by key again, at most once for each of their slices of the event loop. A row that gets another value does
 * not change the shape. Nodes are never joined when rows are removed, only dropped when empty.
 */
import { assert, type ByteString } from '../base/index.ts';
import { insertAt } from './insert-at.ts';

const NODE_SIZE = 64;

export interface RowLeaf<V> {
  readonly keys: ByteString[];
  readonly values: V[];
  next: RowLeaf<V> | undefined;
  previous: RowLeaf<V> | undefined;
}

interface RowBranch<V> {
  /** `lows[i]`, i > 0: at most the first key below `children[i]`, above the last below `children[i - 1]`. */
  readonly lows: ByteString[];
  readonly children: RowNode<V>[];
}

type RowNode<V> = RowLeaf<V> | RowBranch<V>;

function isBranch<V>(node: RowNode<V>): node is RowBranch<V> {
  return 'children' in node;
}

/** Index of the first key at or above `key`. */
export function keyIndex(keys: readonly ByteString[], key: ByteString): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keys[middle]! < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class RowTree<V> {
  /** Changes when a row is added or removed. */
  shape = 0;
  #size = 0;
  #root: RowNode<V>;
  // the position of the key that was searched last, or the one it would have: mostly it is searched again
  #leaf: RowLeaf<V>;
  #index = 0;
  #key: ByteString | undefined;

  constructor() {
    this.#leaf = { keys: [], values: [], next: undefined, previous: undefined };
    this.#root = this.#leaf;
  }

  get size(): number {
    return this.#size;
  }

  get(key: ByteString): V | undefined {
    return this.find(key) ? this.#leaf.values[this.#index] : undefined;
  }

  /** True if the tree has the key. `foundLeaf` and `foundIndex` are then its position, until the shape changes. */
  find(key: ByteString): boolean {
    if (key !== this.#key) {
      const leaf = this.leafOf(key);
      const last = leaf.keys.length - 1;
      // keys often come in order: then the index is after the last one
      const isLast = leaf.next === undefined && last >= 0 && leaf.keys[last]! < key;
      this.#leaf = leaf;
      this.#index = isLast ? last + 1 : keyIndex(leaf.keys, key);
      this.#key = key;
    }
    return this.#leaf.keys[this.#index] === key;
  }

  get foundLeaf(): RowLeaf<V> {
    return this.#leaf;
  }

  get foundIndex(): number {
    return this.#index;
  }

  set(key: ByteString, value: V): void {
    const isFound = this.find(key);
    const leaf = this.#leaf;
    if (isFound) {
      leaf.values[this.#index] = value;
      return;
    }
    this.shape++;
    this.#size++;
    if (leaf.keys.length < NODE_SIZE) {
      insertAt(leaf.keys, this.#index, key);
      insertAt(leaf.values, this.#index, value);
    } else {
      this.#insertBySplit(key, value);
    }
    this.#key = undefined;
  }

  /** The leaf that holds `key`, or would hold it. */
  leafOf(key: ByteString): RowLeaf<V> {
    if (key === this.#key) return this.#leaf;
    let node = this.#root;
    while (isBranch(node)) node = node.children[childIndex(node, key)]!;
    return node;
  }

  lastLeaf(): RowLeaf<V> {
    let node = this.#root;
    while (isBranch(node)) node = node.children[node.children.length - 1]!;
    return node;
  }

  /** Removes the rows in [start, end); `removed` is called with each. */
  removeRange(start: ByteString, end: ByteString | undefined, removed: (value: V, key: ByteString) => void): void {
    let gone = 0;
    let root = cut(this.#root, start, end, (value, key) => {
      gone++;
      removed(value, key);
    });
    if (gone === 0) return;
    root ??= { keys: [], values: [], next: undefined, previous: undefined };
    while (isBranch(root) && root.children.length === 1) root = root.children[0]!;
    this.#root = root;
    this.#size -= gone;
    assert(this.#size >= 0, 'no more rows are removed than were added');
    assert(isBranch(root) || root.keys.length === this.#size, 'a tree of one leaf counts the rows of that leaf');
    this.shape++;
    this.#key = undefined;
  }

  /** Splits the full nodes on the way to the leaf of the key, then inserts it there. */
  #insertBySplit(key: ByteString, value: V): void {
    let node = this.#root;
    if (isFull(node)) {
      const right = split(node, key);
      node = { lows: ['', lowOf(right)], children: [node, right] };
      this.#root = node;
    }
    while (isBranch(node)) {
      const index = childIndex(node, key);
      let child = node.children[index]!;
      if (isFull(child)) {
        const right = split(child, key);
        const low = lowOf(right);
        insertAt(node.children, index + 1, right);
        insertAt(node.lows, index + 1, low);
        if (low <= key) child = right;
      }
      node = child;
    }
    const index = keyIndex(node.keys, key);
    insertAt(node.keys, index, key);
    insertAt(node.values, index, value);
  }
}

function childIndex<V>(branch: RowBranch<V>, key: ByteString): number {
  const lows = branch.lows;
  let low = 1;
  let high = lows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (lows[middle]! <= key) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function isFull<V>(node: RowNode<V>): boolean {
  return (isBranch(node) ? node.children : node.keys).length >= NODE_SIZE;
}

function lowOf<V>(node: RowNode<V>): ByteString {
  while (isBranch(node)) node = node.children[0]!;
  const low = node.keys[0];
  assert(low !== undefined, 'a node of rows holds a row');
  return low;
}

/**
 * Moves the upper half of the node to a new one. If keys come in order only the last one is moved, so that full nodes
 * are left.
 */
function split<V>(node: RowNode<V>, key: ByteString): RowNode<V> {
  if (isBranch(node)) {
    const at = node.lows[NODE_SIZE - 1]! <= key ? NODE_SIZE - 1 : NODE_SIZE / 2;
    return { lows: node.lows.splice(at), children: node.children.splice(at) };
  }
  const at = node.next === undefined && node.keys[NODE_SIZE - 1]! < key ? NODE_SIZE - 1 : NODE_SIZE / 2;
  const right: RowLeaf<V> = {
    keys: node.keys.splice(at),
    values: node.values.splice(at),
    next: node.next,
    previous: node,
  };
  if (node.next) node.next.previous = right;
  node.next = right;
  return right;
}

/** The node without the rows in [start, end); undefined if nothing is left. */
function cut<V>(
  node: RowNode<V>,
  start: ByteString,
  end: ByteString | undefined,
  removed: (value: V, key: ByteString) => void,
): RowNode<V> | undefined {
  if (isBranch(node)) {
    const first = childIndex(node, start);
    const last = end === undefined ? node.children.length - 1 : childIndex(node, end);
    for (let i = last; i >= first; i--) {
      if (cut(node.children[i]!, start, end, removed) !== undefined) continue;
      node.children.splice(i, 1);
      node.lows.splice(i, 1);
    }
    return node.children.length === 0 ? undefined : node;
  }
  const first = keyIndex(node.keys, start);
  const last = end === undefined ? node.keys.length : keyIndex(node.keys, end);
  for (let i = first; i < last; i++) removed(node.values[i]!, node.keys[i]!);
  if (last > first) {
    node.keys.splice(first, last - first);
    node.values.splice(first, last - first);
  }
  if (node.keys.length > 0) return node;
  if (node.previous) node.previous.next = node.next;
  if (node.next) node.next.previous = node.previous;
  return undefined;
}
