/**
 * The index of an SSTable: the first entry's position, the last row and the extent of each block. Format:
 * docs/formats/sstable.md. The index is searched in its encoded form; opening it makes one pass that notes offsets.
 *
 * Invariant: blocks ascend and do not overlap. Only `verify` checks the order of the entries.
 */
import { assert, type ByteString, readInt64BE } from '../../base/index.ts';
import type { EntryKind, EntryPosition } from '../../model/index.ts';
import { type ByteReader, decodeSection } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';
import { type Extent, TRAILER_BYTES } from './format.ts';
import { kindName } from './properties.ts';
import { RowDigests } from './row-digests.ts';
import { compareBytesTo, type SeekTarget } from './seek-target.ts';

const SAME_AS_LAST_ROW = 1;
const ONE_ROW = 2;
const COMPRESSED = 4;
const KNOWN_FLAGS = SAME_AS_LAST_ROW | ONE_ROW | COMPRESSED;
/**
 * Largest block before compression: it is encoded and decoded in one slice. Enough for a block of 1 MiB and the longest
 * keys; a larger block is stored uncompressed.
 */
export const MAX_COMPRESSED_BYTES = 2 * 1024 * 1024;

/** A finished block, as the index describes it. */
export interface BlockSummary {
  readonly first: EntryPosition;
  readonly lastRow: ByteString;
  readonly extent: Extent;
  /** Length before compression; undefined if it is stored uncompressed. */
  readonly rawBytes?: number | undefined;
  readonly entries: number;
}

export class BlockIndexBuilder {
  readonly #out = new ByteWriter(4096);
  #blocks = 0;
  #lastRow: ByteString | undefined;

  add({ first, lastRow, extent, rawBytes, entries }: BlockSummary): void {
    assert(entries > 0, 'a block has an entry');
    assert(this.#lastRow === undefined || first.row >= this.#lastRow, 'the rows of blocks ascend');
    assert(first.row <= lastRow, 'the rows of a block ascend');
    assert(rawBytes === undefined || rawBytes <= MAX_COMPRESSED_BYTES, 'a large block is not compressed');
    const out = this.#out;
    const continued = first.row === this.#lastRow;
    const oneRow = first.row === lastRow;
    out.byte((continued ? SAME_AS_LAST_ROW : 0) | (oneRow ? ONE_ROW : 0) | (rawBytes === undefined ? 0 : COMPRESSED));
    if (!continued) out.string(first.row);
    out.string(first.column);
    out.byte(first.kind);
    out.int64(first.timestamp);
    if (!oneRow) out.string(lastRow);
    out.varint(extent.offset);
    out.varint(extent.lengthBytes);
    if (rawBytes !== undefined) out.varint(rawBytes);
    out.varint(entries);
    this.#lastRow = lastRow;
    this.#blocks++;
  }

  /** The section's bytes. */
  finish(): Buffer {
    const count = new ByteWriter(8);
    count.varint(this.#blocks);
    return Buffer.concat([count.written(), this.#out.written()]);
  }
}

/** Numbers for each block in `#fields`; the names below are their positions. */
const STRIDE = 9;
const ROW_AT = 0;
const ROW_LENGTH = 1;
const COLUMN_AT = 2;
const COLUMN_LENGTH = 3;
const LAST_AT = 4;
const LAST_LENGTH = 5;
const BLOCK_LENGTH = 6;
const ENTRIES = 7;
/** 0 = not compressed. */
const RAW_BYTES = 8;
/** Shortest entry of the index: bounds the memory that a wrong count can cause. */
const MIN_BYTES = 14;

export class BlockIndex {
  readonly length: number;
  /** Bytes of all blocks, without trailers. */
  readonly storedBytes: number;
  /** Bytes of all blocks before compression. */
  readonly rawBytes: number;
  readonly #bytes: Buffer;
  readonly #fields: Uint32Array;
  readonly #offsets: Float64Array;
  /** Digests of the blocks' first rows. */
  readonly #digests: RowDigests;

  /** `bytes` is kept. Blocks must lie before `dataEnd`. */
  static decode(file: string, section: Extent, bytes: Buffer, dataEnd: number): BlockIndex {
    return decodeSection(file, section.offset, 'index', bytes, (reader) => new BlockIndex(bytes, reader, dataEnd));
  }

  private constructor(bytes: Buffer, reader: ByteReader, dataEnd: number) {
    this.length = reader.varint();
    if (this.length * MIN_BYTES > bytes.length)
      throw new RangeError(`${this.length} blocks do not fit into ${bytes.length} bytes`);
    this.#bytes = bytes;
    this.#fields = new Uint32Array(this.length * STRIDE);
    this.#offsets = new Float64Array(this.length);
    let end = 0;
    for (let block = 0; block < this.length; block++) end = this.#note(block, reader, end);
    this.#digests = new RowDigests(
      this.length,
      this.length === 0 ? '' : this.firstRow(0),
      this.length === 0 ? '' : this.firstRow(this.length - 1),
    );
    let storedBytes = 0;
    let rawBytes = 0;
    for (let block = 0; block < this.length; block++) {
      storedBytes += this.lengthBytes(block);
      rawBytes += this.rawLengthBytes(block);
      this.#digests.set(
        block,
        bytes,
        this.#fields[block * STRIDE + ROW_AT]!,
        this.#fields[block * STRIDE + ROW_LENGTH]!,
      );
    }
    this.storedBytes = storedBytes;
    this.rawBytes = rawBytes;
    if (end > dataEnd) throw new RangeError(`blocks run to ${end}, after ${dataEnd}`);
  }

  /** Notes the offsets of one block's fields; returns the end of the block in the file. */
  #note(block: number, reader: ByteReader, endBefore: number): number {
    const fields = this.#fields;
    const base = block * STRIDE;
    const flags = reader.byte();
    if (flags > KNOWN_FLAGS || (block === 0 && (flags & SAME_AS_LAST_ROW) !== 0))
      throw new RangeError(`flags ${flags} of block ${block}`);
    if ((flags & SAME_AS_LAST_ROW) !== 0) {
      fields[base + ROW_AT] = fields[base - STRIDE + LAST_AT]!;
      fields[base + ROW_LENGTH] = fields[base - STRIDE + LAST_LENGTH]!;
    } else {
      this.#noteString(reader, base + ROW_AT);
    }
    this.#noteString(reader, base + COLUMN_AT);
    if (kindName(reader.byte()) === undefined) throw new RangeError(`unknown kind of entry in block ${block}`);
    reader.skip(8);
    if ((flags & ONE_ROW) !== 0) {
      fields[base + LAST_AT] = fields[base + ROW_AT]!;
      fields[base + LAST_LENGTH] = fields[base + ROW_LENGTH]!;
    } else {
      this.#noteString(reader, base + LAST_AT);
    }
    const offset = reader.varint();
    const lengthBytes = reader.varint();
    if (offset < endBefore || lengthBytes >= 2 ** 32)
      throw new RangeError(`block ${block} of ${lengthBytes} bytes at ${offset}`);
    this.#offsets[block] = offset;
    fields[base + BLOCK_LENGTH] = lengthBytes;
    if ((flags & COMPRESSED) !== 0) {
      const rawBytes = reader.varint();
      if (rawBytes === 0 || rawBytes > MAX_COMPRESSED_BYTES)
        throw new RangeError(`block ${block} of ${rawBytes} bytes before compression`);
      fields[base + RAW_BYTES] = rawBytes;
    }
    fields[base + ENTRIES] = reader.varint();
    return offset + lengthBytes + TRAILER_BYTES;
  }

  #noteString(reader: ByteReader, field: number): void {
    const length = reader.varint();
    this.#fields[field] = reader.skip(length);
    this.#fields[field + 1] = length;
  }

  get memoryBytes(): number {
    return this.#bytes.length + this.#fields.byteLength + this.#offsets.byteLength + this.#digests.memoryBytes;
  }

  extent(block: number): Extent {
    return { offset: this.offset(block), lengthBytes: this.lengthBytes(block) };
  }

  offset(block: number): number {
    return this.#offsets[block]!;
  }

  /** Length as stored, without the trailer. */
  lengthBytes(block: number): number {
    return this.#fields[block * STRIDE + BLOCK_LENGTH]!;
  }

  get hasCompressed(): boolean {
    for (let block = 0; block < this.length; block++) if (this.isCompressed(block)) return true;
    return false;
  }

  isCompressed(block: number): boolean {
    return this.#fields[block * STRIDE + RAW_BYTES] !== 0;
  }

  /** Length in memory: before compression. */
  rawLengthBytes(block: number): number {
    const rawBytes = this.#fields[block * STRIDE + RAW_BYTES]!;
    return rawBytes === 0 ? this.lengthBytes(block) : rawBytes;
  }

  entries(block: number): number {
    return this.#fields[block * STRIDE + ENTRIES]!;
  }

  firstRow(block: number): ByteString {
    return this.#text(block * STRIDE + ROW_AT);
  }

  lastRow(block: number): ByteString {
    return this.#text(block * STRIDE + LAST_AT);
  }

  first(block: number): EntryPosition {
    return {
      row: this.firstRow(block),
      column: this.#text(block * STRIDE + COLUMN_AT),
      kind: this.#kind(block),
      timestamp: readInt64BE(this.#bytes, this.#kindAt(block) + 1),
    };
  }

  /** The last block whose first entry is before the target; -1 if there is none. Searches from block `from` on. */
  lastBefore(target: SeekTarget, from = 0): number {
    const digests = this.#digests;
    digests.narrow(target.row);
    let low = Math.max(from - 1, digests.low);
    let high = Math.max(low + 1, digests.high);
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (this.#isBefore(middle, target)) low = middle;
      else high = middle;
    }
    return low;
  }

  /** Order of a block's last row and `row`. */
  compareLastRow(block: number, row: ByteString): number {
    const base = block * STRIDE;
    return compareBytesTo(this.#bytes, this.#fields[base + LAST_AT]!, this.#fields[base + LAST_LENGTH]!, row);
  }

  /** Order of a block's first row and `row`. */
  compareFirstRow(block: number, row: ByteString): number {
    const base = block * STRIDE;
    return compareBytesTo(this.#bytes, this.#fields[base + ROW_AT]!, this.#fields[base + ROW_LENGTH]!, row);
  }

  firstRowLength(block: number): number {
    return this.#fields[block * STRIDE + ROW_LENGTH]!;
  }

  /** Length of the common prefix of the block's first row and `row`. */
  sharedWithFirstRow(block: number, row: ByteString): number {
    const at = this.#fields[block * STRIDE + ROW_AT]!;
    const most = Math.min(row.length, this.firstRowLength(block));
    let shared = 0;
    while (shared < most && this.#bytes[at + shared] === row.charCodeAt(shared)) shared++;
    return shared;
  }

  #isBefore(block: number, target: SeekTarget): boolean {
    const order = this.compareFirstRow(block, target.row);
    if (order !== 0 || target.column === undefined) return order < 0;
    const base = block * STRIDE;
    const columnOrder = compareBytesTo(
      this.#bytes,
      this.#fields[base + COLUMN_AT]!,
      this.#fields[base + COLUMN_LENGTH]!,
      target.column,
    );
    if (columnOrder !== 0) return columnOrder < 0;
    return target.isVersionBefore(this.#kind(block), readInt64BE(this.#bytes, this.#kindAt(block) + 1));
  }

  #kind(block: number): EntryKind {
    return this.#bytes[this.#kindAt(block)] as EntryKind;
  }

  #kindAt(block: number): number {
    const base = block * STRIDE;
    return this.#fields[base + COLUMN_AT]! + this.#fields[base + COLUMN_LENGTH]!;
  }

  #text(field: number): ByteString {
    const at = this.#fields[field]!;
    return this.#bytes.latin1Slice(at, at + this.#fields[field + 1]!);
  }
}
