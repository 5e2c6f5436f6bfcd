/**
 * Zstandard by node:zlib, which has it from Node 22.15 on. The window of a frame is at most 8 MiB (that of level 19): a
 * damaged header that requests more is refused before memory is allocated.
 */
import * as zlib from 'node:zlib';
import type { Zstd, ZstdDictionary } from '../../env/index.ts';

/** Numbers of zstd's own parameters (zstd.h); the types of Node 20 do not know their names. */
const COMPRESSION_LEVEL = 100;
const CONTENT_SIZE_FLAG = 200;
const WINDOW_LOG_MAX = 100;
const MAX_WINDOW_LOG = 23;
/** Output is gathered in pieces of this size: one call and no concatenation for most blocks. */
const MAX_CHUNK_BYTES = 1024 * 1024;

interface ZstdOptions {
  readonly params: Readonly<Record<number, number>>;
  readonly chunkSize: number;
  readonly maxOutputLength?: number;
  readonly dictionary?: Uint8Array;
}

interface NodeZstd {
  zstdCompressSync(bytes: Uint8Array, options: ZstdOptions): Buffer;
  zstdDecompressSync(bytes: Uint8Array, options: ZstdOptions): Buffer;
}

const hasZstd = (module: object): module is NodeZstd => 'zstdCompressSync' in module && 'zstdDecompressSync' in module;

/** Undefined where the running Node has none. */
export function nodeZstd(): Zstd | undefined {
  return hasZstd(zlib) ? adapter(zlib) : undefined;
}

const withDictionary = (dictionary: ZstdDictionary | undefined) =>
  dictionary === undefined ? {} : { dictionary: dictionary.bytes };

function adapter(zstd: NodeZstd): Zstd {
  return {
    dictionary: (bytes) => ({ bytes, close() {} }),
    compress: (bytes, level, dictionary) =>
      zstd.zstdCompressSync(bytes, {
        params: { [COMPRESSION_LEVEL]: level, [CONTENT_SIZE_FLAG]: 0 },
        chunkSize: Math.min(Math.max(bytes.length, 64), MAX_CHUNK_BYTES),
        ...withDictionary(dictionary),
      }),
    decompress(bytes, sizeBytes, dictionary) {
      let raw: Buffer;
      try {
        raw = zstd.zstdDecompressSync(bytes, {
          params: { [WINDOW_LOG_MAX]: MAX_WINDOW_LOG },
          chunkSize: Math.min(Math.max(sizeBytes + 1, 64), MAX_CHUNK_BYTES),
          maxOutputLength: Math.max(sizeBytes, 1),
          ...withDictionary(dictionary),
        });
      } catch (error) {
        throw new RangeError(
          `invalid zstd frame of ${sizeBytes} bytes: ${error instanceof Error ? error.message : String(error)}`,
        );
      }
      if (raw.length !== sizeBytes) throw new RangeError(`invalid zstd frame: ${raw.length} bytes of ${sizeBytes}`);
      return raw;
    },
  };
}
