/**
 * Reads the parts of a section one after another; the other side of `byte-writer.ts`. Everything that does not fit the bytes throws
 * RangeError, which `decodeSection` turns into the CorruptionError that names the file and the place.
 */
import { type ByteString, CorruptionError, type Int64, readInt64BE, VarintReader } from '../../base/index.ts';

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
    if (value > 1) throw new RangeError(`${value} stands where 0 or 1 must`);
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

  /** Length and characters. */
  string(): ByteString {
    const length = this.varint();
    const at = this.skip(length);
    return length === 0 ? '' : this.#bytes.latin1Slice(at, at + length);
  }

  /** Passes over `length` bytes and answers where they begin. */
  skip(length: number): number {
    const at = this.#varints.offset;
    if (at + length > this.#bytes.length) throw new RangeError(`${length} bytes at ${at} run behind the end`);
    this.#varints.offset = at + length;
    return at;
  }

  /** The section must end here. */
  end(): void {
    if (this.offset !== this.#bytes.length) throw new RangeError(`${this.#bytes.length - this.offset} bytes too many`);
  }
}

/** Runs `decode` over the whole of `bytes`; what it finds wrong is a CorruptionError of the file at the section's offset. */
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
