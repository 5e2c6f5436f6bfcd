/**
 * The block cache (paper section 6): blocks read from the file system, within a budget of bytes that all open SSTables share. They are
 * kept ready for use, that is decompressed; only a block that was read ahead of a cursor is checked and decompressed when it is first asked
 * for, so that reading ahead makes no long step and what is never reached costs nothing.
 *
 * Which block makes way is told by `eviction.ts`: a scan, which asks for each block once, passes through probation. A block that was
 * read ahead is first asked for by that same scan, so its first hit does not count.
 *
 * Blocks that came with one large read share its memory, which spares a scan a copy. A block that leaves probation for the main part is copied out
 * of it; what the shared memory holds beyond the blocks that are kept in it counts as used until the last of them goes.
 *
 * Pages of blocks (page-index.ts) are kept beside blocks, as if they were such; in memory that several share, too.
 *
 * Invariants: the memory of all kept blocks is within the budget; a block above 1/8 of it is not kept; of the same block
 * at most one read is in flight.
 */
import { assert, NumberTable } from '../../base/index.ts';
import type { Counter, Metrics } from '../../env/index.ts';
import { Block } from '../read/block.ts';
import { EvictionQueues, Queued } from './eviction.ts';
import { PageMemory } from '../read/page-memory.ts';
import type { RowCache } from './row-cache.ts';
import type { SharedRead } from '../read/shared-read.ts';

const MAX_SHARE = 1 / 8;
/** What keeping a block costs beside its bytes. */
const OVERHEAD_BYTES = 256;

/** A block that was read, and neither checked nor decoded yet. */
export interface UnreadBlock {
  /** As stored. */
  readonly storedBytes: number;
  /** The block will not lie in the memory that was read. */
  readonly isCompressed: boolean;
  decode(): Block;
}

/** How a block was read: with others, and whether anybody has asked for it. */
export interface BlockOrigin {
  readonly read: SharedRead | undefined;
  readonly isAhead: boolean;
}

/** Where an open file's blocks are kept: the cache, or memory that is theirs alone. Blocks go by their number in the file. */
export interface BlockKeeper {
  /** The block, where it is in memory. Counts a hit or a miss. */
  get(block: number): Block | undefined;
  /** Whether the block is in memory or on its way. Counts nothing. */
  has(block: number): boolean;
  /** The block from memory, from a read already in flight, or by `read`; then it is kept. Counts nothing. */
  load(block: number, read: () => Promise<Block | UnreadBlock>, origin?: BlockOrigin): Promise<Block>;
  /** As `load` for a block that nobody waits for: it is kept as it was read. What fails, fails where the block is asked for. */
  loadAhead(block: number, read: () => Promise<UnreadBlock>, shared: SharedRead): void;
  close(): void;
}

const ALONE: BlockOrigin = { read: undefined, isAhead: false };

class Node extends Queued {
  readonly file: CachedFile;
  /** The block's number, or ~number of a page. */
  readonly number: number;
  content: Block | UnreadBlock;
  /** Nobody has asked for it yet. */
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
}

function bytesOf(content: Block | UnreadBlock): number {
  return OVERHEAD_BYTES + (content instanceof Block ? content.memoryBytes : content.storedBytes);
}

export class BlockCache {
  readonly limitBytes: number;
  readonly rowCache: RowCache | undefined;
  /** For whoever reads pages that are to be kept here. */
  readonly pageMemory = new PageMemory();
  /** For CachedFile alone. */
  readonly hits: Counter;
  readonly misses: Counter;
  readonly #metrics: Metrics;
  readonly #files = new Map<string, CachedFile>();
  readonly #queues: EvictionQueues<Node>;
  /** In shared reads, beside the blocks that are kept. */
  #deadBytes = 0;
  /** Whether blocks have had to make way: then memory is short. */
  #hasEvicted = false;

  /** `limitBytes` 0 keeps nothing. `rowCache`, default none, is for the rows of the same files. */
  constructor(options: {
    readonly limitBytes: number;
    readonly metrics: Metrics;
    readonly rowCache?: RowCache | undefined;
  }) {
    this.limitBytes = options.limitBytes;
    this.rowCache = options.rowCache;
    this.#metrics = options.metrics;
    this.hits = options.metrics.counter('blockCache.hits');
    this.misses = options.metrics.counter('blockCache.misses');
    this.#queues = new EvictionQueues(options.limitBytes, (node) => this.#promoted(node));
  }

  get usedBytes(): number {
    return this.#queues.bytes + this.#deadBytes;
  }

  /** Whether it keeps all that was read so far: then rows kept by themselves save nothing. */
  get keepsAll(): boolean {
    return !this.#hasEvicted && this.limitBytes > 0;
  }

  /** The cached blocks of a file. Paths are never used again, so all that open a path share them. Each must be closed. */
  open(path: string): CachedFile {
    let file = this.#files.get(path);
    if (!file) this.#files.set(path, (file = new CachedFile(path, this)));
    file.users++;
    return file;
  }

  /** For CachedFile alone: the file is closed. */
  forget(file: CachedFile, nodes: readonly (Node | undefined)[]): void {
    for (const node of nodes) if (node) this.drop(node);
    this.#files.delete(file.path);
  }

  /** For CachedFile alone. */
  drop(node: Node): void {
    this.#queues.remove(node);
    this.#leaveRead(node);
  }

  /** For CachedFile alone. Undefined where the block is too large to be kept. */
  insert(file: CachedFile, number: number, content: Block | UnreadBlock, origin: BlockOrigin): Node | undefined {
    const node = new Node(file, number, content, origin);
    if (!this.#fits(node.bytes)) return undefined;
    this.#makeRoom(node.bytes);
    if (node.read) node.read.kept++;
    this.#queues.add(node);
    return node;
  }

  /** For CachedFile alone: the node's block was decoded. False where it is too large to be kept. */
  decoded(node: Node, block: Block, wasCompressed: boolean): boolean {
    if (wasCompressed) this.#leaveRead(node);
    node.content = block;
    const bytes = bytesOf(block);
    this.#queues.resize(node, bytes);
    if (!this.#fits(bytes)) return false;
    this.#makeRoom(0);
    return true;
  }

  #fits(bytes: number): boolean {
    return bytes <= this.limitBytes * MAX_SHARE;
  }

  #promoted(node: Node): void {
    if (!node.read || !(node.content instanceof Block)) return;
    node.content = node.content.copy();
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
    while (this.usedBytes + bytes > this.limitBytes) {
      const node = this.#queues.evict();
      this.#hasEvicted = true;
      this.#leaveRead(node);
      node.file.evicted(node.number);
      this.#metrics.add('blockCache.evictions');
    }
  }
}

/** The blocks of one file that are in the cache or on their way. */
export class CachedFile implements BlockKeeper {
  readonly path: string;
  /** For BlockCache alone. */
  users = 0;
  readonly #cache: BlockCache;
  /** By number. */
  #nodes: (Node | undefined)[] = [];
  readonly #pages = new NumberTable<Node>();
  readonly #loads = new NumberTable<Promise<Block | UnreadBlock>>();

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
    if (node.isAhead) node.isAhead = false;
    else node.used();
    return node.content instanceof Block ? node.content : this.#tryDecode(node, node.content);
  }

  has(number: number): boolean {
    return this.#nodes[number] !== undefined || this.#loads.has(number);
  }

  async load(number: number, read: () => Promise<Block | UnreadBlock>, origin = ALONE): Promise<Block> {
    const kept = this.#nodes[number];
    if (kept) return this.#decode(kept);
    let load = this.#loads.get(number);
    if (!load) {
      load = this.#read(number, read, origin);
      this.#loads.set(number, load);
    }
    const content = await load;
    const node = this.#nodes[number];
    if (node?.content === content) return this.#decode(node);
    return content instanceof Block ? content : content.decode();
  }

  /** Keeps a block that was read without a promise. It must not be there. */
  keep(number: number, block: Block): void {
    if (this.users === 0) return;
    const node = this.#cache.insert(this, number, block, ALONE);
    if (node) this.#nodes[number] = node;
  }

  /** The page, where it is in memory. Counts a hit or a miss. */
  getPage(number: number): Block | undefined {
    const node = this.#pages.get(number);
    if (!node) {
      this.#cache.misses.value++;
      return undefined;
    }
    this.#cache.hits.value++;
    node.used();
    return node.content as Block;
  }

  /** Keeps a page, unless it is there. `read`: what it shares its memory with. */
  keepPage(number: number, page: Block, read: SharedRead | undefined): void {
    if (this.users === 0 || this.#pages.has(number)) return;
    const node = this.#cache.insert(this, ~number, page, read === undefined ? ALONE : { read, isAhead: false });
    if (node) this.#pages.set(number, node);
  }

  loadAhead(number: number, read: () => Promise<UnreadBlock>, shared: SharedRead): void {
    const load = this.#read(number, read, { read: shared, isAhead: true });
    this.#loads.set(number, load);
    load.catch(() => {});
  }

  close(): void {
    assert(this.users > 0, `${this.path} was opened`);
    if (--this.users > 0) return;
    this.#cache.forget(this, [...this.#nodes, ...this.#pages.values()]);
    this.#nodes = [];
    this.#pages.clear();
  }

  /** For BlockCache alone. */
  evicted(number: number): void {
    if (number < 0) this.#pages.delete(~number);
    else this.#nodes[number] = undefined;
  }

  /** Undefined where it cannot be decoded: the load that follows says why. */
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
      this.#drop(node);
      throw error;
    }
    if (!this.#cache.decoded(node, block, content.isCompressed)) this.#drop(node);
    return block;
  }

  #drop(node: Node): void {
    this.#nodes[node.number] = undefined;
    this.#cache.drop(node);
  }

  async #read(
    number: number,
    read: () => Promise<Block | UnreadBlock>,
    origin: BlockOrigin,
  ): Promise<Block | UnreadBlock> {
    try {
      const content = await read();
      const node = this.users > 0 ? this.#cache.insert(this, number, content, origin) : undefined;
      if (node) this.#nodes[number] = node;
      return content;
    } finally {
      this.#loads.delete(number);
    }
  }
}
