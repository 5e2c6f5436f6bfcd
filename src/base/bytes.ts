/**
 * Byte strings: the form of row keys, family names and qualifiers in memory.
 *
 * A `ByteString` is a JavaScript string with one character (U+0000 to U+00FF) for each byte. V8 stores such strings one
 * byte a character and compares them with `<` as unsigned bytes, three to four times faster than Buffer.compare, and
 * they work as keys of a Map. Values of cells are not byte strings: they stay Uint8Array.
 *
 * Invariant: no character is above U+00FF. Text enters through `utf8()`, bytes through `fromBytes()`.
 */

declare global {
  // Node's own, untyped and undocumented but stable since its beginning: half the cost of toString('latin1', …) for
  // short keys
  interface Buffer {
    latin1Slice(start?: number, end?: number): string;
    latin1Write(text: string, offset?: number, length?: number): number;
  }
}

export type ByteString = string;

/** The bytes as a byte string. The input is copied, so that it may be reused. */
export function fromBytes(bytes: Uint8Array): ByteString {
  if (bytes.length === 0) return '';
  return asBuffer(bytes).latin1Slice(0, bytes.length);
}

/** The byte string's bytes, newly allocated. */
export function toBytes(key: ByteString): Buffer {
  return Buffer.from(key, 'latin1');
}

/** Text as the byte string of its UTF-8 encoding. */
export function utf8(text: string): ByteString {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > 0x7f) return Buffer.from(text, 'utf8').latin1Slice();
  }
  return text;
}

/** The byte string decoded as UTF-8; malformed parts become U+FFFD. */
export function toText(key: ByteString): string {
  return Buffer.from(key, 'latin1').toString('utf8');
}

/** A Buffer over the same memory. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Bytes [from, to) over the same memory, at half the cost of `subarray`. The bounds are not checked. */
export function viewOf(bytes: Uint8Array, from: number, to: number): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from);
}

/** Copies bytes [from, to) of the source to `at` in the target. Hot path: makes no view. */
export function copyBytes(source: Uint8Array, from: number, to: number, target: Buffer, at: number): void {
  if (to - from > MAX_LOOPED_BYTES) asBuffer(source).copy(target, at, from, to);
  else for (let i = from; i < to; i++) target[at++] = source[i]!;
}

/** Most bytes that are copied by a loop: more are cheaper by a call. */
const MAX_LOOPED_BYTES = 64;

/** The smallest byte string above `key`. */
export function successor(key: ByteString): ByteString {
  return `${key}\0`;
}

/** True when `next` is successor(key): no string is made for it. */
export function isSuccessor(next: ByteString, key: ByteString): boolean {
  return next.length === key.length + 1 && next.charCodeAt(key.length) === 0 && next.startsWith(key);
}

/**
 * The smallest byte string above every one that starts with `prefix`; undefined where there is none (empty, or all
 * 0xFF).
 */
export function prefixEnd(prefix: ByteString): ByteString | undefined {
  let n = prefix.length;
  while (n > 0 && prefix.charCodeAt(n - 1) === 0xff) n--;
  if (n === 0) return undefined;
  return prefix.slice(0, n - 1) + String.fromCharCode(prefix.charCodeAt(n - 1) + 1);
}

/** Unsigned byte order of raw bytes. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  return Buffer.compare(a, b);
}

/** A byte string for people: printable ASCII unchanged, the rest as \xNN, in double quotes, cut after `most` bytes. */
export function quote(key: ByteString, most = 64): string {
  let out = '"';
  for (let i = 0; i < Math.min(key.length, most); i++) {
    const c = key.charCodeAt(i);
    if (c === 0x22 || c === 0x5c) out += `\\${key[i]}`;
    else if (c >= 0x20 && c < 0x7f) out += key[i];
    else out += `\\x${c.toString(16).padStart(2, '0')}`;
  }
  return key.length > most ? `${out}…" (${key.length} bytes)` : `${out}"`;
}

/**
 * True when `text` is the first `length` bytes. Compares from the last byte on, where neighbouring keys mostly differ.
 */
export function isText(bytes: Buffer, length: number, text: string): boolean {
  if (text.length !== length) return false;
  for (let i = length - 1; i >= 0; i--) if (bytes[i] !== text.charCodeAt(i)) return false;
  return true;
}
