/** What a client says it understands: google.bigtable.v2.FeatureFlags in the header bigtable-features, base64 of either alphabet. */
import { WireReader } from '../bytes/wire-reader.ts';
import type { RpcCall } from '../../wire/index.ts';

/** Those that Edubba goes by. */
export interface Features {
  readonly reverseScans: boolean;
  readonly lastScannedRowResponses: boolean;
}

const NONE: Features = { reverseScans: false, lastScannedRowResponses: false };
/** A client sends the same header with every call, and clients are of few kinds. */
let last: { readonly header: string; readonly features: Features } | undefined;

/** No flags where the header is missing or unreadable. */
export function featureFlags(call: Pick<RpcCall, 'header'>): Features {
  const header = call.header('bigtable-features');
  if (header === undefined) return NONE;
  if (last?.header !== header) last = { header, features: decoded(header) };
  return last.features;
}

function decoded(header: string): Features {
  const reader = new WireReader(Buffer.from(header, 'base64'));
  const features: { -readonly [flag in keyof Features]: boolean } = { ...NONE };
  try {
    while (reader.next()) {
      if (reader.field === 1) features.reverseScans = reader.int64() !== 0;
      else if (reader.field === 4) features.lastScannedRowResponses = reader.int64() !== 0;
      else reader.skip();
    }
    return features;
  } catch {
    return NONE;
  }
}
