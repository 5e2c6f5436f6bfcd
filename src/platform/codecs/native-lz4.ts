/**
 * LZ4 in native code (lz4-napi). Its blocks begin with their raw length, 4 bytes, little-endian; ours do not, so the
 * prefix is removed and restored here.
 */
import { asBuffer, viewOf } from '../../base/index.ts';
import type { Lz4 } from '../../env/index.ts';
import { requirePackage } from '../threads/packages.ts';

/** The functions of lz4-napi that are used. */
export interface NativeLz4 {
  compressSync(bytes: Buffer): Buffer;
  uncompressSync(bytes: Uint8Array): Buffer;
}

const PREFIX_BYTES = 4;
/** A byte of LZ4 stands for at most 255 bytes of the result. */
const MAX_RATIO = 255;
/**
 * Blocks up to this size are put after their prefix in reused memory: V8 counts memory outside its heap, and collects
 * the sooner for it.
 */
const MAX_KEPT_BYTES = 128 * 1024;

/** Throws where no binary fits this machine. */
export function loadNativeLz4(): NativeLz4 {
  return requirePackage<typeof import('lz4-napi')>('lz4-napi');
}

export function nativeLz4(native: NativeLz4): Lz4 {
  let kept: Buffer | undefined;
  /** The block after its prefix; valid until the next call. */
  const withPrefix = (bytes: Uint8Array, sizeBytes: number): Buffer => {
    const length = PREFIX_BYTES + bytes.length;
    let prefixed: Buffer;
    if (length > MAX_KEPT_BYTES) prefixed = Buffer.allocUnsafe(length);
    else {
      kept ??= Buffer.allocUnsafeSlow(MAX_KEPT_BYTES);
      prefixed = viewOf(kept, 0, length);
    }
    prefixed.writeUInt32LE(sizeBytes);
    prefixed.set(bytes, PREFIX_BYTES);
    return prefixed;
  };
  return {
    compress: (bytes) => native.compressSync(asBuffer(bytes)).subarray(PREFIX_BYTES),
    decompress(bytes, sizeBytes) {
      if (sizeBytes > bytes.length * MAX_RATIO)
        throw new RangeError(`invalid LZ4 block: ${bytes.length} bytes cannot hold ${sizeBytes}`);
      let raw: Buffer;
      try {
        raw = native.uncompressSync(withPrefix(bytes, sizeBytes));
      } catch (error) {
        throw new RangeError(`invalid LZ4 block: ${error instanceof Error ? error.message : String(error)}`);
      }
      if (raw.length !== sizeBytes) throw new RangeError(`invalid LZ4 block: ${raw.length} bytes of ${sizeBytes}`);
      return raw;
    },
  };
}
