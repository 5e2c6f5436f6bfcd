/**
 * Scans a pattern before the engine: rewrites what re2js lacks of RE2's Latin-1 mode, and recognises plain patterns.
 *
 * It knows just enough of RE2's syntax (https://github.com/google/re2/wiki/Syntax) to distinguish escapes, quotes,
 * classes and the top level. The engine decides whether a pattern is valid. Invariant: a pattern with `alternatives` is
 * valid and means exactly them.
 */
import type { ByteString } from '../base/index.ts';

/**
 * A part of a plain pattern: literal bytes, or any byte (`.` without newlines, `\C` with), once or any number of times.
 */
export type Piece = ByteString | { readonly newline: boolean; readonly star: boolean };

export interface Scan {
  /** The pattern as the engine takes it. */
  readonly source: string;
  /** Set if Latin-1 mode refuses a pattern that the engine would accept. */
  readonly problem?: string;
  /** The pattern's alternatives, if it consists of nothing but pieces. */
  readonly alternatives?: readonly (readonly Piece[])[];
  /** Literal prefix of every match. */
  readonly prefix: ByteString;
  /** Estimated instructions of the engine's program: counted repetitions are expanded. */
  readonly size: number;
}

/** Bytes that may have a special meaning. */
export const META = /[\\.+*?()|[\]{}^$]/;
const WORD = /[0-9A-Za-z_\x80-\xff]/;

/** One pass over one pattern; its fields are the state of the pass. */
class Scanner {
  readonly #pattern: string;
  #at = 0;
  #source = '';
  #problem: string | undefined;
  #depth = 0;
  /** Alternatives at the top level as long as all is plain. */
  #alternatives: Piece[][] | undefined = [[]];
  #prefix = '';
  #inPrefix = true;
  /** True if the last item could be starred and stay plain. */
  #starrable = false;
  /** After `$`, only the end or `|` keeps the pattern plain. */
  #ended = false;
  /** Sizes of the open groups, outermost first, and of the last item that an operator may repeat. */
  readonly #sizes = [0];
  #lastSize = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  run(): Scan {
    while (this.#at < this.#pattern.length && this.#problem === undefined) this.#step(this.#pattern[this.#at]!);
    return {
      source: this.#source,
      prefix: this.#prefix,
      size: this.#sizes.reduce((sum, size) => sum + size, 0),
      ...(this.#problem === undefined ? {} : { problem: this.#problem }),
      ...(this.#alternatives === undefined ? {} : { alternatives: this.#alternatives }),
    };
  }

  #grow(size: number): void {
    this.#sizes[this.#sizes.length - 1] = this.#sizes.at(-1)! + size;
  }

  #atom(size = 1): void {
    this.#lastSize = size;
    this.#grow(size);
  }

  #step(c: string): void {
    switch (c) {
      case '\\':
        return this.#escape();
      case '[':
        return this.#class();
      case '.':
        this.#take(1);
        return this.#any(false);
      case '*':
        return this.#star();
      case '|':
        return this.#bar();
      case '^':
        this.#take(1);
        this.#atom();
        // a full match begins at the beginning anyway
        if (this.#alternatives?.at(-1)?.length !== 0 || this.#ended) this.#odd();
        this.#starrable = false;
        this.#inPrefix = false;
        return;
      case '$':
        this.#take(1);
        this.#atom();
        this.#ended = true;
        this.#starrable = false;
        this.#inPrefix = false;
        return;
      default:
        return this.#plain(c);
    }
  }

  #plain(c: string): void {
    const repeat = c === '{' ? /^\{(\d+)(?:,(\d*))?\}/.exec(this.#pattern.slice(this.#at, this.#at + 32)) : null;
    this.#take(repeat?.[0].length ?? 1);
    if (!META.test(c)) return this.#literal(c);
    if (c === '(') this.#open();
    else if (c === ')') this.#shut();
    // a byte that may repeat zero times is not part of the prefix
    else if (this.#inPrefix && (c === '?' || c === '{')) this.#prefix = this.#prefix.slice(0, -1);
    if (repeat) this.#repeat(Math.max(Number(repeat[1]), Number(repeat[2] ?? 0), 1));
    this.#odd();
    this.#inPrefix = false;
  }

  /** The last item is repeated `times` times; one of them is counted already. */
  #repeat(times: number): void {
    this.#grow(this.#lastSize * (times - 1));
    this.#lastSize *= times;
  }

  #open(): void {
    this.#depth++;
    this.#sizes.push(2);
  }

  #shut(): void {
    this.#depth--;
    if (this.#sizes.length > 1) this.#atom(this.#sizes.pop());
  }

  /** Copies the next `length` characters to the source. */
  #take(length: number): void {
    this.#source += this.#pattern.slice(this.#at, this.#at + length);
    this.#at += length;
  }

  #odd(): void {
    this.#alternatives = undefined;
  }

  #literal(bytes: string): void {
    if (this.#ended) this.#odd();
    this.#starrable = false;
    this.#atom();
    this.#alternatives?.at(-1)?.push(bytes);
    if (this.#inPrefix) this.#prefix += bytes;
  }

  #any(newline: boolean): void {
    if (this.#ended) this.#odd();
    this.#starrable = true;
    this.#atom();
    this.#inPrefix = false;
    this.#alternatives?.at(-1)?.push({ newline, star: false });
  }

  #star(): void {
    this.#take(1);
    if (this.#inPrefix) this.#prefix = this.#prefix.slice(0, -1);
    this.#inPrefix = false;
    const pieces = this.#alternatives?.at(-1);
    const last = pieces?.at(-1);
    if (!this.#starrable || pieces === undefined || last === undefined || typeof last === 'string') return this.#odd();
    pieces[pieces.length - 1] = { newline: last.newline, star: true };
    this.#starrable = false;
    // laziness does not matter to a full match
    if (this.#pattern[this.#at] === '?') this.#take(1);
  }

  #bar(): void {
    this.#take(1);
    this.#grow(1);
    this.#starrable = false;
    this.#ended = false;
    this.#inPrefix = false;
    if (this.#depth === 0) this.#prefix = '';
    this.#alternatives?.push([]);
  }

  #escape(): void {
    const next = this.#pattern[this.#at + 1];
    if (next === 'C') {
      this.#source += '(?s:.)';
      this.#at += 2;
      this.#any(true);
    } else if (next === 'Q') {
      this.#quoted();
    } else if (next !== undefined && !WORD.test(next)) {
      this.#take(2);
      this.#literal(next);
    } else {
      const code = this.#numeric();
      if (code !== undefined) this.#literal(String.fromCharCode(code));
      else this.#otherEscape();
    }
  }

  #otherEscape(): void {
    this.#atom(this.#isUnicodeClass() ? UNICODE_CLASS_SIZE : 1);
    this.#take(2);
    this.#odd();
    this.#inPrefix = false;
  }

  /** True if `\p` or `\P` comes next. */
  #isUnicodeClass(): boolean {
    return /^\\[pP]/.test(this.#pattern.slice(this.#at, this.#at + 2));
  }

  #quoted(): void {
    const end = this.#pattern.indexOf('\\E', this.#at + 2);
    const text = this.#pattern.slice(this.#at + 2, end < 0 ? undefined : end);
    this.#take(end < 0 ? this.#pattern.length - this.#at : end + 2 - this.#at);
    // an operator after an empty quote would apply to what comes before the quote
    if (text === '') this.#odd();
    for (const c of text) this.#literal(c);
  }

  /**
   * Consumes an escape of a character by its number and returns that; undefined, and nothing is consumed, if it is
   * another escape or invalid.
   */
  #numeric(): number | undefined {
    const rest = this.#pattern.slice(this.#at, this.#at + 64);
    const octal = /^\\(0[0-7]{0,2}|[1-7][0-7]{1,2})/.exec(rest);
    const hex = /^\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})/.exec(rest);
    const found = octal ?? hex;
    if (found === null) return undefined;
    const code = octal ? Number.parseInt(octal[1]!, 8) : Number.parseInt((hex?.[1] ?? hex?.[2])!, 16);
    if (code > 0xff) this.#problem = `${found[0]} is above 0xFF and expressions are matched byte by byte`;
    this.#take(found[0].length);
    return code & 0xff;
  }

  #class(): void {
    this.#odd();
    this.#atom();
    this.#inPrefix = false;
    this.#take(this.#pattern[this.#at + 1] === '^' ? 2 : 1);
    if (this.#pattern[this.#at] === ']') this.#take(1);
    while (this.#at < this.#pattern.length && this.#problem === undefined) {
      const c = this.#pattern[this.#at];
      if (c === ']') return this.#take(1);
      const named = c === '[' ? /^\[:\^?[a-z]+:\]/.exec(this.#pattern.slice(this.#at, this.#at + 16)) : null;
      if (named) this.#take(named[0].length);
      else if (c !== '\\') this.#take(1);
      else if (this.#numeric() === undefined) this.#classEscape();
    }
  }

  /** Scans the inside of a class. */
  #classEscape(): void {
    if (this.#isUnicodeClass()) {
      this.#lastSize += UNICODE_CLASS_SIZE;
      this.#grow(UNICODE_CLASS_SIZE);
    }
    this.#take(2);
  }
}

/**
 * Ranges of characters in a Unicode class, which the engine searches: they cost about as much as this many
 * instructions.
 */
const UNICODE_CLASS_SIZE = 64;

export function scanPattern(pattern: ByteString): Scan {
  return new Scanner(pattern).run();
}
