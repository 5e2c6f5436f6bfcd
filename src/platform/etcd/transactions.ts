/** The parts of etcd's transactions, by their meaning. Pure. */
import type { Int64 } from '../../base/index.ts';
import { type Compare, CompareTarget, EQUAL, type KeyValue, LESS, type Operation, type TxnAnswer } from './messages.ts';

/** The value of a session's key: it lives, or its owner has begun to close it. */
export const SessionState = { open: 'open', closed: 'closed' } as const;

/** The key was created in that revision; 0: it is missing. */
export function created(key: Uint8Array, createRevision: number): Compare {
  return { result: EQUAL, target: CompareTarget.create, key, createRevision };
}

/** The key was changed last in that revision; 0: it is missing. */
export function modified(key: Uint8Array, modRevision: number): Compare {
  return { result: EQUAL, target: CompareTarget.mod, key, modRevision };
}

/** The key was changed last in that revision or before it, or is missing. */
export function notModifiedAfter(key: Uint8Array, modRevision: number): Compare {
  return { result: LESS, target: CompareTarget.mod, key, modRevision: modRevision + 1 };
}

/** False for a key that is missing. */
export function valued(key: Uint8Array, value: string): Compare {
  return { result: EQUAL, target: CompareTarget.value, key, value: Buffer.from(value, 'latin1') };
}

/** `lease`: undefined for a key that lasts. */
export function put(key: Uint8Array, value: Uint8Array | string, lease: Int64 | undefined): Operation {
  const bytes = typeof value === 'string' ? Buffer.from(value, 'latin1') : value;
  return { put: { key, value: bytes, ...(lease !== undefined && { lease }) } };
}

export function readKey(key: Uint8Array): Operation {
  return { range: { key } };
}

export function deleteKey(key: Uint8Array): Operation {
  return { delete: { key } };
}

/** The key that the operation of that index has read; undefined for one that is missing. */
export function readBy(answer: TxnAnswer, index: number): KeyValue | undefined {
  return answer.responses[index]?.range?.kvs[0];
}

/** The value as text. */
export function textOf({ value }: KeyValue): string {
  return value === undefined ? '' : Buffer.from(value).toString('latin1');
}
