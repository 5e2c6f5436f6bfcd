/**
 * The scan cache (paper section 6): caches single rows of SSTables, so that a hot row costs its own size rather than
 * its block's. A row of one file never changes, so nothing is ever invalidated. A row stays until its file is closed or
 * until it is evicted, as blocks of the block cache are.
 *
 * A row is kept from its second request on, as far as a table of the rows requested last remembers the first one. It is
 * kept as a block of its own. Random reads pay little for it.
 *
 * Invariant: the memory of all rows is within the budget; a kept row is complete.
 */
import { assert, type ByteString, checksInvariants, type Int64, Pool } from '../../base/index.ts';
import type { Counter, Metrics } from '../../env/index.ts';
import { type ColumnKey, CursorState, type EntryKind, type LayerCursor } from '../../model/index.ts';
import { Block } from '../read/block.ts';
import { BlockBuilder } from '../write/block-builder.ts';
import { type BlockCursor, giveBlockCursor, takeBlockCursor } from '../read/block-cursor.ts';
import { BloomHash } from '../format/bloom-hash.ts';
import { EvictionQueues, Queued } from './eviction.ts';
import { SeekTarget } from '../format/seek-target.ts';

/** A larger row is left to the block cache. */
const MAX_ROW_BYTES = 16 * 1024;
/** Memory that a kept row takes in addition to its bytes. */
const OVERHEAD_BYTES = 400;
/**
 * Budget bytes for each remembered request: about as many rows are remembered as the budget can hold. A row that is
 * requested again later than that would most often be evicted before its third request.
 */
const BYTES_A_REMEMBERED_ROW = 1024;
/** Bounds of the number of remembered requests: powers of two. */
const MAX_REMEMBERED = 1 << 20;
const MIN_REMEMBERED = 1 << 10;

class KeptRow extends Queued {
  readonly rows: CachedRows;
  readonly row: ByteString;
  readonly block: Block;

  constructor(rows: CachedRows, row: ByteString, block: Block) {
    super(block.memoryBytes + row.length + OVERHEAD_BYTES);
    this.rows = rows;
    this.row = row;
    this.block = block;
  }
}

export class RowCache {
  readonly limitBytes: number;
  /** Only for CachedRows. */
  readonly hits: Counter;
  readonly misses: Counter;
  readonly #files = new Map<string, CachedRows>();
  readonly #queues: EvictionQueues<KeptRow>;
  /** The rows requested last: at one hash of a row, another hash of it. The length is a power of two. */
  readonly #requested: Int32Array;
  readonly #hash = new BloomHash();

  constructor(options: { readonly limitBytes: number; readonly metrics: Metrics }) {
    this.limitBytes = options.limitBytes;
    this.hits = options.metrics.counter('rowCache.hits');
    this.misses = options.metrics.counter('rowCache.misses');
    this.#queues = new EvictionQueues(options.limitBytes);
    this.#requested = new Int32Array(rememberedRows(options.limitBytes));
    assert(Number.isInteger(Math.log2(this.#requested.length)), 'the table of requests is masked by its length');
  }

  get usedBytes(): number {
    return this.#queues.bytes;
  }

  /** The rows of a file. All that open a path share them. Close each once. */
  open(path: string): CachedRows {
    let file = this.#files.get(path);
    if (!file) this.#files.set(path, (file = new CachedRows(path, this)));
    file.users++;
    return file;
  }

  /** Only for CachedRows: notes that the row was requested. True if it was before. */
  isRequestedAgain(row: ByteString): boolean {
    if (this.limitBytes === 0) return false;
    this.#hash.row(row);
    const { first, second } = this.#hash;
    const at = first & (this.#requested.length - 1);
    if (this.#requested[at] === second) return true;
    this.#requested[at] = second;
    return false;
  }

  /** Only for CachedRows. False if the row is too large to be kept. */
  insert(kept: KeptRow): boolean {
    if (kept.bytes > this.limitBytes) return false;
    while (this.usedBytes + kept.bytes > this.limitBytes) {
      const evicted = this.#queues.evict();
      evicted.rows.onEvicted(evicted);
    }
    this.#queues.add(kept);
    assert(this.usedBytes <= this.limitBytes, 'the row cache keeps within its limit');
    return true;
  }

  /** Only for CachedRows: its last user has closed it. */
  release(file: CachedRows, rows: Iterable<KeptRow>): void {
    assert(this.#files.get(file.path) === file, 'the file is one of the cache');
    for (const kept of rows) this.#queues.remove(kept);
    this.#files.delete(file.path);
    if (checksInvariants) this.assertConsistent();
  }

  /** Recounts the bytes of all kept rows. */
  assertConsistent(): void {
    this.#queues.assertConsistent((kept) => {
      assert(this.#files.get(kept.rows.path) === kept.rows, 'a kept row belongs to an open file');
      assert(kept.rows.holds(kept), 'a kept row is found in its file');
    });
  }
}

function rememberedRows(limitBytes: number): number {
  let rows = MIN_REMEMBERED;
  while (rows < MAX_REMEMBERED && rows * BYTES_A_REMEMBERED_ROW < limitBytes) rows *= 2;
  return rows;
}

/** The kept rows of one file. */
export class CachedRows {
  readonly path: string;
  /** Only for RowCache. */
  users = 0;
  readonly #cache: RowCache;
  readonly #rows = new Map<ByteString, KeptRow>();

  constructor(path: string, cache: RowCache) {
    this.path = path;
    this.#cache = cache;
  }

  /** The row's entries, if they are kept. Counts a hit or a miss. */
  get(row: ByteString): Block | undefined {
    const kept = this.#rows.get(row);
    if (!kept) {
      this.#cache.misses.value++;
      return undefined;
    }
    this.#cache.hits.value++;
    kept.used();
    return kept.block;
  }

  /** True if the row is worth keeping. Call it once a read: it notes the request. */
  wants(row: ByteString): boolean {
    return this.users > 0 && !this.#rows.has(row) && this.#cache.isRequestedAgain(row);
  }

  /** Keeps a row that `wants` has approved. */
  add(row: ByteString, block: Block): void {
    assert(this.users > 0 && !this.#rows.has(row), 'a row of an open file is kept once');
    const kept = new KeptRow(this, row, block);
    if (this.#cache.insert(kept)) this.#rows.set(row, kept);
  }

  close(): void {
    assert(this.users > 0, `${this.path} was opened`);
    if (--this.users > 0) return;
    this.#cache.release(this, this.#rows.values());
    this.#rows.clear();
  }

  /** Only for RowCache. */
  holds(kept: KeptRow): boolean {
    return this.#rows.get(kept.row) === kept;
  }

  /** Only for RowCache. */
  onEvicted(kept: KeptRow): void {
    assert(this.#rows.delete(kept.row), 'an evicted row was kept');
  }
}

export interface RowCopy {
  readonly block: Block;
  /** The row's entries are the last of the block they come from. */
  readonly isLast: boolean;
}

/** Builders are reused for their buffers. */
const freeBuilders = new Pool<BlockBuilder>(1);

/**
 * Copies the row that begins at `entryAt` of the block into a block of its own. Undefined if it is too large to be
 * kept.
 */
export function copyRow(row: ByteString, block: Block, entryAt: number): RowCopy | undefined {
  const from = takeBlockCursor();
  const copy = freeBuilders.take() ?? new BlockBuilder(MAX_ROW_BYTES);
  try {
    from.open(block);
    from.seekEntry(entryAt);
    assert(from.isIn(row), 'the row begins at the entry');
    let hasMore = true;
    while (hasMore && from.isIn(row)) {
      if (copy.sizeWith(from) > MAX_ROW_BYTES) return undefined;
      copy.add(from);
      hasMore = from.next();
    }
    const encoded = copy.end();
    const bytes = Buffer.allocUnsafeSlow(encoded.length);
    bytes.set(encoded);
    return { block: new Block(block.file, block.offset, bytes), isLast: !hasMore };
  } finally {
    copy.clear();
    freeBuilders.give(copy);
    giveBlockCursor(from);
  }
}

/** The cursor over a kept row. It never needs a load. */
export class KeptRowCursor implements LayerCursor {
  state: CursorState = CursorState.done;
  readonly row: ByteString;
  readonly #block: Block;
  #at: BlockCursor | undefined = takeBlockCursor();

  constructor(row: ByteString, block: Block) {
    this.row = row;
    this.#block = block;
  }

  get column(): ColumnKey {
    return this.#open.column;
  }

  get kind(): EntryKind {
    return this.#open.kind;
  }

  get timestamp(): Int64 {
    return this.#open.timestamp;
  }

  get rangeEnd(): Int64 | undefined {
    return this.#open.rangeEnd;
  }

  get valueLength(): number {
    return this.#open.valueLength;
  }

  value(): Uint8Array {
    return this.#open.value();
  }

  seekRow(row: ByteString): void {
    this.#enterIf(row <= this.row);
  }

  seekRowBefore(row: ByteString | undefined): void {
    this.#enterIf(row === undefined || this.row < row);
  }

  seekColumn(column: ColumnKey, timestamp?: Int64): void {
    if (this.state !== CursorState.ready) return;
    const target = new SeekTarget();
    target.set(this.row, column, timestamp);
    while (this.#open.isBefore(target)) if (!this.#open.next()) return this.#end();
  }

  next(): void {
    if (this.state === CursorState.ready && !this.#open.next()) this.#end();
  }

  load(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {
    this.#end();
    if (this.#at) giveBlockCursor(this.#at);
    this.#at = undefined;
  }

  get #open(): BlockCursor {
    assert(this.#at, 'the cursor is open');
    return this.#at;
  }

  /** To the row's first entry, if the row lies in the direction of the seek. */
  #enterIf(isAhead: boolean): void {
    if (!isAhead) return this.#end();
    this.#open.open(this.#block);
    assert(this.#open.next(), 'a kept row has an entry');
    this.state = CursorState.ready;
  }

  #end(): void {
    this.state = CursorState.done;
  }
}
