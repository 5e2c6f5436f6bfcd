/**
 * compress: how blocks of SSTables are made smaller, one at a time, so that a point read decodes one block: LZ4,
 * Zstandard, Zstandard with a dictionary chosen from the file's own blocks, and the paper's two passes. Pure
 * computation: native codecs are handed in.
 */
export {
  BlockCodec,
  type BlockCompressor,
  type BlockDecompressor,
  type Compression,
  type CompressionKind,
} from './block-compression.ts';
export { blockCompressor } from './block-compressor.ts';
export { blockDecompressor } from './block-decompressor.ts';
export { plainLz4 } from './lz4.ts';
