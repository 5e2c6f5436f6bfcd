/** What a client says it understands: google.bigtable.v2.FeatureFlags in the header bigtable-features, base64 of either alphabet. */
import { create, fromBinary } from '@bufbuild/protobuf';
import { type FeatureFlags, FeatureFlagsSchema } from '../generated/google/bigtable/v2/feature_flags_pb.ts';
import type { RpcCall } from '../../wire/index.ts';

const NONE = create(FeatureFlagsSchema);
/** A client sends the same header with every call, and clients are of few kinds. */
let last: { readonly header: string; readonly flags: FeatureFlags } | undefined;

/** No flags where the header is missing or unreadable. To be read only: calls share them. */
export function featureFlags(call: Pick<RpcCall, 'header'>): FeatureFlags {
  const header = call.header('bigtable-features');
  if (header === undefined) return NONE;
  if (last?.header !== header) last = { header, flags: decoded(header) };
  return last.flags;
}

function decoded(header: string): FeatureFlags {
  try {
    return fromBinary(FeatureFlagsSchema, Buffer.from(header, 'base64'));
  } catch {
    return NONE;
  }
}
