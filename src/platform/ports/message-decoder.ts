/**
 * Reads what message-encoder.ts wrote. Byte arrays are views of the received buffer, which belongs to the receiver:
 * nothing is copied.
 *
 * Invariant: shapes and names are numbered in the order of arrival, as the encoder has numbered them.
 */
import { deserialize } from 'node:v8';
import { assert, viewOf } from '../../base/index.ts';
import { MAX_NUMBERED, Tag } from './message-encoder.ts';

export class MessageDecoder {
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  readonly #shapes: (readonly string[])[] = [];
  readonly #names: string[] = [];
  /** By the number of a shape: the last object of it in this message. */
  #last: object[] = [];

  /** Reads later values from `bytes`. */
  begin(bytes: Uint8Array): void {
    assert(this.#at === this.#bytes.length, 'the last message was read to its end');
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#at = 0;
    if (this.#last.length > 0) this.#last = [];
  }

  /** The number of bytes read. */
  get at(): number {
    return this.#at;
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  uint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.#bytes[this.#at++]!;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  }

  double(): number {
    this.#at += 8;
    return this.#bytes.readDoubleLE(this.#at - 8);
  }

  name(): string {
    const tag = this.#bytes[this.#at]!;
    if (tag === Tag.name) {
      this.#at++;
      return this.#names[this.uint()]!;
    }
    if (tag !== Tag.newName) return this.value() as string;
    this.#at++;
    const name = this.value() as string;
    this.#names.push(name);
    return name;
  }

  value(): unknown {
    const tag = this.#bytes[this.#at++]!;
    switch (tag) {
      case Tag.undefined:
        return undefined;
      case Tag.null:
        return null;
      case Tag.false:
        return false;
      case Tag.true:
        return true;
      case Tag.integer: {
        const folded = this.uint();
        return folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2;
      }
      case Tag.double:
        return this.double();
      case Tag.bigint:
        this.#at += 8;
        return this.#bytes.readBigInt64LE(this.#at - 8);
      case Tag.latin1: {
        const start = this.#skip(this.uint());
        return this.#bytes.latin1Slice(start, this.#at);
      }
      case Tag.utf16: {
        const start = this.#skip(this.uint() * 2);
        return this.#bytes.toString('utf16le', start, this.#at);
      }
      case Tag.array:
        return this.#array();
      case Tag.shape:
        return this.#objectOf(this.uint());
      case Tag.newShape:
        return this.#newShape();
      case Tag.same:
        return this.#last[this.uint()];
      default:
        return this.#raw(tag);
    }
  }

  #array(): unknown[] {
    const length = this.uint();
    const items: unknown[] = [];
    for (let i = 0; i < length; i++) items.push(this.value());
    return items;
  }

  #newShape(): object {
    const keys = this.#array() as string[];
    if (this.#shapes.length >= MAX_NUMBERED) return this.#object(keys);
    this.#shapes.push(keys);
    return this.#objectOf(this.#shapes.length - 1);
  }

  #objectOf(shape: number): object {
    const object = this.#object(this.#shapes[shape]!);
    this.#last[shape] = object;
    return object;
  }

  #object(keys: readonly string[]): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    for (const key of keys) {
      const value = this.value();
      // plain assignment would set the prototype
      if (key === '__proto__')
        Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
      else object[key] = value;
    }
    return object;
  }

  #raw(tag: number): unknown {
    const start = this.#skip(this.uint());
    const { buffer, byteOffset } = this.#bytes;
    if (tag === Tag.bytes) return new Uint8Array(buffer, byteOffset + start, this.#at - start);
    assert(tag === Tag.buffer || tag === Tag.cloned, `unknown tag ${tag}`);
    const bytes = viewOf(this.#bytes, start, this.#at);
    return tag === Tag.buffer ? bytes : deserialize(bytes);
  }

  /** Skips the bytes and returns their offset. */
  #skip(bytes: number): number {
    this.#at += bytes;
    return this.#at - bytes;
  }
}
