/**
 * Writes protobuf's wire format (https://protobuf.dev/programming-guides/encoding) into a buffer whose size was
 * computed before: for the messages that are sent most. Each function writes a field with a one-byte tag at `at` and
 * returns the offset after it.
 */
import { type ByteString, type Int64, writeVarint } from '../../base/index.ts';

/** A tag and a number, or a tag and the length of what follows. */
export function writeHead(bytes: Buffer, at: number, tag: number, value: number): number {
  bytes[at] = tag;
  return writeVarint(bytes, at + 1, value);
}

/** Strings up to this length are copied by a loop, without a call. */
const SHORT_TEXT = 24;

export function writeText(bytes: Buffer, at: number, tag: number, text: ByteString): number {
  const { length } = text;
  let to = writeHead(bytes, at, tag, length);
  if (length > SHORT_TEXT) return to + bytes.latin1Write(text, to);
  for (let i = 0; i < length; i++) bytes[to++] = text.charCodeAt(i);
  return to;
}

export function writeBytes(bytes: Buffer, at: number, tag: number, value: Uint8Array): number {
  const to = writeHead(bytes, at, tag, value.length);
  bytes.set(value, to);
  return to + value.length;
}

export function writeInt64(bytes: Buffer, at: number, tag: number, value: Int64): number {
  if (typeof value === 'number' && value >= 0) return writeHead(bytes, at, tag, value);
  bytes[at++] = tag;
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest >= 0x80n; rest >>= 7n) bytes[at++] = Number(rest & 0x7fn) | 0x80;
  bytes[at++] = Number(rest);
  return at;
}
