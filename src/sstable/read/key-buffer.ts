/**
 * A row or column key that is decoded piece by piece. Its bytes are in a buffer that grows; its byte string is made on
 * request, and only if the bytes have changed. Hot path: short keys are copied by a loop, without calls.
 */
import { type ByteString, isText, recurringText } from '../../base/index.ts';
import type { RowDigests } from '../format/row-digests.ts';
import { compareBytesTo } from '../format/seek-target.ts';

const SHORT = 32;

export class KeyBuffer {
  #bytes = Buffer.allocUnsafeSlow(128);
  #length = 0;
  #text: ByteString | undefined = '';
  /** Grows whenever the key changes. */
  changes = 0;
  readonly #recurs: boolean;

  /** `recurs`: the same few keys come again and again. */
  constructor(recurs = false) {
    this.#recurs = recurs;
  }

  get text(): ByteString {
    return (this.#text ??=
      this.#recurs && this.#length <= SHORT
        ? recurringText(this.#bytes, this.#length)
        : this.#bytes.latin1Slice(0, this.#length));
  }

  /** Makes `text` the key's text if it equals the key and there is none yet. */
  expect(text: ByteString): void {
    if (this.#text === undefined && this.equals(text)) this.#text = text;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Keeps the first `shared` bytes and appends `count` bytes of `source` from `at` on. `shared` is at most the length.
   */
  replace(shared: number, source: Buffer, at: number, count: number): void {
    const length = shared + count;
    // a restart point in a long row, or in a column of many versions, repeats the key
    if (length === this.#length && this.#endsWith(shared, source, at, count)) return;
    if (length > this.#bytes.length) this.#grow(shared, length);
    const bytes = this.#bytes;
    if (count <= SHORT) for (let i = 0; i < count; i++) bytes[shared + i] = source[at + i]!;
    else source.copy(bytes, shared, at, at + count);
    this.#length = length;
    this.#text = undefined;
    this.changes++;
  }

  compare(text: ByteString): number {
    return compareBytesTo(this.#bytes, 0, this.#length, text);
  }

  equals(text: ByteString): boolean {
    return isText(this.#bytes, this.#length, text);
  }

  digestInto(digests: RowDigests, number: number, mark: number): void {
    digests.set(number, this.#bytes, 0, this.#length, mark);
  }

  #endsWith(shared: number, source: Buffer, at: number, count: number): boolean {
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
