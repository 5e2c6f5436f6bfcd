/**
 * The block cache (paper section 6): blocks read from the file system, within a budget of bytes that
 * all open SSTables share.
 *
 * A block enters on probation; asked for again it becomes protected. Protected blocks take at most 4/5 of the budget, their least
 * recently used go back on probation, and what is evicted is the oldest on probation: so a scan, which asks for each block once,
 * passes through and leaves the protected ones alone. A block that was read ahead of a cursor is first asked for by that same scan,
 * so its first hit does not count.
 *
 * Blocks that came with one large read share its memory, which spares a scan a copy. A block that becomes protected is copied out of it;
 * what the shared memory holds beyond the blocks that are kept counts as used until the last of them goes.
 *
 * Invariants: the memory of all kept blocks is within the budget; a block above 1/8 of it is not kept; of the same block
 * at most one read is in flight.
 */
import { assert } from '../base/index.ts';
import type { Metrics } from '../env/index.ts';
import { Block } from './block.ts';

const PROTECTED_SHARE = 0.8;
const LARGEST_SHARE = 1 / 8;
/** What keeping a block costs beside its bytes. */
const OVERHEAD_BYTES = 256;

/** A read that several blocks came with: for the caller an opaque token, one a read. */
export class SharedRead {
  /** Blocks of it that are kept in its memory. */
  kept = 0;
  /** Of the others. */
  deadBytes = 0;
}

interface Node {
  readonly file: CachedFile;
  block: Block;
  readonly bytes: number;
  isProtected: boolean;
  /** Nobody has asked for it yet. */
  isAhead: boolean;
  read: SharedRead | undefined;
  newer: Node | undefined;
  older: Node | undefined;
}

/** Nodes by use: the newest at one end, the oldest at the other. */
class UseList {
  bytes = 0;
  #newest: Node | undefined;
  oldest: Node | undefined;

  add(node: Node): void {
    node.newer = undefined;
    node.older = this.#newest;
    if (this.#newest) this.#newest.newer = node;
    else this.oldest = node;
    this.#newest = node;
    this.bytes += node.bytes;
  }

  remove(node: Node): void {
    if (node.newer) node.newer.older = node.older;
    else this.#newest = node.older;
    if (node.older) node.older.newer = node.newer;
    else this.oldest = node.newer;
    node.newer = undefined;
    node.older = undefined;
    this.bytes -= node.bytes;
  }
}

/** How a block was read: with others, and whether anybody has asked for it. */
export interface BlockOrigin {
  readonly read: SharedRead | undefined;
  readonly isAhead: boolean;
}

const ALONE: BlockOrigin = { read: undefined, isAhead: false };

export class BlockCache {
  readonly limitBytes: number;
  readonly #metrics: Metrics;
  readonly #files = new Map<string, CachedFile>();
  readonly #probation = new UseList();
  readonly #protected = new UseList();
  /** In shared reads, beside the blocks that are kept. */
  #deadBytes = 0;

  /** `limitBytes` 0 keeps nothing. */
  constructor(options: { readonly limitBytes: number; readonly metrics: Metrics }) {
    this.limitBytes = options.limitBytes;
    this.#metrics = options.metrics;
  }

  get usedBytes(): number {
    return this.#probation.bytes + this.#protected.bytes + this.#deadBytes;
  }

  /** The cached blocks of a file. Paths are never used again, so all that open a path share them. Each must be closed. */
  open(path: string): CachedFile {
    let file = this.#files.get(path);
    if (!file) this.#files.set(path, (file = new CachedFile(path, this)));
    file.users++;
    return file;
  }

  /** For CachedFile alone. */
  forget(file: CachedFile, nodes: Iterable<Node>): void {
    for (const node of nodes) {
      this.#listOf(node).remove(node);
      this.#leaveRead(node);
    }
    this.#files.delete(file.path);
  }

  /** For CachedFile alone. */
  touched(node: Node | undefined): void {
    this.#metrics.add(node ? 'blockCache.hits' : 'blockCache.misses');
    if (!node) return;
    this.#listOf(node).remove(node);
    if (node.isAhead) node.isAhead = false;
    else this.#protect(node);
    this.#listOf(node).add(node);
    for (let oldest = this.#protected.oldest; oldest && this.#protected.bytes > this.limitBytes * PROTECTED_SHARE; oldest = this.#protected.oldest) {
      this.#protected.remove(oldest);
      oldest.isProtected = false;
      this.#probation.add(oldest);
    }
    this.#makeRoom(0);
  }

  /** For CachedFile alone. Undefined where the block is too large to be kept. */
  insert(file: CachedFile, block: Block, origin: BlockOrigin): Node | undefined {
    const bytes = block.bytes.length + OVERHEAD_BYTES;
    if (bytes > this.limitBytes * LARGEST_SHARE) return undefined;
    this.#makeRoom(bytes);
    const { read, isAhead } = origin;
    const node: Node = { file, block, bytes, isProtected: false, isAhead, read, newer: undefined, older: undefined };
    if (read) read.kept++;
    this.#probation.add(node);
    return node;
  }

  #protect(node: Node): void {
    node.isProtected = true;
    if (!node.read) return;
    const { file, offset, bytes } = node.block;
    node.block = new Block(file, offset, Buffer.from(bytes));
    this.#leaveRead(node);
  }

  /** The node holds nothing of its shared read any more. */
  #leaveRead(node: Node): void {
    const { read } = node;
    if (!read) return;
    node.read = undefined;
    read.deadBytes += node.bytes;
    this.#deadBytes += node.bytes;
    if (--read.kept > 0) return;
    this.#deadBytes -= read.deadBytes;
    read.deadBytes = 0;
  }

  #makeRoom(bytes: number): void {
    while (this.usedBytes + bytes > this.limitBytes) this.#evict();
  }

  #evict(): void {
    const node = this.#probation.oldest ?? this.#protected.oldest;
    assert(node, 'a cache without blocks holds no bytes');
    this.#listOf(node).remove(node);
    this.#leaveRead(node);
    node.file.evicted(node.block.offset);
    this.#metrics.add('blockCache.evictions');
  }

  #listOf(node: Node): UseList {
    return node.isProtected ? this.#protected : this.#probation;
  }
}

/** The blocks of one file that are in the cache or on their way. */
export class CachedFile {
  readonly path: string;
  /** For BlockCache alone. */
  users = 0;
  readonly #cache: BlockCache;
  readonly #nodes = new Map<number, Node>();
  readonly #loads = new Map<number, Promise<Block>>();

  constructor(path: string, cache: BlockCache) {
    this.path = path;
    this.#cache = cache;
  }

  /** The block at this offset of the file, where it is in the cache. Counts a hit or a miss. */
  get(offset: number): Block | undefined {
    const node = this.#nodes.get(offset);
    this.#cache.touched(node);
    return node?.block;
  }

  /** Whether the block is in the cache or on its way. Counts nothing. */
  has(offset: number): boolean {
    return this.#nodes.has(offset) || this.#loads.has(offset);
  }

  /** The block from the cache, from a read already in flight, or by `read`; then it is kept. Counts nothing. */
  load(offset: number, read: () => Promise<Block>, origin = ALONE): Promise<Block> {
    const kept = this.#nodes.get(offset);
    if (kept) return Promise.resolve(kept.block);
    const underWay = this.#loads.get(offset);
    if (underWay) return underWay;
    const load = this.#read(offset, read, origin);
    this.#loads.set(offset, load);
    return load;
  }

  close(): void {
    assert(this.users > 0, `${this.path} was opened`);
    if (--this.users > 0) return;
    this.#cache.forget(this, this.#nodes.values());
    this.#nodes.clear();
  }

  /** For BlockCache alone. */
  evicted(offset: number): void {
    this.#nodes.delete(offset);
  }

  async #read(offset: number, read: () => Promise<Block>, origin: BlockOrigin): Promise<Block> {
    try {
      const block = await read();
      const node = this.users > 0 ? this.#cache.insert(this, block, origin) : undefined;
      if (node) this.#nodes.set(offset, node);
      return block;
    } finally {
      this.#loads.delete(offset);
    }
  }
}
