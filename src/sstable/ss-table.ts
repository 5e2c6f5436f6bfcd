/**
 * An SSTable that is open for reading (paper section 4). Index and Bloom filter are in memory, unless they were evicted
 * for others (cache/index-cache.ts). Blocks come through the block cache, or stay in memory if the locality group is an
 * in-memory one. Format: docs/formats/sstable.md.
 *
 * Invariant: the file never changes, so any number of cursors read it concurrently. Every block is checked when it is
 * read.
 *
 * A block or a page is read synchronously if the file system can, else awaited. The two are written by themselves: the
 * first is the common one and must make no promise (docs/decisions/0048-reads.md).
 */
import { assert, type ByteString, type CorruptionError } from '../base/index.ts';
import { type Clock, type Codecs, type Counter, type FileSystem, type Metrics, Pacer } from '../env/index.ts';
import { type ColumnKey, familyOf, type Layer, type LayerCursor, type RowRangeDeletion } from '../model/index.ts';
import type { Block } from './read/block.ts';
import type { BlockCache, BlockKeeper, UnreadBlock } from './cache/block-cache.ts';
import { CheckedFile } from './format/checked-file.ts';
import type { BlockIndex } from './format/block-index.ts';
import type { BloomFilter } from './format/bloom-filter.ts';
import type { FamilyStatistics } from './format/families.ts';
import { TRAILER_BYTES } from './format/format.ts';
import { FileIndex, type IndexCache } from './cache/index-cache.ts';
import type { MemoryBudget } from './cache/memory-budget.ts';
import type { OwnedResidency } from './cache/residency.ts';
import { NO_PAGE } from './format/page-index.ts';
import type { SsTableProperties } from './format/properties.ts';
import { type CachedRows, copyRow, KeptRowCursor } from './cache/row-cache.ts';
import { SeekTarget } from './format/seek-target.ts';
import { NO_POSITION, type RowPosition } from './read/row-positions.ts';
import { SharedRead } from './read/shared-read.ts';
import { type BlockSource, SsTableCursor } from './read/ss-table-cursor.ts';
import { openFrame } from './read/ss-table-file.ts';
import { type Verification, verifyBlocks } from './verify.ts';

export interface SsTableOptions {
  readonly fileSystem: FileSystem;
  readonly path: string;
  readonly codecs: Codecs;
  readonly cache: BlockCache;
  /**
   * Keeps the blocks in memory from their first use on, within this budget and outside the caches. Reads fail with
   * RESOURCE_EXHAUSTED if they do not fit. Default: the blocks go through `cache`.
   */
  readonly inMemory?: MemoryBudget | undefined;
  /** Decides the same for as long as the file is open, and may change its mind. Default: `inMemory` decides. */
  readonly residency?: OwnedResidency | undefined;
  /** The budget of indexes and Bloom filters. Default: those of this file stay in memory while it is open. */
  readonly indexes?: IndexCache | undefined;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

export interface BlockBoundary {
  /** The first row of a block; blocks inside a row repeat it. */
  readonly row: ByteString;
  /** Bytes of the file before the block. */
  readonly offsetBytes: number;
}

/** What of a file stays in memory while it is open. */
interface Summary {
  readonly sizeBytes: number;
  /** Bytes of all blocks before compression. */
  readonly rawBytes: number;
  readonly blockCount: number;
  readonly properties: SsTableProperties;
  readonly rowRangeDeletions: readonly RowRangeDeletion[];
}

const READ_AHEAD_LIMIT_BYTES = 1024 * 1024;
/** Limit of what is read ahead before compression, as a multiple of its limit as stored. */
const MAX_RAW_TO_STORED = 4;

export class SsTable implements Layer {
  readonly path: string;
  readonly sizeBytes: number;
  readonly properties: SsTableProperties;
  readonly #options: SsTableOptions;
  readonly #file: CheckedFile;
  readonly #summary: Summary;
  readonly #index: FileIndex;
  readonly #bloomSkips: Counter;
  readonly #bloomPasses: Counter;
  /** Where the blocks stay in memory; undefined: they are in the block cache. */
  #memory: MemoryBudget | undefined;
  #blocks: BlockKeeper;
  #rows: CachedRows | undefined;
  readonly #clock: Clock;
  #source: BlockSource;
  #isClosed = false;

  /**
   * Opens the file; reads and checks all but the blocks. CorruptionError if it is damaged, FAILED_PRECONDITION if only
   * a newer program can read it.
   */
  static async open(options: SsTableOptions): Promise<SsTable> {
    const file = new CheckedFile(options.path, options);
    const frame = await openFrame(file, options.codecs.checksum);
    const { footer, index, properties, rowRangeDeletions } = frame;
    const summary = {
      sizeBytes: footer.fileBytes,
      rawBytes: index.rawBytes,
      blockCount: index.length,
      properties,
      rowRangeDeletions,
    };
    return new SsTable(options, file, summary, new FileIndex(file, options.codecs, frame, options.indexes));
  }

  private constructor(options: SsTableOptions, file: CheckedFile, summary: Summary, index: FileIndex) {
    const { path, inMemory, residency, clock, metrics } = options;
    assert(inMemory === undefined || residency === undefined, 'one thing decides whether a file stays in memory');
    this.#options = options;
    this.path = path;
    this.sizeBytes = summary.sizeBytes;
    this.properties = summary.properties;
    this.#file = file;
    this.#summary = summary;
    this.#index = index;
    index.openTable();
    this.#clock = clock;
    this.#bloomSkips = metrics.counter('sstable.bloomSkips');
    this.#bloomPasses = metrics.counter('sstable.bloomPasses');
    this.#memory = inMemory ?? residency?.memory;
    this.#blocks = this.#openBlocks();
    this.#rows = this.#openRows();
    this.#source = this.#newSource();
    residency?.add(this);
  }

  #openBlocks(): BlockKeeper {
    const { path, cache } = this.#options;
    if (this.#memory === undefined) return cache.open(path);
    return this.#memory.open(path, this.#summary.rawBytes, () => cache.open(path));
  }

  #openRows(): CachedRows | undefined {
    const { path, cache } = this.#options;
    return this.#memory === undefined ? cache.rowCache?.open(path) : undefined;
  }

  /** What cursors read from. Those that are open when the blocks are moved go on with theirs. */
  #newSource(): BlockSource {
    const { cache, metrics } = this.#options;
    const blocks = this.#blocks;
    const index = this.#index;
    const isInMemory = this.isInMemory;
    return {
      get index() {
        return index.frame?.index;
      },
      loadIndex: () => index.load(),
      readAheadLimitBytes: () =>
        isInMemory ? READ_AHEAD_LIMIT_BYTES : Math.min(READ_AHEAD_LIMIT_BYTES, cache.scanShareBytes),
      cached: (block) => blocks.get(block),
      readNow: (block) => this.#readNow(block, true),
      ofRow: (block, row) => this.#pageOfRow(block, row) ?? blocks.get(block) ?? this.#readNow(block, false),
      loadOfRow: (block, row) => this.#loadOfRow(block, row),
      positionOf: (row) => this.#positionOf(row),
      load: (block, readAheadBytes, backwards) => this.#load(block, readAheadBytes, backwards, true),
      rowFound: (row, number, block, entryAt) => this.#keepRow(row, number, block, entryAt),
      rowMissed: () => {
        if (this.properties.bloomFilter !== 'none') metrics.add('sstable.bloomFalsePasses');
      },
      closed: (isScan) => {
        if (isScan) cache.onScanClosed();
        index.leave();
      },
    };
  }

  /** True while its blocks stay in memory. */
  get isInMemory(): boolean {
    return this.#memory !== undefined;
  }

  /** Only for Residency. */
  move(): void {
    const wanted = this.#options.residency?.memory;
    if (wanted === this.#memory) return;
    const [blocks, rows] = [this.#blocks, this.#rows];
    this.#memory = wanted;
    this.#blocks = this.#openBlocks();
    this.#rows = this.#openRows();
    this.#source = this.#newSource();
    blocks.close();
    rows?.close();
  }

  /** Opens the file once more, without reading: both share index, filter and cached blocks. Close each once. */
  again(): SsTable {
    assert(!this.#isClosed, 'the file is open');
    return new SsTable(this.#options, this.#file, this.#summary, this.#index);
  }

  /** False while index and Bloom filter are evicted: what needs no read is then less exact. */
  get hasIndex(): boolean {
    return this.#index.frame !== undefined;
  }

  /** Reads index and Bloom filter, if they were evicted. They may be evicted again as soon as others are needed. */
  loadIndex(): Promise<void> {
    return this.#index.load();
  }

  get group(): string {
    return this.properties.group;
  }

  /** Undefined if the file has no entries. */
  get firstRow(): ByteString | undefined {
    return this.properties.firstRow;
  }

  get lastRow(): ByteString | undefined {
    return this.properties.lastRow;
  }

  rowRangeDeletions(): readonly RowRangeDeletion[] {
    return this.#summary.rowRangeDeletions;
  }

  /** True when an entry may lie in [start, end). Cheap; while the index is evicted it knows the file's bounds alone. */
  mayContainRows(start: ByteString, end: ByteString | undefined): boolean {
    const { firstRow, lastRow } = this.properties;
    if (firstRow === undefined || lastRow === undefined || lastRow < start || (end !== undefined && end <= firstRow))
      return false;
    const index = this.#index.frame?.index;
    if (index === undefined) return end === undefined || start < end;
    const target = new SeekTarget();
    target.set(start);
    const block = index.lastBefore(target);
    if (block >= 0 && index.compareLastRow(block, start) >= 0) return end === undefined || start < end;
    // no row lies from `start` to the next block's first row
    return block + 1 < index.length && (end === undefined || index.compareFirstRow(block + 1, end) < 0);
  }

  /** Families that have an entry; undefined for files of early versions, which may hold any. */
  get families(): readonly FamilyStatistics[] | undefined {
    return this.properties.families;
  }

  /** False only if the row has no entry. Cheap. */
  mayContainRow(row: ByteString): boolean {
    const { firstRow, lastRow } = this.properties;
    if (firstRow === undefined || lastRow === undefined || row < firstRow || row > lastRow) return false;
    const bloom = this.#bloom();
    return bloom === undefined || this.#countBloom(bloom.mayContainRow(row, this.#options.cache.bloomHash));
  }

  /**
   * False only if the row has no entry that affects the column: neither one of the column itself nor a deletion of its
   * family or of the row. Cheap.
   */
  mayContainColumn(row: ByteString, column: ColumnKey): boolean {
    const { firstRow, lastRow, entries } = this.properties;
    if (firstRow === undefined || lastRow === undefined || row < firstRow || row > lastRow) return false;
    const bloom = this.#bloom();
    if (bloom === undefined) return true;
    const { bloomHash } = this.#options.cache;
    if (bloom.kind === 'row') return this.#countBloom(bloom.mayContainRow(row, bloomHash));
    const may =
      bloom.mayContainColumn(row, column, bloomHash) ||
      (entries.rowDeletion > 0 && bloom.mayContainColumn(row, '', bloomHash)) ||
      (entries.familyDeletion > 0 && bloom.mayContainColumn(row, familyOf(column), bloomHash));
    return this.#countBloom(may);
  }

  /** Undefined while it is evicted, too. */
  #bloom(): BloomFilter | undefined {
    const index = this.#index;
    index.wasUsed = true;
    return index.frame?.bloom;
  }

  #countBloom(may: boolean): boolean {
    (may ? this.#bloomPasses : this.#bloomSkips).value++;
    return may;
  }

  cursor(): LayerCursor {
    assert(!this.#isClosed, 'the file is open');
    this.#index.enter();
    this.#options.cache.onScanOpened();
    return new SsTableCursor(this.#source);
  }

  /** A cursor over this one row. It reads no block that has nothing of the row, and uses the row cache. */
  rowCursor(row: ByteString): LayerCursor {
    assert(!this.#isClosed, 'the file is open');
    const kept = this.#rows?.get(row);
    if (kept) return new KeptRowCursor(row, kept);
    this.#index.enter();
    return new SsTableCursor(this.#source, row);
  }

  get blockCount(): number {
    return this.#summary.blockCount;
  }

  /** Needs the index. */
  firstRowOf(block: number): ByteString {
    return this.#index.inUse.index.firstRow(block);
  }

  /**
   * The first row of each block and the bytes before it: for sampling keys and for finding the middle of a tablet.
   * While the index is evicted, the whole file is one part.
   */
  blockBoundaries(): readonly BlockBoundary[] {
    const index = this.#index.frame?.index;
    if (index === undefined) return this.firstRow === undefined ? [] : [{ row: this.firstRow, offsetBytes: 0 }];
    return Array.from({ length: index.length }, (_, block) => ({
      row: this.firstRowOf(block),
      offsetBytes: index.offset(block),
    }));
  }

  /** First and last row of the block at this offset of the file; undefined if none begins there. Needs the index. */
  rowsAt(offset: number): { readonly first: ByteString; readonly last: ByteString } | undefined {
    const { index } = this.#index.inUse;
    for (let block = 0; block < index.length; block++)
      if (index.offset(block) === offset) return { first: index.firstRow(block), last: index.lastRow(block) };
    return undefined;
  }

  /**
   * Bytes of the blocks that begin in [start, end), and of the block before them: an estimate of the rows' size. While
   * the index is evicted, half of the blocks are taken to lie in a range that does not hold the whole file.
   */
  sizeInRange(start: ByteString, end: ByteString | undefined): number {
    const index = this.#index.frame?.index;
    if (index === undefined) return this.#guessSize(start, end);
    if (index.length === 0 || !this.mayContainRows(start, end)) return 0;
    const target = new SeekTarget();
    target.set(start);
    const first = Math.max(index.lastBefore(target), 0);
    let last = index.length - 1;
    if (end !== undefined) {
      target.set(end);
      last = Math.max(index.lastBefore(target, first), first);
    }
    return endOf(index, last) - index.offset(first);
  }

  #guessSize(start: ByteString, end: ByteString | undefined): number {
    const { firstRow, lastRow } = this;
    if (firstRow === undefined || lastRow === undefined || !this.mayContainRows(start, end)) return 0;
    const isWhole = start <= firstRow && (end === undefined || lastRow < end);
    return Math.ceil(this.sizeBytes / (isWhole ? 1 : 2));
  }

  /**
   * Reads all blocks, not through the cache, and compares checksums, order, index, filter and properties. Throws a
   * CorruptionError at the first difference; or, with `onDamaged`, calls it for every damaged block, and compares the
   * properties only if there is none.
   */
  async verify(onDamaged?: (error: CorruptionError) => void): Promise<Verification> {
    assert(!this.#isClosed, 'the file is open');
    const index = this.#index;
    index.enter();
    try {
      await index.load();
      return await verifyBlocks(
        this.path,
        index.inUse,
        new Pacer(this.#clock),
        this.#options.codecs.checksum,
        (block) => index.decoder.read(block),
        onDamaged,
      );
    } finally {
      index.leave();
    }
  }

  /** Releases its blocks and rows in memory. Open cursors go on working. Call it once. */
  close(): void {
    assert(!this.#isClosed, 'a file is closed once');
    this.#blocks.close();
    this.#rows?.close();
    this.#isClosed = true;
    this.#options.residency?.delete(this);
    this.#index.closeTable();
  }

  /**
   * The page that holds all that the block has of the row, read instead of the block to save memory; NO_PAGE for the
   * whole block. As long as all blocks fit into memory, whole blocks fill it soonest; a block that is in memory or
   * being read needs no further read.
   */
  #findPage(block: number, row: ByteString): number {
    if (this.#options.cache.keepsAll || this.isInMemory || this.#blocks.has(block)) return NO_PAGE;
    return this.#index.inUse.pages?.find(block, row) ?? NO_PAGE;
  }

  #pageOfRow(block: number, row: ByteString): Block | undefined {
    const number = this.#findPage(block, row);
    if (number === NO_PAGE) return undefined;
    const kept = this.#blocks.getPage(number);
    if (kept !== undefined) return kept;
    const { pageMemory } = this.#options.cache;
    const page = this.#index.decoder.readPageNow(this.#index.inUse.pages!.extent(block, number), pageMemory);
    if (page !== undefined) this.#blocks.keepPage(number, page, pageMemory.read);
    return page;
  }

  /** Like `#pageOfRow`, or else the block, if the read has to be awaited. */
  async #loadOfRow(block: number, row: ByteString): Promise<Block> {
    const number = this.#findPage(block, row);
    if (number === NO_PAGE) return this.#load(block, 0, false, false);
    const index = this.#index;
    // the cursor may be closed before the page is read
    index.enter();
    try {
      const page = await index.decoder.readPage(index.inUse.pages!.extent(block, number));
      if (page === undefined) return await this.#load(block, 0, false, false);
      this.#blocks.keepPage(number, page, undefined);
      return page;
    } finally {
      index.leave();
    }
  }

  #readNow(block: number, isScan: boolean): Block | undefined {
    if (this.isInMemory || this.#blocks.has(block)) return undefined;
    const content = this.#index.decoder.readNow(block);
    if (content !== undefined) this.#blocks.keep(block, content, isScan && this.#blocks.noteScan(block, block));
    return content;
  }

  /**
   * Reads the block, and with the same read its neighbours in the cursor's direction that fit and are not in memory.
   * Each is checked and kept on its own.
   */
  #load(wanted: number, readAheadBytes: number, backwards: boolean, isScan: boolean): Promise<Block> {
    const { decoder } = this.#index;
    const { index } = this.#index.inUse;
    const blocks = this.#blocks;
    if (blocks.has(wanted)) return blocks.load(wanted, () => decoder.read(wanted));
    const [first, last] = this.#span(wanted, readAheadBytes, backwards);
    const isVisitor = isScan && blocks.noteScan(first, last);
    if (first === last) {
      const origin = { read: undefined, isAhead: false, isVisitor };
      return blocks.load(wanted, () => decoder.read(wanted), origin);
    }
    assert(first === wanted || last === wanted, 'neighbours lie on one side of the block');
    const from = index.offset(first);
    const range = this.#file.read(from, endOf(index, last) - from);
    const stored = async (block: number): Promise<Buffer> =>
      (await range).subarray(index.offset(block) - from, endOf(index, block) - from);
    const read = new SharedRead();
    const origin = { read: index.isCompressed(wanted) ? undefined : read, isAhead: false, isVisitor };
    const load = blocks.load(wanted, async () => decoder.decode(wanted, await stored(wanted)), origin);
    const unread = (block: number, bytes: Buffer): UnreadBlock => ({
      storedBytes: bytes.length,
      isCompressed: index.isCompressed(block),
      decode: () => decoder.decode(block, bytes),
    });
    for (let block = first; block <= last; block++)
      if (block !== wanted) blocks.loadAhead(block, async () => unread(block, await stored(block)), read, isVisitor);
    return load;
  }

  /**
   * The blocks to read with the wanted one: neighbours that are not in memory, within `readAheadBytes` together as
   * stored.
   */
  #span(wanted: number, readAheadBytes: number, backwards: boolean): [first: number, last: number] {
    const { index } = this.#index.inUse;
    const step = backwards ? -1 : 1;
    let end = wanted;
    let rawBytes = index.rawLengthBytes(wanted);
    for (let next = wanted + step; next >= 0 && next < index.length && !this.#blocks.has(next); next += step) {
      rawBytes += index.rawLengthBytes(next);
      const storedBytes = backwards
        ? endOf(index, wanted) - index.offset(next)
        : endOf(index, next) - index.offset(wanted);
      if (storedBytes > readAheadBytes || rawBytes > readAheadBytes * MAX_RAW_TO_STORED) break;
      end = next;
    }
    return backwards ? [end, wanted] : [wanted, end];
  }

  /**
   * Keeps a row that was found in the row cache, if it is requested often, lies in one block, and not all blocks fit
   * into memory.
   */
  #keepRow(row: ByteString, number: number, block: Block, entryAt: number): void {
    if (this.#options.cache.keepsAll) return this.#notePositions(number, block);
    if (!this.#rows?.wants(row)) return;
    const { index } = this.#index.inUse;
    const copy = copyRow(row, block, entryAt);
    if (!copy) return;
    if (copy.isLast && number + 1 < index.length && index.compareFirstRow(number + 1, row) === 0) return;
    this.#rows.add(row, copy.block);
  }

  #positionOf(row: ByteString): RowPosition {
    const { positions } = this.#blocks;
    if (positions === undefined) return NO_POSITION;
    const { bloomHash } = this.#options.cache;
    bloomHash.row(row);
    return positions.find(bloomHash);
  }

  /** Notes the positions of the block's rows, once a second row was searched for and found there. */
  #notePositions(number: number, block: Block): void {
    if (block.rowsFound === 2 || ++block.rowsFound < 2) return;
    const { index } = this.#index.inUse;
    const positions = this.#blocks.makePositions(this.properties.rows, index.length);
    if (positions === undefined) return;
    const continues = number > 0 && index.compareLastRow(number - 1, index.firstRow(number)) === 0;
    positions.add(number, block, continues);
  }
}

/** Offset in the file after the block's trailer. */
function endOf(index: BlockIndex, block: number): number {
  return index.offset(block) + index.lengthBytes(block) + TRAILER_BYTES;
}
