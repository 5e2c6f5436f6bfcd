/**
 * Unsigned variable-length integers, 7 bits a byte, least significant first: lengths and counts in every file format.
 * Values are safe integers from 0 to 2^53 - 1 (at most 8 bytes). Reading checks the bounds.
 */

/** Bytes that `value` takes. */
export function varintLength(value: number): number {
  let n = 1;
  while (value >= 0x80) {
    value = Math.floor(value / 0x80);
    n++;
  }
  return n;
}

/** Writes `value` at `offset` and returns the offset after it. */
export function writeVarint(bytes: Uint8Array, offset: number, value: number): number {
  while (value >= 0x80) {
    bytes[offset++] = (value % 0x80) | 0x80;
    value = Math.floor(value / 0x80);
  }
  bytes[offset++] = value;
  return offset;
}

/**
 * Reads varints one after another. Hot path: the reader holds the position, so that no value allocates. A read past the
 * end, or of a value above 2^53 - 1, throws RangeError; the owner of the format turns it into CorruptionError.
 */
export class VarintReader {
  bytes: Uint8Array;
  offset: number;

  constructor(bytes: Uint8Array, offset = 0) {
    this.bytes = bytes;
    this.offset = offset;
  }

  next(): number {
    const bytes = this.bytes;
    let at = this.offset;
    let byte = bytes[at++];
    if (byte === undefined) throw new RangeError(`varint at ${this.offset} runs past the end`);
    if (byte < 0x80) {
      this.offset = at;
      return byte;
    }
    let value = byte & 0x7f;
    let scale = 0x80;
    do {
      byte = bytes[at++];
      if (byte === undefined) throw new RangeError(`varint at ${this.offset} runs past the end`);
      value += (byte & 0x7f) * scale;
      scale *= 0x80;
    } while (byte >= 0x80 && scale <= 0x2_0000_0000_0000);
    if (byte >= 0x80 || !Number.isSafeInteger(value)) throw new RangeError(`varint at ${this.offset} is too large`);
    this.offset = at;
    return value;
  }
}
