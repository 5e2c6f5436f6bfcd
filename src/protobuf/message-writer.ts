/**
 * Writes protobuf's wire format (https://protobuf.dev/programming-guides/encoding) into a buffer that grows. The length
 * of a nested message is written once its end is known: one byte is left free for it, and a longer length moves the
 * message.
 */
import { assert, type ByteString, type Int64, varintLength, writeVarint } from '../base/index.ts';

const FIRST_BYTES = 256;
/** The longest varint. */
const MAX_VARINT_BYTES = 10;

export class MessageWriter {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  #at = 0;

  /** A safe integer from 0 on. */
  count(value: number): void {
    this.#reserve(MAX_VARINT_BYTES);
    // most are tags and lengths
    if (value >= 0 && value < 0x80 && value === (value | 0)) {
      this.#bytes[this.#at++] = value;
      return;
    }
    assert(Number.isSafeInteger(value) && value >= 0, 'a count is a safe integer and not negative');
    this.#at = writeVarint(this.#bytes, this.#at, value);
  }

  int64(value: Int64): void {
    if (typeof value === 'number' && value >= 0) return this.count(value);
    this.#reserve(MAX_VARINT_BYTES);
    let rest = BigInt.asUintN(64, BigInt(value));
    for (; rest >= 0x80n; rest >>= 7n) this.#bytes[this.#at++] = Number(rest & 0x7fn) | 0x80;
    this.#bytes[this.#at++] = Number(rest);
  }

  double(value: number): void {
    this.#reserve(8);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
  }

  /** A length and the bytes. */
  byteString(value: ByteString): void {
    this.count(value.length);
    this.#reserve(value.length);
    this.#at += this.#bytes.latin1Write(value, this.#at);
  }

  /** A length and the text as UTF-8. */
  text(value: string): void {
    const length = Buffer.byteLength(value, 'utf8');
    this.count(length);
    this.#reserve(length);
    this.#at += this.#bytes.write(value, this.#at, 'utf8');
  }

  /** A length and the bytes. */
  bytes(value: Uint8Array): void {
    this.count(value.length);
    this.#reserve(value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
  }

  /** Begins a nested message; `end` takes what it returns. */
  begin(): number {
    this.#reserve(1);
    return ++this.#at;
  }

  end(start: number): void {
    const length = this.#at - start;
    const head = varintLength(length);
    if (head > 1) {
      this.#reserve(head - 1);
      this.#bytes.copyWithin(start + head - 1, start, this.#at);
      this.#at += head - 1;
    }
    writeVarint(this.#bytes, start - 1, length);
  }

  /** What was written. The writer is not used again. */
  take(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  #reserve(bytes: number): void {
    const needed = this.#at + bytes;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, needed + FIRST_BYTES));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }
}
