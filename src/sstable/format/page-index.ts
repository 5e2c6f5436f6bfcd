/**
 * The pages of blocks that are stored as they are: where a look-up of one row may read a few kilobytes of a block in place of all of it, and how that
 * part is checked by itself. Section "pages" of docs/formats/sstable.md. It is searched as the bytes it is; opening it makes one pass.
 *
 * Invariants: a page begins with a restart point and a row of which nothing stands before it in the block, so what a block has of a row lies in one of
 * its pages; separators ascend. `verify` holds them against the blocks.
 */
import { type ByteString, VarintReader } from '../../base/index.ts';
import type { BlockIndex } from './block-index.ts';
import { type ByteReader, decodeSection } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';
import { CRC_BYTES, type Extent } from './format.ts';
import { compareBytesTo } from './seek-target.ts';

/** Where a page but the first of its block begins. */
export interface PageCut {
  /** In the block. */
  readonly at: number;
  /** Above the rows before it, not above its own first. */
  readonly separator: ByteString;
  /** CRC-32C of the block up to here. */
  crc: number;
}

/** A cut's least bytes: three lengths of one byte, one character, the checksum. */
const MIN_BYTES = 3 + 1 + CRC_BYTES;
export const NO_CUTS: readonly PageCut[] = [];

export class PageIndexBuilder {
  readonly #out = new ByteWriter(1024);
  #cuts = 0;

  /** To be called for each block, in order; `cuts` with their checksums. */
  add(firstRow: ByteString, cuts: readonly PageCut[]): void {
    const out = this.#out;
    this.#cuts += cuts.length;
    out.varint(cuts.length);
    let before = 0;
    for (const { at, separator, crc } of cuts) {
      const shared = commonPrefix(firstRow, separator);
      out.varint(at - before);
      out.varint(shared);
      out.string(separator, shared);
      out.uint32(crc);
      before = at;
    }
  }

  /** The section's bytes; undefined where no block has pages. */
  finish(): Buffer | undefined {
    return this.#cuts === 0 ? undefined : this.#out.written();
  }
}

/** A page as `find` tells it. */
export interface Page {
  /** In the file. */
  readonly number: number;
  readonly block: number;
  /** Where in the block it begins and ends. */
  readonly start: number;
  readonly end: number;
  /** Checksums of the block up to there. */
  readonly crcBefore: number;
  readonly crc: number;
  /** Whether it is the block's last: then it ends with the block, and what checks it is the block's own checksum. */
  readonly isLast: boolean;
}

/** It is the page that it found last, too: a look-up makes no object. */
export class PageIndex implements Page {
  number = 0;
  block = 0;
  start = 0;
  end = 0;
  crcBefore = 0;
  crc = 0;
  isLast = false;
  readonly #index: BlockIndex;
  readonly #bytes: Buffer;
  /** By block: where its cuts stand in the bytes, and the number of its first page. One more at the end. */
  readonly #places: Uint32Array;
  readonly #firstPages: Uint32Array;
  readonly #reader: VarintReader;

  /** `bytes` is kept. */
  static decode(file: string, section: Extent, bytes: Buffer, index: BlockIndex): PageIndex {
    return decodeSection(file, section.offset, 'pages', bytes, (reader) => new PageIndex(bytes, reader, index));
  }

  private constructor(bytes: Buffer, reader: ByteReader, index: BlockIndex) {
    this.#index = index;
    this.#bytes = bytes;
    this.#reader = new VarintReader(bytes);
    this.#places = new Uint32Array(index.length + 1);
    this.#firstPages = new Uint32Array(index.length + 1);
    for (let block = 0; block < index.length; block++) {
      this.#places[block] = reader.offset;
      const cuts = noteCuts(reader, bytes.length, index, block);
      this.#firstPages[block + 1] = (this.#firstPages[block] as number) + (cuts === 0 ? 0 : cuts + 1);
    }
  }

  /** Pages of all blocks. A block without cuts has none. */
  get length(): number {
    return this.#firstPages[this.#index.length] as number;
  }

  /** Pages of the block; 0 where it is read as a whole. */
  pagesOf(block: number): number {
    return (this.#firstPages[block + 1] as number) - (this.#firstPages[block] as number);
  }

  /** Finds the page in which all lies that the block has of the row, which is not below the block's first; false where the block has no pages. */
  find(block: number, row: ByteString): boolean {
    const pages = this.pagesOf(block);
    if (pages === 0) return false;
    const bytes = this.#bytes;
    const reader = this.#reader;
    const common = this.#index.sharedWithFirstRow(block, row);
    reader.offset = this.#places[block] as number;
    reader.next();
    this.start = 0;
    this.crcBefore = 0;
    for (let page = 0; page < pages - 1; page++) {
      const at = (page === 0 ? 0 : this.end) + reader.next();
      const shared = reader.next();
      const length = reader.next();
      this.end = at;
      this.crc = bytes.readUInt32BE(reader.offset + length);
      // where the two part within what the separator has of the first row, the row is above: it is not below the first
      if (common >= shared && compareBytesTo(bytes, reader.offset, length, row, shared) > 0)
        return this.#found(block, page, false);
      reader.offset += length + CRC_BYTES;
      this.start = at;
      this.crcBefore = this.crc;
    }
    this.end = this.#index.lengthBytes(block);
    return this.#found(block, pages - 1, true);
  }

  /** The page found last, to be kept. */
  found(): Page {
    const { number, block, start, end, crcBefore, crc, isLast } = this;
    return { number, block, start, end, crcBefore, crc, isLast };
  }

  /** As they were written. */
  cuts(block: number): readonly PageCut[] {
    if (this.pagesOf(block) === 0) return NO_CUTS;
    const reader = this.#reader;
    reader.offset = this.#places[block] as number;
    let at = 0;
    return Array.from({ length: reader.next() }, () => {
      at += reader.next();
      const shared = this.#index.firstRow(block).slice(0, reader.next());
      const length = reader.next();
      const rest = this.#bytes.latin1Slice(reader.offset, reader.offset + length);
      reader.offset += length + CRC_BYTES;
      return { at, separator: shared + rest, crc: this.#bytes.readUInt32BE(reader.offset - CRC_BYTES) };
    });
  }

  #found(block: number, page: number, isLast: boolean): true {
    this.number = (this.#firstPages[block] as number) + page;
    this.block = block;
    this.isLast = isLast;
    return true;
  }
}

/** Passes over the cuts of a block and answers how many there are. */
function noteCuts(reader: ByteReader, bytes: number, index: BlockIndex, block: number): number {
  const cuts = reader.varint();
  if (cuts * MIN_BYTES > bytes) throw new RangeError(`${cuts} pages do not fit into ${bytes} bytes`);
  if (cuts > 0 && index.isCompressed(block)) throw new RangeError(`pages of block ${block}, which is compressed`);
  let at = 0;
  for (let cut = 0; cut < cuts; cut++) {
    const length = reader.varint();
    at += length;
    if (length === 0 || at >= index.lengthBytes(block)) throw new RangeError(`a page of block ${block} at ${at}`);
    const shared = reader.varint();
    if (shared > index.firstRowLength(block))
      throw new RangeError(`a separator of block ${block} that shares ${shared} bytes`);
    reader.skip(reader.varint());
    reader.skip(CRC_BYTES);
  }
  return cuts;
}

/** The shortest string above `before` and not above `row`, which is above it. */
export function separatorOf(before: ByteString, row: ByteString): ByteString {
  return row.slice(0, commonPrefix(before, row) + 1);
}

export function commonPrefix(a: ByteString, b: ByteString): number {
  const most = Math.min(a.length, b.length);
  let n = 0;
  while (n < most && a.charCodeAt(n) === b.charCodeAt(n)) n++;
  return n;
}
