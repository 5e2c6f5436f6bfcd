/**
 * A growing buffer for the parts of an SSTable: fixed-width big-endian integers, varints and strings of
 * docs/formats/sstable.md. The counterpart of `byte-reader.ts`.
 */
import { assert, type ByteString, type Int64, writeInt64BE, writeVarint } from '../../base/index.ts';

/** Shorter texts are copied by a loop. */
const SHORT_TEXT = 24;
const TWO_32 = 0x1_0000_0000;

export class ByteWriter {
  bytes: Buffer;
  length = 0;

  constructor(capacityBytes = 1024) {
    this.bytes = Buffer.allocUnsafeSlow(capacityBytes);
  }

  /** Makes space for `more` bytes. */
  reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.length + more, this.bytes.length * 2));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }

  byte(value: number): void {
    this.reserve(1);
    this.bytes[this.length++] = value;
  }

  uint32(value: number): void {
    this.reserve(4);
    this.length = this.bytes.writeUInt32BE(value, this.length);
  }

  /** A safe integer in eight bytes. */
  uint64(value: number): void {
    assert(Number.isSafeInteger(value) && value >= 0, 'an offset is a safe integer');
    this.uint32(Math.floor(value / TWO_32));
    this.uint32(value % TWO_32);
  }

  int64(value: Int64): void {
    this.reserve(8);
    writeInt64BE(this.bytes, this.length, value);
    this.length += 8;
  }

  varint(value: number): void {
    this.reserve(8);
    this.length = writeVarint(this.bytes, this.length, value);
  }

  /** The characters of `text` from `from` on, without their length. */
  text(text: ByteString, from = 0): void {
    const count = text.length - from;
    this.reserve(count);
    if (count < SHORT_TEXT) {
      const bytes = this.bytes;
      let at = this.length;
      for (let i = from; i < text.length; i++) bytes[at++] = text.charCodeAt(i);
    } else {
      this.bytes.latin1Write(from === 0 ? text : text.slice(from), this.length);
    }
    this.length += count;
  }

  /** Length and characters. */
  string(text: ByteString, from = 0): void {
    this.varint(text.length - from);
    this.text(text, from);
  }

  raw(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** The bytes written so far, over the same memory: valid until the next write. */
  written(): Buffer {
    return this.bytes.subarray(0, this.length);
  }

  clear(): void {
    this.length = 0;
  }
}
