/** Arguments in cbt's form: positional words, then `name=value` options, and `family:column=value[@timestamp]` cells. */
import { invalidArgument } from '../base/index.ts';

/** Splits `name=value` words; a word that is not among `known` is an error that names those that are. */
export function namedArguments<K extends string>(words: readonly string[], known: readonly K[]): Partial<Record<K, string>> {
  const found: Partial<Record<K, string>> = {};
  for (const word of words) {
    const at = word.indexOf('=');
    const name = (at < 0 ? word : word.slice(0, at)) as K;
    if (at < 0 || !known.includes(name)) {
      throw invalidArgument(`argument "${word}" is not known here; known: ${known.map((one) => `${one}=…`).join(', ') || 'none'}`);
    }
    found[name] = word.slice(at + 1);
  }
  return found;
}

export function positiveNumber(text: string, what: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value <= 0) throw invalidArgument(`${what} must be a whole number above 0, not "${text}"`);
  return value;
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
