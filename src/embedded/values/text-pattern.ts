/**
 * Regular expressions given as text, made into the expressions over bytes that the API has (RE2's Latin-1 mode).
 *
 * In text a character is one thing, whatever its bytes: `ü?` and `[äö]` speak of characters, `.` and `[^a]` take one,
 * `(?i)` folds all of Unicode. A repetition of any characters (`.*`, `[^/]*`, `\S*`) is left unchanged: over UTF-8 it
 * is equivalent, and it passes bytes that are not text. Escapes of bytes above 0x7F and Unicode classes have no such
 * meaning and are refused.
 *
 * Invariant: on UTF-8 text the result matches what the expression says of the text's characters; but without regard to
 * case a k and an s of the expression do not match the Kelvin sign and the long s, which have the same lower and upper
 * case. An expression that is not valid comes out as one that is not; the engine says what is wrong with it.
 */
import { type ByteString, invalidArgument, ownOf, utf8 } from '../../base/index.ts';
import {
  ALL,
  alternativesOf,
  type CodeRange,
  casesOf,
  complement,
  encoded,
  isAll,
  setOf,
  withCases,
} from './code-points.ts';

/** Without any of these, characters and bytes are the same. */
const NEEDS_TRANSLATION = /[^\x00-\x7f]|[.[\\]/;

/** INVALID_ARGUMENT, which names `what`, for an escape that means nothing in text. */
export function bytePattern(text: string, what: string): ByteString {
  return NEEDS_TRANSLATION.test(text) ? new Translator(text, what).run() : text;
}

interface Flags {
  readonly ignoresCase: boolean;
  readonly dotTakesNewline: boolean;
}

/**
 * What a class holds: the source of its ASCII, classes that are negated (`\D`, `[:^alpha:]`) turned round, and the rest
 * as ranges.
 */
interface ClassItems {
  readonly isNegated: boolean;
  readonly ascii: string;
  readonly outside: readonly string[];
  readonly wide: readonly CodeRange[];
}

/** Bytes that no ASCII character has. */
const HIGH = '\x80-\xff';
const OPERATORS = /[\\.+*?()|[\]{}^$]/;
const FLAGS = /\(\?([imsU]*)(?:-([imsU]*))?([:)])/y;
const GROUP_NAME = /\(\?P?<[^>]*>/y;
const NUMERIC = /\\(?:x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,8})\}|(0[0-7]{0,2}|[1-7][0-7]{1,2}))/y;
const POSIX_CLASS = /\[:(\^?)([a-z]+):\]/y;
const PERL_CLASS = /\\([dswDSW])/y;
const CONTROLS: Readonly<Record<string, number>> = { a: 7, t: 9, n: 10, v: 11, f: 12, r: 13 };
/** `\D` is what `\d` is not. */
const NEGATED_ESCAPES: Readonly<Record<string, string>> = { D: '\\d', W: '\\w', S: '\\s' };

class Translator {
  readonly #text: string;
  readonly #what: string;
  /** Inside a character `\B` matches between bytes, so no run of bytes may stand for characters next to it. */
  readonly #mayRun: boolean;
  #at = 0;
  #out = '';
  #flags: Flags = { ignoresCase: false, dotTakesNewline: false };
  /** Those around each open group. */
  readonly #outer: Flags[] = [];

  constructor(text: string, what: string) {
    this.#text = text;
    this.#what = what;
    this.#mayRun = !text.includes('\\B');
  }

  run(): ByteString {
    while (this.#at < this.#text.length) this.#step();
    return this.#out;
  }

  #step(): void {
    const c = this.#text[this.#at]!;
    if (c === '\\') this.#escape();
    else if (c === '[') this.#class();
    else if (c === '(') this.#open();
    else if (c === '.') {
      this.#at++;
      this.#one(this.#flags.dotTakesNewline ? '[\\x00-\\x7f]' : `[^\\n${HIGH}]`, ALL, '.');
    } else if (c.charCodeAt(0) > 0x7f) {
      const code = this.#text.codePointAt(this.#at)!;
      this.#at += sizeOf(code);
      this.#literal(code);
    } else {
      if (c === ')') this.#flags = this.#outer.pop() ?? this.#flags;
      this.#take(1);
    }
  }

  /** The match of a sticky expression at the current position. */
  #find(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.#at;
    return expression.exec(this.#text);
  }

  /** Copies the next `length` characters. */
  #take(length: number): void {
    this.#out += utf8(this.#text.slice(this.#at, this.#at + length));
    this.#at += length;
  }

  #open(): void {
    const found = this.#find(FLAGS);
    if (found?.[3] !== ')') this.#outer.push(this.#flags);
    if (found) {
      const [whole, on = '', off = ''] = found;
      const flag = (letter: string, now: boolean): boolean => !off.includes(letter) && (on.includes(letter) || now);
      this.#flags = {
        ignoresCase: flag('i', this.#flags.ignoresCase),
        dotTakesNewline: flag('s', this.#flags.dotTakesNewline),
      };
      return this.#take(whole.length);
    }
    this.#take(this.#find(GROUP_NAME)?.[0].length ?? 1);
  }

  /** One literal character; ASCII operators are escaped. */
  #literal(code: number): void {
    const { ignoresCase } = this.#flags;
    if (code <= 0x7f) {
      const c = String.fromCharCode(code);
      this.#out += OPERATORS.test(c) ? `\\${c}` : c;
      return;
    }
    const forms = (ignoresCase ? casesOf(code) : [code]).map((one) => encoded(one).latin1Slice());
    const isRepeated = /[*+?{]/.test(this.#text[this.#at] ?? '');
    if (ignoresCase) this.#out += `(?-i:${forms.join('|')})`;
    else this.#out += isRepeated ? `(?:${forms[0]})` : forms[0];
  }

  /**
   * One character of a set: `ascii` matches those of ASCII ('' where there is none), `wide` are the others. `run`:
   * takes every byte of the set's characters, where all those outside ASCII are among them.
   */
  #one(ascii: string, wide: readonly CodeRange[], run: string): void {
    const others = alternativesOf(wide).join('|');
    const wideOnly = this.#flags.ignoresCase && others !== '' ? `(?-i:${others})` : others;
    const one = `(?:${[ascii, wideOnly].filter((part) => part !== '').join('|') || '[^\\x00-\\xff]'})`;
    const operator = isAll(wide) && this.#mayRun ? this.#text[this.#at] : undefined;
    if (operator === '*') this.#out += run;
    else if (operator === '+') {
      // a run of one byte and more could end within a character
      this.#out += `${one}${run}*`;
      this.#at++;
    } else this.#out += one;
  }

  #escape(): void {
    const letter = this.#text[this.#at + 1] ?? '';
    const positive = ownOf(NEGATED_ESCAPES, letter);
    if (positive !== undefined) {
      this.#at += 2;
      return this.#one(`[^${positive}${HIGH}]`, ALL, `\\${letter}`);
    }
    if (letter === 'Q') return this.#quoted();
    this.#refuseUnicodeClass(letter);
    this.#take(this.#numeric()?.size ?? 2);
  }

  #quoted(): void {
    const end = this.#text.indexOf('\\E', this.#at + 2);
    const quoted = this.#text.slice(this.#at + 2, end < 0 ? undefined : end);
    // an operator after the quote applies to its last character, which checks what follows
    this.#at = end < 0 ? this.#text.length : end + 2;
    for (const c of quoted) this.#literal(c.codePointAt(0)!);
  }

  #refuseUnicodeClass(letter: string): void {
    if (letter !== 'p' && letter !== 'P') return;
    throw invalidArgument(
      `${this.#what}: "${this.#text.slice(this.#at, this.#at + 16)}": classes of Unicode are not known here; ` +
        'write the characters, such as [a-zäöü]',
    );
  }

  /** The escape by number that stands here, if one does. */
  #numeric(): { readonly size: number; readonly code: number } | undefined {
    const found = this.#find(NUMERIC);
    if (found === null) return undefined;
    const [whole, byte, code, octal] = found;
    const number = octal === undefined ? Number.parseInt((byte ?? code)!, 16) : Number.parseInt(octal, 8);
    if (number > 0x7f) {
      throw invalidArgument(
        `${this.#what}: ${whole} in text is neither surely a byte nor surely a character: ` +
          'write the character itself, or give the whole expression as bytes to match the byte',
      );
    }
    return { size: whole.length, code: number };
  }

  #class(): void {
    const from = this.#at;
    const items = this.#classItems();
    if (items === undefined) {
      // not closed, which the engine will say
      this.#at = from;
      return this.#take(this.#text.length - from);
    }
    const { isNegated, outside } = items;
    const wide = this.#flags.ignoresCase ? withCases(items.wide) : { set: setOf(items.wide), ascii: '' };
    const ascii = items.ascii + wide.ascii;
    const others = outside.length > 0 ? ALL : wide.set;
    const source = this.#text.slice(from, this.#at);
    if (isNegated) {
      // what is in no negated class is in the classes turned round
      if (outside.length > 0) this.#out += utf8(source);
      else this.#one(`[^${ascii}${HIGH}]`, complement(others), `[^${ascii}]`);
    } else if (others.length === 0) {
      this.#out += source;
    } else {
      const parts = [...(ascii === '' ? [] : [`[${ascii}]`]), ...outside.map((inside) => `[^${inside}${HIGH}]`)];
      const run = outside.reduce((all, inside) => `${all}|[^${inside}]`, `[${ascii}${HIGH}]`);
      this.#one(parts.join('|'), others, outside.length === 0 ? run : `(?:${run})`);
    }
  }

  /** Skips a class, from its bracket to after the closing one. */
  #classItems(): ClassItems | undefined {
    const isNegated = this.#text[this.#at + 1] === '^';
    this.#at += isNegated ? 2 : 1;
    const outside: string[] = [];
    const wide: CodeRange[] = [];
    let ascii = '';
    for (let isFirst = true; this.#at < this.#text.length; isFirst = false) {
      if (this.#text[this.#at] === ']' && !isFirst) {
        this.#at++;
        return { isNegated, ascii, outside, wide };
      }
      const named = this.#namedItem();
      if (named !== undefined) {
        if (named.isNegated) outside.push(named.positive);
        else ascii += named.positive;
        continue;
      }
      const first = this.#classCharacter();
      const isRange = this.#text[this.#at] === '-' && ![']', undefined].includes(this.#text[this.#at + 1]);
      if (isRange) this.#at++;
      const last = isRange ? this.#classCharacter() : first;
      if (isRange && first.code > last.code)
        throw invalidArgument(
          `${this.#what}: ${first.source}-${last.source} is no range of characters: its end is before its start`,
        );
      if (first.code <= 0x7f)
        ascii += isRange ? `${first.source}-${last.code > 0x7f ? '\\x7f' : last.source}` : first.source;
      if (last.code > 0x7f) wide.push([Math.max(first.code, 0x80), last.code]);
    }
    return undefined;
  }

  /** `\d`, `[:alpha:]` and those that they are the contrary of. */
  #namedItem(): { readonly positive: string; readonly isNegated: boolean } | undefined {
    const posix = this.#find(POSIX_CLASS);
    if (posix) {
      this.#at += posix[0].length;
      return { positive: `[:${posix[2]}:]`, isNegated: posix[1] === '^' };
    }
    const perl = this.#find(PERL_CLASS)?.[1];
    if (perl === undefined) return undefined;
    this.#at += 2;
    return { positive: `\\${perl.toLowerCase()}`, isNegated: perl < 'a' };
  }

  /**
   * One character of a class, and how it is written in one. What is no escape is left to the engine, as if it were of
   * ASCII.
   */
  #classCharacter(): { readonly code: number; readonly source: string } {
    if (this.#text[this.#at] !== '\\') {
      const code = this.#text.codePointAt(this.#at)!;
      this.#at += sizeOf(code);
      const c = String.fromCodePoint(code);
      return { code, source: /[-\]\\[^]/.test(c) ? `\\${c}` : c };
    }
    const letter = this.#text[this.#at + 1] ?? '';
    this.#refuseUnicodeClass(letter);
    const numeric = this.#numeric();
    const size = numeric?.size ?? 2;
    const source = utf8(this.#text.slice(this.#at, this.#at + size));
    this.#at += size;
    return { code: numeric?.code ?? CONTROLS[letter] ?? Math.min(letter.charCodeAt(0) || 0, 0x7f), source };
  }
}

/** A character's size in units of JavaScript strings. */
function sizeOf(code: number): number {
  return code > 0xffff ? 2 : 1;
}
