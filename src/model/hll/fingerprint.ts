/**
 * Fingerprint2011: the 64-bit hash under HLL++ states. States are exchanged with other programs, so the hash is part of
 * the format: equal values must fall into equal registers everywhere (docs/formats/aggregates.md). Arithmetic is modulo
 * 2^64; words are read little-endian.
 */
import { asBuffer, type Int64, toBigInt } from '../../base/index.ts';

const K0 = 0xa5b85c5e198ed849n;
const K1 = 0x8d58ac26afe12e47n;
const K2 = 0xc47b6e9e3a970ed3n;
const K3 = 0xc6a4a7935bd1e995n;
const WORD_BITS = 64;

const wrap = (x: bigint): bigint => BigInt.asUintN(WORD_BITS, x);
const times = (x: bigint, y: bigint): bigint => BigInt.asUintN(WORD_BITS, x * y);
const rotate = (x: bigint, bits: bigint): bigint => wrap((x >> bits) | (x << (64n - bits)));
const mix = (x: bigint): bigint => x ^ (x >> 47n);

type Pair = readonly [bigint, bigint];

/** The hash of a string of bytes. */
export function fingerprint(input: Uint8Array): bigint {
  const bytes = asBuffer(input);
  const { length } = bytes;
  const body = length <= 32 ? ofShort(bytes) : length <= 64 ? ofMiddle(bytes) : ofLong(bytes);
  const first = length >= 8 ? bytes.readBigUInt64LE(0) : K0;
  const last = length >= 9 ? bytes.readBigUInt64LE(length - 8) : K0;
  const hash = combine(wrap(body + last), first);
  // 0 and 1 are kept free
  return hash <= 1n ? wrap(hash - 2n) : hash;
}

/** The hash of an int64: that of its eight bytes, little-endian. */
export function fingerprintInt64(value: Int64): bigint {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigInt64LE(toBigInt(value));
  return fingerprint(bytes);
}

function combine(high: bigint, low: bigint): bigint {
  const a = mix(times(low ^ high, K3));
  return times(mix(times(high ^ a, K3)), K3);
}

/** Up to 32 bytes: word by word, the rest padded with zeros. */
function ofShort(bytes: Buffer): bigint {
  const { length } = bytes;
  const whole = length & ~7;
  let hash = K0 ^ K1 ^ K2 ^ times(BigInt(length), K3);
  for (let at = 0; at < whole; at += 8) hash = times(hash ^ times(mix(times(bytes.readBigUInt64LE(at), K3)), K3), K3);
  if (whole < length) {
    let rest = 0n;
    for (let at = length - 1; at >= whole; at--) rest = (rest << 8n) | BigInt(bytes[at]!);
    hash = times(hash ^ rest, K3);
  }
  return mix(times(mix(hash), K3));
}

/** 33 to 64 bytes: two passes over 32 bytes each, which may overlap. */
function ofMiddle(bytes: Buffer): bigint {
  const { length } = bytes;
  const word = (at: number): bigint => bytes.readBigUInt64LE(at);
  const half = (start: bigint, words: readonly [bigint, bigint, bigint]): Pair => {
    const [second, third, fourth] = words;
    let a = start;
    const b = rotate(wrap(a + fourth), 52n);
    let c = rotate(a, 37n);
    a = wrap(a + second);
    c = wrap(c + rotate(a, 7n));
    a = wrap(a + third);
    return [wrap(a + fourth), wrap(b + rotate(a, 31n) + c)];
  };
  const front = half(wrap(word(0) + times(wrap(BigInt(length) + word(length - 16)), K0)), [
    word(8),
    word(16),
    word(24),
  ]);
  const back = half(wrap(word(16) + word(length - 32)), [word(length - 24), word(length - 16), word(length - 8)]);
  const r = mix(wrap(times(wrap(front[0] + back[1]), K2) + times(wrap(back[0] + front[1]), K0)));
  return times(mix(wrap(times(r, K0) + front[1])), K2);
}

/** 32 bytes folded into two seeds. */
function fold32(bytes: Buffer, at: number, seedA: bigint, seedB: bigint): Pair {
  const last = bytes.readBigUInt64LE(at + 24);
  let a = wrap(seedA + bytes.readBigUInt64LE(at));
  const first = a;
  let b = rotate(wrap(seedB + a + last), 51n);
  a = wrap(a + bytes.readBigUInt64LE(at + 8) + bytes.readBigUInt64LE(at + 16));
  b = wrap(b + rotate(a, 23n));
  return [wrap(a + last), wrap(b + first)];
}

/** More than 64 bytes: the end first, then 64 bytes a step; the last step covers the bytes before the end. */
function ofLong(bytes: Buffer): bigint {
  const { length } = bytes;
  const size = BigInt(length);
  const word = (at: number): bigint => bytes.readBigUInt64LE(at);
  let x = word(0);
  let y = word(length - 16) ^ K1;
  let z = word(length - 56) ^ K0;
  let v = fold32(bytes, length - 64, size, y);
  let w = fold32(bytes, length - 32, times(size, K1), K0);
  z = wrap(z + times(mix(v[1]), K1));
  x = times(rotate(wrap(z + x), 39n), K1);
  y = times(rotate(y, 33n), K1);
  const end = (length - 1) & ~63;
  for (let at = 0; at < end; at += 64) {
    x = times(rotate(wrap(x + y + v[0] + word(at + 16)), 37n), K1) ^ w[1];
    y = times(rotate(wrap(y + v[1] + word(at + 48)), 42n), K1) ^ v[0];
    z = rotate(z ^ w[0], 33n);
    v = fold32(bytes, at, times(v[1], K1), wrap(x + w[0]));
    w = fold32(bytes, at + 32, wrap(z + w[1]), y);
    [x, z] = [z, x];
  }
  return combine(wrap(combine(v[0], w[0]) + times(mix(y), K1) + z), wrap(combine(v[1], w[1]) + x));
}
