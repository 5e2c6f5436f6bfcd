/**
 * Writes protobuf's wire format (https://protobuf.dev/programming-guides/encoding) into a buffer that grows. The length
 * of a nested message is written once its end is known: one byte is left free for it, and a longer length moves the
 * message.
 *
 * Invariant: long byte arrays of the outermost message are not copied where the writer makes parts. They belong to the
 * reader of the parts then.
 */
import { asBuffer, assert, type ByteString, type Int64, varintLength, writeVarint } from '../base/index.ts';

const FIRST_BYTES = 256;
/** The longest varint. */
const MAX_VARINT_BYTES = 10;
/** More is reserved when it is written. */
const MAX_EXPECTED_BYTES = 1024 * 1024;
/** Strings up to this length are measured and written by a loop, without a call. */
const SHORT_CHARS = 24;
/** Byte arrays from this size on become a part of their own, where a message is written in parts. */
export const PART_BYTES = 16 * 1024;

/** Bytes of a field with a one-byte tag, a length and `length` bytes. */
export function lengthDelimited(length: number): number {
  return 1 + varintLength(length) + length;
}

/** Bytes of an int64 as a varint. */
export function int64Length(value: Int64): number {
  if (typeof value === 'number' && value >= 0) return varintLength(value);
  if (value < 0) return MAX_VARINT_BYTES;
  let length = 1;
  for (let rest = BigInt(value); rest >= 0x80n; rest >>= 7n) length++;
  return length;
}

/** Bytes of a text as UTF-8. */
export function textLength(value: string): number {
  return isShortAscii(value) ? value.length : Buffer.byteLength(value, 'utf8');
}

function isShortAscii(value: string): boolean {
  if (value.length > SHORT_CHARS) return false;
  for (let i = 0; i < value.length; i++) if (value.charCodeAt(i) >= 0x80) return false;
  return true;
}

export class MessageWriter {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  #at = 0;
  /** How many nested messages have begun and not ended. */
  #depth = 0;
  /** The parts before `#bytes`; undefined where there is to be one. */
  readonly #parts: Buffer[] | undefined;

  /** `inParts`: true where `takeParts` is called in the end. */
  constructor(inParts = false) {
    this.#parts = inParts ? [] : undefined;
  }

  /** Bytes written so far, since the last part. */
  get length(): number {
    return this.#at;
  }

  /** About so many bytes come next: the buffer grows once for all of them. */
  expect(bytes: number): void {
    this.#reserve(Math.min(Math.ceil(bytes), MAX_EXPECTED_BYTES));
  }

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
    this.#latin1(value);
  }

  /** A length and the text as UTF-8. */
  text(value: string): void {
    if (isShortAscii(value)) return this.byteString(value);
    const length = Buffer.byteLength(value, 'utf8');
    this.count(length);
    this.#reserve(length);
    this.#at += this.#bytes.write(value, this.#at, 'utf8');
  }

  #latin1(value: string): void {
    if (value.length > SHORT_CHARS) this.#at += this.#bytes.latin1Write(value, this.#at);
    else for (let i = 0; i < value.length; i++) this.#bytes[this.#at++] = value.charCodeAt(i);
  }

  /** A length and the bytes. */
  bytes(value: Uint8Array): void {
    this.count(value.length);
    if (this.#parts !== undefined && this.#depth === 0 && value.length >= PART_BYTES) return this.#addPart(value);
    this.#reserve(value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
  }

  /** Begins a nested message; `end` takes what it returns. */
  begin(): number {
    this.#reserve(1);
    this.#depth++;
    return ++this.#at;
  }

  end(start: number): void {
    this.#depth--;
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

  /** What was written, in one buffer or several. The writer is not used again. */
  takeParts(): Buffer | readonly Buffer[] {
    const parts = this.#parts;
    assert(parts !== undefined, 'a writer that makes no parts has none');
    if (parts.length === 0) return this.take();
    if (this.#at > 0) parts.push(this.take());
    return parts;
  }

  #addPart(value: Uint8Array): void {
    if (this.#at > 0) this.#parts!.push(this.take());
    this.#parts!.push(asBuffer(value));
    this.#bytes = this.#bytes.subarray(this.#at);
    this.#at = 0;
  }

  #reserve(bytes: number): void {
    const needed = this.#at + bytes;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, needed + FIRST_BYTES));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }
}
