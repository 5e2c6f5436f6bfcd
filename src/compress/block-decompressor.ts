/**
 * The decompressor of one file's blocks, for all codecs.
 *
 * Invariant: no byte of a block is trusted. Every length is checked before memory is allocated for it or anything is
 * copied, and whatever is wrong with the bytes results in a RangeError. The shared bytes are decoded for the first
 * block that needs them, and kept.
 */
import { asBuffer } from '../base/index.ts';
import type { Codecs, ZstdDictionary } from '../env/index.ts';
import { BlockCodec, type BlockDecompressor } from './block-compression.ts';
import { openFrame } from './block-frame.ts';
import { decodeShared } from './shared-bytes.ts';
import { TwoPassDecoder } from './two-pass.ts';

class FileDecompressor implements BlockDecompressor {
  readonly #codecs: Codecs;
  readonly #shared: Buffer | undefined;
  #dictionary: ZstdDictionary | undefined;
  #twoPass: TwoPassDecoder | undefined;

  constructor(codecs: Codecs, shared: Buffer | undefined) {
    this.#codecs = codecs;
    this.#shared = shared;
  }

  decompress(codec: number, bytes: Uint8Array, limitBytes: number): Buffer {
    if (codec === BlockCodec.none) {
      if (bytes.length > limitBytes)
        throw new RangeError(`a block of ${bytes.length} bytes; the limit is ${limitBytes}`);
      return asBuffer(bytes);
    }
    const { lz4, zstd } = this.#codecs;
    const { rawBytes, payload } = openFrame(bytes, limitBytes);
    switch (codec) {
      case BlockCodec.lz4:
        return lz4.decompress(payload, rawBytes);
      case BlockCodec.zstd:
        return zstd.decompress(payload, rawBytes);
      case BlockCodec.zstdDict:
        this.#dictionary ??= zstd.dictionary(this.#sharedBytes());
        return zstd.decompress(payload, rawBytes, this.#dictionary);
      case BlockCodec.twoPass:
        this.#twoPass ??= new TwoPassDecoder(lz4, this.#shared ? this.#sharedBytes() : Buffer.alloc(0));
        return this.#twoPass.decode(payload, rawBytes);
      default:
        throw new RangeError(`unknown codec ${codec}`);
    }
  }

  close(): void {
    this.#dictionary?.close();
    this.#dictionary = undefined;
    this.#twoPass = undefined;
  }

  #sharedBytes(): Buffer {
    if (!this.#shared) throw new RangeError('a block draws on a dictionary, and the file has none');
    return decodeShared(this.#shared, this.#codecs.zstd);
  }
}

/** The decompressor of one file. `shared` are the bytes that its compressor's `prepare` returned. */
export const blockDecompressor = (codecs: Codecs, shared: Buffer | undefined): BlockDecompressor =>
  new FileDecompressor(codecs, shared);
