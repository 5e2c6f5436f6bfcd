/**
 * Bytes in JSON. The type and the meaning of a field never depend on the bytes: `NAME` is a string and holds text, `NAMEBase64` is a string and holds
 * base64. Exactly one of the two is there: the second where the bytes are not UTF-8 (docs/decisions/0031-command-line.md).
 */
import { isUtf8 } from 'node:buffer';
import { type ByteString, toBytes } from '../base/index.ts';

/** To be spread into an object. */
export function jsonField(name: string, bytes: Buffer): Readonly<Record<string, string>> {
  return isUtf8(bytes) ? { [name]: bytes.toString('utf8') } : jsonBase64(name, bytes);
}

/** The same for bytes that are never meant as text. */
export function jsonBase64(name: string, bytes: Buffer): Readonly<Record<string, string>> {
  return { [`${name}Base64`]: bytes.toString('base64') };
}

/** The same for a row key, a qualifier or a bound; nothing where it is undefined. */
export function jsonKey(name: string, key: ByteString | undefined): Readonly<Record<string, string>> {
  return key === undefined ? {} : jsonField(name, toBytes(key));
}
