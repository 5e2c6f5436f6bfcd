/**
 * The block cache (paper section 6): blocks read from the file system, within a budget of bytes that all open SSTables
 * share. Blocks are kept decompressed. A block that was read ahead of a cursor is checked and decompressed only when it
 * is first requested: reading ahead then makes no long slice of the event loop, and blocks that no cursor reaches cost
 * nothing more.
 *
 * `eviction.ts` decides which block is evicted. A block that a scan brings in for the first time is a visitor: visitors
 * have few bytes, and a scan of a large table leaves no more of it in memory. A second scan that misses the block, or a
 * hit while it is there, makes it an ordinary one (docs/decisions/0043-visitors.md). The first request for a block that
 * was read ahead comes from that same scan, so it does not count as a use.
 *
 * Blocks that came with one large read share its memory, which saves a scan a copy. A block that moves from probation
 * to the main part is copied out. Shared memory that belongs to evicted blocks counts as used until the last kept block
 * in it is evicted.
 *
 * Pages of blocks (page-index.ts) are kept in the same way as blocks. Tables of row positions (row-positions.ts) count
 * in the budget and are the first to leave.
 *
 * Invariants: the memory of all kept blocks is within the budget; a block above 1/8 of it is not kept; at most one read
 * of a block is in flight.
 */
import { assert, checksInvariants, NumberTable } from '../../base/index.ts';
import type { Counter, Metrics } from '../../env/index.ts';
import { BloomHash } from '../format/bloom-hash.ts';
import { Block } from '../read/block.ts';
import { EvictionQueues, Queued } from './eviction.ts';
import { PageMemory } from '../read/page-memory.ts';
import { RowPositions } from '../read/row-positions.ts';
import type { RowCache } from './row-cache.ts';
import type { SharedRead } from '../read/shared-read.ts';

const MAX_SHARE = 1 / 8;
/** The most that a scan reads ahead, as a share of the budget. */
const MAX_SCAN_SHARE = 1 / 16;
/** The most that tables of row positions take, as a share of the budget. */
const MAX_POSITIONS_SHARE = 1 / 16;
/** Memory that a kept block takes in addition to its bytes. */
const OVERHEAD_BYTES = 256;

/** A block that was read and is neither checked nor decoded yet. */
export interface UnreadBlock {
  /** Length as stored. */
  readonly storedBytes: number;
  /** A compressed block, once decoded, leaves the memory that was read. */
  readonly isCompressed: boolean;
  decode(): Block;
}

/** How a block was read. */
export interface BlockOrigin {
  /** The read that it shares memory with; undefined where the block has memory of its own. */
  readonly read: SharedRead | undefined;
  /** Read ahead: no cursor has requested it yet. */
  readonly isAhead: boolean;
  /** Read by a scan for the first time. Blocks that share a read are all visitors or none. */
  readonly isVisitor: boolean;
}

/**
 * Keeps the blocks of one open file: in the cache, or in memory reserved for the file. Blocks go by their number in the
 * file, and so do pages.
 */
export interface BlockKeeper {
  /** The block, if it is in memory. Counts a hit or a miss. */
  get(block: number): Block | undefined;
  /** True if the block is in memory or being read. Counts nothing. */
  has(block: number): boolean;
  /**
   * Notes that a scan reads the blocks `first` to `last` together. True if it is the first scan for one of them: then
   * they are visitors. In-memory files have no visitors.
   */
  noteScan(first: number, last: number): boolean;
  /**
   * Keeps a block that was read synchronously. `has(block)` must be false. In-memory files keep what they load only.
   */
  keep(block: number, content: Block, isVisitor: boolean): void;
  /** The page, if it is in memory. Counts a hit or a miss. */
  getPage(page: number): Block | undefined;
  /**
   * Keeps a page, unless it is kept already. `read`: the read that it shares memory with. In-memory files keep no
   * pages.
   */
  keepPage(page: number, content: Block, read: SharedRead | undefined): void;
  /** The block from memory, from a read in flight, or by `read`, which is then kept. Counts nothing. */
  load(block: number, read: () => Promise<Block | UnreadBlock>, origin?: BlockOrigin): Promise<Block>;
  /**
   * Loads a block that no caller awaits, and keeps it undecoded. `has(block)` must be false. If the read fails, the
   * request for the block reads again and reports it.
   */
  loadAhead(block: number, read: () => Promise<UnreadBlock>, shared: SharedRead, isVisitor: boolean): void;
  /** The positions of rows of the file; undefined if there are none. */
  readonly positions: RowPositions | undefined;
  /** The same; makes the table if there is space for it. The file has that many rows and blocks. */
  makePositions(rows: number, blocks: number): RowPositions | undefined;
  close(): void;
}

/** Origins of a block that was requested, and read by itself. */
const ORDINARY_READ: BlockOrigin = { read: undefined, isAhead: false, isVisitor: false };
const VISITOR_READ: BlockOrigin = { read: undefined, isAhead: false, isVisitor: true };

class Node extends Queued {
  readonly file: CachedFile;
  /** The block's number, or ~number of a page. */
  readonly number: number;
  content: Block | UnreadBlock;
  /** Read ahead and not requested yet. */
  isAhead: boolean;
  read: SharedRead | undefined;

  constructor(file: CachedFile, number: number, content: Block | UnreadBlock, { read, isAhead }: BlockOrigin) {
    super(bytesOf(content));
    this.file = file;
    this.number = number;
    this.content = content;
    this.isAhead = isAhead;
    this.read = read;
  }

  /** Called at each request but the one that read the block. */
  requested(): void {
    if (this.isAhead) this.isAhead = false;
    else this.used();
  }
}

function bytesOf(content: Block | UnreadBlock): number {
  return OVERHEAD_BYTES + (content instanceof Block ? content.memoryBytes : content.storedBytes);
}

export class BlockCache {
  readonly limitBytes: number;
  readonly rowCache: RowCache | undefined;
  /** For the filters of all files: a read asks several of them for one row. */
  readonly bloomHash = new BloomHash();
  /** Memory for pages that are read to be kept here. */
  readonly pageMemory = new PageMemory();
  /** Only for CachedFile. */
  readonly hits: Counter;
  readonly misses: Counter;
  readonly #metrics: Metrics;
  readonly #files = new Map<string, CachedFile>();
  readonly #queues: EvictionQueues<Node>;
  /** Bytes of evicted blocks in shared reads that still hold a kept block. */
  #deadBytes = 0;
  #hasEvicted = false;
  /** Bytes of the tables of row positions. */
  #positionBytes = 0;
  /** Open cursors over many rows. */
  #scans = 0;

  /**
   * `limitBytes` 0 keeps nothing. `visitorBytes`: the most that visitors take, default a twentieth of the limit, at
   * least 16 MiB. `rowCache` is for the rows of the same files; default none.
   */
  constructor(options: {
    readonly limitBytes: number;
    readonly visitorBytes?: number;
    readonly metrics: Metrics;
    readonly rowCache?: RowCache | undefined;
  }) {
    this.limitBytes = options.limitBytes;
    this.rowCache = options.rowCache;
    this.#metrics = options.metrics;
    this.hits = options.metrics.counter('blockCache.hits');
    this.misses = options.metrics.counter('blockCache.misses');
    this.#queues = new EvictionQueues(options.limitBytes, (node) => this.#onPromoted(node), options.visitorBytes);
  }

  get usedBytes(): number {
    return this.#queues.bytes + this.#deadBytes + this.#positionBytes;
  }

  /** True while all that was read is still kept, visitors aside. Keeping single rows or pages saves nothing then. */
  get keepsAll(): boolean {
    return !this.#hasEvicted && this.limitBytes > 0;
  }

  /**
   * The most that an open scan may read ahead: all together half of the visitors, so that the blocks are still kept
   * when the scans reach them.
   */
  get scanShareBytes(): number {
    assert(this.#scans > 0, 'a scan that reads ahead is open');
    return Math.floor(Math.min(this.limitBytes * MAX_SCAN_SHARE, this.#queues.visitorBytes / (2 * this.#scans)));
  }

  /** Only for SsTable. */
  onScanOpened(): void {
    this.#scans++;
  }

  /** Only for SsTable. */
  onScanClosed(): void {
    assert(this.#scans > 0, 'a scan is closed once');
    this.#scans--;
  }

  /** The cached blocks of a file. Paths are never reused, so all that open a path share its blocks. Close each once. */
  open(path: string): CachedFile {
    let file = this.#files.get(path);
    if (!file) this.#files.set(path, (file = new CachedFile(path, this)));
    file.users++;
    return file;
  }

  /**
   * Only for CachedFile: takes space for a table of row positions. False if there is too little. There are such tables
   * only until the cache evicts for the first time.
   */
  tryReservePositions(bytes: number): boolean {
    const allBytes = this.#positionBytes + bytes;
    if (!this.keepsAll || allBytes > this.limitBytes * MAX_POSITIONS_SHARE || this.usedBytes + bytes > this.limitBytes)
      return false;
    this.#positionBytes = allBytes;
    return true;
  }

  #dropPositions(): void {
    for (const file of this.#files.values()) file.dropPositions();
    this.#positionBytes = 0;
  }

  /** Only for CachedFile: its last user has closed it. */
  release(file: CachedFile, nodes: readonly (Node | undefined)[]): void {
    assert(this.#files.get(file.path) === file, 'the file is one of the cache');
    this.#positionBytes -= file.positions?.sizeBytes ?? 0;
    for (const node of nodes) if (node) this.remove(node);
    this.#files.delete(file.path);
    if (checksInvariants) this.assertConsistent();
  }

  /** Only for CachedFile. */
  remove(node: Node): void {
    this.#queues.remove(node);
    this.#leaveRead(node);
  }

  /** Only for CachedFile. Undefined if the block is too large to be kept. */
  insert(file: CachedFile, number: number, content: Block | UnreadBlock, origin: BlockOrigin): Node | undefined {
    assert(file.users > 0, 'an open file keeps blocks');
    const node = new Node(file, number, content, origin);
    if (!this.#fits(node.bytes)) return undefined;
    this.#makeSpace(node.bytes, origin.isVisitor ? node.bytes : 0);
    if (node.read) node.read.kept++;
    this.#queues.add(node, origin.isVisitor);
    assert(this.usedBytes <= this.limitBytes, 'the block cache keeps within its limit');
    return node;
  }

  /**
   * Only for CachedFile: replaces the node's content by the decoded block. False if the block is too large to be kept.
   */
  replace(node: Node, block: Block, wasCompressed: boolean): boolean {
    assert(!(node.content instanceof Block), 'a block is decoded once');
    if (wasCompressed) this.#leaveRead(node);
    node.content = block;
    const bytes = bytesOf(block);
    this.#queues.resize(node, bytes);
    if (!this.#fits(bytes)) return false;
    this.#makeSpace(0, 0);
    return true;
  }

  /** Recounts the bytes of all kept blocks and of the reads that they share. */
  assertConsistent(): void {
    const keptIn = new Map<SharedRead, number>();
    this.#queues.assertConsistent((node) => {
      assert(this.#files.get(node.file.path) === node.file, 'a kept block belongs to an open file');
      assert(node.file.holds(node), 'a kept block is found in its file');
      if (node.read) keptIn.set(node.read, (keptIn.get(node.read) ?? 0) + 1);
    });
    let deadBytes = 0;
    for (const [read, kept] of keptIn) {
      assert(read.kept === kept, 'a shared read counts its kept blocks');
      deadBytes += read.deadBytes;
    }
    assert(deadBytes === this.#deadBytes, 'dead bytes are those of shared reads with a kept block');
    let positionBytes = 0;
    for (const { positions } of this.#files.values()) positionBytes += positions?.sizeBytes ?? 0;
    assert(positionBytes === this.#positionBytes, 'the cache counts its tables of row positions');
  }

  #fits(bytes: number): boolean {
    return bytes <= this.limitBytes * MAX_SHARE;
  }

  #onPromoted(node: Node): void {
    if (!node.read || !(node.content instanceof Block)) return;
    node.content = node.content.copy();
    this.#leaveRead(node);
  }

  /** The node no longer holds memory of its shared read. */
  #leaveRead(node: Node): void {
    const { read } = node;
    if (!read) return;
    assert(read.kept > 0, 'a shared read counts its kept blocks');
    node.read = undefined;
    read.deadBytes += node.bytes;
    this.#deadBytes += node.bytes;
    if (--read.kept > 0) return;
    this.#deadBytes -= read.deadBytes;
    assert(this.#deadBytes >= 0, 'dead bytes are counted once');
    read.deadBytes = 0;
  }

  /** Makes space for `bytes`, of which `visitorBytes` are of visitors. */
  #makeSpace(bytes: number, visitorBytes: number): void {
    assert(bytes <= this.limitBytes, 'an empty cache has space for the block');
    for (;;) {
      const visitor = this.#queues.evictVisitor(visitorBytes);
      if (visitor === undefined) break;
      this.#onEvicted(visitor);
    }
    // after the visitors: one that is promoted is copied, which takes space
    while (this.usedBytes + bytes > this.limitBytes) {
      this.#hasEvicted = true;
      if (this.#positionBytes > 0) this.#dropPositions();
      else this.#onEvicted(this.#queues.evict());
    }
  }

  #onEvicted(node: Node): void {
    this.#leaveRead(node);
    node.file.onEvicted(node);
    this.#metrics.add('blockCache.evictions');
  }
}

/** The blocks of one file that are in the cache or being read. */
export class CachedFile implements BlockKeeper {
  readonly path: string;
  /** Only for BlockCache. */
  users = 0;
  readonly #cache: BlockCache;
  /** By block number. */
  #nodes: (Node | undefined)[] = [];
  /** A bit for each block that a scan has read. */
  #scanned = new Uint8Array(0);
  readonly #pages = new NumberTable<Node>();
  readonly #loads = new NumberTable<Promise<Block | UnreadBlock>>();
  #positions: RowPositions | undefined;

  constructor(path: string, cache: BlockCache) {
    this.path = path;
    this.#cache = cache;
  }

  get(number: number): Block | undefined {
    const node = this.#nodes[number];
    if (!node) {
      this.#cache.misses.value++;
      return undefined;
    }
    this.#cache.hits.value++;
    node.requested();
    return node.content instanceof Block ? node.content : this.#tryDecode(node, node.content);
  }

  has(number: number): boolean {
    return this.#nodes[number] !== undefined || this.#loads.has(number);
  }

  noteScan(first: number, last: number): boolean {
    assert(first <= last, 'a scan reads a block or more');
    const bytes = (last >> 3) + 1;
    if (bytes > this.#scanned.length) {
      const larger = new Uint8Array(Math.max(bytes, 2 * this.#scanned.length));
      larger.set(this.#scanned);
      this.#scanned = larger;
    }
    let isFirstScan = false;
    for (let number = first; number <= last; number++) {
      const at = number >> 3;
      const bit = 1 << (number & 7);
      isFirstScan ||= (this.#scanned[at]! & bit) === 0;
      this.#scanned[at]! |= bit;
    }
    return isFirstScan;
  }

  keep(number: number, block: Block, isVisitor: boolean): void {
    assert(!this.has(number), 'a block is kept once');
    if (this.users === 0) return;
    const node = this.#cache.insert(this, number, block, isVisitor ? VISITOR_READ : ORDINARY_READ);
    if (node) this.#nodes[number] = node;
  }

  getPage(number: number): Block | undefined {
    const node = this.#pages.get(number);
    if (!node) {
      this.#cache.misses.value++;
      return undefined;
    }
    this.#cache.hits.value++;
    node.used();
    assert(node.content instanceof Block, 'a page is decoded when it is kept');
    return node.content;
  }

  keepPage(number: number, page: Block, read: SharedRead | undefined): void {
    if (this.users === 0 || this.#pages.has(number)) return;
    const origin = read === undefined ? ORDINARY_READ : { read, isAhead: false, isVisitor: false };
    const node = this.#cache.insert(this, ~number, page, origin);
    if (node) this.#pages.set(number, node);
  }

  async load(number: number, read: () => Promise<Block | UnreadBlock>, origin = ORDINARY_READ): Promise<Block> {
    const kept = this.#nodes[number];
    if (kept) return this.#decode(kept);
    const inFlight = this.#loads.get(number);
    const load = inFlight ?? this.#read(number, read, origin);
    if (!inFlight) this.#loads.set(number, load);
    const content = await load;
    const node = this.#nodes[number];
    if (node && inFlight) node.requested();
    if (node?.content === content) return this.#decode(node);
    return content instanceof Block ? content : content.decode();
  }

  loadAhead(number: number, read: () => Promise<UnreadBlock>, shared: SharedRead, isVisitor: boolean): void {
    assert(!this.has(number), 'one read of a block is in flight');
    const load = this.#read(number, read, { read: shared, isAhead: true, isVisitor });
    this.#loads.set(number, load);
    load.catch(() => {});
  }

  get positions(): RowPositions | undefined {
    return this.#positions;
  }

  makePositions(rows: number, blocks: number): RowPositions | undefined {
    if (this.#positions !== undefined || this.users === 0) return this.#positions;
    if (!RowPositions.canHold(blocks) || !this.#cache.tryReservePositions(RowPositions.bytesFor(rows)))
      return undefined;
    this.#positions = new RowPositions(rows, blocks);
    return this.#positions;
  }

  /** Only for BlockCache. */
  dropPositions(): void {
    this.#positions = undefined;
  }

  close(): void {
    assert(this.users > 0, `${this.path} was opened`);
    if (--this.users > 0) return;
    this.#cache.release(this, [...this.#nodes, ...this.#pages.values()]);
    this.#nodes = [];
    this.#pages.clear();
    this.#positions = undefined;
  }

  /** Only for BlockCache. */
  holds(node: Node): boolean {
    return (node.number < 0 ? this.#pages.get(~node.number) : this.#nodes[node.number]) === node;
  }

  /** Only for BlockCache. */
  onEvicted(node: Node): void {
    if (node.number < 0) this.#pages.delete(~node.number);
    else this.#nodes[node.number] = undefined;
  }

  /** Undefined if the block is damaged: the load that follows reports how. */
  #tryDecode(node: Node, content: UnreadBlock): Block | undefined {
    try {
      return this.#decodeUnread(node, content);
    } catch {
      return undefined;
    }
  }

  #decode(node: Node): Block {
    return node.content instanceof Block ? node.content : this.#decodeUnread(node, node.content);
  }

  #decodeUnread(node: Node, content: UnreadBlock): Block {
    let block: Block;
    try {
      block = content.decode();
    } catch (error) {
      this.#remove(node);
      throw error;
    }
    if (!this.#cache.replace(node, block, content.isCompressed)) this.#remove(node);
    return block;
  }

  #remove(node: Node): void {
    assert(this.#nodes[node.number] === node, 'the block is kept');
    this.#nodes[node.number] = undefined;
    this.#cache.remove(node);
  }

  async #read(
    number: number,
    read: () => Promise<Block | UnreadBlock>,
    origin: BlockOrigin,
  ): Promise<Block | UnreadBlock> {
    try {
      const content = await read();
      assert(this.#nodes[number] === undefined, 'a block that is being read is not kept yet');
      const node = this.users > 0 ? this.#cache.insert(this, number, content, origin) : undefined;
      if (node) this.#nodes[number] = node;
      return content;
    } finally {
      this.#loads.delete(number);
    }
  }
}
