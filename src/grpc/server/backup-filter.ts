/**
 * The filter and the order of ListBackups: comparisons of a backup's fields, joined by AND, OR and NOT, in parentheses
 * where there are several (AIP-160, as far as the API says; AIP-132 for the order).
 */
import { fromJson } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { type BigtableError, invalidArgument, quote } from '../../base/index.ts';
import type { ShownBackup } from '../convert/backup.ts';

type Value = string | number;
type Test = (backup: ShownBackup) => boolean;
type Comparison = (value: Value, wanted: Value) => boolean;

const FIELDS: Readonly<Record<string, (backup: ShownBackup) => Value>> = {
  name: ({ name }) => name,
  source_table: ({ table }) => table,
  state: ({ state }) => (state === 'unreadable' ? 'STATE_UNSPECIFIED' : state.toUpperCase()),
  start_time: ({ startMicros }) => startMicros,
  end_time: ({ endMicros = 0 }) => endMicros,
  expire_time: ({ expireMicros }) => expireMicros,
  size_bytes: ({ sizeBytes }) => sizeBytes,
};
const equals: Comparison = (value, wanted) => value === wanted;
const OPERATORS: ReadonlyMap<string, Comparison> = new Map([
  ['<', (value, wanted) => value < wanted],
  ['<=', (value, wanted) => value <= wanted],
  ['>', (value, wanted) => value > wanted],
  ['>=', (value, wanted) => value >= wanted],
  ['!=', (value, wanted) => value !== wanted],
  ['=', equals],
  [':', equals],
] as const);
/** Names, operators, parentheses, and texts in quotes. */
const TOKEN = /\s*(?:("(?:[^"\\]|\\.)*")|(<=|>=|!=|[<>=:()])|([^\s<>=!:()"]+))/g;
const MAX_CHARS = 2000;
const MAX_DEPTH = 20;
const WORDS = ['AND', 'OR', 'NOT'];

interface Token {
  readonly kind: 'quoted' | 'sign' | 'word';
  readonly text: string;
}

/** INVALID_ARGUMENT for a filter of another form. */
export function backupFilter(filter: string): Test {
  const tokens = tokensOf(filter);
  if (tokens.length === 0) return () => true;
  const parser = new Parser(tokens);
  const test = parser.anyOf(0);
  if (parser.next !== undefined) throw wrong(`filter: ${quote(parser.next.text, 100)} is not expected there`);
  return test;
}

/** Compares two backups: the latest start first where the order is ''. INVALID_ARGUMENT for another form. */
export function backupOrder(order: string): (a: ShownBackup, b: ShownBackup) => number {
  const terms = order.trim() === '' ? ['start_time desc'] : order.split(',');
  const keys = terms.map((term) => {
    const [field = '', direction = 'asc', ...rest] = term.trim().split(/\s+/);
    const value = Object.hasOwn(FIELDS, field) ? FIELDS[field]! : undefined;
    if (value === undefined || rest.length > 0 || !['asc', 'desc'].includes(direction))
      throw invalidArgument(
        `order_by: ${quote(term, 100)} must be one of ${Object.keys(FIELDS).join(', ')}, perhaps with desc`,
        { field: 'order_by' },
      );
    return { value, sign: direction === 'desc' ? -1 : 1 };
  });
  return (a, b) => {
    for (const { value, sign } of keys) {
      const [left, right] = [value(a), value(b)];
      if (left !== right) return left < right ? -sign : sign;
    }
    return a.name < b.name ? -1 : 1;
  };
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  get next(): Token | undefined {
    return this.#tokens[this.#at];
  }

  anyOf(depth: number): Test {
    if (depth > MAX_DEPTH) throw wrong(`filter: parentheses may be ${MAX_DEPTH} deep`);
    const tests = [this.#allOf(depth)];
    while (this.#takes('OR')) tests.push(this.#allOf(depth));
    return (backup) => tests.some((test) => test(backup));
  }

  /** AND may be left out. */
  #allOf(depth: number): Test {
    const tests = [this.#one(depth)];
    while (this.#takes('AND') || this.#begins()) tests.push(this.#one(depth));
    return (backup) => tests.every((test) => test(backup));
  }

  #one(depth: number): Test {
    if (depth > MAX_DEPTH) throw wrong(`filter: NOT may be ${MAX_DEPTH} deep`);
    if (this.#takes('NOT')) {
      const test = this.#one(depth + 1);
      return (backup) => !test(backup);
    }
    if (this.#takes('(')) {
      const test = this.anyOf(depth + 1);
      if (!this.#takes(')')) throw wrong('filter: a parenthesis is not closed');
      return test;
    }
    return this.#comparison();
  }

  #comparison(): Test {
    const [name, sign, value] = [this.#take(), this.#take(), this.#take()];
    const field = name?.text.toLowerCase() ?? '';
    const valueOf = name?.kind === 'word' && Object.hasOwn(FIELDS, field) ? FIELDS[field] : undefined;
    if (valueOf === undefined)
      throw wrong(`filter: ${quote(name?.text ?? '', 100)} must be one of ${Object.keys(FIELDS).join(', ')}`);
    const compares = sign?.kind === 'sign' ? OPERATORS.get(sign.text) : undefined;
    if (compares === undefined) throw wrong(`filter: ${field} must be followed by one of < > <= >= != = :`);
    if (value === undefined || value.kind === 'sign') throw wrong(`filter: ${field} is compared with nothing`);
    const isPart = sign?.text === ':' && value.kind === 'word';
    return comparison(field, valueOf, isPart ? 'part' : compares, value);
  }

  #begins(): boolean {
    const { next } = this;
    return next !== undefined && (next.text === '(' || (next.kind === 'word' && !['OR', 'AND'].includes(next.text)));
  }

  #takes(text: string): boolean {
    if (this.next?.text !== text || this.next.kind === 'quoted') return false;
    this.#at++;
    return true;
  }

  #take(): Token | undefined {
    return this.#tokens[this.#at++];
  }
}

/** `part`: a text contains the given one. */
function comparison(
  field: string,
  valueOf: (backup: ShownBackup) => Value,
  how: Comparison | 'part',
  given: Token,
): Test {
  const compares = how === 'part' ? equals : how;
  if (field === 'size_bytes' || field.endsWith('_time')) {
    const wanted = field === 'size_bytes' ? Number(given.text) : microsIn(given.text);
    if (Number.isNaN(wanted)) throw wrong(`filter: ${field} cannot be compared with ${quote(given.text, 100)}`);
    return (backup) => compares(valueOf(backup), wanted);
  }
  const wanted = given.text.toLowerCase();
  return (backup) => {
    const value = String(valueOf(backup)).toLowerCase();
    return how === 'part' ? value.includes(wanted) : compares(value, wanted);
  };
}

/** Microseconds since 1970; NaN where the text is no time, as 2024-03-28T14:50:00Z is. */
function microsIn(text: string): number {
  try {
    const { seconds, nanos } = fromJson(TimestampSchema, text.toUpperCase());
    return Number(seconds) * 1e6 + Math.floor(nanos / 1000);
  } catch {
    return Number.NaN;
  }
}

function tokensOf(filter: string): Token[] {
  if (filter.length > MAX_CHARS) throw wrong(`filter has ${filter.length} characters; the limit is ${MAX_CHARS}`);
  const tokens: Token[] = [];
  let end = 0;
  for (const { 0: all, 1: quoted, 2: sign, 3: word, index } of filter.matchAll(TOKEN)) {
    if (index !== end) break;
    end = index + all.length;
    if (quoted !== undefined) tokens.push({ kind: 'quoted', text: quoted.slice(1, -1).replaceAll(/\\(.)/g, '$1') });
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign });
    else if (word !== undefined)
      tokens.push({ kind: 'word', text: WORDS.includes(word.toUpperCase()) ? word.toUpperCase() : word });
  }
  if (end < filter.trimEnd().length) throw wrong(`filter: ${quote(filter.slice(end), 100)} cannot be understood`);
  return tokens;
}

function wrong(message: string): BigtableError {
  return invalidArgument(message, { field: 'filter' });
}
