/**
 * Users' forms of the model's byte strings, bytes and int64: text (as UTF-8), bytes, numbers, bigints, dates. All are
 * checked here, so errors use the argument's own name.
 */
import {
  asBuffer,
  checkOptions,
  BigtableError,
  type ByteString,
  describeValue,
  fromBytes,
  type Int64,
  int64,
  int64Bytes,
  invalidArgument,
  isInt64,
  isObjectOfNames,
  unreadable,
  utf8,
} from '../../base/index.ts';

/** Text stands for its UTF-8 bytes. */
export type Bytes = string | Uint8Array;

/**
 * A Date, or microseconds since 1970 as a bigint or a number (exact below 2^53). A number from 10^12 up to 10^13, of
 * either sign, is refused: it would be a day in early 1970, and is nearly always `Date.now()`, which counts
 * milliseconds.
 */
// biome-ignore lint/style/noRestrictedGlobals: a date that the user gives is data, no clock is read
export type Timestamp = number | bigint | Date;

/** "family:qualifier" (cut at the first colon), or the two apart where the qualifier is not text. */
export type Column = string | { readonly family: string; readonly qualifier: Bytes };

/** A cell's value: bytes, text, or an int64 counter given as bigint (stored as 8 bytes, big-endian). */
export type Value = Bytes | bigint;

/** Turns arguments into requests: what a getter or a proxy of a caller throws meanwhile is INVALID_ARGUMENT. */
export function asked<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof BigtableError ? error : unreadable('an argument', error);
  }
}

/** Nothing that only says it is one. */
export function isBytes(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && value instanceof Uint8Array;
}

export function keyOf(bytes: Bytes, what: string): ByteString {
  if (typeof bytes === 'string') return utf8(bytes);
  if (isBytes(bytes)) return fromBytes(bytes);
  throw invalidArgument(`${what} must be text or bytes, not ${describeValue(bytes)}`);
}

/** A bound of a range. An empty one would be no bound, so INVALID_ARGUMENT: who means that leaves it out. */
export function boundOf(bytes: Bytes, what: string): ByteString {
  const bound = keyOf(bytes, what);
  if (bound === '') throw invalidArgument(`${what} must not be empty; leave it out where no bound is meant`);
  return bound;
}

/** A number, whatever its size: never text that would be one. */
export function numberOf(value: number, what: string): number {
  if (typeof value !== 'number') throw invalidArgument(`${what} must be a number, not ${describeValue(value)}`);
  return value;
}

/** The text, checked. */
export function textOf(text: string, what: string): string {
  if (typeof text !== 'string') throw invalidArgument(`${what} must be text, not ${describeValue(text)}`);
  return text;
}

/** The id of a thing, checked: a part of its full resource name. */
export function idOf(id: string, what: string): string {
  if (textOf(id, what) === '' || id.includes('/'))
    throw invalidArgument(`${what} must be text without slashes, not ${JSON.stringify(id)}`);
  return id;
}

/** One of the known values. */
export function oneOf<T>(value: T, known: readonly T[], what: string): T {
  if (!known.includes(value))
    throw invalidArgument(`${what} must be one of ${known.join(', ')}, not ${describeValue(value)}`);
  return value;
}

export function truthOf(value: boolean, what: string): boolean {
  if (typeof value !== 'boolean') throw invalidArgument(`${what} must be true or false, not ${describeValue(value)}`);
  return value;
}

export function listOf<T>(list: readonly T[], what: string): readonly T[] {
  if (!Array.isArray(list)) throw invalidArgument(`${what} must be an array, not ${describeValue(list)}`);
  // holes become undefined, so that each of them is named
  return Array.from(list as readonly T[]);
}

export function valueOf(value: Value): Uint8Array {
  if (typeof value === 'string') return Buffer.from(value, 'utf8');
  if (isBytes(value)) return value;
  if (typeof value === 'bigint' && isInt64(value)) return int64Bytes(int64(value));
  throw invalidArgument(
    `a value must be text, bytes or an int64 as bigint, not ${describeValue(value)}${valueHint(value)}`,
  );
}

/** The hint what to write for a value without an encoding. */
function valueHint(value: unknown): string {
  if (typeof value === 'number') {
    const whole = Number.isSafeInteger(value) ? `${value}n for 8 bytes that increment can add to, or ` : '';
    return `: write ${whole}String(${value}) for text`;
  }
  if (typeof value === 'boolean' || isObjectOfNames(value)) return ': write JSON.stringify(value) for text';
  return '';
}

/**
 * Numbers of these sizes are milliseconds since 1970 from the year 2001 to 2286, or microseconds from January to April
 * 1970.
 */
const LIKE_MILLISECONDS = { least: 1e12, below: 1e13 } as const;

export function timestampOf(timestamp: Timestamp, what = 'a timestamp'): Int64 {
  const micros = typeof timestamp === 'object' ? dateMicros(timestamp) : timestamp;
  if (!isInt64(micros)) {
    throw invalidArgument(
      `${what} must be microseconds as a whole number, a bigint within int64, or a Date, ` +
        `not ${describeValue(timestamp)}`,
    );
  }
  if (typeof timestamp === 'number') refuseMilliseconds(timestamp, what);
  return int64(micros);
}

/** A date's microseconds; other values are returned unchanged. */
// biome-ignore lint/style/noRestrictedGlobals: as above
function dateMicros(date: Date): number | bigint | Date {
  // biome-ignore lint/style/noRestrictedGlobals: as above
  return asked(() => (date instanceof Date ? microsOf(date.getTime()) : date));
}

/** NaN, of a Date that is none, stays NaN. Beyond the year 2255 microseconds as a number are not exact. */
function microsOf(milliseconds: number): number | bigint {
  const micros = milliseconds * 1000;
  return Number.isSafeInteger(micros) || Number.isNaN(micros) ? micros : BigInt(milliseconds) * 1000n;
}

function refuseMilliseconds(timestamp: number, what: string): void {
  const size = Math.abs(timestamp);
  if (size < LIKE_MILLISECONDS.least || size >= LIKE_MILLISECONDS.below) return;
  throw invalidArgument(
    `${what} must be microseconds since 1970, and ${timestamp} looks like the milliseconds of Date.now(): ` +
      `write new Date(${timestamp}), or ${timestamp}n if you do mean microseconds`,
  );
}

export function columnOf(column: Column, what = 'column'): { family: string; qualifier: ByteString } {
  if (typeof column === 'string') {
    const at = column.indexOf(':');
    if (at < 0)
      throw invalidArgument(
        `${what} "${column}" must be written family:qualifier ("${column}:" is the column with the empty qualifier)`,
      );
    return { family: column.slice(0, at), qualifier: utf8(column.slice(at + 1)) };
  }
  if (typeof column !== 'object' || column === null) {
    throw invalidArgument(`${what} must be "family:qualifier" or { family, qualifier }, not ${describeValue(column)}`);
  }
  return namedColumn(column);
}

const COLUMN = { family: 'bound', qualifier: 'bound' } as const;

function namedColumn(column: Exclude<Column, string>): { family: string; qualifier: ByteString } {
  return asked(() => {
    checkOptions(column, COLUMN, 'a column', 'field');
    return { family: textOf(column.family, 'a family'), qualifier: keyOf(column.qualifier, 'a qualifier') };
  });
}

/** Bytes of the caller's own: a value read from a table may pin a whole block in memory. */
export function ownBytes(value: Uint8Array): Buffer {
  const bytes = asBuffer(value);
  return bytes.buffer.byteLength > 2 * bytes.length + 4096 ? Buffer.from(bytes) : bytes;
}
