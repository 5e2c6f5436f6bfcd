/** What a client says it understands: google.bigtable.v2.FeatureFlags in the header bigtable-features, base64 of either alphabet. */
import { create, fromBinary } from '@bufbuild/protobuf';
import { type FeatureFlags, FeatureFlagsSchema } from '../generated/google/bigtable/v2/feature_flags_pb.ts';
import type { RpcCall } from '../rpc/rpc-server.ts';

/** No flags where the header is missing or unreadable. */
export function featureFlags(call: RpcCall): FeatureFlags {
  const header = call.header('bigtable-features');
  if (header === undefined) return create(FeatureFlagsSchema);
  try {
    return fromBinary(FeatureFlagsSchema, Buffer.from(header, 'base64'));
  } catch {
    return create(FeatureFlagsSchema);
  }
}
