/**
 * HPACK, receiving side (RFC 7541): decodes header blocks to flat lists of names and values, latin1.
 *
 * Invariant: a block that decodes leaves the dynamic table as the sender has it, even where the list is too large to be
 * returned; no more of such a list is built than the limit. After an HpackError the table is invalid.
 */
import { Pool } from '../../base/index.ts';
import { DynamicTable, ENTRY_OVERHEAD_BYTES } from './dynamic-table.ts';
import { huffmanDecode } from './huffman.ts';
import { FIRST_DYNAMIC, STATIC_NAMES, STATIC_VALUES } from './static-table.ts';

/** The block is malformed: the connection cannot continue. */
export class HpackError extends Error {}

/** The block is sound, its list is above the limit: the stream is to be refused. */
export class HeaderListTooLarge extends Error {}

/** Size of a table before a limit of ours has reached the sender. */
const DEFAULT_TABLE_BYTES = 4096;
/** Coded strings up to this size are decoded in a buffer of the pool. */
const SCRATCH_BYTES = 2048;
const scratches = new Pool<Buffer>(1);
/** No length or index that makes sense is above 28 bits. */
const MAX_SHIFT = 21;

/**
 * A peer has cause for two: the smallest size that the table had meanwhile, and its present one (RFC 7541, section
 * 4.2).
 */
const MAX_RESIZES = 2;

export class HpackDecoder {
  readonly #table = new DynamicTable(DEFAULT_TABLE_BYTES);
  readonly #maxTableBytes: number;
  readonly #maxHeaderBytes: number;
  #block: Buffer = Buffer.alloc(0);
  #at = 0;

  /** `maxTableBytes`: as announced to the sender. `maxHeaderBytes`: bounds the sum of name + value + 32 over a list. */
  constructor(options: { readonly maxTableBytes: number; readonly maxHeaderBytes: number }) {
    this.#maxTableBytes = options.maxTableBytes;
    this.#maxHeaderBytes = options.maxHeaderBytes;
  }

  /** name, value, name, value … of a whole block. HpackError, HeaderListTooLarge. */
  decode(block: Buffer): string[] {
    this.#block = block;
    this.#at = 0;
    for (let resizes = 0; this.#at < block.length && (block[this.#at]! & 0xe0) === 0x20; resizes++) {
      if (resizes === MAX_RESIZES) throw new HpackError(`the table is resized more than ${MAX_RESIZES} times in a row`);
      this.#resize();
    }
    const headers: string[] = [];
    let listBytes = 0;
    while (this.#at < block.length) {
      const byte = block[this.#at]!;
      let name: string;
      let value: string;
      if (byte >= 0x80) {
        const index = this.#integer(0x7f);
        name = this.#nameAt(index);
        value = index < FIRST_DYNAMIC ? STATIC_VALUES[index]! : this.#table.value(index - FIRST_DYNAMIC);
      } else {
        if ((byte & 0xe0) === 0x20) throw new HpackError('the table is resized after a field');
        const isKept = byte >= 0x40;
        const index = this.#integer(isKept ? 0x3f : 0x0f);
        name = index === 0 ? this.#string() : this.#nameAt(index);
        value = this.#string();
        if (isKept) this.#table.add(name, value);
      }
      listBytes += name.length + value.length + ENTRY_OVERHEAD_BYTES;
      if (listBytes <= this.#maxHeaderBytes) headers.push(name, value);
    }
    if (listBytes > this.#maxHeaderBytes)
      throw new HeaderListTooLarge(`a header list of ${listBytes} bytes; the limit is ${this.#maxHeaderBytes}`);
    return headers;
  }

  #resize(): void {
    const bytes = this.#integer(0x1f);
    if (bytes > this.#maxTableBytes)
      throw new HpackError(`a table of ${bytes} bytes; the limit is ${this.#maxTableBytes}`);
    this.#table.resize(bytes);
  }

  #nameAt(index: number): string {
    const name = index < FIRST_DYNAMIC ? STATIC_NAMES[index] : this.#table.name(index - FIRST_DYNAMIC);
    if (index === 0 || name === undefined)
      throw new HpackError(`no field has index ${index}: the table ends at ${FIRST_DYNAMIC - 1 + this.#table.length}`);
    return name;
  }

  /** An integer in the low bits of the next byte and, where they are all ones, in those that follow (section 5.1). */
  #integer(mask: number): number {
    const block = this.#block;
    let value = block[this.#at++]! & mask;
    if (value < mask) return value;
    for (let shift = 0; shift <= MAX_SHIFT; shift += 7) {
      if (this.#at >= block.length) throw new HpackError('the block ends within an integer');
      const byte = block[this.#at++]!;
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new HpackError('an integer of more than 28 bits');
  }

  #string(): string {
    const block = this.#block;
    if (this.#at >= block.length) throw new HpackError('the block ends before a string');
    const isHuffman = block[this.#at]! >= 0x80;
    const length = this.#integer(0x7f);
    const from = this.#at;
    const to = from + length;
    if (to > block.length) throw new HpackError(`the block ends within a string of ${length} bytes`);
    this.#at = to;
    if (!isHuffman) return block.latin1Slice(from, to);
    const isShort = length <= SCRATCH_BYTES;
    const scratch =
      (isShort ? scratches.take() : undefined) ??
      Buffer.allocUnsafeSlow(decodedBytes(isShort ? SCRATCH_BYTES : length));
    const decodedLength = huffmanDecode(block, from, to, scratch);
    const text = decodedLength < 0 ? undefined : scratch.latin1Slice(0, decodedLength);
    if (isShort) scratches.give(scratch);
    if (text === undefined) throw new HpackError('a string is not Huffman code');
    return text;
  }
}

/** The largest decoded size of `codedBytes`: Huffman's shortest code has five bits. */
function decodedBytes(codedBytes: number): number {
  return Math.ceil((codedBytes * 8) / 5);
}
