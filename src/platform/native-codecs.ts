/**
 * Codecs in native code, where it is there: CRC-32C by the processor's own instruction from some hundred bytes up, by base's
 * JavaScript below, where the call would cost more than the sum. Where no binary fits the machine all is JavaScript.
 */
import { createRequire } from 'node:module';
import { crc32c } from '../base/index.ts';
import type { Checksum, Codecs } from '../env/index.ts';

const NATIVE_FROM_BYTES = 256;

/** `load` gives the native checksum or throws where there is none; tests hand in their own. */
export function nativeCodecs(load: () => Checksum = loadNative): Codecs {
  let native: Checksum;
  try {
    native = load();
  } catch {
    return { checksum: crc32c };
  }
  return { checksum: (bytes, seed = 0) => (bytes.length < NATIVE_FROM_BYTES ? crc32c(bytes, seed) : native(bytes, seed)) };
}

function loadNative(): Checksum {
  const module: typeof import('@node-rs/crc32') = createRequire(import.meta.url)('@node-rs/crc32');
  return module.crc32c;
}
