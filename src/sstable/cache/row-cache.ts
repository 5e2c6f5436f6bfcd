/**
 * The scan cache (paper section 6): what SSTables hold of single rows, so that a hot row among cold ones takes its own size in memory and
 * not that of its block. A row as found in one file never changes, so nothing is ever invalidated: it goes when its file is closed, or makes
 * way as blocks of the block cache do.
 *
 * A row is kept as a block of its own that is made when it is asked for the second time, as far as a table of the rows last asked for remembers:
 * reads at random pay next to nothing for it.
 *
 * Invariant: the memory of all rows is within the budget; a kept row is complete.
 */
import { assert, type ByteString, type Int64 } from '../../base/index.ts';
import type { Counter, Metrics } from '../../env/index.ts';
import { type ColumnKey, CursorState, type EntryKind, type LayerCursor } from '../../model/index.ts';
import { Block } from '../read/block.ts';
import { BlockBuilder } from '../write/block-builder.ts';
import { type BlockCursor, giveBlockCursor, takeBlockCursor } from '../read/block-cursor.ts';
import { BloomHash } from '../format/bloom-hash.ts';
import { EvictionQueues, Queued } from './eviction.ts';
import { SeekTarget } from '../format/seek-target.ts';

/** A row that takes more is left to the block cache. */
const MAX_ROW_BYTES = 16 * 1024;
/** What keeping a row costs beside its bytes. */
const OVERHEAD_BYTES = 400;
/**
 * For so many bytes of the budget one of the rows last asked for is remembered: about as many as find room. One that comes again later than that would
 * most often be gone before it comes a third time, and keeping it costs as much as finding it.
 */
const BYTES_A_REMEMBERED_ROW = 1024;
/** Most and fewest rows that are remembered: powers of two. */
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
  /** For CachedRows alone. */
  readonly hits: Counter;
  readonly misses: Counter;
  readonly #files = new Map<string, CachedRows>();
  readonly #queues: EvictionQueues<KeptRow>;
  /** By a hash of the row, another one of it; as many as a power of two. */
  readonly #asked: Int32Array;
  readonly #hash = new BloomHash();

  constructor(options: { readonly limitBytes: number; readonly metrics: Metrics }) {
    this.limitBytes = options.limitBytes;
    this.hits = options.metrics.counter('rowCache.hits');
    this.misses = options.metrics.counter('rowCache.misses');
    this.#queues = new EvictionQueues(options.limitBytes);
    this.#asked = new Int32Array(rememberedRows(options.limitBytes));
  }

  get usedBytes(): number {
    return this.#queues.bytes;
  }

  /** The rows of a file. All that open a path share them. Each must be closed. */
  open(path: string): CachedRows {
    let file = this.#files.get(path);
    if (!file) this.#files.set(path, (file = new CachedRows(path, this)));
    file.users++;
    return file;
  }

  /** For CachedRows alone: notes that the row was asked for; whether it was before. */
  isAskedAgain(row: ByteString): boolean {
    if (this.limitBytes === 0) return false;
    this.#hash.row(row);
    const { first, second } = this.#hash;
    const at = first & (this.#asked.length - 1);
    if (this.#asked[at] === second) return true;
    this.#asked[at] = second;
    return false;
  }

  /** For CachedRows alone. */
  insert(kept: KeptRow): boolean {
    if (kept.bytes > this.limitBytes) return false;
    while (this.#queues.bytes + kept.bytes > this.limitBytes) {
      const evicted = this.#queues.evict();
      evicted.rows.evicted(evicted.row);
    }
    this.#queues.add(kept);
    return true;
  }

  /** For CachedRows alone. */
  forget(file: CachedRows, rows: Iterable<KeptRow>): void {
    for (const kept of rows) this.#queues.remove(kept);
    this.#files.delete(file.path);
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
  /** For RowCache alone. */
  users = 0;
  readonly #cache: RowCache;
  readonly #rows = new Map<ByteString, KeptRow>();

  constructor(path: string, cache: RowCache) {
    this.path = path;
    this.#cache = cache;
  }

  /** The row's entries, where they are kept. Counts a hit or a miss. */
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

  /** Whether the row is worth keeping. To be asked once a read. */
  wants(row: ByteString): boolean {
    return this.users > 0 && !this.#rows.has(row) && this.#cache.isAskedAgain(row);
  }

  add(row: ByteString, block: Block): void {
    const kept = new KeptRow(this, row, block);
    if (this.#cache.insert(kept)) this.#rows.set(row, kept);
  }

  close(): void {
    assert(this.users > 0, `${this.path} was opened`);
    if (--this.users > 0) return;
    this.#cache.forget(this, this.#rows.values());
    this.#rows.clear();
  }

  /** For RowCache alone. */
  evicted(row: ByteString): void {
    this.#rows.delete(row);
  }
}

export interface RowCopy {
  readonly block: Block;
  /** The row's entries are the last of the block they come from. */
  readonly isLast: boolean;
}

/** Used again and again: the buffers of one made for each row would cost as much as its bytes do. */
let builder: BlockBuilder | undefined;

/** The row that begins at `entryAt` of the block, as a block of its own. Undefined where it is too large to be kept. */
export function copyRow(row: ByteString, block: Block, entryAt: number): RowCopy | undefined {
  const from = takeBlockCursor();
  try {
    from.open(block);
    from.seekEntry(entryAt);
    const copy = (builder ??= new BlockBuilder(MAX_ROW_BYTES));
    copy.clear();
    let goesOn = true;
    while (goesOn && from.isIn(row)) {
      if (copy.sizeWith(from) > MAX_ROW_BYTES) return undefined;
      copy.add(from);
      goesOn = from.next();
    }
    const encoded = copy.end();
    const bytes = Buffer.allocUnsafeSlow(encoded.length);
    bytes.set(encoded);
    return { block: new Block(block.file, block.offset, bytes), isLast: !goesOn };
  } finally {
    giveBlockCursor(from);
  }
}

/** The cursor over a kept row: never in need of a load. */
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
    this.#begin(row <= this.row);
  }

  seekRowBefore(row: ByteString | undefined): void {
    this.#begin(row === undefined || this.row < row);
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

  #begin(isThere: boolean): void {
    if (!isThere) return this.#end();
    this.#open.open(this.#block);
    this.#open.next();
    this.state = CursorState.ready;
  }

  #end(): void {
    this.state = CursorState.done;
  }
}
