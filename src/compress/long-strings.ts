/**
 * The long common strings of a block, the first of the two passes: strings that occurred before, in the reference or in
 * the block, become copies (after Bentley and McIlroy, "Data compression using long common strings", 1999). A
 * fingerprint rolls over the text; where it equals one that was kept, the strings are compared and extended in both
 * directions.
 *
 * A fingerprint is kept by its own bits (one in SAMPLE_EVERY), not, as in 1999, by an aligned offset: so only these are
 * looked up, and repetitions shorter than two windows are found more often.
 *
 * Reference and block are one address space here: the block follows the reference. No copy crosses from one to the
 * other.
 */
import { assert } from '../base/index.ts';

/** Shortest copy. Part of the format. */
export const MIN_COPY = 32;

/** Receives what the finder finds, in order. Addresses: reference first, then block. */
export interface CopySink {
  /** `literals` bytes of the block at address `at`, then a copy of `length` bytes from address `from`. */
  copy(at: number, literals: number, from: number, length: number): void;
  /** The rest of the block. */
  rest(at: number, literals: number): void;
}

/** Text is read by words of 4 bytes: in JavaScript a read costs more than its use. */
const WORD_BYTES = 4;
/**
 * Each byte multiplies the fingerprint by twice an odd number. So a byte 32 positions back is shifted out of its 32
 * bits, and nothing need be subtracted for it. Fingerprints are not part of the format: only the encoder uses them.
 */
const MULTIPLIER = 0x2c92_77b6;
const WINDOW_BYTES = 32;
/** High bits, which depend on nearly all of the window. One in SAMPLE_EVERY fingerprints has all of them 0. */
const SAMPLE_MASK = 0x0780_0000;
const SAMPLE_EVERY = 16;
/** Slots of the table for each expected fingerprint. */
const SLOTS_PER_FINGERPRINT = 2;
/** A slot is a fingerprint and the address after its window; address 0 = empty. */
const SLOT_NUMBERS = 2;
/** A slot that the block has overwritten: its index, and its two former numbers. */
const TAKEN_NUMBERS = 3;
const SPREAD = 0x9e3779b1;
/**
 * Most fingerprints kept of a block, as a multiple of the expected number: bytes that repeat may all be in the sample.
 */
const MAX_TAKEN = 4;

/** Memory of `sizeBytes`, as bytes, words, and words at any address. */
class Text {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  readonly view: DataView;

  constructor(sizeBytes: number) {
    const memory = new ArrayBuffer(Math.ceil(sizeBytes / WORD_BYTES) * WORD_BYTES);
    this.bytes = new Uint8Array(memory);
    this.words = new Int32Array(memory);
    this.view = new DataView(memory);
  }
}

export class LongStrings {
  readonly #referenceBytes: number;
  /** The reference, then the present block. */
  #text: Text;
  #table = new Int32Array(0);
  #shift = 0;
  #taken = new Int32Array(0);
  #takenEnd = 0;
  /** Address up to which the block has been reported. */
  #anchor = 0;

  /** The reference consists of whole words: its length is a multiple of 4. */
  constructor(reference: Uint8Array) {
    assert(reference.length % WORD_BYTES === 0, 'a reference is whole words');
    this.#referenceBytes = reference.length;
    this.#text = new Text(reference.length);
    this.#text.bytes.set(reference);
    this.#makeTable(0);
  }

  /** Finds the block's copies. Keeps nothing of the block. */
  find(block: Uint8Array, sink: CopySink): void {
    this.#makeRoom(block.length);
    const start = this.#referenceBytes;
    const end = start + block.length;
    this.#text.bytes.set(block, start);
    this.#anchor = start;
    this.#scan(start, end, sink);
    sink.rest(this.#anchor, end - this.#anchor);
    this.#restore();
  }

  #makeRoom(blockBytes: number): void {
    const need = this.#referenceBytes + blockBytes;
    if (need <= this.#text.bytes.length) return;
    const text = new Text(need + (blockBytes >> 1));
    text.bytes.set(this.#text.bytes.subarray(0, this.#referenceBytes));
    this.#text = text;
    this.#makeTable(text.bytes.length - this.#referenceBytes);
  }

  /** A table with the reference's fingerprints and space for those of a block. */
  #makeTable(blockBytes: number): void {
    const expected = (this.#referenceBytes + blockBytes) / SAMPLE_EVERY;
    const bits = Math.max(8, Math.ceil(Math.log2(expected * SLOTS_PER_FINGERPRINT)));
    this.#table = new Int32Array(SLOT_NUMBERS << bits);
    this.#shift = 32 - bits;
    this.#taken = new Int32Array(TAKEN_NUMBERS * Math.ceil((MAX_TAKEN * blockBytes) / SAMPLE_EVERY));
    let print = 0;
    for (let at = 0; at < this.#referenceBytes; ) {
      print = (Math.imul(print, MULTIPLIER) + this.#text.bytes[at++]!) | 0;
      if ((print & SAMPLE_MASK) === 0 && at >= WINDOW_BYTES) this.#put(this.#slot(print), print, at);
    }
  }

  #slot(print: number): number {
    return (Math.imul(print, SPREAD) >>> this.#shift) * SLOT_NUMBERS;
  }

  #put(slot: number, print: number, at: number): void {
    this.#table[slot] = print;
    this.#table[slot + 1] = at;
  }

  /** Latest first, so that a slot that was overwritten twice is restored to its first content. */
  #restore(): void {
    const table = this.#table;
    const taken = this.#taken;
    for (let i = this.#takenEnd - TAKEN_NUMBERS; i >= 0; i -= TAKEN_NUMBERS) {
      const slot = taken[i]!;
      table[slot] = taken[i + 1]!;
      table[slot + 1] = taken[i + 2]!;
    }
    this.#takenEnd = 0;
  }

  /**
   * Four bytes a turn. `start` and the end of a copy are rounded up to a word, which loses nothing with a window of
   * this length.
   */
  #scan(start: number, end: number, sink: CopySink): void {
    const { words } = this.#text;
    const lastWord = Math.floor(end / WORD_BYTES);
    let word = start / WORD_BYTES;
    let print = 0;
    while (word < lastWord) {
      const four = words[word++]!;
      const a = (Math.imul(print, MULTIPLIER) + (four & 0xff)) | 0;
      const b = (Math.imul(a, MULTIPLIER) + ((four >>> 8) & 0xff)) | 0;
      const c = (Math.imul(b, MULTIPLIER) + ((four >>> 16) & 0xff)) | 0;
      print = (Math.imul(c, MULTIPLIER) + (four >>> 24)) | 0;
      const here = word * WORD_BYTES;
      let reached = 0;
      if ((a & SAMPLE_MASK) === 0) reached = this.#meet(a, here - 3, start, end, sink);
      if ((b & SAMPLE_MASK) === 0 && reached === 0) reached = this.#meet(b, here - 2, start, end, sink);
      if ((c & SAMPLE_MASK) === 0 && reached === 0) reached = this.#meet(c, here - 1, start, end, sink);
      if ((print & SAMPLE_MASK) === 0 && reached === 0) reached = this.#meet(print, here, start, end, sink);
      if (reached !== 0) {
        word = Math.ceil(reached / WORD_BYTES);
        print = 0;
      }
    }
  }

  /**
   * Handles a fingerprint of the sample whose window ends before `here`. If it leads to a copy, reports the copy and
   * returns its end; otherwise keeps the fingerprint and returns 0.
   */
  #meet(print: number, here: number, start: number, end: number, sink: CopySink): number {
    const table = this.#table;
    const slot = this.#slot(print);
    const from = table[slot + 1]!;
    if (table[slot] === print && from !== 0) {
      const [lowest, highest] = from <= start ? [0, start] : [start, end];
      const before = this.#commonBefore(from, here, Math.min(here - this.#anchor, from - lowest));
      const after = this.#commonAfter(from, here, Math.min(end - here, highest - from));
      if (before + after >= MIN_COPY) {
        sink.copy(this.#anchor, here - before - this.#anchor, from - before, before + after);
        this.#anchor = here + after;
        return this.#anchor;
      }
    }
    if (this.#takenEnd === this.#taken.length) return 0;
    this.#taken[this.#takenEnd] = slot;
    this.#taken[this.#takenEnd + 1] = table[slot]!;
    this.#taken[this.#takenEnd + 2] = from;
    this.#takenEnd += TAKEN_NUMBERS;
    this.#put(slot, print, here);
    return 0;
  }

  /** Number of equal bytes, up to `limit`, from `a` and from `b` on. */
  #commonAfter(a: number, b: number, limit: number): number {
    const { bytes, view } = this.#text;
    let n = 0;
    while (n + WORD_BYTES <= limit && view.getInt32(a + n) === view.getInt32(b + n)) n += WORD_BYTES;
    while (n < limit && bytes[a + n] === bytes[b + n]) n++;
    return n;
  }

  /** Number of equal bytes, up to `limit`, before `a` and before `b`. */
  #commonBefore(a: number, b: number, limit: number): number {
    const { bytes, view } = this.#text;
    let n = 0;
    while (n + WORD_BYTES <= limit && view.getInt32(a - n - WORD_BYTES) === view.getInt32(b - n - WORD_BYTES))
      n += WORD_BYTES;
    while (n < limit && bytes[a - n - 1] === bytes[b - n - 1]) n++;
    return n;
  }
}
