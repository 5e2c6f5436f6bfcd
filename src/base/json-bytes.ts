/**
 * Bytes in JSON. The type and the meaning of a field never depend on the bytes: `NAME` is a string and holds text,
 * `NAMEBase64` is a string and holds base64. Exactly one of the two is present: the second where the bytes are not
 * UTF-8 (docs/decisions/0031-command-line.md).
 */
import { asBuffer, type ByteString, toBytes } from './bytes.ts';

/** The text of the bytes; undefined where they are not UTF-8. */
export function utf8Text(bytes: Uint8Array): string | undefined {
  const buffer = asBuffer(bytes);
  const text = buffer.toString('utf8');
  return text.includes('\ufffd') && !Buffer.from(text, 'utf8').equals(buffer) ? undefined : text;
}

/** The field of the bytes, to be spread into an object. */
export function jsonField(name: string, bytes: Uint8Array): Readonly<Record<string, string>> {
  const text = utf8Text(bytes);
  return text === undefined ? jsonBase64(name, bytes) : { [name]: text };
}

/** The same for bytes that are never meant as text. */
export function jsonBase64(name: string, bytes: Uint8Array): Readonly<Record<string, string>> {
  return { [`${name}Base64`]: asBuffer(bytes).toString('base64') };
}

/** The same for a row key, a qualifier or a bound; no field where it is undefined. */
export function jsonKey(name: string, key: ByteString | undefined): Readonly<Record<string, string>> {
  return key === undefined ? {} : jsonField(name, toBytes(key));
}
