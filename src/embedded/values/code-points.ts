/**
 * Sets of characters outside ASCII as expressions over their UTF-8 bytes. A set is a list of ranges of code points,
 * sorted, apart from one another, all within U+0080 to U+10FFFF.
 */
import { type ByteString, once } from '../../base/index.ts';

/** Both ends inclusive. */
export type CodeRange = readonly [first: number, last: number];

const FIRST = 0x80;
const LAST = 0x10ffff;
/** Every character outside ASCII. */
export const ALL: readonly CodeRange[] = [[FIRST, LAST]];

/** The last code point that has an upper or lower case is below it. */
const END_OF_CASES = 0x1f000;
const SURROGATES: CodeRange = [0xd800, 0xdfff];
/** Code points whose encodings have two, three and four bytes. */
const LENGTHS: readonly CodeRange[] = [
  [0x80, 0x7ff],
  [0x800, SURROGATES[0] - 1],
  [SURROGATES[1] + 1, 0xffff],
  [0x10000, LAST],
];
const MIN_REST = 0x80;
const MAX_REST = 0xbf;
const ANY_REST = '[\x80-\xbf]';
/** Every sequence that has the form of a character's, also the few that encode none. */
const ANY_CHARACTER = ['[\xc2-\xdf][\x80-\xbf]', '[\xe0-\xef][\x80-\xbf]{2}', '[\xf0-\xf4][\x80-\xbf]{3}'];

/** The ranges as a set. */
export function setOf(ranges: readonly CodeRange[]): readonly CodeRange[] {
  const set: [number, number][] = [];
  for (const [first, last] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const before = set.at(-1);
    if (before !== undefined && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else set.push([first, last]);
  }
  return set;
}

export function isAll(set: readonly CodeRange[]): boolean {
  return set.length === 1 && set[0]?.[0] === FIRST && set[0][1] === LAST;
}

/** The characters outside ASCII that the set has not. */
export function complement(set: readonly CodeRange[]): readonly CodeRange[] {
  const rest: CodeRange[] = [];
  let from = FIRST;
  for (const [first, last] of set) {
    if (first > from) rest.push([from, first - 1]);
    from = last + 1;
  }
  if (from <= LAST) rest.push([from, LAST]);
  return rest;
}

/** An expression over bytes that matches one character of the set: alternatives, case-sensitive. */
export function alternativesOf(set: readonly CodeRange[]): readonly ByteString[] {
  if (isAll(set)) return ANY_CHARACTER;
  return set.flatMap(([first, last]) =>
    LENGTHS.flatMap(([least, most]) => {
      const [from, to] = [Math.max(first, least), Math.min(last, most)];
      return from > to ? [] : sequences([...encoded(from)], [...encoded(to)]);
    }),
  );
}

/** The UTF-8 bytes of a character. */
export function encoded(code: number): Buffer {
  return Buffer.from(String.fromCodePoint(code), 'utf8');
}

/** All encodings between two of the same length. */
function sequences(
  [low, ...lowRest]: readonly number[],
  [high, ...highRest]: readonly number[],
): readonly ByteString[] {
  const [first, last] = [low!, high!];
  if (lowRest.length === 0) return [byteClass(first, last)];
  if (first === last) return sequences(lowRest, highRest).map((rest) => byteClass(first, first) + rest);
  const isWholeFirst = lowRest.every((byte) => byte === MIN_REST);
  const isWholeLast = highRest.every((byte) => byte === MAX_REST);
  const [from, to] = [isWholeFirst ? first : first + 1, isWholeLast ? last : last - 1];
  return [
    ...(isWholeFirst
      ? []
      : sequences(
          lowRest,
          lowRest.map(() => MAX_REST),
        ).map((rest) => byteClass(first, first) + rest)),
    ...(from > to ? [] : [byteClass(from, to) + ANY_REST.repeat(lowRest.length)]),
    ...(isWholeLast
      ? []
      : sequences(
          highRest.map(() => MIN_REST),
          highRest,
        ).map((rest) => byteClass(last, last) + rest)),
  ];
}

/** Bytes above 0x7F, which mean nothing else in an expression. */
function byteClass(first: number, last: number): ByteString {
  const [from, to] = [String.fromCharCode(first), String.fromCharCode(last)];
  return first === last ? from : `[${from}-${to}]`;
}

/**
 * The ranges as a set, with every character that differs from one of theirs in case alone; those of ASCII (k of the
 * Kelvin sign, s of the long s) apart.
 */
export function withCases(ranges: readonly CodeRange[]): {
  readonly set: readonly CodeRange[];
  readonly ascii: string;
} {
  const more: CodeRange[] = [...ranges];
  const ascii = new Set<string>();
  for (const [code, others] of cases()) {
    if (!ranges.some(([first, last]) => code >= first && code <= last)) continue;
    for (const other of others) {
      if (other >= FIRST) more.push([other, other]);
      else ascii.add(String.fromCharCode(other));
    }
  }
  return { set: setOf(more), ascii: [...ascii].join('') };
}

/** The character and all that differ from it in case alone, those of ASCII too. */
export function casesOf(code: number): readonly number[] {
  return [code, ...(cases().get(code) ?? [])];
}

/** By character, all others that differ only in case. Costly to make, and seldom needed. */
const cases = once((): ReadonlyMap<number, readonly number[]> => {
  const together = new Map<number, Set<number>>();
  for (let code = 0x41; code < END_OF_CASES; code++) {
    if (code >= SURROGATES[0] && code <= SURROGATES[1]) continue;
    const character = String.fromCodePoint(code);
    for (const other of [character.toLowerCase(), character.toUpperCase()]) {
      const otherCode = other.codePointAt(0)!;
      // some become several characters, and some are the same in one language alone: neither folds in expressions
      if (other === character || other !== String.fromCodePoint(otherCode) || !new RegExp(character, 'iu').test(other))
        continue;
      const joined = new Set([code, otherCode, ...(together.get(code) ?? []), ...(together.get(otherCode) ?? [])]);
      for (const each of joined) together.set(each, joined);
    }
  }
  return new Map([...together].map(([code, all]) => [code, [...all].filter((other) => other !== code)]));
});
