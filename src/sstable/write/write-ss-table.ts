/**
 * Writes an SSTable from any LayerCursor: a frozen memtable's, or a merge of layers. Format: docs/formats/sstable.md.
 *
 * Invariants: entries arrive strictly ascending; the file becomes visible whole or not at all; no slice of the event
 * loop is long, however large a value is; memory is one block, one buffer of about 1 MiB, the samples of a compressor
 * that needs some, the index, and 10 bytes for each key of the Bloom filter.
 */
import { AssertionError, assert, type ByteString, type Int64, isInt64, quote } from '../../base/index.ts';
import type { Compression } from '../../compress/index.ts';
import { type Clock, type Codecs, type FileSystem, Pacer } from '../../env/index.ts';
import {
  type ColumnKey,
  CursorState,
  compareEntries,
  EntryKind,
  type EntryPosition,
  isDeletion,
  type EntryStream,
  type RowRangeDeletion,
} from '../../model/index.ts';
import { BlockBuilder, type EntrySource } from './block-builder.ts';
import { BlockOutput } from './block-output.ts';
import { BloomFilterBuilder, type BloomFilterKind } from '../format/bloom-filter.ts';
import { FileOutput } from './file-output.ts';
import {
  COMPRESSED_BLOCKS,
  encodeDirectory,
  encodeFooter,
  FOOTER_BYTES,
  FORMAT_VERSION,
  type Section,
  SectionName,
  TRAILER_BYTES,
} from '../format/format.ts';
import type { FileLineage, RecordPoint } from '../format/lineage.ts';
import {
  encodeProperties,
  kindName,
  PropertiesCollector,
  type SsTableProperties,
  totalEntries,
} from '../format/properties.ts';
import { encodeRowRangeDeletions } from '../format/row-range-deletions.ts';

export interface SsTableWriteOptions {
  readonly fileSystem: FileSystem;
  readonly path: string;
  readonly codecs: Codecs;
  readonly clock: Clock;
  /** Locality group. */
  readonly group: string;
  /** Default: 64 KiB. A value above it gets a block of its own. */
  readonly blockSizeBytes?: number;
  /** Creation time stored in the file. Default: the time at which it is finished. */
  readonly createdMicros?: number;
  /** Cluster whose writes these are. Default: empty, the one that holds the file. */
  readonly origin?: string;
  /** Default: none. Blocks above 2 MiB are stored uncompressed. */
  readonly compression?: Compression;
  /** Files of the same contents did not shrink: fewer blocks are tried, until one shrinks. Default: false. */
  readonly isCompressionDoubtful?: boolean;
  /** Default: none. */
  readonly bloomFilter?: BloomFilterKind;
  /** The newest record of the commit log that is in the file. Default: not known. */
  readonly newest?: RecordPoint | undefined;
  /** The file's origin, for rebuilding METADATA. Default: not stored. */
  readonly lineage?: FileLineage | undefined;
  /** The newest server timestamp in the tablet. Default: not stored. */
  readonly lastServerMicros?: number | undefined;
  /** Default: a pacer of its own. */
  readonly pacer?: Pacer;
}

export interface WrittenSsTable extends SsTableProperties {
  readonly sizeBytes: number;
}

export const DEFAULT_BLOCK_SIZE_BYTES = 64 * 1024;
/** Value bytes that the pacer counts as one more entry. */
const PACED_BYTES = 4096;
const NO_COMPRESSION: Compression = { kind: 'none' };
const NO_BYTES = Buffer.alloc(0);

/**
 * Writes all entries of `source` (from its beginning; the caller closes it) and the deletions of row ranges. Returns
 * undefined and writes no file if there is neither. On failure no file is left; ALREADY_EXISTS if the path exists.
 */
export async function writeSsTable(
  options: SsTableWriteOptions,
  source: EntryStream,
  rowRangeDeletions: readonly RowRangeDeletion[] = [],
): Promise<WrittenSsTable | undefined> {
  const writer = new SsTableWriter(options);
  try {
    await writer.begin();
    await writer.addAll(source);
    return writer.isEmpty && rowRangeDeletions.length === 0 ? undefined : await writer.finish(rowRangeDeletions);
  } catch (error) {
    await writer.abort();
    throw error;
  }
}

class SsTableWriter {
  readonly #options: SsTableWriteOptions;
  readonly #blockSizeBytes: number;
  readonly #pacer: Pacer;
  readonly #out: FileOutput;
  readonly #block: BlockBuilder;
  readonly #blocks: BlockOutput;
  readonly #bloom: BloomFilterBuilder | undefined;
  readonly #collector = new PropertiesCollector();
  #last: EntryFields | undefined;

  constructor(options: SsTableWriteOptions) {
    this.#options = options;
    this.#blockSizeBytes = options.blockSizeBytes ?? DEFAULT_BLOCK_SIZE_BYTES;
    this.#pacer = options.pacer ?? new Pacer(options.clock);
    this.#out = new FileOutput(options, this.#pacer);
    this.#block = new BlockBuilder(this.#blockSizeBytes);
    const { compression = NO_COMPRESSION, isCompressionDoubtful = false } = options;
    this.#blocks = new BlockOutput(options, compression, isCompressionDoubtful, this.#out, this.#pacer);
    const { bloomFilter = 'none' } = options;
    this.#bloom = bloomFilter === 'none' ? undefined : new BloomFilterBuilder(bloomFilter);
  }

  get isEmpty(): boolean {
    return this.#last === undefined;
  }

  /** Loads LZ4, which takes some milliseconds in a process, in a slice of its own. */
  async begin(): Promise<void> {
    const { compression, codecs } = this.#options;
    if (compression?.kind === 'lz4') codecs.lz4.compress(NO_BYTES);
    if (this.#pacer.due(Number.POSITIVE_INFINITY)) await this.#pacer.pause();
  }

  async addAll(source: EntryStream): Promise<void> {
    source.seekRow('');
    // two that take turns: each entry is compared with the one before
    let entry = new EntryFields(source);
    let next = new EntryFields(source);
    while (source.state !== CursorState.done) {
      if (source.state === CursorState.needsLoad) {
        await source.load();
        continue;
      }
      entry.read();
      const { valueLength } = entry;
      this.#check(entry);
      this.#collector.add(entry, valueLength);
      this.#bloom?.add(entry.row, entry.column);
      const ended = valueLength > this.#blockSizeBytes ? this.#addLargeValue(entry) : this.#add(entry);
      if (ended) await ended;
      if (this.#out.isFull) await this.#out.flush();
      this.#last = entry;
      [entry, next] = [next, entry];
      source.next();
      if (this.#pacer.due(1 + Math.floor(valueLength / PACED_BYTES))) await this.#pacer.pause();
    }
  }

  async finish(rowRangeDeletions: readonly RowRangeDeletion[]): Promise<WrittenSsTable> {
    const ended = this.#endBlock();
    if (ended) await ended;
    const { index, pages } = await this.#blocks.finish();
    const { shared, rawBytes, storedBytes, compressedBlocks, blocks, entries } = this.#blocks;
    assert(this.#out.offset === storedBytes + blocks * TRAILER_BYTES, 'the blocks fill the file up to the sections');
    const {
      group,
      clock,
      codecs,
      createdMicros = clock.nowMicros(),
      origin,
      compression = NO_COMPRESSION,
      newest,
      lineage,
      lastServerMicros,
      path,
      bloomFilter = 'none',
    } = this.#options;
    const properties: SsTableProperties = {
      ...this.#collector.statistics(),
      group,
      createdMicros,
      origin: origin ?? '',
      newest,
      lineage: lineage && { ...lineage, path },
      lastServerMicros,
      compression: { kind: compression.kind, rawBytes, storedBytes },
      bloomFilter,
    };
    assert(totalEntries(properties.entries) === entries, 'properties and blocks count the same entries');
    const parts: [string, Buffer | undefined][] = [
      [SectionName.compressionShared, shared],
      [SectionName.pages, pages],
      [SectionName.bloom, this.#bloom?.finish()],
      [SectionName.index, index],
      [SectionName.properties, encodeProperties(properties)],
      [SectionName.rowRangeDeletions, encodeRowRangeDeletions(rowRangeDeletions)],
    ];
    const sections: Section[] = [];
    for (const [name, bytes] of parts) if (bytes) sections.push({ name, ...(await this.#out.putParts([bytes])) });
    const directory = await this.#out.putParts([encodeDirectory(sections)]);
    const sizeBytes = this.#out.offset + FOOTER_BYTES;
    const requiredFeatures = compressedBlocks > 0 ? COMPRESSED_BLOCKS : 0;
    const footer = {
      directory,
      formatVersion: FORMAT_VERSION,
      requiredFeatures,
      optionalFeatures: 0,
      fileBytes: sizeBytes,
    };
    this.#out.raw(encodeFooter(footer, codecs.checksum));
    assert(this.#out.offset === sizeBytes, 'the file is as long as its footer says');
    await this.#out.close();
    return Object.freeze({ ...properties, sizeBytes });
  }

  abort(): Promise<void> {
    this.#blocks.close();
    return this.#out.abort();
  }

  /** A promise if a block has ended and is not written yet. */
  #add(entry: EntryFields): Promise<void> | undefined {
    const ended =
      this.#block.entries > 0 && this.#block.sizeWith(entry) > this.#blockSizeBytes ? this.#endBlock() : undefined;
    // `put` has copied the block's bytes when it returns
    this.#block.add(entry);
    return ended;
  }

  /** A value above the block size gets a block of its own; a large one is written slice by slice, without a buffer. */
  async #addLargeValue(entry: EntryFields): Promise<void> {
    const ended = this.#endBlock();
    if (ended) await ended;
    this.#block.addHead(entry);
    await this.#blocks.putLargeValue(this.#block, entry.value());
    this.#block.clear();
  }

  #endBlock(): Promise<void> | undefined {
    if (this.#block.entries === 0) return undefined;
    const put = this.#blocks.put(this.#block);
    this.#block.clear();
    return put;
  }

  /** Asserts what readers rely on. */
  #check(entry: EntryFields): void {
    const { kind, timestamp, rangeEnd, valueLength } = entry;
    assert(
      kindName(kind) !== undefined && isInt64(timestamp),
      'an entry has a known kind and a timestamp within int64',
    );
    assert(valueLength === 0 || !isDeletion(kind), 'a deletion has no value');
    assert(
      rangeEnd === undefined || (kind === EntryKind.rangeDeletion && isInt64(rangeEnd)),
      'only a range deletion has an end',
    );
    if (this.#last && compareEntries(this.#last, entry) >= 0) {
      throw new AssertionError(
        `entries for ${this.#options.path} ascend: ${describe(this.#last)} came before ${describe(entry)}`,
      );
    }
  }
}

/** The entry under a cursor. Its fields are read once: each read goes through several cursors. */
class EntryFields implements EntrySource {
  row: ByteString = '';
  column: ColumnKey = '';
  kind: EntryKind = EntryKind.put;
  timestamp: Int64 = 0;
  rangeEnd: Int64 | undefined;
  valueLength = 0;
  readonly #source: EntryStream;

  constructor(source: EntryStream) {
    this.#source = source;
  }

  read(): void {
    const source = this.#source;
    this.row = source.row;
    this.column = source.column;
    this.kind = source.kind;
    this.timestamp = source.timestamp;
    this.rangeEnd = source.rangeEnd;
    this.valueLength = source.valueLength;
  }

  /** Valid until the source moves. */
  value(): Uint8Array {
    return this.#source.value();
  }
}

function describe({ row, column, kind, timestamp }: EntryPosition): string {
  return `(${quote(row)}, ${quote(column)}, ${kindName(kind)}, ${timestamp})`;
}
