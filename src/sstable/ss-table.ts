/**
 * An SSTable that is open for reading (paper section 4): its index is in memory, its blocks come through the block cache.
 * Format: docs/formats/sstable.md.
 *
 * Invariant: nothing of it ever changes, so any number of cursors read it side by side. Every block is checked when it is read.
 */
import type { ByteString } from '../base/index.ts';
import { type Clock, type Codecs, type FileSystem, type Metrics, Pacer } from '../env/index.ts';
import type { Layer, LayerCursor, RowRangeDeletion } from '../model/index.ts';
import { Block } from './block.ts';
import { type BlockCache, type CachedFile, SharedRead } from './block-cache.ts';
import { CheckedFile } from './checked-file.ts';
import { TRAILER_BYTES } from './format.ts';
import type { SsTableProperties } from './properties.ts';
import { SeekTarget } from './seek-target.ts';
import { type BlockSource, SsTableCursor } from './ss-table-cursor.ts';
import { openFrame, type SsTableFrame } from './ss-table-file.ts';
import { type Verification, verifyBlocks } from './verify.ts';

export interface SsTableOptions {
  readonly fileSystem: FileSystem;
  readonly path: string;
  readonly codecs: Codecs;
  readonly cache: BlockCache;
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

export class SsTable implements Layer {
  readonly path: string;
  readonly sizeBytes: number;
  readonly properties: SsTableProperties;
  readonly #file: CheckedFile;
  readonly #frame: SsTableFrame;
  readonly #cached: CachedFile;
  readonly #clock: Clock;
  readonly #source: BlockSource;

  /** Reads and checks all but the blocks. CorruptionError where it is damaged, FAILED_PRECONDITION where only a newer program can read it. */
  static async open(options: SsTableOptions): Promise<SsTable> {
    const file = new CheckedFile(options.path, options);
    return new SsTable(options, file, await openFrame(file, options.codecs.checksum));
  }

  private constructor({ path, cache, clock }: SsTableOptions, file: CheckedFile, frame: SsTableFrame) {
    this.path = path;
    this.sizeBytes = frame.footer.fileBytes;
    this.properties = frame.properties;
    this.#file = file;
    this.#frame = frame;
    this.#clock = clock;
    const cached = cache.open(path);
    this.#cached = cached;
    const { index } = frame;
    this.#source = {
      index,
      readAheadLimitBytes: Math.min(READ_AHEAD_LIMIT_BYTES, Math.floor(cache.limitBytes * READ_AHEAD_SHARE)),
      cached: (block) => cached.get(index.offset(block)),
      load: (block, readAheadBytes) => this.#load(block, readAheadBytes),
    };
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
    const { index } = this.#frame;
    const target = new SeekTarget();
    target.set(start);
    const block = index.lastBefore(target);
    if (block >= 0 && index.compareLastRow(block, start) >= 0) return end === undefined || start < end;
    // nothing from `start` to the next block's first row
    return block + 1 < index.length && (end === undefined || index.compareFirstRow(block + 1, end) < 0);
  }

  cursor(): LayerCursor {
    return new SsTableCursor(this.#source);
  }

  /** For every block its first row and the bytes before it: for sampling keys and finding the middle of a tablet. */
  blockBoundaries(): readonly BlockBoundary[] {
    const { index } = this.#frame;
    return Array.from({ length: index.length }, (_, block) => ({ row: index.firstRow(block), offsetBytes: index.offset(block) }));
  }

  /** Reads all blocks, past the cache, and compares checksums, order, index and properties. CorruptionError at the first that is wrong. */
  verify(): Promise<Verification> {
    return verifyBlocks(this.path, this.#frame, new Pacer(this.#clock), (block) => this.#readBlock(block));
  }

  /** Gives up its blocks in the cache. Cursors that are open go on working. Call once. */
  close(): void {
    this.#cached.close();
  }

  async #readBlock(block: number): Promise<Block> {
    const extent = this.#frame.index.extent(block);
    return new Block(this.path, extent.offset, await this.#file.readChecked(extent));
  }

  /** One read for the block and those after it that fit and are not there yet; each is checked and kept by itself. */
  #load(first: number, readAheadBytes: number): Promise<Block> {
    const { index } = this.#frame;
    const from = index.offset(first);
    const end = (block: number): number => index.offset(block) + index.lengthBytes(block) + TRAILER_BYTES;
    if (this.#cached.has(from)) return this.#cached.load(from, () => this.#readBlock(first));
    let last = first;
    while (last + 1 < index.length && end(last + 1) - from <= readAheadBytes && !this.#cached.has(index.offset(last + 1))) last++;
    if (last === first) return this.#cached.load(from, () => this.#readBlock(first));
    const range = this.#file.read(from, end(last) - from);
    const part = async (block: number): Promise<Block> => {
      const extent = index.extent(block);
      const at = extent.offset - from;
      return new Block(this.path, extent.offset, this.#file.check(extent, (await range).subarray(at, at + extent.lengthBytes + TRAILER_BYTES)));
    };
    const read = new SharedRead();
    const load = this.#cached.load(from, () => part(first), { read, isAhead: false });
    for (let block = first + 1; block <= last; block++) {
      // what was only read ahead fails where it is asked for
      this.#cached.load(index.offset(block), () => part(block), { read, isAhead: true }).catch(() => {});
    }
    return load;
  }
}
