/**
 * Chooses, from samples of a file's blocks, the strings that are worth sharing between all its blocks: a dictionary for
 * zstd, or the reference of the long common strings.
 *
 * The worth of a string is that of its grams (every 8 consecutive bytes): a gram counts for the number of other blocks
 * that have it, since in one block the codec finds repetitions by itself. The samples are cut into as many epochs as
 * segments are wanted, so that all parts of them count. The segment with the highest worth of each epoch is chosen, and
 * its grams count nothing from then on. The most valuable segments come last, nearest to the block.
 *
 * Pure and deterministic; linear time.
 */
const GRAM_BYTES = 8;
const TABLE_BITS = 22;
/** Rounds over the epochs: segments are trimmed, which leaves space for more. */
const ROUNDS = 4;
const MULTIPLIER = 0x2c9277b5;

export interface SegmentOptions {
  /** Maximum of all chosen bytes. */
  readonly budgetBytes: number;
  /** Bytes of one segment, before worthless bytes at its ends are cut off. */
  readonly segmentBytes: number;
}

interface Segment {
  readonly start: number;
  readonly end: number;
  readonly worth: number;
}

/** MULTIPLIER to the power of GRAM_BYTES, times a byte: what to subtract for the byte that leaves the window. */
const LEAVING = leavingTable();

function leavingTable(): Int32Array {
  let power = 1;
  for (let i = 0; i < GRAM_BYTES; i++) power = Math.imul(power, MULTIPLIER);
  return Int32Array.from({ length: 256 }, (_, byte) => Math.imul(power, byte + 1));
}

/** The slot of every gram of `text`, by the offset at which it begins. */
function gramSlots(text: Buffer): Int32Array {
  const slots = new Int32Array(Math.max(text.length - GRAM_BYTES + 1, 0));
  let hash = 0;
  for (let i = 0; i < text.length; i++) {
    hash = (Math.imul(hash, MULTIPLIER) + text[i]! + 1) | 0;
    if (i >= GRAM_BYTES) hash = (hash - LEAVING[text[i - GRAM_BYTES]!]!) | 0;
    if (i >= GRAM_BYTES - 1) slots[i - GRAM_BYTES + 1] = Math.imul(hash, 0x9e3779b1) >>> (32 - TABLE_BITS);
  }
  return slots;
}

/** For each gram, the number of samples that have it, minus one. */
function gramWorths(slots: Int32Array, samples: readonly Uint8Array[]): Uint16Array {
  const worths = new Uint16Array(1 << TABLE_BITS);
  const lastSample = new Uint16Array(1 << TABLE_BITS);
  let start = 0;
  for (const [number, sample] of samples.entries()) {
    const end = Math.min(start + sample.length, slots.length);
    const mark = (number % 0xffff) + 1;
    for (let i = start; i < end; i++) {
      const slot = slots[i]!;
      if (lastSample[slot] === mark) continue;
      if (lastSample[slot] !== 0 && worths[slot] !== 0xffff) worths[slot] = worths[slot]! + 1;
      lastSample[slot] = mark;
    }
    start += sample.length;
  }
  return worths;
}

/** Chooses segments until the budget is full or no string is of worth. */
class Chooser {
  readonly #slots: Int32Array;
  readonly #worths: Uint16Array;
  /** Number of times that each gram is in the present window. */
  readonly #inWindow = new Uint16Array(1 << TABLE_BITS);

  constructor(slots: Int32Array, worths: Uint16Array) {
    this.#slots = slots;
    this.#worths = worths;
  }

  choose({ budgetBytes, segmentBytes }: SegmentOptions): Segment[] {
    const chosen: Segment[] = [];
    const epochs = Math.max(1, Math.floor(budgetBytes / segmentBytes));
    const epochGrams = Math.ceil(this.#slots.length / epochs);
    let left = budgetBytes;
    for (let round = 0; round < ROUNDS; round++) {
      const before = left;
      for (let start = 0; start < this.#slots.length && left > GRAM_BYTES; start += epochGrams) {
        const segment = this.#best(
          start,
          Math.min(start + epochGrams, this.#slots.length),
          Math.min(segmentBytes, left),
        );
        if (!segment) continue;
        chosen.push(segment);
        left -= segment.end - segment.start;
      }
      if (left === before) break;
    }
    return chosen;
  }

  /** The segment of most worth among the grams from `start` to `end`; its grams count nothing afterwards. */
  #best(start: number, end: number, segmentBytes: number): Segment | undefined {
    const slots = this.#slots;
    const worths = this.#worths;
    const inWindow = this.#inWindow;
    const grams = segmentBytes - GRAM_BYTES + 1;
    let worth = 0;
    let best = 0;
    let bestEnd = 0;
    for (let i = start; i < end; i++) {
      const slot = slots[i]!;
      if (inWindow[slot] === 0) worth += worths[slot]!;
      inWindow[slot] = inWindow[slot]! + 1;
      if (i - start >= grams) {
        const leaving = slots[i - grams]!;
        inWindow[leaving] = inWindow[leaving]! - 1;
        if (inWindow[leaving] === 0) worth -= worths[leaving]!;
      }
      if (worth > best) {
        best = worth;
        bestEnd = i + 1;
      }
    }
    for (let i = Math.max(start, end - grams); i < end; i++) inWindow[slots[i]!] = 0;
    return best === 0 ? undefined : this.#take(Math.max(start, bestEnd - grams), bestEnd, best);
  }

  #take(start: number, end: number, worth: number): Segment {
    const slots = this.#slots;
    const worths = this.#worths;
    while (worths[slots[start]!] === 0) start++;
    while (worths[slots[end - 1]!] === 0) end--;
    for (let i = start; i < end; i++) worths[slots[i]!] = 0;
    return { start, end: end + GRAM_BYTES - 1, worth };
  }
}

/** The chosen segments as one buffer; empty if no string is in two samples. */
export function chooseSegments(samples: readonly Uint8Array[], options: SegmentOptions): Buffer {
  const text = Buffer.concat(samples);
  const slots = gramSlots(text);
  const segments = new Chooser(slots, gramWorths(slots, samples)).choose(options);
  segments.sort((a, b) => a.worth - b.worth || a.start - b.start);
  return Buffer.concat(segments.map(({ start, end }) => text.subarray(start, end)));
}
