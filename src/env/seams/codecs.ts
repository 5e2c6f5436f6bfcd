/**
 * Codecs that need native or `node:` code are components too, handed in at construction: the pure rooms know only this.
 */

/** CRC-32C of `bytes`, continued from `seed`. The plain one is base's crc32c; platform has a native one. */
export type Checksum = (bytes: Uint8Array, seed?: number) => number;

/** LZ4's block format (no frame, no length inside). */
export interface Lz4 {
  compress(bytes: Uint8Array): Buffer;
  /** `sizeBytes`: of the result, exactly. Throws RangeError where the bytes are no such block. */
  decompress(bytes: Uint8Array, sizeBytes: number): Buffer;
}

/** A dictionary made ready for many calls; belongs to the Zstd that made it. */
export interface ZstdDictionary {
  readonly bytes: Uint8Array;
  /** Releases its memory outside the heap. */
  close(): void;
}

/**
 * Zstandard frames (RFC 8878); every adapter reads what any other wrote. A dictionary is raw content or has zstd's own
 * header.
 */
export interface Zstd {
  dictionary(bytes: Uint8Array): ZstdDictionary;
  compress(bytes: Uint8Array, level: number, dictionary?: ZstdDictionary): Buffer;
  /** `sizeBytes`: of the result, exactly. Throws RangeError where the bytes are no such frame. */
  decompress(bytes: Uint8Array, sizeBytes: number, dictionary?: ZstdDictionary): Buffer;
}

export interface Codecs {
  readonly checksum: Checksum;
  readonly lz4: Lz4;
  readonly zstd: Zstd;
}

/** Bytes that are checksummed in one slice. */
const CHECKSUM_SLICE_BYTES = 2 << 20;

/** The checksum of all parts, one after another, with pauses between slices. */
export async function checksumOf(
  parts: readonly Uint8Array[],
  checksum: Checksum,
  pause: () => Promise<void>,
): Promise<number> {
  let sum = 0;
  let inStep = 0;
  for (const part of parts) {
    for (let at = 0; at < part.length; ) {
      const piece = part.subarray(at, at + CHECKSUM_SLICE_BYTES - inStep);
      sum = checksum(piece, sum);
      at += piece.length;
      inStep += piece.length;
      if (inStep < CHECKSUM_SLICE_BYTES) continue;
      await pause();
      inStep = 0;
    }
  }
  return sum;
}
