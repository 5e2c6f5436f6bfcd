/**
 * The Bloom filter of an SSTable (paper section 6): tells without reading a block that a row, or a column of a row, has
 * no entry in the file. Format: section "bloom" of docs/formats/sstable.md.
 *
 * All six bits of a key lie in one line of 64 bytes, so that a look-up touches one cache line. With ten bits a key,
 * about 1 % of the absent keys are reported as present.
 *
 * Invariant: a key that was added is always found.
 */
import { assert, type ByteString } from '../../base/index.ts';
import type { ColumnKey } from '../../model/index.ts';
import { BloomHash } from './bloom-hash.ts';
import type { ByteReader } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';

/** The keys of a filter: none, rows, or rows and (row, column) pairs. */
export type BloomFilterKind = 'none' | 'row' | 'row-column';
/** In the order of their numbers on disk. */
export const BLOOM_FILTER_KINDS: readonly BloomFilterKind[] = ['none', 'row', 'row-column'];

const BITS_PER_KEY = 10;
const LINE_BYTES = 64;
const LINE_BITS = LINE_BYTES * 8;
/** 64 MiB. Up to this number the arithmetic that chooses a line is exact. */
const MAX_LINES = 2 ** 20;
const TWO_32 = 2 ** 32;
const SECOND_WORD = 0x9e3779b1 | 0;
/** Keys of the first and of the largest piece of gathered hashes. Pieces make growing copy nothing. */
const FIRST_PIECE_KEYS = 256;
const MAX_PIECE_KEYS = 32 * 1024;

/** Gathers the keys of a file, 8 bytes each: the size of the filter follows from their number. */
export class BloomFilterBuilder {
  readonly #kind: BloomFilterKind;
  readonly #hash = new BloomHash();
  readonly #pieces: Int32Array[] = [];
  #piece = new Int32Array(0);
  /** Numbers in the last piece, two a key. */
  #inPiece = 0;
  /** Keys in the pieces before the last. */
  #inOthers = 0;
  #row: ByteString | undefined;
  #column: ColumnKey | undefined;

  constructor(kind: BloomFilterKind) {
    assert(kind !== 'none', 'a filter has keys');
    this.#kind = kind;
  }

  /** Adds the keys of an entry. Entries come in their order. */
  add(row: ByteString, column: ColumnKey): void {
    if (row !== this.#row) {
      this.#row = row;
      this.#column = undefined;
      this.#hash.row(row);
      this.#keep();
    }
    if (this.#kind !== 'row-column' || column === this.#column) return;
    this.#column = column;
    this.#hash.column(column);
    this.#keep();
  }

  get keys(): number {
    return this.#inOthers + this.#inPiece / 2;
  }

  /** The section's bytes. */
  finish(): Buffer {
    const { keys } = this;
    const lines = Math.min(MAX_LINES, Math.max(1, Math.ceil((keys * BITS_PER_KEY) / LINE_BITS)));
    const bits = Buffer.alloc(lines * LINE_BYTES);
    let left = keys;
    for (const piece of this.#pieces) {
      for (let at = 0; at < piece.length && left > 0; at += 2, left--) setBits(bits, lines, piece[at]!, piece[at + 1]!);
    }
    assert(left === 0, 'every key is in the filter');
    const head = new ByteWriter(24);
    head.byte(BLOOM_FILTER_KINDS.indexOf(this.#kind));
    head.varint(keys);
    head.varint(lines);
    return Buffer.concat([head.written(), bits]);
  }

  #keep(): void {
    if (this.#inPiece === this.#piece.length) {
      const keys = this.#inPiece / 2;
      this.#inOthers += keys;
      this.#piece = new Int32Array(2 * Math.min(MAX_PIECE_KEYS, Math.max(FIRST_PIECE_KEYS, 2 * keys)));
      this.#pieces.push(this.#piece);
      this.#inPiece = 0;
    }
    this.#piece[this.#inPiece++] = this.#hash.first;
    this.#piece[this.#inPiece++] = this.#hash.second;
  }
}

/** The second word of a key's bits. Each word has three bit numbers of nine bits. */
function otherWord(second: number): number {
  const mixed = Math.imul(second ^ (second >>> 16), SECOND_WORD);
  return mixed ^ (mixed >>> 15);
}

function lineAt(lines: number, first: number): number {
  return Math.floor(((first >>> 0) * lines) / TWO_32) * LINE_BYTES;
}

function setBits(bits: Buffer, lines: number, first: number, second: number): void {
  const at = lineAt(lines, first);
  for (let word = second, times = 0; times < 2; times++, word = otherWord(second)) {
    for (let shift = 0; shift < 27; shift += 9) {
      const bit = (word >>> shift) & 511;
      bits[at + (bit >>> 3)] = bits[at + (bit >>> 3)]! | (1 << (bit & 7));
    }
  }
}

export class BloomFilter {
  readonly kind: BloomFilterKind;
  /** Number of keys. */
  readonly keys: number;
  readonly sizeBytes: number;
  readonly #lines: number;
  readonly #bits: Buffer;

  /** `bytes` is the section that `reader` reads; it is kept. */
  constructor(reader: ByteReader, bytes: Buffer) {
    const kind = BLOOM_FILTER_KINDS[reader.byte()];
    if (kind === undefined || kind === 'none') throw new RangeError('unknown kind of filter');
    this.kind = kind;
    this.keys = reader.varint();
    this.#lines = reader.varint();
    if (this.#lines === 0 || this.#lines > MAX_LINES) throw new RangeError(`${this.#lines} lines`);
    this.sizeBytes = this.#lines * LINE_BYTES;
    const at = reader.skip(this.sizeBytes);
    this.#bits = bytes.subarray(at, at + this.sizeBytes);
  }

  /** `hash` is shared by the filters that one read asks, so that its row is hashed once. */
  mayContainRow(row: ByteString, hash = new BloomHash()): boolean {
    hash.row(row);
    return this.#has(hash.first, hash.second);
  }

  /** Only for filters of pairs. */
  mayContainColumn(row: ByteString, column: ColumnKey, hash = new BloomHash()): boolean {
    assert(this.kind === 'row-column', 'the filter knows columns');
    hash.row(row);
    hash.column(column);
    return this.#has(hash.first, hash.second);
  }

  #has(first: number, second: number): boolean {
    const bits = this.#bits;
    const at = lineAt(this.#lines, first);
    const other = otherWord(second);
    return (
      isSet(bits, at, second & 511) &&
      isSet(bits, at, (second >>> 9) & 511) &&
      isSet(bits, at, (second >>> 18) & 511) &&
      isSet(bits, at, other & 511) &&
      isSet(bits, at, (other >>> 9) & 511) &&
      isSet(bits, at, (other >>> 18) & 511)
    );
  }
}

function isSet(bits: Buffer, at: number, bit: number): boolean {
  return (bits[at + (bit >>> 3)]! & (1 << (bit & 7))) !== 0;
}
