/** Arguments in cbt's form: positional words, then `name=value` options, and `family:column=value[@timestamp]` cells. */
import { invalidArgument } from '../base/index.ts';

/** Splits `name=value` words; a word that is not among `known`, or comes twice, is an error that says so. */
export function namedArguments<K extends string>(words: readonly string[], known: readonly K[]): Partial<Record<K, string>> {
  const found: Partial<Record<K, string>> = {};
  for (const word of words) {
    const at = word.indexOf('=');
    const name = (at < 0 ? word : word.slice(0, at)) as K;
    if (at < 0 || !known.includes(name)) {
      throw invalidArgument(`argument "${word}" is not known here; known: ${known.map((one) => `${one}=…`).join(', ')}`);
    }
    if (Object.hasOwn(found, name)) throw invalidArgument(`argument "${name}=" is given twice`);
    found[name] = word.slice(at + 1);
  }
  return found;
}

export function positiveNumber(text: string, what: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value === 0) throw invalidArgument(`${what} must be a whole number above 0, not "${text}"`);
  return value;
}

/** As cbt takes them; undefined is false. */
export function truth(text: string | undefined, what: string): boolean {
  if (text === undefined || text === 'false') return false;
  if (text === 'true') return true;
  throw invalidArgument(`${what} must be true or false, not "${text}"`);
}

export interface CellArgument {
  readonly column: string;
  readonly value: string;
  /** Microseconds. */
  readonly timestamp: bigint | undefined;
}

/** family:column=value[@timestamp]; an @ that no number follows belongs to the value. */
export function cellArgument(word: string): CellArgument {
  const match = /^([^:=]+:[^=]*)=([\s\S]*?)(?:@(-?\d+))?$/.exec(word);
  if (!match) throw invalidArgument(`"${word}" must be written family:column=value or family:column=value@timestamp (microseconds)`);
  return { column: match[1] as string, value: match[2] as string, timestamp: match[3] === undefined ? undefined : BigInt(match[3]) };
}

/** Node hands on arguments as text: bytes that are no UTF-8 have become U+FFFD by now, and would name another row than was meant. */
export function checkText(words: readonly string[]): void {
  const broken = words.find((word) => word.includes('\ufffd'));
  if (broken !== undefined) {
    throw invalidArgument(`argument "${broken}" holds bytes that are no UTF-8 text, which cannot be given on the command line: use a client or the library for them`);
  }
}
