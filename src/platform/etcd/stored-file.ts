/**
 * A file as the value of its key (docs/formats/etcd.md): which call has written it, and its contents. By the name of
 * the call a writer whose answer was lost finds out whether its change has happened.
 */
import { assert, CorruptionError } from '../../base/index.ts';
import type { SmallFile } from '../../env/index.ts';
import type { KeyValue } from './messages.ts';
import { sessionOfLease } from './session-id.ts';

const FORMAT = 1;
/** The format and the name of the call. */
const HEAD_BYTES = 1 + 16;

/** `call`: 32 hexadecimal digits. */
export function encodeStoredFile(call: string, contents: Uint8Array): Buffer {
  assert(/^[0-9a-f]{32}$/.test(call), 'a call has a name of 128 bits');
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + contents.length);
  bytes[0] = FORMAT;
  bytes.write(call, 1, 'hex');
  bytes.set(contents, HEAD_BYTES);
  return bytes;
}

/** DATA_LOSS for a value that no writer of this format has written. */
export function decodeStoredFile(path: string, { value, modRevision = 0, lease = 0 }: KeyValue): SmallFile {
  if (value === undefined || value.length < HEAD_BYTES || value[0] !== FORMAT)
    throw new CorruptionError(path, 0, 'the value of this file in etcd has another format');
  const sessionId = sessionOfLease(lease);
  const contents = new Uint8Array(value.subarray(HEAD_BYTES));
  return { path, contents, version: modRevision, ...(sessionId !== undefined && { sessionId }) };
}

/** True when that call has written the value. */
export function isWrittenBy(call: string, { value }: KeyValue): boolean {
  return value !== undefined && Buffer.from(value.subarray(1, HEAD_BYTES)).toString('hex') === call;
}
