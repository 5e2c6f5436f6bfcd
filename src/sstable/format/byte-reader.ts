/**
 * Reads the fields of a section one after another; the counterpart of `byte-writer.ts`. A field that exceeds the bytes
 * throws RangeError, which `decodeSection` turns into a CorruptionError with the file and the offset.
 */
import { type ByteString, CorruptionError, type Int64, readInt64BE, VarintReader, viewOf } from '../../base/index.ts';

const TWO_32 = 0x1_0000_0000;

export class ByteReader {
  readonly #bytes: Buffer;
  readonly #varints: VarintReader;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#varints = new VarintReader(bytes);
  }

  get offset(): number {
    return this.#varints.offset;
  }

  varint(): number {
    return this.#varints.next();
  }

  byte(): number {
    return this.#bytes[this.skip(1)]!;
  }

  /** A byte that is 0 or 1. */
  flag(): boolean {
    const value = this.byte();
    if (value > 1) throw new RangeError(`flag ${value}: expected 0 or 1`);
    return value === 1;
  }

  uint32(): number {
    return this.#bytes.readUInt32BE(this.skip(4));
  }

  /** Eight bytes that hold a safe integer. */
  uint64(): number {
    const value = this.uint32() * TWO_32 + this.uint32();
    if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is too large`);
    return value;
  }

  int64(): Int64 {
    return readInt64BE(this.#bytes, this.skip(8));
  }

  /** A string that follows its length. */
  string(): ByteString {
    const length = this.varint();
    const at = this.skip(length);
    return length === 0 ? '' : this.#bytes.latin1Slice(at, at + length);
  }

  /** Bytes that follow their length, over the same memory. */
  view(): Buffer {
    const length = this.varint();
    const at = this.skip(length);
    return viewOf(this.#bytes, at, at + length);
  }

  /** Skips `length` bytes and returns their offset. */
  skip(length: number): number {
    const at = this.#varints.offset;
    if (at + length > this.#bytes.length) throw new RangeError(`${length} bytes at ${at} exceed the section`);
    this.#varints.offset = at + length;
    return at;
  }

  /** The section must end here. */
  end(): void {
    if (this.offset !== this.#bytes.length) throw new RangeError(`${this.#bytes.length - this.offset} bytes too many`);
  }
}

/** Calls `decode`, which must read all of `bytes`. A RangeError becomes a CorruptionError of the file. */
export function decodeSection<T>(
  file: string,
  offset: number,
  name: string,
  bytes: Buffer,
  decode: (reader: ByteReader) => T,
): T {
  const reader = new ByteReader(bytes);
  try {
    const decoded = decode(reader);
    reader.end();
    return decoded;
  } catch (error) {
    if (error instanceof RangeError)
      throw new CorruptionError(file, offset + reader.offset, `${name}: ${error.message}`, error);
    throw error;
  }
}
