/**
 * Reads the fields of one append. Format: docs/formats/commit-log.md.
 *
 * The file system has checked the append's checksum. A malformed append was damaged before the checksum was computed,
 * or comes from a fault of the program: a CorruptionError in either case. An append with something that a newer version
 * wrote, and that this version must not ignore, is refused with FAILED_PRECONDITION.
 */
import {
  BigtableError,
  type ByteString,
  Code,
  CorruptionError,
  type Int64,
  readInt64BE,
  toText,
  VarintReader,
} from '../base/index.ts';
import type { LogAppend } from '../env/index.ts';

/** Length of a commit time, a timestamp, an integer. */
export const INT64_BYTES = 8;

export class AppendReader {
  readonly bytes: Buffer;
  readonly #path: string;
  readonly #position: number;
  readonly #varints: VarintReader;

  /** `path` is the log's, for messages. */
  constructor(path: string, { position, bytes }: LogAppend) {
    this.bytes = bytes;
    this.#path = path;
    this.#position = position;
    this.#varints = new VarintReader(bytes);
  }

  get offset(): number {
    return this.#varints.offset;
  }

  set offset(offset: number) {
    this.#varints.offset = offset;
  }

  varint(): number {
    return this.#varints.next();
  }

  /** Skips `length` bytes and returns their offset. */
  take(length: number): number {
    const at = this.#varints.offset;
    if (at + length > this.bytes.length) throw new RangeError(`${length} bytes at ${at} exceed the append`);
    this.#varints.offset = at + length;
    return at;
  }

  /** Skips bytes that follow their length. */
  skipBytes(): void {
    this.take(this.varint());
  }

  byte(): number {
    return this.bytes[this.take(1)]!;
  }

  int64(): Int64 {
    return readInt64BE(this.bytes, this.take(INT64_BYTES));
  }

  text(): ByteString {
    const length = this.varint();
    const at = this.take(length);
    return this.bytes.latin1Slice(at, at + length);
  }

  family(): string {
    const family = this.text();
    for (let i = 0; i < family.length; i++) if (family.charCodeAt(i) > 0x7f) return toText(family);
    return family;
  }

  /** A view of the append. */
  value(): Uint8Array {
    const length = this.varint();
    const at = this.take(length);
    return this.bytes.subarray(at, at + length);
  }

  /** Calls `decode`. A RangeError, from reading out of bounds, becomes a CorruptionError. */
  checked<T>(decode: () => T): T {
    try {
      return decode();
    } catch (error) {
      if (error instanceof RangeError) throw this.corrupt(error.message, error);
      throw error;
    }
  }

  corrupt(what: string, cause?: unknown): CorruptionError {
    return new CorruptionError(this.#path, this.#position, `at byte ${this.offset} of the append: ${what}`, cause);
  }

  tooNew(what: string): BigtableError {
    return new BigtableError(
      Code.FAILED_PRECONDITION,
      `${this.#path}: the append at ${this.#position} has ${what}: it was written by a newer Edubba`,
    );
  }
}
