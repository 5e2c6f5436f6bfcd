/** Patterns that need no engine: literals, choices of literals, and literals with anything between them. */
import { asBuffer, assert, type ByteString, fromBytes, toBytes } from '../base/index.ts';
import type { Allowance, Matcher, Matching } from './matcher.ts';

/** Bytes searched for one byte in a unit of work. */
const SCANNED_BYTES = 64;
/** Bytes compared in a unit: the search of a literal compares, at worst, all its bytes at each offset. */
const COMPARED_BYTES = 16;
/** Fewest offsets at which one call searches a literal; each call reads the literal's length in addition. */
const MIN_OFFSETS = 1024;

/** Matches one literal. By far the most common pattern, made for a single read. */
export class LiteralMatcher implements Matcher {
  readonly unitsPerByte = 0;
  readonly literals: readonly ByteString[];
  readonly prefix: ByteString;
  #bytes: Buffer | undefined;

  constructor(literal: ByteString) {
    this.literals = [literal];
    this.prefix = literal;
  }

  matches(text: ByteString): boolean {
    return text === this.prefix;
  }

  matchesBytes(bytes: Uint8Array): boolean {
    return bytes.length === this.prefix.length && (this.#bytes ??= toBytes(this.prefix)).equals(bytes);
  }

  begin(): Matching {
    return neverInParts();
  }
}

/** Matches a choice of literals. */
export class LiteralsMatcher implements Matcher {
  readonly unitsPerByte = 0;
  readonly literals: readonly ByteString[];
  readonly prefix = '';
  readonly #set: ReadonlySet<ByteString>;
  readonly #longest: number;

  constructor(literals: readonly ByteString[]) {
    this.#set = new Set(literals);
    this.literals = [...this.#set].sort();
    this.#longest = this.literals.reduce((longest, literal) => Math.max(longest, literal.length), 0);
  }

  matches(text: ByteString): boolean {
    return this.#set.has(text);
  }

  matchesBytes(bytes: Uint8Array): boolean {
    return bytes.length <= this.#longest && this.#set.has(fromBytes(bytes));
  }

  begin(): Matching {
    return neverInParts();
  }
}

/** Matches literals in this order with any bytes between them: `a.*b`, `\C*needle\C*`. */
export class WildcardMatcher implements Matcher {
  readonly unitsPerByte: number;
  readonly prefix: ByteString;
  readonly #suffix: ByteString;
  readonly #inner: readonly ByteString[];
  readonly #newlines: boolean;
  readonly #anything: boolean;
  /** The literals as bytes, made for the first value. */
  #bytes: WildcardBytes | undefined;

  /**
   * `literals` are two or more, the first and the last at the input's ends. `newlines`: the bytes between may be
   * newlines.
   */
  constructor(literals: readonly ByteString[], newlines: boolean) {
    this.prefix = literals[0]!;
    this.#suffix = literals.at(-1)!;
    this.#inner = literals.slice(1, -1).filter((literal) => literal !== '');
    this.#newlines = newlines;
    this.#anything = this.prefix === '' && this.#suffix === '' && this.#inner.length === 0;
    this.unitsPerByte = 1 / SCANNED_BYTES + Math.max(0, ...this.#inner.map(({ length }) => length)) / COMPARED_BYTES;
  }

  matches(text: ByteString): boolean {
    const end = text.length - this.#suffix.length;
    if (end < this.prefix.length || !text.startsWith(this.prefix) || !text.endsWith(this.#suffix)) return false;
    // no literal has a newline here, so a newline in the input lies between them
    if (!this.#newlines && text.includes('\n')) return false;
    let at = this.prefix.length;
    for (const literal of this.#inner) {
      at = text.indexOf(literal, at);
      if (at < 0) return false;
      at += literal.length;
    }
    return at <= end;
  }

  /** Like `matches`, without making text of the bytes: a scan calls this for every value. */
  matchesBytes(bytes: Uint8Array): boolean {
    if (this.#anything) return this.#newlines || !bytes.includes(NEWLINE);
    const { prefix, suffix, inner } = this.#literals();
    const text = asBuffer(bytes);
    const end = text.length - suffix.length;
    if (end < prefix.length || !holdsAt(text, prefix, 0) || !holdsAt(text, suffix, end)) return false;
    if (!this.#newlines && text.includes(NEWLINE)) return false;
    let at = prefix.length;
    for (const literal of inner) {
      at = text.indexOf(literal, at);
      if (at < 0) return false;
      at += literal.length;
    }
    return at <= end;
  }

  begin(bytes: Uint8Array): Matching {
    return new WildcardMatching(asBuffer(bytes), this.#literals(), this.#newlines);
  }

  #literals(): WildcardBytes {
    this.#bytes ??= { prefix: toBytes(this.prefix), suffix: toBytes(this.#suffix), inner: this.#inner.map(toBytes) };
    return this.#bytes;
  }
}

interface WildcardBytes {
  readonly prefix: Buffer;
  readonly suffix: Buffer;
  readonly inner: readonly Buffer[];
}

/** Computes `matchesBytes` of a WildcardMatcher in slices. */
class WildcardMatching implements Matching {
  readonly #text: Buffer;
  readonly #literals: WildcardBytes;
  /** Latest end of the inner literals. */
  readonly #end: number;
  /** No newline was found up to here. */
  #seen: number;
  /** The inner literal to search next, and the offset to search from. */
  #next = 0;
  #at: number;

  constructor(text: Buffer, literals: WildcardBytes, newlines: boolean) {
    this.#text = text;
    this.#literals = literals;
    this.#end = text.length - literals.suffix.length;
    this.#seen = newlines ? text.length : 0;
    this.#at = literals.prefix.length;
  }

  resume(allowance: Allowance): boolean | undefined {
    const { prefix, suffix, inner } = this.#literals;
    const text = this.#text;
    if (this.#end < prefix.length || !holdsAt(text, prefix, 0) || !holdsAt(text, suffix, this.#end)) return false;
    while (this.#seen < text.length) {
      if (allowance.units <= 0) return undefined;
      if (this.#findsNewline(allowance)) return false;
    }
    for (let literal = inner[this.#next]; literal !== undefined; literal = inner[this.#next]) {
      // no offset is left at which it would end in time
      if (this.#at + literal.length > this.#end) return false;
      if (allowance.units <= 0) return undefined;
      this.#search(literal, allowance);
    }
    return true;
  }

  #findsNewline(allowance: Allowance): boolean {
    const until = Math.min(this.#text.length, this.#seen + Math.ceil(allowance.units) * SCANNED_BYTES);
    const found = this.#text.subarray(this.#seen, until).includes(NEWLINE);
    allowance.units -= (until - this.#seen) / SCANNED_BYTES;
    this.#seen = until;
    return found;
  }

  /** Searches at as many offsets as the allowance pays for. */
  #search(literal: Buffer, allowance: Allowance): void {
    const { length } = literal;
    const places = Math.min(
      this.#end - length - this.#at + 1,
      Math.max(MIN_OFFSETS, Math.floor((allowance.units * COMPARED_BYTES) / length)),
    );
    const found = this.#text.subarray(this.#at, this.#at + places + length - 1).indexOf(literal);
    allowance.units -= ((found < 0 ? places : found + 1) * length) / COMPARED_BYTES;
    if (found < 0) {
      this.#at += places;
    } else {
      this.#at += found + length;
      this.#next++;
    }
  }
}

/** For matchers that take no longer for a long input. */
function neverInParts(): never {
  assert(false, 'a literal is compared immediately');
}

const NEWLINE = 10;

function holdsAt(text: Buffer, literal: Buffer, at: number): boolean {
  return literal.length === 0 || literal.compare(text, at, at + literal.length) === 0;
}
