/**
 * What users may write where the model wants byte strings, bytes and int64: text (as UTF-8), bytes, numbers, bigints, dates.
 * Everything is checked here, so that a wrong argument is named by its own name.
 */
import { asBuffer, type ByteString, fromBytes, type Int64, int64, int64Bytes, invalidArgument, isInt64, utf8 } from '../base/index.ts';

/** Text stands for its UTF-8 bytes. */
export type Bytes = string | Uint8Array;

/** Microseconds since 1970 as a number (exact below 2^53) or bigint, or a Date. */
// biome-ignore lint/style/noRestrictedGlobals: a date that the user gives is data, no clock is read
export type Timestamp = number | bigint | Date;

/** "family:qualifier" (cut at the first colon), or the two apart where the qualifier is not text. */
export type Column = string | { readonly family: string; readonly qualifier: Bytes };

/** A cell's value: bytes, text, or an int64 counter given as bigint (stored as 8 bytes, big-endian). */
export type Value = Bytes | bigint;

export function keyOf(bytes: Bytes, what: string): ByteString {
  if (typeof bytes === 'string') return utf8(bytes);
  if (bytes instanceof Uint8Array) return fromBytes(bytes);
  throw invalidArgument(`${what} must be text or bytes, not ${describe(bytes)}`);
}

export function valueOf(value: Value): Uint8Array {
  if (typeof value === 'string') return Buffer.from(value, 'utf8');
  if (value instanceof Uint8Array) return value;
  if (typeof value === 'bigint' && isInt64(value)) return int64Bytes(int64(value));
  throw invalidArgument(`a value must be text, bytes or an int64 as bigint, not ${describe(value)}`);
}

export function timestampOf(timestamp: Timestamp, what = 'a timestamp'): Int64 {
  // biome-ignore lint/style/noRestrictedGlobals: as above
  const micros = timestamp instanceof Date ? timestamp.getTime() * 1000 : timestamp;
  if (!isInt64(micros)) {
    throw invalidArgument(`${what} must be microseconds as a whole number, a bigint within int64, or a Date, not ${describe(timestamp)}`);
  }
  return int64(micros);
}

export function columnOf(column: Column): { family: string; qualifier: ByteString } {
  if (typeof column !== 'string') return { family: column.family, qualifier: keyOf(column.qualifier, 'a qualifier') };
  const at = column.indexOf(':');
  if (at < 0) throw invalidArgument(`column "${column}" must be written family:qualifier ("${column}:" is the column with the empty qualifier)`);
  return { family: column.slice(0, at), qualifier: utf8(column.slice(at + 1)) };
}

/** Bytes of the caller's own: a value read from a table may pin a whole block in memory. */
export function ownBytes(value: Uint8Array): Buffer {
  const bytes = asBuffer(value);
  return bytes.buffer.byteLength > 2 * bytes.length + 4096 ? Buffer.from(bytes) : bytes;
}

function describe(thing: unknown): string {
  if (thing === null) return 'null';
  if (typeof thing === 'object') return thing.constructor?.name ?? 'an object';
  return `${typeof thing} ${String(thing)}`;
}
