/**
 * The pages of uncompressed blocks. A look-up of one row may read a page, a few kilobytes, in place of the whole block,
 * and check it on its own. Format: section "pages" of docs/formats/sstable.md. The section is searched in its encoded
 * form; opening it makes one pass.
 *
 * Invariants: a page begins with a restart point and with the first entry of a row, so one page holds all that the
 * block has of a row; separators ascend. `verify` compares them with the blocks.
 */
import { assert, type ByteString, VarintReader } from '../../base/index.ts';
import type { BlockIndex } from './block-index.ts';
import { type ByteReader, decodeSection } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';
import { CRC_BYTES, type Extent } from './format.ts';
import { compareBytesTo } from './seek-target.ts';

/** Where a page begins, for every page of a block but its first. */
export interface PageCut {
  /** Offset in the block. */
  readonly at: number;
  /** Above the last row before the page, not above the first row of the page. */
  readonly separator: ByteString;
  /** CRC-32C of the block up to here. */
  crc: number;
}

/** The shortest cut: three lengths of one byte, one character, the checksum. */
const MIN_BYTES = 3 + 1 + CRC_BYTES;
export const NO_CUTS: readonly PageCut[] = [];

export class PageIndexBuilder {
  readonly #out = new ByteWriter(1024);
  #cuts = 0;

  /** Call it for each block, in order; the checksums of `cuts` are filled in. */
  add(firstRow: ByteString, cuts: readonly PageCut[]): void {
    const out = this.#out;
    this.#cuts += cuts.length;
    out.varint(cuts.length);
    let before = 0;
    for (const { at, separator, crc } of cuts) {
      assert(at > before, 'the pages of a block ascend');
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

/** Where a page lies, and the checksums by which it is checked on its own. */
export interface PageExtent {
  readonly block: number;
  /** Offsets in the block. */
  readonly start: number;
  readonly end: number;
  /** CRC-32C of the block before the page. */
  readonly crcBefore: number;
  /**
   * CRC-32C of the block up to the page's end. Undefined for the block's last page: the block's own checksum covers it.
   */
  readonly crc: number | undefined;
}

/** The answer of `find` for a block without pages. */
export const NO_PAGE = -1;

export class PageIndex {
  readonly #index: BlockIndex;
  readonly #bytes: Buffer;
  /** By block: offset of its cuts in `#bytes`. */
  readonly #cutOffsets: Uint32Array;
  /** By block: number of its first page. One more at the end. */
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
    this.#cutOffsets = new Uint32Array(index.length);
    this.#firstPages = new Uint32Array(index.length + 1);
    for (let block = 0; block < index.length; block++) {
      this.#cutOffsets[block] = reader.offset;
      const cuts = skipCuts(reader, bytes.length, index, block);
      this.#firstPages[block + 1] = this.#firstPages[block]! + (cuts === 0 ? 0 : cuts + 1);
    }
  }

  get memoryBytes(): number {
    return this.#bytes.length + this.#cutOffsets.byteLength + this.#firstPages.byteLength;
  }

  /** Number of pages of the block; 0 if it is read as a whole. */
  pagesOf(block: number): number {
    return this.#firstPages[block + 1]! - this.#firstPages[block]!;
  }

  /**
   * The page that holds all that the block has of `row`, by its number in the file; NO_PAGE where the block has no
   * pages. `row` must not be below the block's first row. Hot path: no allocation.
   */
  find(block: number, row: ByteString): number {
    const pages = this.pagesOf(block);
    if (pages === 0) return NO_PAGE;
    const bytes = this.#bytes;
    const common = this.#index.sharedWithFirstRow(block, row);
    const reader = this.#cutsOf(block);
    const first = this.#firstPages[block]!;
    for (let cut = 0; cut < pages - 1; cut++) {
      reader.next();
      const shared = reader.next();
      const length = reader.next();
      // a row that leaves the block's first row before the separator does is above it, since it is not below the first
      // row
      if (common >= shared && compareBytesTo(bytes, reader.offset, length, row, shared) > 0) return first + cut;
      reader.offset += length + CRC_BYTES;
    }
    return first + pages - 1;
  }

  /** The extent of a page that `find` returned for the block. */
  extent(block: number, page: number): PageExtent {
    const last = this.pagesOf(block) - 1;
    const ordinal = page - this.#firstPages[block]!;
    assert(ordinal >= 0 && ordinal <= last, 'the page belongs to the block');
    const reader = this.#cutsOf(block);
    let start = 0;
    let crcBefore = 0;
    for (let cut = 0; ; cut++) {
      if (cut === last) return { block, start, end: this.#index.lengthBytes(block), crcBefore, crc: undefined };
      const end = start + reader.next();
      reader.next();
      const length = reader.next();
      reader.offset += length + CRC_BYTES;
      const crc = this.#bytes.readUInt32BE(reader.offset - CRC_BYTES);
      if (cut === ordinal) return { block, start, end, crcBefore, crc };
      start = end;
      crcBefore = crc;
    }
  }

  /** The block's cuts, as they were written. */
  cuts(block: number): readonly PageCut[] {
    const pages = this.pagesOf(block);
    if (pages === 0) return NO_CUTS;
    const firstRow = this.#index.firstRow(block);
    const reader = this.#cutsOf(block);
    let at = 0;
    return Array.from({ length: pages - 1 }, () => {
      at += reader.next();
      const shared = firstRow.slice(0, reader.next());
      const length = reader.next();
      const rest = this.#bytes.latin1Slice(reader.offset, reader.offset + length);
      reader.offset += length + CRC_BYTES;
      return { at, separator: shared + rest, crc: this.#bytes.readUInt32BE(reader.offset - CRC_BYTES) };
    });
  }

  /** The reader, before the first cut of the block. */
  #cutsOf(block: number): VarintReader {
    const reader = this.#reader;
    reader.offset = this.#cutOffsets[block]!;
    reader.next();
    return reader;
  }
}

/** Skips the cuts of a block, checks their form, and returns how many there are. */
function skipCuts(reader: ByteReader, bytes: number, index: BlockIndex, block: number): number {
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

/** The shortest string above `before` and not above `row`; `before` is below `row`. */
export function separatorOf(before: ByteString, row: ByteString): ByteString {
  assert(before < row, 'a page begins with a row above those before it');
  return row.slice(0, commonPrefix(before, row) + 1);
}

export function commonPrefix(a: ByteString, b: ByteString): number {
  const most = Math.min(a.length, b.length);
  let n = 0;
  while (n < most && a.charCodeAt(n) === b.charCodeAt(n)) n++;
  return n;
}
