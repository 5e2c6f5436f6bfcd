/**
 * An SSTable that is open for reading (paper section 4): index and Bloom filter are in memory, blocks come through the block cache,
 * or stay in memory where the locality group is an in-memory one.
 * Format: docs/formats/sstable.md.
 *
 * Invariant: nothing of it ever changes, so any number of cursors read it side by side. Every block is checked when it is read.
 */
import type { ByteString, CorruptionError } from '../base/index.ts';
import { type Clock, type Codecs, type Counter, type FileSystem, type Metrics, Pacer } from '../env/index.ts';
import { type ColumnKey, familyOf, type Layer, type LayerCursor, type RowRangeDeletion } from '../model/index.ts';
import type { Block } from './read/block.ts';
import { BlockDecoder } from './read/block-decoder.ts';
import { type BlockCache, type BlockKeeper, CachedFile, type UnreadBlock } from './cache/block-cache.ts';
import { CheckedFile } from './format/checked-file.ts';
import type { FamilyStatistics } from './format/families.ts';
import { TRAILER_BYTES } from './format/format.ts';
import type { MemoryBudget } from './cache/memory-budget.ts';
import type { Page } from './format/page-index.ts';
import type { SsTableProperties } from './format/properties.ts';
import { type CachedRows, copyRow, KeptRowCursor } from './cache/row-cache.ts';
import { SeekTarget } from './format/seek-target.ts';
import { SharedRead } from './read/shared-read.ts';
import { type BlockSource, SsTableCursor } from './read/ss-table-cursor.ts';
import { openFrame, type SsTableFrame } from './read/ss-table-file.ts';
import { type Verification, verifyBlocks } from './verify.ts';

export interface SsTableOptions {
  readonly fileSystem: FileSystem;
  readonly path: string;
  readonly codecs: Codecs;
  readonly cache: BlockCache;
  /** Keeps the blocks in memory from their first use on, within this budget, and not in the caches. RESOURCE_EXHAUSTED for reads where they do not fit. */
  readonly inMemory?: MemoryBudget | undefined;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

export interface BlockBoundary {
  /** The row with which a block begins; blocks inside a row repeat it. */
  readonly row: ByteString;
  /** Bytes of the file before the block. */
  readonly offsetBytes: number;
}

/** What a cursor has read ahead stays below this part of the cache, so that it is still there when the cursor comes. */
const READ_AHEAD_SHARE = 1 / 16;
const READ_AHEAD_LIMIT_BYTES = 1024 * 1024;
/** And before compression it is at most so many times as much. */
const RAW_TO_STORED = 4;

export class SsTable implements Layer {
  readonly path: string;
  readonly sizeBytes: number;
  readonly properties: SsTableProperties;
  readonly #options: SsTableOptions;
  readonly #file: CheckedFile;
  readonly #decoder: BlockDecoder;
  readonly #bloomSkips: Counter;
  readonly #bloomPasses: Counter;
  readonly #frame: SsTableFrame;
  readonly #blocks: BlockKeeper;
  readonly #rows: CachedRows | undefined;
  readonly #clock: Clock;
  readonly #source: BlockSource;
  /** Open ones, which may still decode blocks after the table was closed. */
  #cursors = 0;
  #isClosed = false;

  /** Reads and checks all but the blocks. CorruptionError where it is damaged, FAILED_PRECONDITION where only a newer program can read it. */
  static async open(options: SsTableOptions): Promise<SsTable> {
    const file = new CheckedFile(options.path, options);
    return new SsTable(options, file, await openFrame(file, options.codecs.checksum));
  }

  private constructor(options: SsTableOptions, file: CheckedFile, frame: SsTableFrame) {
    const { path, cache, inMemory, clock, codecs, metrics } = options;
    this.#options = options;
    this.path = path;
    this.sizeBytes = frame.footer.fileBytes;
    this.properties = frame.properties;
    this.#file = file;
    this.#decoder = new BlockDecoder(file, frame.index, codecs, frame.compressionShared);
    this.#frame = frame;
    this.#clock = clock;
    const { index, bloom } = frame;
    const blocks = inMemory ? inMemory.open(path, index.rawBytes) : cache.open(path);
    this.#blocks = blocks;
    this.#rows = inMemory ? undefined : cache.rowCache?.open(path);
    this.#bloomSkips = metrics.counter('sstable.bloomSkips');
    this.#bloomPasses = metrics.counter('sstable.bloomPasses');
    const readAheadLimitBytes = inMemory
      ? READ_AHEAD_LIMIT_BYTES
      : Math.min(READ_AHEAD_LIMIT_BYTES, Math.floor(cache.limitBytes * READ_AHEAD_SHARE));
    this.#source = {
      index,
      readAheadLimitBytes,
      cached: (block) => blocks.get(block),
      readNow: (block) => this.#readNow(block),
      ofRow: (block, row) => this.#pageOfRow(block, row) ?? blocks.get(block) ?? this.#readNow(block),
      loadOfRow: (block, row) => this.#loadOfRow(block, row),
      load: (block, readAheadBytes, backwards) => this.#load(block, readAheadBytes, backwards),
      rowFound: (row, number, block, entryAt) => this.#keepRow(row, number, block, entryAt),
      rowMissed: () => {
        if (bloom) metrics.add('sstable.bloomFalsePasses');
      },
      closed: () => this.#cursorClosed(),
    };
  }

  /** The same file, open once more, without reading anything: both share index, filter and cached blocks, and each is closed by itself. */
  again(): SsTable {
    return new SsTable(this.#options, this.#file, this.#frame);
  }

  get group(): string {
    return this.properties.group;
  }

  /** Undefined where the file has no entries. */
  get firstRow(): ByteString | undefined {
    return this.properties.firstRow;
  }

  get lastRow(): ByteString | undefined {
    return this.properties.lastRow;
  }

  rowRangeDeletions(): readonly RowRangeDeletion[] {
    return this.#frame.rowRangeDeletions;
  }

  mayContainRows(start: ByteString, end: ByteString | undefined): boolean {
    const { firstRow, lastRow } = this.properties;
    if (firstRow === undefined || lastRow === undefined || lastRow < start || (end !== undefined && end <= firstRow))
      return false;
    const { index } = this.#frame;
    const target = new SeekTarget();
    target.set(start);
    const block = index.lastBefore(target);
    if (block >= 0 && index.compareLastRow(block, start) >= 0) return end === undefined || start < end;
    // nothing from `start` to the next block's first row
    return block + 1 < index.length && (end === undefined || index.compareFirstRow(block + 1, end) < 0);
  }

  /** Families that have an entry; undefined in files of early versions, which may hold any. */
  get families(): readonly FamilyStatistics[] | undefined {
    return this.properties.families;
  }

  /** Whether any entry may stand in the row: cheap, never wrong when it says no. */
  mayContainRow(row: ByteString): boolean {
    const { firstRow, lastRow } = this.properties;
    if (firstRow === undefined || lastRow === undefined || row < firstRow || row > lastRow) return false;
    const { bloom } = this.#frame;
    return bloom === undefined || this.#told(bloom.mayContainRow(row));
  }

  /**
   * Whether any entry may stand in the row that bears on the column: one of the column itself, or a deletion of its family or of the whole
   * row. Cheap, never wrong when it says no.
   */
  mayContainColumn(row: ByteString, column: ColumnKey): boolean {
    const { firstRow, lastRow, entries } = this.properties;
    if (firstRow === undefined || lastRow === undefined || row < firstRow || row > lastRow) return false;
    const { bloom } = this.#frame;
    if (bloom === undefined) return true;
    if (bloom.kind === 'row') return this.#told(bloom.mayContainRow(row));
    const may =
      bloom.mayContainColumn(row, column) ||
      (entries.rowDeletion > 0 && bloom.mayContainColumn(row, '')) ||
      (entries.familyDeletion > 0 && bloom.mayContainColumn(row, familyOf(column)));
    return this.#told(may);
  }

  #told(may: boolean): boolean {
    (may ? this.#bloomPasses : this.#bloomSkips).value++;
    return may;
  }

  cursor(): LayerCursor {
    this.#cursors++;
    return new SsTableCursor(this.#source);
  }

  /** A cursor that sees this one row: it reads no block that has nothing of the row, and knows the row cache. */
  rowCursor(row: ByteString): LayerCursor {
    const kept = this.#rows?.get(row);
    if (kept) return new KeptRowCursor(row, kept);
    this.#cursors++;
    return new SsTableCursor(this.#source, row);
  }

  /** For every block its first row and the bytes before it: for sampling keys and finding the middle of a tablet. */
  blockBoundaries(): readonly BlockBoundary[] {
    const { index } = this.#frame;
    return Array.from({ length: index.length }, (_, block) => ({
      row: index.firstRow(block),
      offsetBytes: index.offset(block),
    }));
  }

  /** Bytes of the blocks that begin in [start, end), and of the one before them: about what the rows in the range take. */
  sizeInRange(start: ByteString, end: ByteString | undefined): number {
    const { index } = this.#frame;
    if (index.length === 0 || !this.mayContainRows(start, end)) return 0;
    const target = new SeekTarget();
    target.set(start);
    const first = Math.max(index.lastBefore(target), 0);
    let last = index.length - 1;
    if (end !== undefined) {
      target.set(end);
      last = Math.max(index.lastBefore(target, first), first);
    }
    return this.#endOf(last) - index.offset(first);
  }

  /**
   * Reads all blocks, past the cache, and compares checksums, order, index, filter and properties. CorruptionError at the first that is wrong; with
   * `damaged` that is told of every block that is damaged, and properties are compared only where none is.
   */
  async verify(damaged?: (error: CorruptionError) => void): Promise<Verification> {
    this.#cursors++;
    try {
      return await verifyBlocks(
        this.path,
        this.#frame,
        new Pacer(this.#clock),
        this.#options.codecs.checksum,
        (block) => this.#decoder.read(block),
        damaged,
      );
    } finally {
      this.#cursorClosed();
    }
  }

  /** Gives up its blocks and rows in memory. Cursors that are open go on working. Call once. */
  close(): void {
    this.#blocks.close();
    this.#rows?.close();
    this.#isClosed = true;
    this.#endDecoder();
  }

  /**
   * What the block has of the row, read without the rest of it: where memory is short. Where it is not, whole blocks fill it soonest, and where the
   * block is there, or on its way, nothing need be read.
   */
  #findPage(number: number, row: ByteString): Page | undefined {
    const { pages } = this.#frame;
    if (pages === undefined || this.#options.cache.keepsAll || this.#options.inMemory || this.#blocks.has(number))
      return undefined;
    return pages.find(number, row) ? pages : undefined;
  }

  #pageOfRow(number: number, row: ByteString): Block | undefined {
    const found = this.#findPage(number, row);
    if (found === undefined) return undefined;
    const blocks = this.#blocks as CachedFile;
    const kept = blocks.getPage(found.number);
    if (kept !== undefined) return kept;
    const { pageMemory } = this.#options.cache;
    const page = this.#decoder.readPageNow(found, pageMemory);
    if (page !== undefined) blocks.keepPage(found.number, page, pageMemory.read);
    return page;
  }

  /** As `#pageOfRow`, and else the block, where they must be waited for. */
  async #loadOfRow(number: number, row: ByteString): Promise<Block> {
    const found = this.#findPage(number, row) && this.#frame.pages?.found();
    const page = found && (await this.#decoder.readPage(found));
    if (page === undefined) return this.#load(number, 0, false);
    (this.#blocks as CachedFile).keepPage((found as Page).number, page, undefined);
    return page;
  }

  #readNow(number: number): Block | undefined {
    const blocks = this.#blocks;
    if (!(blocks instanceof CachedFile) || blocks.has(number)) return undefined;
    const block = this.#decoder.readNow(number);
    if (block !== undefined) blocks.keep(number, block);
    return block;
  }

  /** One read for the block and its neighbours in the cursor's direction that fit and are not there yet; each is checked and kept by itself. */
  #load(wanted: number, readAheadBytes: number, backwards: boolean): Promise<Block> {
    const { index } = this.#frame;
    const blocks = this.#blocks;
    if (blocks.has(wanted)) return blocks.load(wanted, () => this.#decoder.read(wanted));
    const [first, last] = this.#span(wanted, readAheadBytes, backwards);
    if (first === last) return blocks.load(wanted, () => this.#decoder.read(wanted));
    const from = index.offset(first);
    const range = this.#file.read(from, this.#endOf(last) - from);
    const stored = async (block: number): Promise<Buffer> =>
      (await range).subarray(index.offset(block) - from, this.#endOf(block) - from);
    const read = new SharedRead();
    const origin = index.isCompressed(wanted) ? undefined : { read, isAhead: false };
    const load = blocks.load(wanted, async () => this.#decoder.decode(wanted, await stored(wanted)), origin);
    for (let block = first; block <= last; block++)
      if (block !== wanted) blocks.loadAhead(block, async () => this.#unread(block, await stored(block)), read);
    return load;
  }

  /** The blocks to be read with the one that is wanted: neighbours that are not there yet, stored within `readAheadBytes` together. */
  #span(wanted: number, readAheadBytes: number, backwards: boolean): [first: number, last: number] {
    const { index } = this.#frame;
    const step = backwards ? -1 : 1;
    let end = wanted;
    let rawBytes = index.rawLengthBytes(wanted);
    for (let next = wanted + step; next >= 0 && next < index.length && !this.#blocks.has(next); next += step) {
      rawBytes += index.rawLengthBytes(next);
      const storedBytes = backwards
        ? this.#endOf(wanted) - index.offset(next)
        : this.#endOf(next) - index.offset(wanted);
      if (storedBytes > readAheadBytes || rawBytes > readAheadBytes * RAW_TO_STORED) break;
      end = next;
    }
    return backwards ? [end, wanted] : [wanted, end];
  }

  #unread(block: number, stored: Buffer): UnreadBlock {
    return {
      storedBytes: stored.length,
      isCompressed: this.#frame.index.isCompressed(block),
      decode: () => this.#decoder.decode(block, stored),
    };
  }

  /** In the file, behind the trailer. */
  #endOf(block: number): number {
    const { index } = this.#frame;
    return index.offset(block) + index.lengthBytes(block) + TRAILER_BYTES;
  }

  /** What was found of a row is kept by itself, if it is asked for often and lies in one block, and where not all blocks find room. */
  #keepRow(row: ByteString, number: number, block: Block, entryAt: number): void {
    if (this.#options.cache.keepsAll || !this.#rows?.wants(row)) return;
    const { index } = this.#frame;
    const copy = copyRow(row, block, entryAt);
    if (!copy) return;
    if (copy.isLast && number + 1 < index.length && index.compareFirstRow(number + 1, row) === 0) return;
    this.#rows.add(row, copy.block);
  }

  #cursorClosed(): void {
    this.#cursors--;
    this.#endDecoder();
  }

  #endDecoder(): void {
    if (this.#isClosed && this.#cursors === 0) this.#decoder.close();
  }
}
