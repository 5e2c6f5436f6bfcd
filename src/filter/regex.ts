/**
 * Regular expressions of filters: RE2 syntax over bytes (RE2's Latin-1 mode), always matched against the whole input, in linear time.
 *
 * The engine is re2js, which works on strings; a byte string holds one byte a character, so it works on bytes. What Latin-1 mode
 * has beyond that is put right here, by a scan of the pattern before the engine sees it: `\C` (any byte) becomes `(?s:.)`, and escapes
 * of characters above 0xFF are refused. Case folding and Unicode classes reach above 0xFF only where no input can.
 *
 * Most patterns are plain: a literal, a choice of literals, literals with `.*` or `\C*` between them. Those never meet the engine, whose
 * construction costs more than a point read.
 *
 * Invariant: `literals` and `prefix` speak of every input that matches.
 */
import { RE2JS, RE2JSSyntaxException } from 're2js';
import { asBuffer, type BigtableError, type ByteString, fromBytes, invalidArgument, quote, toBytes } from '../base/index.ts';
import { META, type Piece, scanPattern } from './regex-scan.ts';

export interface Matcher {
  /** The only inputs that match, where they are a few literals. */
  readonly literals?: readonly ByteString[];
  /** What every matching input starts with; may be empty. */
  readonly prefix: ByteString;
  matches(text: ByteString): boolean;
  matchesBytes(bytes: Uint8Array): boolean;
}

/** Instructions that all engines of a filter may have; RE2 itself ends at about as many a pattern. 50,000 take some 0.2 s to make. */
const MAX_PROGRAM_SIZE = 50_000;
/** Memory for the lazily built automata of all engines of a filter. */
const MAX_AUTOMATA_BYTES = 16 * 1024 * 1024;
const MIN_AUTOMATON_BYTES = 64 * 1024;

/** The regular expressions of one filter: each compiled once, all together within bounds of size and memory. */
export class Regexes {
  readonly #matchers = new Map<ByteString, Matcher>();
  readonly #share: EngineShare = { engines: 0 };
  #size = 0;

  /** INVALID_ARGUMENT, naming the filter's field and quoting the pattern, where it is not valid or too large. */
  get(pattern: ByteString, field: string): Matcher {
    let matcher = this.#matchers.get(pattern);
    if (matcher === undefined) {
      matcher = this.#compile(pattern, field);
      this.#matchers.set(pattern, matcher);
    }
    return matcher;
  }

  #compile(pattern: ByteString, field: string): Matcher {
    if (!META.test(pattern)) return new LiteralMatcher(pattern);
    const scan = scanPattern(pattern);
    if (scan.problem !== undefined) throw invalid(pattern, field, scan.problem);
    const plain = scan.alternatives && plainMatcher(scan.alternatives);
    if (plain) return plain;
    this.#size += scan.size;
    if (this.#size > MAX_PROGRAM_SIZE) throw invalid(pattern, field, `the filter's expressions are too large (limit: ${MAX_PROGRAM_SIZE} instructions)`);
    this.#share.engines++;
    try {
      return new EngineMatcher(RE2JS.compile(scan.source), scan.prefix, this.#share);
    } catch (thrown) {
      if (thrown instanceof RE2JSSyntaxException) throw invalid(pattern, field, thrown.getDescription());
      throw thrown;
    }
  }
}

interface EngineShare {
  engines: number;
}

function invalid(pattern: ByteString, field: string, problem: string): BigtableError {
  return invalidArgument(`${field}: ${quote(pattern, 200)} is no valid RE2 expression: ${problem}`);
}

function plainMatcher(alternatives: readonly (readonly Piece[])[]): Matcher | undefined {
  if (alternatives.every((pieces) => pieces.every((piece) => typeof piece === 'string'))) {
    const literals = new Set(alternatives.map((pieces) => pieces.join('')));
    return literals.size === 1 ? new LiteralMatcher([...literals][0] as ByteString) : new LiteralsMatcher([...literals]);
  }
  if (alternatives.length > 1) return undefined;
  const pieces = alternatives[0] as readonly Piece[];
  const literals: ByteString[] = [''];
  let newlines: boolean | undefined;
  for (const piece of pieces) {
    if (typeof piece === 'string') {
      literals[literals.length - 1] += piece;
    } else {
      if (!piece.star || (newlines !== undefined && newlines !== piece.newline)) return undefined;
      newlines = piece.newline;
      literals.push('');
    }
  }
  if (newlines === undefined || (!newlines && literals.some((literal) => literal.includes('\n')))) return undefined;
  return new WildcardMatcher(literals, newlines);
}

/** One literal: nothing else matches. By far the most common, and made for a single read. */
class LiteralMatcher implements Matcher {
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
}

/** A choice of literals. */
class LiteralsMatcher implements Matcher {
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
}

/** Literals in this order with anything between them: `a.*b`, `\C*needle\C*`. */
class WildcardMatcher implements Matcher {
  readonly prefix: ByteString;
  readonly #suffix: ByteString;
  readonly #inner: readonly ByteString[];
  readonly #newlines: boolean;
  readonly #anything: boolean;
  /** The literals as bytes: made by the first value there is to match. */
  #bytes: { readonly prefix: Buffer; readonly suffix: Buffer; readonly inner: readonly Buffer[] } | undefined;

  /** `literals`: at least two, the first and the last at the input's ends. `newlines`: whether what lies between may hold them. */
  constructor(literals: readonly ByteString[], newlines: boolean) {
    this.prefix = literals[0] as ByteString;
    this.#suffix = literals.at(-1) as ByteString;
    this.#inner = literals.slice(1, -1).filter((literal) => literal !== '');
    this.#newlines = newlines;
    this.#anything = this.prefix === '' && this.#suffix === '' && this.#inner.length === 0;
  }

  matches(text: ByteString): boolean {
    const end = text.length - this.#suffix.length;
    if (end < this.prefix.length || !text.startsWith(this.prefix) || !text.endsWith(this.#suffix)) return false;
    // no literal holds a newline here, so one anywhere would have to lie between them
    if (!this.#newlines && text.includes('\n')) return false;
    let at = this.prefix.length;
    for (const literal of this.#inner) {
      at = text.indexOf(literal, at);
      if (at < 0) return false;
      at += literal.length;
    }
    return at <= end;
  }

  /** As `matches`, but no text is made of the bytes: a scan asks this of every value. */
  matchesBytes(bytes: Uint8Array): boolean {
    if (this.#anything) return this.#newlines || !bytes.includes(NEWLINE);
    this.#bytes ??= { prefix: toBytes(this.prefix), suffix: toBytes(this.#suffix), inner: this.#inner.map(toBytes) };
    const { prefix, suffix, inner } = this.#bytes;
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
}

const NEWLINE = 10;

function holdsAt(text: Buffer, literal: Buffer, at: number): boolean {
  return literal.length === 0 || literal.compare(text, at, at + literal.length) === 0;
}

/** Everything else. */
class EngineMatcher implements Matcher {
  readonly prefix: ByteString;
  readonly #engine: RE2JS;
  #share: EngineShare | undefined;

  constructor(engine: RE2JS, prefix: ByteString, share: EngineShare) {
    this.#engine = engine;
    this.prefix = prefix;
    this.#share = share;
  }

  matches(text: ByteString): boolean {
    if (this.#share) this.#limitMemory(this.#share);
    return text.startsWith(this.prefix) && this.#engine.matches(text);
  }

  matchesBytes(bytes: Uint8Array): boolean {
    return this.matches(asBuffer(bytes).latin1Slice());
  }

  /** Before the first match, when all engines of the filter are known. An automaton that outgrows its part is simulated, not built. */
  #limitMemory(share: EngineShare): void {
    this.#share = undefined;
    const automaton = this.#engine.re2Input.dfa;
    automaton.stateBudget = Math.min(automaton.stateBudget, Math.max(MIN_AUTOMATON_BYTES, Math.floor(MAX_AUTOMATA_BYTES / share.engines)));
    automaton.memBudget = automaton.stateBudget;
  }
}
