/**
 * HPACK's Huffman code (RFC 7541, section 5.2 and appendix B). The code is canonical: ordered by length, then by
 * symbol, each is the one before plus one; so the table of lengths defines it.
 *
 * Decoding goes by half bytes through a table of states (a state is an inner node of the code's tree). The shortest
 * code has five bits, so half a byte ends one symbol at most.
 */

const EOS = 256;

/** Length in bits of each byte's code; EOS comes last. */
const LENGTHS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
  28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6,
  5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23,
  22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22,
  23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26,
  20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27,
  27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27,
  27, 27, 27, 26, 30,
];

const CODES = canonicalCodes();

function canonicalCodes(): readonly number[] {
  const codes = new Array<number>(LENGTHS.length).fill(0);
  let next = 0;
  for (let bits = 5; bits <= 30; bits++) {
    LENGTHS.forEach((length, symbol) => {
      if (length === bits) codes[symbol] = next++;
    });
    next *= 2;
  }
  return codes;
}

/** An entry of STEPS: the next state, or one of these. */
const STATE_BITS = 0x1ff;
const HAS_SYMBOL = 0x200;
const SYMBOL_SHIFT = 10;
const FAILED = -1;

interface Decoder {
  /** [state * 16 + half byte]: the state after it, with the symbol that ended on the way. */
  readonly steps: Int32Array;
  /** 1 where a string may end in the state: less than a byte of ones since the last symbol. */
  readonly mayEnd: Uint8Array;
}

const { steps: STEPS, mayEnd: MAY_END } = decoder();

function decoder(): Decoder {
  const steps = new Int32Array(256 * 16);
  const mayEnd = new Uint8Array(256);
  const children: number[][] = [[]];
  for (let symbol = 0; symbol <= EOS; symbol++) addLeaf(children, symbol);
  for (let state = 0; state < children.length; state++) {
    for (let half = 0; half < 16; half++) steps[state * 16 + half] = stepOf(children, state, half);
  }
  for (let state = 0, bits = 0; bits < 8; bits++) {
    mayEnd[state] = 1;
    state = children[state]![1]!;
  }
  return { steps, mayEnd };
}

/** Inner nodes are their index, leaves are ~symbol. */
function addLeaf(children: number[][], symbol: number): void {
  const code = CODES[symbol]!;
  let node = children[0]!;
  for (let bit = LENGTHS[symbol]! - 1; bit > 0; bit--) {
    const side = (code >>> bit) & 1;
    node[side] ??= children.push([]) - 1;
    node = children[node[side]!]!;
  }
  node[code & 1] = ~symbol;
}

function stepOf(children: readonly number[][], from: number, half: number): number {
  let state = from;
  let symbol = 0;
  for (let bit = 3; bit >= 0; bit--) {
    const next = children[state]![(half >>> bit) & 1]!;
    if (next === ~EOS) return FAILED;
    if (next < 0) symbol = HAS_SYMBOL | (~next << SYMBOL_SHIFT);
    state = next < 0 ? 0 : next;
  }
  return state | symbol;
}

/**
 * Decodes bytes [from, to) to the start of `out`, which has space for 8/5 of them. Returns the decoded length; -1 where
 * the code is invalid.
 */
export function huffmanDecode(bytes: Buffer, from: number, to: number, out: Buffer): number {
  let state = 0;
  let length = 0;
  for (let i = from; i < to; i++) {
    const byte = bytes[i]!;
    const high = STEPS[state * 16 + (byte >>> 4)]!;
    if (high === FAILED) return -1;
    if (high & HAS_SYMBOL) out[length++] = high >>> SYMBOL_SHIFT;
    const low = STEPS[(high & STATE_BITS) * 16 + (byte & 15)]!;
    if (low === FAILED) return -1;
    if (low & HAS_SYMBOL) out[length++] = low >>> SYMBOL_SHIFT;
    state = low & STATE_BITS;
  }
  return MAY_END[state] ? length : -1;
}

/** Coded size of the text (latin1) in bytes; NaN where it is not latin1. */
export function huffmanLength(text: string): number {
  let bits = 0;
  for (let i = 0; i < text.length; i++) {
    const symbol = text.charCodeAt(i);
    if (symbol >= EOS) return Number.NaN;
    bits += LENGTHS[symbol]!;
  }
  return Math.ceil(bits / 8);
}

/** Writes the text (latin1) at `at`; returns where it ends. */
export function huffmanEncode(text: string, out: Buffer, at: number): number {
  let end = at;
  let pending = 0;
  let pendingBits = 0;
  for (let i = 0; i < text.length; i++) {
    const symbol = text.charCodeAt(i);
    let code = CODES[symbol]!;
    let bits = LENGTHS[symbol]!;
    // the bits waiting (7 at most) and a code (30 at most) do not fit 32 together
    while (pendingBits + bits >= 8) {
      const taken = 8 - pendingBits;
      bits -= taken;
      out[end++] = (pending << taken) | (code >>> bits);
      code &= (1 << bits) - 1;
      pending = 0;
      pendingBits = 0;
    }
    pending = (pending << bits) | code;
    pendingBits += bits;
  }
  if (pendingBits > 0) out[end++] = (pending << (8 - pendingBits)) | ((1 << (8 - pendingBits)) - 1);
  return end;
}
