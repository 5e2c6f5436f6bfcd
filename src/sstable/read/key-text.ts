/**
 * A row or column key that is decoded piece by piece: its bytes in a buffer that grows, its byte string made when asked for and
 * only when the bytes have changed. A hot path: bytes are moved by a loop, since a call costs more than a short key.
 */
import type { ByteString } from '../../base/index.ts';
import type { RowDigests } from '../format/row-digests.ts';
import { compareBytesTo } from '../format/seek-target.ts';

const SHORT = 32;

/** Names of columns last made to text, by a hash: tables have few, and each is asked for in row after row. A power of two. */
const RECENT = 512;
const recent: ByteString[] = new Array<ByteString>(RECENT).fill('');

export class KeyText {
  #bytes = Buffer.allocUnsafeSlow(128);
  #length = 0;
  #text: ByteString | undefined = '';
  /** Grows whenever the key becomes another. */
  changes = 0;
  readonly #recurs: boolean;

  /** `recurs`: whether the same few keys come again and again. */
  constructor(recurs = false) {
    this.#recurs = recurs;
  }

  get text(): ByteString {
    return (this.#text ??=
      this.#recurs && this.#length <= SHORT ? this.#recentText() : this.#bytes.latin1Slice(0, this.#length));
  }

  get length(): number {
    return this.#length;
  }

  /** Keeps the first `shared` bytes and puts `count` bytes of `source` from `at` on behind them. `shared` is at most the length. */
  replace(shared: number, source: Buffer, at: number, count: number): void {
    const length = shared + count;
    // a restart point in a long row, or in a column of many versions, says what is here already
    if (length === this.#length && this.#equals(shared, source, at, count)) return;
    if (length > this.#bytes.length) this.#grow(shared, length);
    const bytes = this.#bytes;
    if (count <= SHORT) for (let i = 0; i < count; i++) bytes[shared + i] = source[at + i] as number;
    else source.copy(bytes, shared, at, at + count);
    this.#length = length;
    this.#text = undefined;
    this.changes++;
  }

  compare(text: ByteString): number {
    return compareBytesTo(this.#bytes, 0, this.#length, text);
  }

  /** Whether it is `text`; told from its last byte on, in which neighbours mostly differ. */
  is(text: ByteString): boolean {
    if (text.length !== this.#length) return false;
    const bytes = this.#bytes;
    for (let i = text.length - 1; i >= 0; i--) if (bytes[i] !== text.charCodeAt(i)) return false;
    return true;
  }

  digestInto(digests: RowDigests, number: number, mark: number): void {
    digests.set(number, this.#bytes, 0, this.#length, mark);
  }

  /** The same string as the last time, where that was not long ago: making one costs more than comparing does, and one that is the same compares quickest. */
  #recentText(): ByteString {
    const bytes = this.#bytes;
    let hash = this.#length;
    for (let i = 0; i < this.#length; i++) hash = Math.imul(hash, 31) + (bytes[i] as number);
    const at = (hash ^ (hash >>> 9)) & (RECENT - 1);
    const known = recent[at] as ByteString;
    if (this.is(known)) return known;
    const text = bytes.latin1Slice(0, this.#length);
    recent[at] = text;
    return text;
  }

  #equals(shared: number, source: Buffer, at: number, count: number): boolean {
    const bytes = this.#bytes;
    for (let i = count - 1; i >= 0; i--) if (bytes[shared + i] !== source[at + i]) return false;
    return true;
  }

  #grow(shared: number, length: number): void {
    const larger = Buffer.allocUnsafeSlow(length * 2);
    this.#bytes.copy(larger, 0, 0, shared);
    this.#bytes = larger;
  }
}
