/**
 * Compression of an SSTable's blocks, one at a time, so that a point read decodes one block. Some kinds use bytes that
 * all blocks of a file share (a dictionary, or the reference of the long common strings), which are a section of the
 * file.
 *
 * Formats: docs/formats/compression.md. A compressed block begins with its raw length (varint), which is checked before
 * anything is decoded.
 */

/**
 * How the blocks of a locality group are stored. `zstd-dict` and `two-pass` choose their shared bytes from the file's
 * own blocks.
 */
export type CompressionKind = 'none' | 'lz4' | 'zstd' | 'zstd-dict' | 'two-pass';

export interface Compression {
  readonly kind: CompressionKind;
  /** Level of zstd, 1 to 19; the others ignore it. Default: 3. */
  readonly level?: number;
}

/** The codec byte of a block's trailer. Stored in SSTables: never renumber. 0 = uncompressed. */
export const BlockCodec = { none: 0, lz4: 1, zstd: 2, zstdDict: 3, twoPass: 4 } as const;
export type BlockCodec = (typeof BlockCodec)[keyof typeof BlockCodec];

/** Compresses the blocks of one file, in any order. Used by one writer. */
export interface BlockCompressor {
  /** Raw bytes of blocks that it needs as samples before it compresses the first one; 0 = none. */
  readonly sampleBytes: number;
  /**
   * Call it once, before the first `compress`, with the file's first blocks (fewer than sampleBytes if the file is
   * small). Returns the shared bytes to store in the file; undefined = none.
   */
  prepare(samples: readonly Uint8Array[]): Buffer | undefined;
  /**
   * Undefined: store the block uncompressed. Blocks that do not shrink by an eighth are not worth compressing, and
   * after many of them in a row only some are tried.
   */
  compress(block: Uint8Array): { readonly codec: BlockCodec; readonly bytes: Buffer } | undefined;
  close(): void;
}

/** Decodes the blocks of one file. */
export interface BlockDecompressor {
  /** RangeError for bytes that are not a block of that codec, and for a raw length above `limitBytes`. */
  decompress(codec: number, bytes: Uint8Array, limitBytes: number): Buffer;
  close(): void;
}
