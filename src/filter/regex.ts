/**
 * Regular expressions of filters: RE2 syntax over bytes (RE2's Latin-1 mode), always matched against the whole input,
 * in linear time.
 *
 * The engine is re2js, which works on strings; a byte string has one byte a character, so it works on bytes. A scan of
 * the pattern before the engine adds the rest of Latin-1 mode: `\C` (any byte) becomes `(?s:.)`, and escapes of
 * characters above 0xFF are refused. Case folding and Unicode classes differ only above 0xFF, where no input is.
 *
 * Most patterns are plain: a literal, a choice of literals, literals with `.*` or `\C*` between them. They need no
 * engine, whose construction costs more than a point read.
 *
 * Invariant: `literals` and `prefix` hold for every input that matches.
 */
import { RE2JS, RE2JSSyntaxException } from 're2js';
import { type BigtableError, type ByteString, invalidArgument, quote } from '../base/index.ts';
import { EngineMatcher, type EngineShare } from './engine-matcher.ts';
import type { Matcher } from './matcher.ts';
import { LiteralMatcher, LiteralsMatcher, WildcardMatcher } from './plain-matchers.ts';
import { META, type Piece, scanPattern } from './regex-scan.ts';

/**
 * Most instructions of all engines of a filter, as the scan counts them. re2js makes up to twice as many, three times
 * for `^*`.
 */
const MAX_PROGRAM_SIZE = 10_000;
/** The regular expressions of one filter: each compiled once, all together within bounds of size and memory. */
export class Regexes {
  readonly #matchers = new Map<ByteString, Matcher>();
  readonly #share: EngineShare = { engines: 0, units: 0 };
  #size = 0;

  /** Units of work of matches that were not done in slices. */
  get work(): { readonly units: number } {
    return this.#share;
  }

  /**
   * The matcher of the pattern. INVALID_ARGUMENT, with the filter's field and the pattern, if it is invalid or too
   * large.
   */
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
    if (this.#size > MAX_PROGRAM_SIZE)
      throw invalid(pattern, field, `the filter's expressions are too large (limit: ${MAX_PROGRAM_SIZE} instructions)`);
    this.#share.engines++;
    try {
      return new EngineMatcher(RE2JS.compile(scan.source), scan.prefix, pattern, field, this.#share);
    } catch (thrown) {
      if (thrown instanceof RE2JSSyntaxException) throw invalid(pattern, field, thrown.getDescription());
      throw thrown;
    }
  }
}

function invalid(pattern: ByteString, field: string, problem: string): BigtableError {
  return invalidArgument(`${field}: invalid RE2 expression ${quote(pattern, 200)}: ${problem}`);
}

function plainMatcher(alternatives: readonly (readonly Piece[])[]): Matcher | undefined {
  if (alternatives.every((pieces) => pieces.every((piece) => typeof piece === 'string'))) {
    const literals = new Set(alternatives.map((pieces) => pieces.join('')));
    return literals.size === 1 ? new LiteralMatcher([...literals][0]!) : new LiteralsMatcher([...literals]);
  }
  if (alternatives.length > 1) return undefined;
  const pieces = alternatives[0]!;
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
