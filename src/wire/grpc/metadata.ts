/**
 * Headers as they come from HPACK: a flat list of names and values, each a string of bytes. And gRPC's ways to put text
 * and bytes into them.
 */

/** name, value, name, value … */
export type Headers = readonly string[];

/** The first value of the name, lower case. */
export function headerValue(headers: Headers, name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] === name) return headers[i + 1];
  }
  return undefined;
}

const PRINTABLE = /^[\x20-\x24\x26-\x7e]*$/;

/** grpc-message: text percent-encoded, cut to `maxChars` at the end of a character. */
export function encodeMessage(text: string, maxChars = 4096): string {
  if (text.length <= maxChars && PRINTABLE.test(text)) return text;
  let out = '';
  for (const char of text) {
    const piece = PRINTABLE.test(char) ? char : percent(char);
    if (out.length + piece.length > maxChars) break;
    out += piece;
  }
  return out;
}

function percent(char: string): string {
  let out = '';
  for (const byte of Buffer.from(char, 'utf8')) out += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  return out;
}

/** The decoded text; invalid percent-encoding stays as it is. */
export function decodeMessage(header: string): string {
  if (!header.includes('%')) return Buffer.from(header, 'latin1').toString('utf8');
  const bytes = header.replace(/%([0-9a-fA-F]{2})/g, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** The value of a header whose name ends in -bin: base64 without padding. */
export function encodeBinary(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64').replace(/=+$/, '');
}

/** Decodes base64 with or without padding. */
export function decodeBinary(header: string): Buffer {
  return Buffer.from(header, 'base64');
}
