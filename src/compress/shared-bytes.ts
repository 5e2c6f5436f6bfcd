/**
 * The bytes that all blocks of a file share, as the file stores them: one byte for the codec, then the bytes,
 * compressed by zstd if that makes them shorter. Format: docs/formats/compression.md, "Shared bytes".
 */
import type { Zstd } from '../env/index.ts';
import { BlockCodec } from './block-compression.ts';
import { frameBlock, openFrame } from './block-frame.ts';

/** Bounds the memory that a damaged length can cause: sixteen times what is written today. */
const MAX_SHARED_BYTES = 16 * 1024 * 1024;
const LEVEL = 9;

export function encodeShared(bytes: Uint8Array, zstd: Zstd): Buffer {
  const framed = frameBlock(bytes.length, zstd.compress(bytes, LEVEL));
  return framed.length < bytes.length
    ? Buffer.concat([Buffer.of(BlockCodec.zstd), framed])
    : Buffer.concat([Buffer.of(BlockCodec.none), bytes]);
}

/** RangeError for bytes that `encodeShared` does not write. */
export function decodeShared(shared: Buffer, zstd: Zstd): Buffer {
  const codec = shared[0];
  const stored = shared.subarray(1);
  if (codec === BlockCodec.none && stored.length > 0 && stored.length <= MAX_SHARED_BYTES) return stored;
  if (codec !== BlockCodec.zstd) throw new RangeError(`shared bytes with unknown codec ${codec}`);
  const { rawBytes, payload } = openFrame(stored, MAX_SHARED_BYTES);
  return zstd.decompress(payload, rawBytes);
}
