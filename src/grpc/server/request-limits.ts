/**
 * The largest request of each call. A larger one is refused as soon as its length is known (RESOURCE_EXHAUSTED), before
 * any of it is held. Requests of health and reflection are tiny: they are not counted and wait for no other.
 */
import { type RpcMethod, TINY_REQUEST_BYTES } from '../../wire/index.ts';

const MIB = 1024 * 1024;

/** The limit of calls that carry no user data: their messages are decoded in one slice, which must stay short. */
export const PLAIN_REQUEST_BYTES = 4 * MIB;

/** Calls that carry user data. */
const DATA_REQUEST_BYTES: Readonly<Record<string, number>> = {
  // 100,000 mutations, or two values of 100 MiB
  '/google.bigtable.v2.Bigtable/MutateRow': 256 * MIB,
  '/google.bigtable.v2.Bigtable/MutateRows': 256 * MIB,
  '/google.bigtable.v2.Bigtable/CheckAndMutateRow': 256 * MIB,
  // one value of 100 MiB, which is appended
  '/google.bigtable.v2.Bigtable/ReadModifyWriteRow': 128 * MIB,
  // a million row keys
  '/google.bigtable.v2.Bigtable/ReadRows': 64 * MIB,
};

export function maxRequestBytesOf(path: string, kind: RpcMethod['kind']): number {
  // the names of a service or a symbol; no other call with several requests is implemented
  if (kind === 'bidi' || path.startsWith('/grpc.health.')) return TINY_REQUEST_BYTES;
  return DATA_REQUEST_BYTES[path] ?? PLAIN_REQUEST_BYTES;
}
