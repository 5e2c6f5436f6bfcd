/**
 * Puts finished blocks into an SSTable's file: compresses them, and tells the index where they lie. A compressor that chooses what all
 * blocks share from the file's own content first sees so many bytes of blocks; until then they wait here, uncompressed.
 *
 * Invariants: blocks lie in the file in the order in which they came; what waits is at most `sampleBytes` and one block; a block
 * above COMPRESSED_LIMIT_BYTES is stored as it is and never copied.
 */
import { type BlockCompressor, blockCompressor, type Compression } from '../../compress/index.ts';
import type { Pacer } from '../../env/index.ts';
import type { BlockBuilder } from './block-builder.ts';
import { BlockIndexBuilder, type BlockSummary, COMPRESSED_LIMIT_BYTES } from '../format/block-index.ts';
import type { FileOutput, FileTarget } from './file-output.ts';
import { CODEC_NONE } from '../format/format.ts';
import { NO_CUTS, PageIndexBuilder, type PageCut } from '../format/page-index.ts';

type BlockContent = Omit<BlockSummary, 'extent' | 'rawBytes'> & {
  /** For where it is stored as it is. */ readonly cuts: readonly PageCut[];
};
type WaitingBlock = BlockContent & { readonly bytes: Buffer };

export class BlockOutput {
  readonly #out: FileOutput;
  readonly #pacer: Pacer;
  readonly #index = new BlockIndexBuilder();
  readonly #pages = new PageIndexBuilder();
  readonly #compressor: BlockCompressor | undefined;
  /** Uncompressed blocks, until the compressor has seen its samples. */
  #waiting: WaitingBlock[] | undefined;
  #waitingBytes = 0;
  #shared: Buffer | undefined;
  #compressedBlocks = 0;
  #rawBytes = 0;
  #storedBytes = 0;
  #closed = false;

  constructor(target: FileTarget, compression: Compression, out: FileOutput, pacer: Pacer) {
    this.#out = out;
    this.#pacer = pacer;
    this.#compressor = compression.kind === 'none' ? undefined : blockCompressor(compression, target.codecs);
    if (this.#compressor && this.#compressor.sampleBytes > 0) this.#waiting = [];
  }

  /** What the blocks share; kept in the file. */
  get shared(): Buffer | undefined {
    return this.#shared;
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

  /** The block as it stands in the builder, which is to be cleared after it. A promise where it is not done yet. */
  put(block: BlockBuilder): Promise<void> | undefined {
    const { first, lastRow, entries, cuts } = block;
    const ended = block.end();
    if (!this.#compressor) {
      this.#note({ first, lastRow, entries, extent: this.#out.putSmall(ended, CODEC_NONE, cuts) }, ended.length, cuts);
      return undefined;
    }
    const isLarge = ended.length > COMPRESSED_LIMIT_BYTES;
    // a copy where it waits: the builder goes on
    const bytes = isLarge || this.#waiting ? Buffer.from(ended) : ended;
    if (isLarge) return this.#putRaw({ first, lastRow, entries, cuts: NO_CUTS }, [bytes]);
    return this.#offer({ first, lastRow, entries, cuts, bytes }, this.#compressor);
  }

  /** The head of an entry that is in the builder, with its value, as one block. A value that is not compressed is not copied. */
  putAlone(block: BlockBuilder, value: Uint8Array): Promise<void> {
    const { first, lastRow, entries } = block;
    const pieces = [block.body(), value, block.tail()];
    if (!this.#compressor || totalBytes(pieces) > COMPRESSED_LIMIT_BYTES)
      return this.#putRaw({ first, lastRow, entries, cuts: NO_CUTS }, pieces);
    return this.#offer({ first, lastRow, entries, cuts: NO_CUTS, bytes: Buffer.concat(pieces) }, this.#compressor);
  }

  /** The sections that tell where blocks lie, and where their pages. No block may follow. */
  async finish(): Promise<{ readonly index: Buffer; readonly pages: Buffer | undefined }> {
    await this.#endSamples();
    this.close();
    return { index: this.#index.finish(), pages: this.#pages.finish() };
  }

  /** Gives up what the compressor holds. May be called again. */
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
    // a large value before any other block: the samples are still to come
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
    this.#index.add(summary);
    this.#pages.add(summary.first.row, cuts);
    this.#rawBytes += rawBytes;
    this.#storedBytes += summary.extent.lengthBytes;
  }
}

function totalBytes(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, piece) => sum + piece.length, 0);
}
