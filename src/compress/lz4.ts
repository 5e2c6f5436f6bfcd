/**
 * LZ4's block format in plain JavaScript, for machines without a native build: a complete decoder, and an encoder that
 * keeps one candidate for each hash, as LZ4's fast one does.
 *
 * A block is a series of sequences: token (literals << 4 | match - 4), rest of the literal length, literals, offset (2
 * bytes, little-endian), rest of the match length. The last sequence ends after its literals. Format:
 * docs/formats/compression.md.
 */
import { asBuffer } from '../base/index.ts';
import type { Lz4 } from '../env/index.ts';

const MIN_MATCH = 4;
/** The last 5 bytes are literals, and no match begins in the last 12. */
const LAST_LITERALS = 5;
const NO_MATCH_IN_LAST = 12;
const MAX_OFFSET = 0xffff;
/** A byte of LZ4 stands for at most 255 bytes of the result: a larger claim is refused before memory is allocated. */
const MAX_RATIO = 255;
const HASH_BITS = 14;
/** The search step grows by one byte after every 64 tries without a match. */
const SKIP_BITS = 6;

const malformed = (what: string): RangeError => new RangeError(`no LZ4 block: ${what}`);

const read32 = (bytes: Uint8Array, at: number): number =>
  bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);

/** Writes the rest of a length that does not fit its 4 bits: 255, 255, … */
function writeLength(out: Uint8Array, at: number, length: number): number {
  let rest = length - 15;
  while (rest >= 255) {
    out[at++] = 255;
    rest -= 255;
  }
  out[at++] = rest;
  return at;
}

/** Writes a sequence's token and literals, and returns the offset after them. `matchLength` 0: the last sequence. */
function writeLiterals(out: Buffer, at: number, from: Buffer, start: number, end: number, matchLength: number): number {
  const literals = end - start;
  const match = matchLength === 0 ? 0 : matchLength - MIN_MATCH;
  out[at++] = (Math.min(literals, 15) << 4) | Math.min(match, 15);
  if (literals >= 15) at = writeLength(out, at, literals);
  from.copy(out, at, start, end);
  return at + literals;
}

function compress(bytes: Uint8Array): Buffer {
  const from = asBuffer(bytes);
  const end = from.length;
  const out = Buffer.allocUnsafe(end + Math.ceil(end / 255) + 16);
  const positions = new Int32Array(1 << HASH_BITS).fill(-1);
  const matchLimit = end - LAST_LITERALS;
  let at = 0;
  let anchor = 0;
  let here = 0;
  let tries = 1 << SKIP_BITS;
  while (here < end - NO_MATCH_IN_LAST) {
    const word = read32(from, here);
    const hash = Math.imul(word, 0x9e3779b1) >>> (32 - HASH_BITS);
    const candidate = positions[hash]!;
    positions[hash] = here;
    if (candidate < 0 || here - candidate > MAX_OFFSET || read32(from, candidate) !== word) {
      here += tries++ >> SKIP_BITS;
      continue;
    }
    let length = MIN_MATCH;
    while (here + length < matchLimit && from[candidate + length] === from[here + length]) length++;
    at = writeLiterals(out, at, from, anchor, here, length);
    out[at++] = (here - candidate) & 0xff;
    out[at++] = (here - candidate) >> 8;
    if (length - MIN_MATCH >= 15) at = writeLength(out, at, length - MIN_MATCH);
    here += length;
    anchor = here;
    tries = 1 << SKIP_BITS;
  }
  return out.subarray(0, writeLiterals(out, at, from, anchor, end, 0));
}

/** Reads sequences one after another; every length is checked against both ends before anything is copied. */
class Decoder {
  readonly #from: Buffer;
  readonly #out: Buffer;
  #at = 0;
  #written = 0;

  constructor(from: Buffer, out: Buffer) {
    this.#from = from;
    this.#out = out;
  }

  run(): void {
    for (;;) {
      const token = this.#byte();
      this.#literals(token >> 4 === 15 ? this.#longer(15) : token >> 4);
      if (this.#at === this.#from.length) break;
      const low = this.#byte();
      const offset = low | (this.#byte() << 8);
      this.#match(offset, MIN_MATCH + ((token & 15) === 15 ? this.#longer(15) : token & 15));
    }
    if (this.#written !== this.#out.length) throw malformed(`${this.#written} bytes of ${this.#out.length}`);
  }

  #byte(): number {
    const byte = this.#from[this.#at];
    if (byte === undefined) throw malformed('it ends inside a sequence');
    this.#at++;
    return byte;
  }

  #longer(length: number): number {
    let byte: number;
    do {
      byte = this.#byte();
      length += byte;
    } while (byte === 255);
    return length;
  }

  #literals(length: number): void {
    if (length > this.#from.length - this.#at || length > this.#out.length - this.#written)
      throw malformed(`${length} literals at ${this.#at}`);
    this.#from.copy(this.#out, this.#written, this.#at, this.#at + length);
    this.#at += length;
    this.#written += length;
  }

  #match(offset: number, length: number): void {
    if (offset === 0 || offset > this.#written || length > this.#out.length - this.#written) {
      throw malformed(`a match of ${length} bytes, ${offset} back, at ${this.#written}`);
    }
    const out = this.#out;
    const end = this.#written + length;
    // a match may overlap what it writes: then it repeats, and must be copied byte by byte
    if (offset >= length) out.copyWithin(this.#written, this.#written - offset, end - offset);
    else for (let i = this.#written; i < end; i++) out[i] = out[i - offset]!;
    this.#written = end;
  }
}

function decompress(bytes: Uint8Array, sizeBytes: number): Buffer {
  if (sizeBytes > bytes.length * MAX_RATIO) throw malformed(`${bytes.length} bytes cannot hold ${sizeBytes}`);
  const out = Buffer.allocUnsafe(sizeBytes);
  new Decoder(asBuffer(bytes), out).run();
  return out;
}

export const plainLz4: Lz4 = { compress, decompress };
