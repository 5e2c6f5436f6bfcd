/**
 * Turns a stored block with its trailer into a Block: checksum, codec, decompression. Each open file has one. The
 * decompressor, with what compressed blocks share (a dictionary), is made for the first compressed block.
 */
import { CorruptionError } from '../../base/index.ts';
import { BlockCodec, type BlockDecompressor, blockDecompressor } from '../../compress/index.ts';
import type { Codecs } from '../../env/index.ts';
import { Block, NUMBER_BYTES } from './block.ts';
import type { BlockIndex } from '../format/block-index.ts';
import type { CheckedFile } from '../format/checked-file.ts';
import { CODEC_NONE, type Extent, refusal, TRAILER_BYTES } from '../format/format.ts';
import type { PageExtent } from '../format/page-index.ts';
import type { PageMemory } from './page-memory.ts';

const KNOWN_CODECS: readonly number[] = Object.values(BlockCodec);

export class BlockDecoder {
  readonly #file: CheckedFile;
  readonly #index: BlockIndex;
  readonly #codecs: Codecs;
  readonly #shared: Buffer | undefined;
  #decompressor: BlockDecompressor | undefined;

  constructor(file: CheckedFile, index: BlockIndex, codecs: Codecs, shared: Buffer | undefined) {
    this.#file = file;
    this.#index = index;
    this.#codecs = codecs;
    this.#shared = shared;
  }

  /** `stored` is the block with its trailer. An uncompressed block keeps it. */
  decode(block: number, stored: Buffer): Block {
    const extent = this.#index.extent(block);
    return this.#block(block, extent, this.#file.check(extent, stored), stored[extent.lengthBytes]!);
  }

  /** Reads and decodes the block, a long one slice by slice. */
  async read(block: number): Promise<Block> {
    const extent = this.#index.extent(block);
    const { bytes, codec } = await this.#file.readChecked(extent);
    return this.#block(block, extent, bytes, codec);
  }

  /**
   * The block, if it can be read synchronously and is sound. Otherwise undefined: `read` then reports what is wrong.
   */
  readNow(block: number): Block | undefined {
    const extent = this.#index.extent(block);
    const part = this.#file.readNow(extent);
    if (part === undefined) return undefined;
    try {
      return this.#block(block, extent, part.bytes, part.codec);
    } catch {
      return undefined;
    }
  }

  /**
   * The page, if it can be read synchronously and is sound. Otherwise undefined: reading the block reports what is
   * wrong.
   */
  readPageNow(page: PageExtent, memory: PageMemory): Block | undefined {
    const bytes = memory.take(pageBytes(page));
    if (!this.#file.readPageNow(this.#offsetOf(page), bytes, page.crcBefore, page.crc)) return undefined;
    const block = this.#page(page, bytes);
    if (block !== undefined) memory.keep(bytes);
    return block;
  }

  /** The page; undefined if it is damaged: reading the block reports how. */
  async readPage(page: PageExtent): Promise<Block | undefined> {
    const bytes = await this.#file.read(this.#offsetOf(page), pageBytes(page));
    return this.#file.isPage(bytes, page.crcBefore, page.crc) ? this.#page(page, bytes) : undefined;
  }

  /** Releases memory outside the heap. The decoder may be used afterwards. */
  close(): void {
    this.#decompressor?.close();
    this.#decompressor = undefined;
  }

  #offsetOf({ block, start }: PageExtent): number {
    return this.#index.offset(block) + start;
  }

  #page(page: PageExtent, bytes: Buffer): Block | undefined {
    const entriesEnd = page.crc === undefined ? endOfLastPage(bytes) : bytes.length;
    return entriesEnd <= 0 ? undefined : new Block(this.#file.path, this.#offsetOf(page), bytes, entriesEnd);
  }

  #block(block: number, { offset }: Extent, bytes: Buffer, codec: number): Block {
    const { path } = this.#file;
    if (!KNOWN_CODECS.includes(codec)) {
      throw refusal(
        `${path}: the block at byte ${offset} is stored with codec ${codec}, which this version of Edubba does not know`,
      );
    }
    if ((codec !== CODEC_NONE) !== this.#index.isCompressed(block)) {
      throw new CorruptionError(
        path,
        offset,
        `a block of codec ${codec}; the index says that it is ${codec === CODEC_NONE ? '' : 'not '}compressed`,
      );
    }
    return new Block(path, offset, codec === CODEC_NONE ? bytes : this.#decompress(block, offset, bytes, codec));
  }

  #decompress(block: number, offset: number, bytes: Buffer, codec: number): Buffer {
    const { path } = this.#file;
    const rawBytes = this.#index.rawLengthBytes(block);
    this.#decompressor ??= blockDecompressor(this.#codecs, this.#shared);
    let raw: Buffer;
    try {
      raw = this.#decompressor.decompress(codec, bytes, rawBytes);
    } catch (error) {
      if (error instanceof RangeError)
        throw new CorruptionError(path, offset, `compressed block: ${error.message}`, error);
      throw error;
    }
    if (raw.length !== rawBytes)
      throw new CorruptionError(path, offset, `a compressed block of ${raw.length} bytes; the index says ${rawBytes}`);
    return raw;
  }
}

/** Bytes to read of the page; those of the block's last page include the trailer. */
function pageBytes({ start, end, crc }: PageExtent): number {
  return end - start + (crc === undefined ? TRAILER_BYTES : 0);
}

/** End of the entries in a block's last page. The restart points, their number and the trailer follow them. */
function endOfLastPage(bytes: Buffer): number {
  const codecAt = bytes.length - TRAILER_BYTES;
  if (codecAt < NUMBER_BYTES || bytes[codecAt] !== CODEC_NONE) return 0;
  const restarts = bytes.readUInt32BE(codecAt - NUMBER_BYTES);
  return codecAt - NUMBER_BYTES - restarts * NUMBER_BYTES;
}
