/**
 * HPACK, sending side (RFC 7541). Fields go into the dynamic table unless they are secret or differ from call to call;
 * strings take Huffman's code where it is shorter.
 *
 * Invariant: the table is the one that a decoder of the blocks so far has, if they reach it in order.
 */
import { assert } from '../../base/index.ts';
import { ENTRY_OVERHEAD_BYTES } from './dynamic-table.ts';
import { huffmanEncode, huffmanLength } from './huffman.ts';
import { FIRST_DYNAMIC, STATIC_NAMES, STATIC_VALUES } from './static-table.ts';

/** Headers marked as never to be indexed, not by proxies either. */
const NEVER_INDEXED: ReadonlySet<string> = new Set(['authorization', 'cookie', 'proxy-authorization', 'set-cookie']);
/** Headers not worth an entry, since the next call has another value. */
const NOT_INDEXED: ReadonlySet<string> = new Set([
  'content-length',
  'grpc-message',
  'grpc-status-details-bin',
  'grpc-timeout',
  'grpc-trace-bin',
  'traceparent',
  'x-client-request-id',
]);

const INDEXED = 0x80;
const ADDED = 0x40;
const RESIZED = 0x20;
const NEVER_INDEXED_LITERAL = 0x10;
const LITERAL = 0x00;

interface Entry {
  readonly name: string;
  readonly value: string;
}

/** First index of each name in the static table, and the index of each name and value. */
const STATIC_BY_NAME = new Map<string, { readonly first: number; readonly byValue: Map<string, number> }>();
for (let index = 1; index < FIRST_DYNAMIC; index++) {
  const name = STATIC_NAMES[index]!;
  const known = STATIC_BY_NAME.get(name) ?? { first: index, byValue: new Map() };
  known.byValue.set(STATIC_VALUES[index]!, index);
  STATIC_BY_NAME.set(name, known);
}

export class HpackEncoder {
  readonly #ownMaxBytes: number;
  #maxBytes: number;
  #sizeBytes = 0;
  /** Oldest first; an entry's number is its index plus #dropped. */
  #entries: Entry[] = [];
  #dropped = 0;
  /** name -> value -> the newest entry's number. */
  readonly #numbers = new Map<string, Map<string, number>>();
  /** The smallest size since the last block, where the size has changed. */
  #smallestBytes: number | undefined;
  #out = Buffer.allocUnsafe(1024);
  #at = 0;

  /** `maxTableBytes`: the largest table that we keep; default 4096. */
  constructor(options: { readonly maxTableBytes?: number } = {}) {
    this.#ownMaxBytes = options.maxTableBytes ?? 4096;
    this.#maxBytes = 4096;
    if (this.#ownMaxBytes < 4096) this.setPeerTableSize(4096);
  }

  /** The peer's SETTINGS_HEADER_TABLE_SIZE. The next block announces the table's new size. */
  setPeerTableSize(bytes: number): void {
    const maxBytes = Math.min(bytes, this.#ownMaxBytes);
    if (maxBytes === this.#maxBytes) return;
    this.#maxBytes = maxBytes;
    this.#smallestBytes = Math.min(maxBytes, this.#smallestBytes ?? maxBytes);
    this.#evict(maxBytes);
  }

  /** A block of name, value, name, value … (latin1, names in lower case). The bytes are the caller's. */
  encode(headers: readonly string[]): Buffer {
    this.#at = 0;
    this.#writeSizes();
    for (let i = 0; i < headers.length; i += 2) this.#field(headers[i]!, headers[i + 1]!);
    return Buffer.from(this.#out.subarray(0, this.#at));
  }

  #writeSizes(): void {
    if (this.#smallestBytes === undefined) return;
    this.#ensureSpace(16);
    this.#integer(RESIZED, 0x1f, this.#smallestBytes);
    if (this.#maxBytes !== this.#smallestBytes) this.#integer(RESIZED, 0x1f, this.#maxBytes);
    this.#smallestBytes = undefined;
  }

  #field(name: string, value: string): void {
    // an integer takes six bytes at most
    this.#ensureSpace(name.length + value.length + 18);
    const known = STATIC_BY_NAME.get(name);
    const isNeverIndexed = NEVER_INDEXED.has(name);
    const index = isNeverIndexed ? undefined : (known?.byValue.get(value) ?? this.#indexOf(name, value));
    if (index !== undefined) return this.#integer(INDEXED, 0x7f, index);
    const isAdded =
      !isNeverIndexed &&
      !NOT_INDEXED.has(name) &&
      name.length + value.length + ENTRY_OVERHEAD_BYTES <= this.#maxBytes / 2;
    const nameIndex = known?.first ?? this.#nameIndexOf(name) ?? 0;
    if (isAdded) this.#integer(ADDED, 0x3f, nameIndex);
    else this.#integer(isNeverIndexed ? NEVER_INDEXED_LITERAL : LITERAL, 0x0f, nameIndex);
    if (nameIndex === 0) this.#string(name);
    this.#string(value);
    if (isAdded) this.#add(name, value);
  }

  // the table

  #indexOf(name: string, value: string): number | undefined {
    const number = this.#numbers.get(name)?.get(value);
    return number === undefined ? undefined : this.#index(number);
  }

  #nameIndexOf(name: string): number | undefined {
    const numbers = this.#numbers.get(name)?.values().next();
    return numbers === undefined || numbers.done ? undefined : this.#index(numbers.value);
  }

  #index(number: number): number {
    return FIRST_DYNAMIC + this.#dropped + this.#entries.length - 1 - number;
  }

  #add(name: string, value: string): void {
    const bytes = name.length + value.length + ENTRY_OVERHEAD_BYTES;
    this.#evict(this.#maxBytes - bytes);
    const number = this.#dropped + this.#entries.push({ name, value }) - 1;
    this.#sizeBytes += bytes;
    const byValue = this.#numbers.get(name);
    if (byValue) byValue.set(value, number);
    else this.#numbers.set(name, new Map([[value, number]]));
  }

  #evict(downToBytes: number): void {
    let gone = 0;
    while (this.#sizeBytes > downToBytes) {
      const entry = this.#entries[gone];
      assert(entry, 'the dynamic table counts its size');
      this.#sizeBytes -= entry.name.length + entry.value.length + ENTRY_OVERHEAD_BYTES;
      this.#removeNumber(entry, this.#dropped + gone);
      gone++;
    }
    if (gone === 0) return;
    this.#entries = this.#entries.slice(gone);
    this.#dropped += gone;
  }

  #removeNumber({ name, value }: Entry, number: number): void {
    const byValue = this.#numbers.get(name);
    if (byValue?.get(value) !== number) return;
    byValue.delete(value);
    if (byValue.size === 0) this.#numbers.delete(name);
  }

  // the bytes

  #ensureSpace(bytes: number): void {
    if (this.#at + bytes <= this.#out.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.#at + bytes));
    this.#out.copy(larger, 0, 0, this.#at);
    this.#out = larger;
  }

  #integer(pattern: number, mask: number, value: number): void {
    if (value < mask) {
      this.#out[this.#at++] = pattern | value;
      return;
    }
    this.#out[this.#at++] = pattern | mask;
    let rest = value - mask;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.#out[this.#at++] = (rest % 128) | 0x80;
    this.#out[this.#at++] = rest;
  }

  #string(text: string): void {
    const huffman = huffmanLength(text);
    assert(!Number.isNaN(huffman), 'a header holds latin1 only');
    if (huffman < text.length) {
      this.#integer(0x80, 0x7f, huffman);
      this.#at = huffmanEncode(text, this.#out, this.#at);
    } else {
      this.#integer(0, 0x7f, text.length);
      this.#at += this.#out.latin1Write(text, this.#at, text.length);
    }
  }
}
