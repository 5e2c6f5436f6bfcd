/**
 * LZ4 in native code (lz4-napi). Its blocks are led by their raw length, 4 bytes, little-endian; ours are not, so the prefix is
 * cut off here and put back.
 */
import { createRequire } from 'node:module';
import { asBuffer } from '../base/index.ts';
import type { Lz4 } from '../env/index.ts';

/** What lz4-napi has that is used. */
export interface NativeLz4 {
  compressSync(bytes: Buffer): Buffer;
  uncompressSync(bytes: Uint8Array): Buffer;
}

const PREFIX_BYTES = 4;
/** A byte of LZ4 stands for at most 255 bytes of the result. */
const LARGEST_RATIO = 255;

/** Throws where no binary fits this machine. */
export function loadNativeLz4(): NativeLz4 {
  const module: typeof import('lz4-napi') = createRequire(import.meta.url)('lz4-napi');
  return module;
}

export function nativeLz4(native: NativeLz4): Lz4 {
  return {
    compress: (bytes) => native.compressSync(asBuffer(bytes)).subarray(PREFIX_BYTES),
    decompress(bytes, sizeBytes) {
      if (sizeBytes > bytes.length * LARGEST_RATIO) throw new RangeError(`no LZ4 block: ${bytes.length} bytes cannot hold ${sizeBytes}`);
      const prefixed = Buffer.allocUnsafe(PREFIX_BYTES + bytes.length);
      prefixed.writeUInt32LE(sizeBytes);
      prefixed.set(bytes, PREFIX_BYTES);
      let raw: Buffer;
      try {
        raw = native.uncompressSync(prefixed);
      } catch (error) {
        throw new RangeError(`no LZ4 block: ${error instanceof Error ? error.message : String(error)}`);
      }
      if (raw.length !== sizeBytes) throw new RangeError(`no LZ4 block: ${raw.length} bytes of ${sizeBytes}`);
      return raw;
    },
  };
}
