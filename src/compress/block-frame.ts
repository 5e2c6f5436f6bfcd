/**
 * The frame of a compressed block: its raw length comes first and is checked before anything is allocated for it.
 * Format: docs/formats/compression.md.
 */
import { VarintReader, varintLength, writeVarint } from '../base/index.ts';

export function frameBlock(rawBytes: number, payload: Uint8Array): Buffer {
  const head = varintLength(rawBytes);
  const framed = Buffer.allocUnsafe(head + payload.length);
  framed.set(payload, writeVarint(framed, 0, rawBytes));
  return framed;
}

/** RangeError if the raw length is above `limitBytes`, or 0: an empty block is stored uncompressed. */
export function openFrame(
  bytes: Uint8Array,
  limitBytes: number,
): { readonly rawBytes: number; readonly payload: Uint8Array } {
  const reader = new VarintReader(bytes);
  const rawBytes = reader.next();
  if (rawBytes === 0 || rawBytes > limitBytes)
    throw new RangeError(`a compressed block says that it holds ${rawBytes} bytes; the limit is ${limitBytes}`);
  return { rawBytes, payload: bytes.subarray(reader.offset) };
}
