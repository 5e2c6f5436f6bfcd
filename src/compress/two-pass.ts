/**
 * The paper's two passes: long common strings over a large window (the file's reference and the block so far), then LZ4
 * over the rest, in its window of 64 KB. Format: docs/formats/compression.md, "Two passes".
 */
import { asBuffer, VarintReader, writeVarint } from '../base/index.ts';
import type { Lz4 } from '../env/index.ts';
import { type CopySink, LongStrings, MIN_COPY } from './long-strings.ts';

/** Three varints below 2^32 each. */
const MAX_COPY_BYTES = 15;
/** The lengths of the two parts. */
const MAX_HEAD_BYTES = 10;
/** From this length on native code is faster than a loop. */
const LOOP_BELOW_BYTES = 48;

/** Memory in addition to the reference that is kept between blocks. */
const KEPT_BYTES = 512 * 1024;

const malformed = (what: string): RangeError => new RangeError(`no block of two passes: ${what}`);

const zigzag = (value: number): number => (value < 0 ? -2 * value - 1 : 2 * value);
const unzigzag = (value: number): number => (value % 2 === 0 ? value / 2 : -(value + 1) / 2);

/** Upper bound of the bytes that the copies of a block take. */
const maxCopiesBytes = (blockBytes: number): number => Math.floor(blockBytes / MIN_COPY) * MAX_COPY_BYTES;

/** Gathers the first pass's output in one buffer: copies at its front, literals from `#literalsStart` on. */
class FirstPass implements CopySink {
  readonly #block: Buffer;
  readonly #blockAddress: number;
  readonly #literalsStart: number;
  readonly #out: Buffer;
  #copiesEnd = 0;
  #literalsEnd: number;
  #before = 0;

  constructor(block: Buffer, blockAddress: number) {
    this.#block = block;
    this.#blockAddress = blockAddress;
    this.#literalsStart = maxCopiesBytes(block.length);
    this.#literalsEnd = this.#literalsStart;
    this.#out = Buffer.allocUnsafe(this.#literalsStart + block.length);
  }

  copy(at: number, literals: number, from: number, length: number): void {
    this.rest(at, literals);
    const out = this.#out;
    let end = writeVarint(out, this.#copiesEnd, literals);
    end = writeVarint(out, end, length - MIN_COPY);
    this.#copiesEnd = writeVarint(out, end, zigzag(from - this.#before - literals));
    this.#before = from + length;
  }

  rest(at: number, literals: number): void {
    const start = at - this.#blockAddress;
    this.#block.copy(this.#out, this.#literalsEnd, start, start + literals);
    this.#literalsEnd += literals;
  }

  /** The lengths of both parts as varints, then LZ4's block of both. */
  payload(lz4: Lz4): Buffer {
    const literalBytes = this.#literalsEnd - this.#literalsStart;
    this.#out.copyWithin(this.#copiesEnd, this.#literalsStart, this.#literalsEnd);
    const second = lz4.compress(this.#out.subarray(0, this.#copiesEnd + literalBytes));
    const head = Buffer.allocUnsafe(MAX_HEAD_BYTES);
    const end = writeVarint(head, writeVarint(head, 0, this.#copiesEnd), literalBytes);
    return Buffer.concat([head.subarray(0, end), second]);
  }
}

export class TwoPassEncoder {
  readonly #lz4: Lz4;
  readonly #strings: LongStrings;
  readonly #referenceBytes: number;

  constructor(lz4: Lz4, reference: Uint8Array) {
    this.#lz4 = lz4;
    this.#strings = new LongStrings(reference);
    this.#referenceBytes = reference.length;
  }

  encode(block: Uint8Array): Buffer {
    const first = new FirstPass(asBuffer(block), this.#referenceBytes);
    this.#strings.find(block, first);
    return first.payload(this.#lz4);
  }
}

/**
 * Decodes blocks in one piece of memory, so that a copy is a move inside it: the reference, then the block as it grows,
 * then its literals. Every copy is checked against reference and block before it is made.
 */
export class TwoPassDecoder {
  readonly #lz4: Lz4;
  readonly #referenceBytes: number;
  #memory: Buffer;

  constructor(lz4: Lz4, reference: Buffer) {
    this.#lz4 = lz4;
    this.#referenceBytes = reference.length;
    this.#memory = reference;
  }

  /** `payload` must hold exactly `rawBytes` bytes; RangeError otherwise. */
  decode(payload: Uint8Array, rawBytes: number): Buffer {
    const head = new VarintReader(payload);
    const copiesBytes = head.next();
    const literalBytes = head.next();
    if (literalBytes > rawBytes || copiesBytes > maxCopiesBytes(rawBytes)) {
      throw malformed(`${copiesBytes} bytes of copies and ${literalBytes} literals for ${rawBytes} bytes`);
    }
    const first = this.#lz4.decompress(asBuffer(payload).subarray(head.offset), copiesBytes + literalBytes);
    const start = this.#referenceBytes;
    const end = start + rawBytes;
    this.#makeRoom(end + literalBytes);
    this.#memory.set(first.subarray(copiesBytes), end);
    this.#run(new VarintReader(first.subarray(0, copiesBytes)), end, end + literalBytes);
    const block = Buffer.from(this.#memory.subarray(start, end));
    if (this.#memory.length > start + KEPT_BYTES) this.#memory = Buffer.from(this.#memory.subarray(0, start));
    return block;
  }

  #makeRoom(need: number): void {
    if (need <= this.#memory.length) return;
    const memory = Buffer.allocUnsafe(need + ((need - this.#referenceBytes) >> 1));
    this.#memory.copy(memory, 0, 0, this.#referenceBytes);
    this.#memory = memory;
  }

  /** Fills the block up to `end`, where the literals begin. */
  #run(copies: VarintReader, end: number, literalsEnd: number): void {
    const memory = this.#memory;
    const copiesBytes = copies.bytes.length;
    let written = this.#referenceBytes;
    let literalsAt = end;
    let before = 0;
    while (copies.offset < copiesBytes) {
      const literals = copies.next();
      const length = copies.next() + MIN_COPY;
      const from = before + literals + unzigzag(copies.next());
      if (literals > literalsEnd - literalsAt || literals + length > end - written) {
        throw malformed(`${literals} literals and a copy of ${length} bytes at ${written}`);
      }
      move(memory, literalsAt, written, literals);
      literalsAt += literals;
      written += literals;
      this.#checkSource(from, length, written);
      move(memory, from, written, length);
      written += length;
      before = from + length;
    }
    if (literalsEnd - literalsAt !== end - written)
      throw malformed(`${literalsEnd - literalsAt} literals are left for ${end - written} bytes`);
    move(memory, literalsAt, written, end - written);
  }

  /** A copy lies wholly in the reference or wholly in the block, and begins before the end of what is written. */
  #checkSource(from: number, length: number, written: number): void {
    const inReference = from >= 0 && from + length <= this.#referenceBytes;
    const inBlock = from >= this.#referenceBytes && from < written;
    if (!inReference && !inBlock) throw malformed(`a copy of ${length} bytes from address ${from} to ${written}`);
  }
}

/** Moves bytes forward in `memory`. Overlapping bytes repeat, as if copied one by one. */
function move(memory: Buffer, from: number, to: number, length: number): void {
  if (length >= LOOP_BELOW_BYTES && (from + length <= to || to <= from)) memory.copyWithin(to, from, from + length);
  else for (let i = 0; i < length; i++) memory[to + i] = memory[from + i]!;
}
