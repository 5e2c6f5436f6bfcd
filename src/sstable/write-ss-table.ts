/**
 * Writes an SSTable from any LayerCursor: a frozen memtable's, or a merge of layers. Format: docs/formats/sstable.md.
 *
 * Invariants: entries arrive strictly ascending; the file becomes visible whole or not at all; no step is long, however large a value
 * is; memory is one block, one buffer of about 1 MiB and the index, whatever the size of the file.
 */
import { AssertionError, assert, isInt64, quote } from '../base/index.ts';
import { type Clock, type Codecs, type FileSystem, type FileWriter, Pacer } from '../env/index.ts';
import { CursorState, compareEntries, EntryKind, type EntryPosition, isDeletion, type LayerCursor, type RowRangeDeletion } from '../model/index.ts';
import { BlockBuilder } from './block-builder.ts';
import { BlockIndexBuilder } from './block-index.ts';
import { ByteWriter } from './byte-writer.ts';
import { SLICE_BYTES } from './checked-file.ts';
import { CODEC_NONE, type Extent, encodeDirectory, encodeFooter, FOOTER_BYTES, FORMAT_VERSION, type Section, SectionName, TRAILER_BYTES } from './format.ts';
import { encodeProperties, kindName, PropertiesCollector, type SsTableProperties } from './properties.ts';
import { encodeRowRangeDeletions } from './row-range-deletions.ts';

export interface SsTableWriteOptions {
  readonly fileSystem: FileSystem;
  readonly path: string;
  readonly codecs: Codecs;
  readonly clock: Clock;
  /** Locality group. */
  readonly group: string;
  /** Default: 64 KiB. A value above it gets a block of its own. */
  readonly blockSizeBytes?: number;
  /** Default: empty, the cluster that holds the file. */
  readonly origin?: string;
  /** Default: one of its own. */
  readonly pacer?: Pacer;
}

export interface WrittenSsTable extends SsTableProperties {
  readonly sizeBytes: number;
}

export const DEFAULT_BLOCK_SIZE_BYTES = 64 * 1024;
/** Bytes of value that count as one more entry for the pacer. */
const PACED_BYTES = 4096;

/**
 * Writes all entries of `source` (which may stand anywhere; the caller closes it) and the deletions of row ranges. Undefined, and no
 * file, where there is neither. On failure nothing is left behind; ALREADY_EXISTS where the path is taken.
 */
export async function writeSsTable(
  options: SsTableWriteOptions,
  source: LayerCursor,
  rowRangeDeletions: readonly RowRangeDeletion[] = [],
): Promise<WrittenSsTable | undefined> {
  const writer = new SsTableWriter(options);
  try {
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
  readonly #index = new BlockIndexBuilder();
  readonly #collector = new PropertiesCollector();
  #last: EntryPosition | undefined;

  constructor(options: SsTableWriteOptions) {
    this.#options = options;
    this.#blockSizeBytes = options.blockSizeBytes ?? DEFAULT_BLOCK_SIZE_BYTES;
    this.#pacer = options.pacer ?? new Pacer(options.clock);
    this.#out = new FileOutput(options, this.#pacer);
    this.#block = new BlockBuilder(this.#blockSizeBytes);
  }

  get isEmpty(): boolean {
    return this.#last === undefined;
  }

  async addAll(source: LayerCursor): Promise<void> {
    source.seekRow('');
    while (source.state !== CursorState.done) {
      if (source.state === CursorState.needsLoad) {
        await source.load();
        continue;
      }
      const { valueLength } = source;
      this.#check(source);
      this.#collector.add(source, valueLength);
      if (valueLength > this.#blockSizeBytes) await this.#addAlone(source);
      else this.#add(source);
      if (this.#out.isFull) await this.#out.flush();
      source.next();
      if (this.#pacer.due(1 + Math.floor(valueLength / PACED_BYTES))) await this.#pacer.pause();
    }
  }

  async finish(rowRangeDeletions: readonly RowRangeDeletion[]): Promise<WrittenSsTable> {
    this.#endBlock();
    const { group, clock, codecs, origin } = this.#options;
    const properties: SsTableProperties = { ...this.#collector.statistics(), group, createdMicros: clock.nowMicros(), origin: origin ?? '' };
    const sections: Section[] = [];
    const parts: [string, Buffer][] = [
      [SectionName.index, this.#index.finish()],
      [SectionName.properties, encodeProperties(properties)],
      [SectionName.rowRangeDeletions, encodeRowRangeDeletions(rowRangeDeletions)],
    ];
    for (const [name, bytes] of parts) sections.push({ name, ...(await this.#out.putParts([bytes])) });
    const directory = await this.#out.putParts([encodeDirectory(sections)]);
    const sizeBytes = this.#out.offset + FOOTER_BYTES;
    const footer = { directory, formatVersion: FORMAT_VERSION, requiredFeatures: 0, optionalFeatures: 0, fileBytes: sizeBytes };
    this.#out.raw(encodeFooter(footer, codecs.checksum));
    await this.#out.close();
    return Object.freeze({ ...properties, sizeBytes });
  }

  abort(): Promise<void> {
    return this.#out.abort();
  }

  #add(entry: LayerCursor): void {
    if (this.#block.entries > 0 && this.#block.sizeWith(entry) > this.#blockSizeBytes) this.#endBlock();
    this.#block.add(entry);
  }

  /** A value above the block size goes into the file slice by slice, never through a buffer. */
  async #addAlone(entry: LayerCursor): Promise<void> {
    this.#endBlock();
    this.#block.addHead(entry);
    const { first, lastRow, entries } = this.#block;
    const extent = await this.#out.putParts([this.#block.body(), entry.value(), this.#block.tail()]);
    this.#index.add({ first, lastRow, extent, entries });
    this.#block.clear();
  }

  #endBlock(): void {
    const { entries } = this.#block;
    if (entries === 0) return;
    const { first, lastRow } = this.#block;
    this.#index.add({ first, lastRow, extent: this.#out.putSmall(this.#block.body(), this.#block.tail()), entries });
    this.#block.clear();
  }

  /** What is written must be what a reader relies on. */
  #check(entry: LayerCursor): void {
    const { row, column, kind, timestamp, rangeEnd, valueLength } = entry;
    const here: EntryPosition = { row, column, kind, timestamp };
    assert(kindName(kind) !== undefined && isInt64(timestamp), 'an entry has a known kind and a timestamp within int64');
    assert(valueLength === 0 || !isDeletion(kind), 'a deletion has no value');
    assert(rangeEnd === undefined || (kind === EntryKind.rangeDeletion && isInt64(rangeEnd)), 'a range deletion alone has an end');
    if (this.#last && compareEntries(this.#last, here) >= 0) {
      throw new AssertionError(`entries for ${this.#options.path} ascend: ${describe(this.#last)} came before ${describe(here)}`);
    }
    this.#last = here;
  }
}

function describe({ row, column, kind, timestamp }: EntryPosition): string {
  return `(${quote(row)}, ${quote(column)}, ${kindName(kind)}, ${timestamp})`;
}

/** The file being written: gathers small parts, puts trailers, and knows the offset. The file is created with the first byte that leaves. */
class FileOutput {
  readonly #options: SsTableWriteOptions;
  readonly #pacer: Pacer;
  readonly #buffer = new ByteWriter(SLICE_BYTES + DEFAULT_BLOCK_SIZE_BYTES * 2);
  /** Of the buffer's first byte in the file. */
  #bufferOffset = 0;
  #writer: FileWriter | undefined;
  #ended = false;

  constructor(options: SsTableWriteOptions, pacer: Pacer) {
    this.#options = options;
    this.#pacer = pacer;
  }

  get offset(): number {
    return this.#bufferOffset + this.#buffer.length;
  }

  get isFull(): boolean {
    return this.#buffer.length >= SLICE_BYTES;
  }

  raw(bytes: Uint8Array): void {
    this.#buffer.raw(bytes);
  }

  /** A part of up to about a block in two pieces, with its trailer, into the buffer. */
  putSmall(body: Uint8Array, tail: Uint8Array): Extent {
    const { offset } = this;
    const start = this.#buffer.length;
    this.raw(body);
    this.raw(tail);
    this.#buffer.byte(CODEC_NONE);
    this.#buffer.uint32(this.#options.codecs.checksum(this.#buffer.bytes.subarray(start, this.#buffer.length)));
    return { offset, lengthBytes: this.offset - offset - TRAILER_BYTES };
  }

  /** A part of any size, with its trailer. */
  async putParts(pieces: readonly Uint8Array[]): Promise<Extent> {
    const { checksum } = this.#options.codecs;
    const { offset } = this;
    let crc = 0;
    for (const piece of pieces) {
      for (let at = 0; at < piece.length; at += SLICE_BYTES) {
        const slice = piece.subarray(at, at + SLICE_BYTES);
        crc = checksum(slice, crc);
        await this.#put(slice);
      }
    }
    const trailer = new ByteWriter(TRAILER_BYTES);
    trailer.byte(CODEC_NONE);
    trailer.uint32(checksum(trailer.written(), crc));
    this.raw(trailer.written());
    return { offset, lengthBytes: this.offset - offset - TRAILER_BYTES };
  }

  async flush(): Promise<void> {
    if (this.#buffer.length === 0) return;
    const bytes = this.#buffer.written();
    await this.#append(bytes);
    this.#bufferOffset += bytes.length;
    this.#buffer.clear();
  }

  async close(): Promise<void> {
    await this.flush();
    assert(this.#writer, 'a footer was written');
    this.#ended = true;
    await this.#writer.close();
  }

  /** After a failure: the file is given up, and the failure matters more than one of giving up. */
  async abort(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.#writer?.abort().catch(() => {});
  }

  async #put(slice: Uint8Array): Promise<void> {
    if (slice.length < SLICE_BYTES) {
      this.raw(slice);
      if (this.isFull) await this.flush();
      return;
    }
    await this.flush();
    await this.#append(slice);
    this.#bufferOffset += slice.length;
  }

  async #append(bytes: Uint8Array): Promise<void> {
    this.#writer ??= await this.#options.fileSystem.create(this.#options.path);
    await this.#writer.append(bytes);
    // the append need not have waited: the clock is asked at once
    if (this.#pacer.due(Number.POSITIVE_INFINITY)) await this.#pacer.pause();
  }
}
