/**
 * Writes finished blocks into an SSTable's file: compresses them and adds them to the index. A compressor that derives
 * what all blocks share from the file's own content first needs `sampleBytes` of blocks; until then they wait here,
 * uncompressed.
 *
 * Invariants: blocks lie in the file in the order of their arrival; at most `sampleBytes` and one block wait; a block
 * above MAX_COMPRESSED_BYTES is stored uncompressed and never copied.
 */
import { assert } from '../../base/index.ts';
import { type BlockCompressor, blockCompressor, type Compression } from '../../compress/index.ts';
import type { Pacer } from '../../env/index.ts';
import type { BlockBuilder } from './block-builder.ts';
import { BlockIndexBuilder, type BlockSummary, MAX_COMPRESSED_BYTES } from '../format/block-index.ts';
import type { FileOutput, FileTarget } from './file-output.ts';
import { CODEC_NONE, TRAILER_BYTES } from '../format/format.ts';
import { NO_CUTS, PageIndexBuilder, type PageCut } from '../format/page-index.ts';

interface BlockContent extends Omit<BlockSummary, 'extent' | 'rawBytes'> {
  /** Pages, if the block is stored uncompressed. */
  readonly cuts: readonly PageCut[];
}
interface WaitingBlock extends BlockContent {
  readonly bytes: Buffer;
}

export class BlockOutput {
  readonly #out: FileOutput;
  readonly #pacer: Pacer;
  readonly #index = new BlockIndexBuilder();
  readonly #pages = new PageIndexBuilder();
  readonly #compressor: BlockCompressor | undefined;
  /** Uncompressed blocks, until the compressor has its samples. */
  #waiting: WaitingBlock[] | undefined;
  #waitingBytes = 0;
  #shared: Buffer | undefined;
  #blocks = 0;
  #compressedBlocks = 0;
  #entries = 0;
  #rawBytes = 0;
  #storedBytes = 0;
  #closed = false;

  /** `isDoubtful`: files of the same contents did not shrink. */
  constructor(target: FileTarget, compression: Compression, isDoubtful: boolean, out: FileOutput, pacer: Pacer) {
    this.#out = out;
    this.#pacer = pacer;
    this.#compressor =
      compression.kind === 'none' ? undefined : blockCompressor(compression, target.codecs, isDoubtful);
    if (this.#compressor && this.#compressor.sampleBytes > 0) this.#waiting = [];
  }

  /** The bytes that compressed blocks share, a section of the file. */
  get shared(): Buffer | undefined {
    return this.#shared;
  }

  /** Blocks written. */
  get blocks(): number {
    return this.#blocks;
  }

  /** Entries of the blocks written. */
  get entries(): number {
    return this.#entries;
  }

  get compressedBlocks(): number {
    return this.#compressedBlocks;
  }

  get rawBytes(): number {
    return this.#rawBytes;
  }

  get storedBytes(): number {
    return this.#storedBytes;
  }

  /** Writes the block in the builder, which the caller clears afterwards. A promise if the write is not done yet. */
  put(block: BlockBuilder): Promise<void> | undefined {
    assert(!this.#closed, 'no block follows the last one');
    const { first, lastRow, entries, cuts } = block;
    const ended = block.end();
    if (!this.#compressor) {
      this.#note({ first, lastRow, entries, extent: this.#out.putSmall(ended, CODEC_NONE, cuts) }, ended.length, cuts);
      return undefined;
    }
    const isLarge = ended.length > MAX_COMPRESSED_BYTES;
    // a block that waits is copied: the builder is reused
    const bytes = isLarge || this.#waiting ? Buffer.from(ended) : ended;
    if (isLarge) return this.#putRaw({ first, lastRow, entries, cuts: NO_CUTS }, [bytes]);
    return this.#offer({ first, lastRow, entries, cuts, bytes }, this.#compressor);
  }

  /**
   * Writes a block of one entry: its head is in the builder, its value is `value`. An uncompressed value is not copied.
   */
  putLargeValue(block: BlockBuilder, value: Uint8Array): Promise<void> {
    assert(!this.#closed && block.entries === 1, 'a block of one entry follows the others');
    const { first, lastRow, entries } = block;
    const pieces = [block.body(), value, block.tail()];
    if (!this.#compressor || totalBytes(pieces) > MAX_COMPRESSED_BYTES)
      return this.#putRaw({ first, lastRow, entries, cuts: NO_CUTS }, pieces);
    return this.#offer({ first, lastRow, entries, cuts: NO_CUTS, bytes: Buffer.concat(pieces) }, this.#compressor);
  }

  /** Ends the blocks and returns the sections that locate them and their pages. No block may follow. */
  async finish(): Promise<{ readonly index: Buffer; readonly pages: Buffer | undefined }> {
    await this.#endSamples();
    assert(!this.#waiting || this.#waiting.length === 0, 'no block is left waiting');
    this.close();
    return { index: this.#index.finish(), pages: this.#pages.finish() };
  }

  /** Releases the compressor. May be called again. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#compressor?.close();
  }

  async #putRaw(content: BlockContent, pieces: readonly Uint8Array[]): Promise<void> {
    await this.#endSamples();
    this.#note({ ...content, extent: await this.#out.putParts(pieces) }, totalBytes(pieces));
  }

  async #offer(block: WaitingBlock, compressor: BlockCompressor): Promise<void> {
    if (!this.#waiting) return this.#compress(block, compressor);
    this.#waiting.push(block);
    this.#waitingBytes += block.bytes.length;
    if (this.#waitingBytes >= compressor.sampleBytes) await this.#endSamples();
  }

  async #endSamples(): Promise<void> {
    const waiting = this.#waiting;
    // a large value came before any other block: there are no samples yet
    if (!this.#compressor || !waiting || waiting.length === 0) return;
    this.#waiting = undefined;
    this.#shared = this.#compressor.prepare(waiting.map(({ bytes }) => bytes));
    for (const block of waiting) {
      if (this.#pacer.due(Number.POSITIVE_INFINITY)) await this.#pacer.pause();
      await this.#compress(block, this.#compressor);
    }
  }

  async #compress({ first, lastRow, entries, cuts, bytes }: WaitingBlock, compressor: BlockCompressor): Promise<void> {
    const compressed = compressor.compress(bytes);
    if (compressed) {
      this.#compressedBlocks++;
      this.#note(
        {
          first,
          lastRow,
          entries,
          extent: this.#out.putSmall(compressed.bytes, compressed.codec),
          rawBytes: bytes.length,
        },
        bytes.length,
      );
    } else {
      this.#note({ first, lastRow, entries, extent: this.#out.putSmall(bytes, CODEC_NONE, cuts) }, bytes.length, cuts);
    }
    if (this.#out.isFull) await this.#out.flush();
    if (this.#pacer.due(Number.POSITIVE_INFINITY)) await this.#pacer.pause();
  }

  #note(summary: BlockSummary, rawBytes: number, cuts = NO_CUTS): void {
    assert(cuts.length === 0 || summary.rawBytes === undefined, 'only uncompressed blocks have pages');
    assert(
      summary.extent.offset === this.#storedBytes + this.#blocks * TRAILER_BYTES,
      'blocks follow one another without gaps',
    );
    this.#index.add(summary);
    this.#pages.add(summary.first.row, cuts);
    this.#blocks++;
    this.#entries += summary.entries;
    this.#rawBytes += rawBytes;
    this.#storedBytes += summary.extent.lengthBytes;
  }
}

function totalBytes(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, piece) => sum + piece.length, 0);
}
