/**
 * Codecs in native code, where it is available. CRC-32C: by the processor's own instruction from some hundred bytes up,
 * by base's JavaScript below, where the call would cost more than the sum. LZ4: lz4-napi, or the plain one of compress.
 * Zstandard: node:zlib's where the running Node has it, WebAssembly elsewhere. A thread loads a codec on its first use.
 */
import { crc32c } from '../../base/index.ts';
import { plainLz4 } from '../../compress/index.ts';
import type { Checksum, Codecs, Lz4, Zstd } from '../../env/index.ts';
import { loadNativeLz4, type NativeLz4, nativeLz4 } from './native-lz4.ts';
import { nodeZstd } from './node-zstd.ts';
import { requirePackage } from '../threads/packages.ts';
import { wasmZstd } from './wasm-zstd.ts';

const NATIVE_FROM_BYTES = 256;

/** Each returns a native part, or throws (zstd: returns undefined) where there is none. Tests pass their own. */
export interface NativeLoaders {
  readonly checksum?: () => Checksum;
  readonly lz4?: () => NativeLz4;
  readonly zstd?: () => Zstd | undefined;
}

export function nativeCodecs(load: NativeLoaders = {}): Codecs {
  return {
    checksum: checksumBy(load.checksum ?? loadChecksum),
    lz4: lazyLz4(load.lz4 ?? loadNativeLz4),
    zstd: lazyZstd(load.zstd ?? nodeZstd),
  };
}

function checksumBy(load: () => Checksum): Checksum {
  let native: Checksum;
  try {
    native = load();
  } catch {
    return crc32c;
  }
  return (bytes, seed = 0) => (bytes.length < NATIVE_FROM_BYTES ? crc32c(bytes, seed) : native(bytes, seed));
}

function loadChecksum(): Checksum {
  return requirePackage<typeof import('@node-rs/crc32')>('@node-rs/crc32').crc32c;
}

function lazyLz4(load: () => NativeLz4): Lz4 {
  let loaded: Lz4 | undefined;
  const lz4 = (): Lz4 => {
    if (loaded === undefined) {
      try {
        loaded = nativeLz4(load());
      } catch {
        loaded = plainLz4;
      }
    }
    return loaded;
  };
  return {
    compress: (bytes) => lz4().compress(bytes),
    decompress: (bytes, sizeBytes) => lz4().decompress(bytes, sizeBytes),
  };
}

function lazyZstd(load: () => Zstd | undefined): Zstd {
  let loaded: Zstd | undefined;
  const zstd = (): Zstd => {
    loaded ??= load() ?? wasmZstd();
    return loaded;
  };
  return {
    dictionary: (bytes) => zstd().dictionary(bytes),
    compress: (bytes, level, dictionary) => zstd().compress(bytes, level, dictionary),
    decompress: (bytes, sizeBytes, dictionary) => zstd().decompress(bytes, sizeBytes, dictionary),
  };
}
