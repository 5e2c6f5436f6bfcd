/**
 * Arguments in cbt's form: positional words, then `name=value` options, and `family:column=value[@timestamp]` cells.
 */
import { didYouMean, isInt64 } from '../../base/index.ts';
import { UsageError } from '../output/usage-error.ts';

/** cbt's tutorials give it; it makes no difference here. */
export const APP_PROFILE = 'app-profile';

/**
 * Splits `name=value` words. A word that is not among `known`, comes twice or has no value is an error that says so:
 * `prefix=$UNSET` must not mean every row.
 */
export function namedArguments<K extends string>(
  words: readonly string[],
  known: readonly K[],
): Partial<Record<K, string>> {
  const found: Partial<Record<K, string>> = {};
  for (const word of words) {
    const at = word.indexOf('=');
    const name = (at < 0 ? word : word.slice(0, at)) as K;
    if (at < 0 || !known.includes(name)) {
      throw notKnown('argument', word, known);
    }
    if (Object.hasOwn(found, name)) throw new UsageError(`argument "${name}=" is given twice`);
    if (at === word.length - 1) {
      throw new UsageError(`argument "${name}=" has no value; leave it out where none is meant`);
    }
    found[name] = word.slice(at + 1);
  }
  return found;
}

/** For a `name=value` word whose name is not among `known`, or that has no `=`. */
export function notKnown(noun: string, word: string, known: readonly string[]): UsageError {
  const [name = ''] = word.split('=', 1);
  const guess = known.includes(name) ? ` (did you mean ${name}=…?)` : didYouMean(name, known);
  return new UsageError(
    `${noun} "${word}" is not known here${guess}; known: ${known.map((one) => `${one}=…`).join(', ')}`,
  );
}

export function positiveNumber(text: string, what: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value === 0)
    throw new UsageError(`${what} must be a whole number above 0, not "${text}"`);
  return value;
}

/**
 * The value of an option that names a directory. An empty one, of a variable that is not set, would be the current
 * directory.
 */
export function directoryOption(text: string): string {
  if (text === '') throw new UsageError('the directory of an option is empty; write . for the current one');
  return text;
}

/** A whole number within int64. */
export function int64Argument(text: string, what: string): bigint {
  const value = /^[+-]?\d+$/.test(text) ? BigInt(text.replace(/^\+/, '')) : undefined;
  if (value === undefined || !isInt64(value)) {
    throw new UsageError(`${what} must be a whole number within int64, not "${text}"`);
  }
  return value;
}

/** A boolean in cbt's form; undefined is false. */
export function truth(text: string | undefined, what: string): boolean {
  if (text === undefined || text === 'false') return false;
  if (text === 'true') return true;
  throw new UsageError(`${what} must be true or false, not "${text}"`);
}

export interface CellArgument {
  readonly column: string;
  readonly value: string;
  /** Microseconds. */
  readonly timestamp: bigint | undefined;
}

/** family:column=value[@timestamp]; an @ without a number after it belongs to the value. */
export function cellArgument(word: string): CellArgument {
  const match = /^([^:=]+:[^=]*)=([\s\S]*?)(?:@(-?\d+))?$/.exec(word);
  if (!match)
    throw new UsageError(
      `"${word}" must be written family:column=value or family:column=value@timestamp (microseconds)`,
    );
  return {
    column: match[1]!,
    value: match[2]!,
    timestamp: match[3] === undefined ? undefined : BigInt(match[3]),
  };
}

/** Microseconds of early 1970, which are milliseconds of the years 2001 to 2286. */
export function looksLikeMilliseconds(micros: bigint): boolean {
  return micros >= 1_000_000_000_000n && micros < 10_000_000_000_000n;
}

/** Node passes arguments as text. Bytes that are not UTF-8 have become U+FFFD, and would name another row. */
export function checkText(words: readonly string[]): void {
  const broken = words.find((word) => word.includes('\ufffd'));
  if (broken !== undefined) {
    throw new UsageError(
      `argument "${broken}" has bytes that are not UTF-8 text, which the command line cannot pass: use a client or the library`,
    );
  }
}
