/**
 * Plain data as bytes, to cross between threads: many values packed one after another into one buffer, which is then
 * transferred whole. Structured cloning is slower for small objects, and would copy the whole memory under every byte
 * array.
 *
 * A value is a tag and what follows it (message-decoder.ts reads it). Objects name their shape (the list of their keys)
 * by number: a shape is sent once, on its first use, and both sides number shapes in order; the same holds for names,
 * strings that recur. The two sides must therefore see all messages, in order, as a port guarantees. The encoding is
 * never stored: both sides are the same program.
 *
 * An object that is the same as the last one of its shape is sent as a reference to it: the rows of a batch share one
 * set of cells and the bytes under it, which would otherwise be sent with each of them.
 *
 * Invariant: a value that could not be encoded leaves no trace, in the bytes and in the tables.
 */
import { serialize } from 'node:v8';
import { viewOf } from '../../base/index.ts';

export const Tag = {
  undefined: 0,
  null: 1,
  false: 2,
  true: 3,
  integer: 4,
  double: 5,
  bigint: 6,
  latin1: 7,
  utf16: 8,
  buffer: 9,
  bytes: 10,
  array: 11,
  newShape: 12,
  shape: 13,
  newName: 14,
  name: 15,
  cloned: 16,
  same: 17,
} as const;

const FIRST_BYTES = 64 * 1024;
/** The next buffer has the size of the last message, up to this. */
const MAX_BYTES = 1024 * 1024;
/** A buffer that is at least this full is transferred itself; of an emptier one a copy is. */
const FULL_SHARE = 3 / 4;
/**
 * Shapes and names numbered at most; later ones are written in full each time. Objects with keys of users (families)
 * would otherwise fill memory.
 */
export const MAX_NUMBERED = 1024;
/** Up to this length a string is written by a loop here, which is faster than a call of Buffer's. */
const MAX_LOOPED_CHARACTERS = 48;
const NOT_LATIN1 = /[^\0-\xff]/;

interface Shape {
  readonly keys: readonly string[];
  readonly number: number;
  /** The last one since `whole` began. */
  last: object | undefined;
}

export class MessageEncoder {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #at = 0;
  /** By the first key, so that few lists of keys are compared. */
  readonly #shapes = new Map<string, Shape[]>();
  readonly #shapesInOrder: Shape[] = [];
  readonly #names = new Map<string, number>();
  /** Shapes that have a last object. */
  readonly #remembered: Shape[] = [];

  get lengthBytes(): number {
    return this.#at;
  }

  /** Bytes of memory that it holds, written to or not. */
  get capacityBytes(): number {
    return this.#bytes.length;
  }

  /** Runs `write`, which encodes one call or answer; where it throws, removes all that it wrote. */
  whole(write: () => void): void {
    // a program may change an object between two calls
    this.#clearObjects();
    const [at, shapes, names] = [this.#at, this.#shapesInOrder.length, this.#names.size];
    try {
      write();
    } catch (error) {
      this.#at = at;
      this.#clearObjects();
      for (const shape of this.#shapesInOrder.splice(shapes)) {
        const key = shape.keys[0] ?? '';
        this.#shapes.set(
          key,
          (this.#shapes.get(key) ?? []).filter((other) => other !== shape),
        );
      }
      for (const name of [...this.#names.keys()].slice(names)) this.#names.delete(name);
      throw error;
    }
  }

  /** All written bytes, as memory that the caller owns and may transfer. */
  take(): Uint8Array<ArrayBuffer> {
    const used = this.#at;
    const bytes = this.#bytes;
    this.#at = 0;
    const isFull = used >= bytes.length * FULL_SHARE;
    if (isFull || bytes.length > MAX_BYTES)
      this.#bytes = Buffer.allocUnsafeSlow(Math.min(MAX_BYTES, Math.max(FIRST_BYTES, used + (used >> 3))));
    if (isFull) return viewOf(bytes, 0, used) as Uint8Array<ArrayBuffer>;
    const taken = Buffer.allocUnsafeSlow(used);
    bytes.copy(taken, 0, 0, used);
    return taken;
  }

  uint(value: number): void {
    this.#ensureSpace(8);
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.#at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.#at++] = rest;
  }

  double(value: number): void {
    this.#ensureSpace(8);
    this.#bytes.writeDoubleLE(value, this.#at);
    this.#at += 8;
  }

  /** Writes a string that recurs. */
  name(name: string): void {
    const number = this.#names.get(name);
    if (number !== undefined) {
      this.#tag(Tag.name);
      this.uint(number);
    } else if (this.#names.size >= MAX_NUMBERED) {
      this.#string(name);
    } else {
      this.#names.set(name, this.#names.size);
      this.#tag(Tag.newName);
      this.#string(name);
    }
  }

  /** Writes a value. Throws where it cannot be cloned. */
  value(value: unknown): void {
    switch (typeof value) {
      case 'string':
        return this.#string(value);
      case 'number':
        if (Number.isInteger(value) && Math.abs(value) < 0x4000_0000 && !Object.is(value, -0)) {
          this.#tag(Tag.integer);
          return this.uint(value < 0 ? -2 * value - 1 : 2 * value);
        }
        this.#tag(Tag.double);
        return this.double(value);
      case 'undefined':
        return this.#tag(Tag.undefined);
      case 'boolean':
        return this.#tag(value ? Tag.true : Tag.false);
      case 'object':
        return this.#object(value);
      case 'bigint':
        if (BigInt.asIntN(64, value) === value) {
          this.#tag(Tag.bigint);
          this.#ensureSpace(8);
          this.#bytes.writeBigInt64LE(value, this.#at);
          this.#at += 8;
          return;
        }
    }
    this.#clone(value);
  }

  #object(value: object | null): void {
    if (value === null) return this.#tag(Tag.null);
    if (Array.isArray(value)) {
      this.#tag(Tag.array);
      this.uint(value.length);
      for (let i = 0; i < value.length; i++) this.value(value[i]);
      return;
    }
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null) return this.#plain(value as Record<string, unknown>);
    if (prototype === Buffer.prototype || prototype === Uint8Array.prototype)
      return this.#raw(value as Uint8Array, prototype === Buffer.prototype ? Tag.buffer : Tag.bytes);
    this.#clone(value);
  }

  #plain(value: Record<string, unknown>): void {
    const keys = Object.keys(value);
    let shape = this.#shapes.get(keys[0] ?? '')?.find((known) => sameKeys(known.keys, keys));
    if (shape?.last === value) {
      this.#tag(Tag.same);
      return this.uint(shape.number);
    }
    if (shape) {
      this.#tag(Tag.shape);
      this.uint(shape.number);
    } else {
      this.#tag(Tag.newShape);
      this.uint(keys.length);
      for (const key of keys) this.#string(key);
      shape = this.#number(keys);
    }
    for (const key of keys) this.value(value[key]);
    if (shape !== undefined) this.#remember(shape, value);
  }

  #remember(shape: Shape, value: object): void {
    if (shape.last === undefined) this.#remembered.push(shape);
    shape.last = value;
  }

  #clearObjects(): void {
    for (const shape of this.#remembered) shape.last = undefined;
    this.#remembered.length = 0;
  }

  /** Undefined where there are too many shapes already. */
  #number(keys: readonly string[]): Shape | undefined {
    if (this.#shapesInOrder.length >= MAX_NUMBERED) return undefined;
    const shape: Shape = { keys, number: this.#shapesInOrder.length, last: undefined };
    this.#shapesInOrder.push(shape);
    const first = keys[0] ?? '';
    const alike = this.#shapes.get(first);
    if (alike) alike.push(shape);
    else this.#shapes.set(first, [shape]);
    return shape;
  }

  #string(text: string): void {
    const { length } = text;
    this.#ensureSpace(length + 12);
    if (length > MAX_LOOPED_CHARACTERS) return this.#longString(text);
    const start = this.#at;
    this.#bytes[this.#at++] = Tag.latin1;
    this.#bytes[this.#at++] = length;
    for (let i = 0; i < length; i++) {
      const character = text.charCodeAt(i);
      if (character > 0xff) {
        this.#at = start;
        return this.#utf16(text);
      }
      this.#bytes[this.#at++] = character;
    }
  }

  #longString(text: string): void {
    if (NOT_LATIN1.test(text)) return this.#utf16(text);
    this.#tag(Tag.latin1);
    this.uint(text.length);
    this.#at += this.#bytes.latin1Write(text, this.#at);
  }

  #utf16(text: string): void {
    this.#tag(Tag.utf16);
    this.uint(text.length);
    this.#ensureSpace(text.length * 2);
    this.#at += this.#bytes.write(text, this.#at, 'utf16le');
  }

  /** Writes a value that is neither plain nor bytes, by structured cloning. */
  #clone(value: unknown): void {
    this.#raw(serialize(value), Tag.cloned);
  }

  #raw(bytes: Uint8Array, tag: number): void {
    this.#tag(tag);
    this.uint(bytes.length);
    this.#ensureSpace(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  #tag(tag: number): void {
    this.#ensureSpace(1);
    this.#bytes[this.#at++] = tag;
  }

  #ensureSpace(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#at + bytes));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}

function sameKeys(known: readonly string[], keys: readonly string[]): boolean {
  if (known.length !== keys.length) return false;
  for (let i = 0; i < keys.length; i++) if (known[i] !== keys[i]) return false;
  return true;
}
