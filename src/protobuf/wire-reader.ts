/**
 * Reads protobuf's wire format field by field (https://protobuf.dev/programming-guides/encoding): for our own messages,
 * and for the few of the API that may be large, whose decoding must be able to pause.
 *
 * Invariant: never reads outside [start, end); malformed bytes throw INVALID_ARGUMENT.
 *
 *   const reader = new WireReader(bytes);
 *   while (reader.next()) switch (reader.field) { case 1: reader.bytes(); … default: reader.skip(); }
 */
import { type BigtableError, int64, type Int64, invalidArgument, viewOf } from '../base/index.ts';

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const GROUP_START = 3;
const GROUP_END = 4;
const FIXED32 = 5;
const TWO_32 = 0x1_0000_0000;

export class WireReader {
  /** Number of the field at which the reader is. */
  field = 0;
  /** Offsets of the last length-delimited field. */
  spanStart = 0;
  spanEnd = 0;
  readonly #bytes: Buffer;
  #end: number;
  #at: number;
  #type = 0;
  #low = 0;
  #high = 0;

  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  /** Moves to another message in the same bytes. */
  begin(start: number, end: number): void {
    this.#at = start;
    this.#end = end;
  }

  /** Steps to the next field; false at the end. The field's value must then be read or skipped. */
  next(): boolean {
    if (this.#at === this.#end) return false;
    const tag = this.#uint32();
    this.field = tag >>> 3;
    this.#type = tag & 7;
    if (this.field === 0) throw this.#malformed('field number 0');
    return true;
  }

  /** A length-delimited field: its span without a copy. */
  span(): void {
    if (this.#type !== LENGTH) throw this.#malformed(`field ${this.field} has wire type ${this.#type}`);
    const length = this.#uint32();
    if (length > this.#end - this.#at)
      throw this.#malformed(`field ${this.field} of ${length} bytes runs over the end`);
    this.spanStart = this.#at;
    this.#at += length;
    this.spanEnd = this.#at;
  }

  bytes(): Buffer {
    this.span();
    return viewOf(this.#bytes, this.spanStart, this.spanEnd);
  }

  /** A nested message, to be read field by field. */
  message(): WireReader {
    this.span();
    return new WireReader(this.#bytes, this.spanStart, this.spanEnd);
  }

  /** The bytes as a byte string (strings of the API are UTF-8). */
  byteString(): string {
    this.span();
    return this.#bytes.latin1Slice(this.spanStart, this.spanEnd);
  }

  text(): string {
    this.span();
    return this.#bytes.toString('utf8', this.spanStart, this.spanEnd);
  }

  /** The text; `known` itself where the bytes spell it. */
  textLike(known: string): string {
    this.span();
    return this.#spells(known) ? known : this.#bytes.toString('utf8', this.spanStart, this.spanEnd);
  }

  /** As `byteString`; `known` itself where the bytes are those. */
  byteStringLike(known: string): string {
    this.span();
    return this.#isSame(known) ? known : this.#bytes.latin1Slice(this.spanStart, this.spanEnd);
  }

  /** The length of the field at which the reader is, which is read next. */
  lengthAhead(): number {
    const at = this.#at;
    this.span();
    const length = this.#at - this.spanStart;
    this.#at = at;
    return length;
  }

  int64(): Int64 {
    this.#expectVarint();
    this.#varint();
    const high = this.#high | 0;
    if (high >= -0x1f_ffff && high < 0x20_0000) return high * TWO_32 + this.#low;
    return int64((BigInt(high) << 32n) | BigInt(this.#low));
  }

  /** An int32, uint32, enum or bool: the low 32 bits, signed. */
  int32(): number {
    this.#expectVarint();
    this.#varint();
    return this.#low | 0;
  }

  double(): number {
    if (this.#type !== FIXED64) throw this.#malformed(`field ${this.field} has wire type ${this.#type}`);
    this.#pass(8);
    return this.#bytes.readDoubleLE(this.#at - 8);
  }

  skip(): void {
    this.#skip(this.field, this.#type, 0);
  }

  #isSame(byteString: string): boolean {
    const start = this.spanStart;
    if (this.spanEnd - start !== byteString.length) return false;
    for (let i = 0; i < byteString.length; i++) if (this.#bytes[start + i] !== byteString.charCodeAt(i)) return false;
    return true;
  }

  #spells(text: string): boolean {
    const start = this.spanStart;
    if (this.spanEnd - start !== text.length) return false;
    for (let i = 0; i < text.length; i++) {
      const byte = this.#bytes[start + i]!;
      if (byte !== text.charCodeAt(i) || byte >= 0x80) return false;
    }
    return true;
  }

  #skip(field: number, type: number, depth: number): void {
    switch (type) {
      case VARINT:
        return this.#varint();
      case FIXED64:
        return this.#pass(8);
      case FIXED32:
        return this.#pass(4);
      case LENGTH:
        return this.#pass(this.#uint32());
      case GROUP_START:
        if (depth > 64) throw this.#malformed('groups nested too deep');
        for (;;) {
          if (this.#at === this.#end) throw this.#malformed('a group without end');
          const tag = this.#uint32();
          if ((tag & 7) === GROUP_END) {
            if (tag >>> 3 !== field) throw this.#malformed('a group that ends as another');
            return;
          }
          this.#skip(tag >>> 3, tag & 7, depth + 1);
        }
      default:
        throw this.#malformed(`field ${field} has wire type ${type}`);
    }
  }

  #pass(length: number): void {
    if (length > this.#end - this.#at)
      throw this.#malformed(`field ${this.field} of ${length} bytes runs over the end`);
    this.#at += length;
  }

  #expectVarint(): void {
    if (this.#type !== VARINT) throw this.#malformed(`field ${this.field} has wire type ${this.#type}`);
  }

  /** A varint that must fit into 32 bits: tags and lengths. */
  #uint32(): number {
    this.#varint();
    if (this.#high !== 0) throw this.#malformed('a tag or length above 32 bits');
    return this.#low;
  }

  /** Up to ten bytes into two halves; bits above 64 are lost, as protobuf says. */
  #varint(): void {
    const bytes = this.#bytes;
    let at = this.#at;
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (at >= this.#end) throw this.#malformed('a varint that runs over the end');
      const byte = bytes[at++]!;
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high = bits >>> 4;
      } else if (shift < 63) high |= bits << (shift - 32);
      else high |= (bits & 1) << 31;
      if (byte < 0x80) {
        this.#at = at;
        this.#low = low >>> 0;
        this.#high = high >>> 0;
        return;
      }
    }
    throw this.#malformed('a varint above ten bytes');
  }

  #malformed(what: string): BigtableError {
    return invalidArgument(`invalid protobuf message: ${what} at byte ${this.#at}`);
  }
}
