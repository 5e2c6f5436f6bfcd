/** Policies as messages of google.iam.v1. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { KeptPolicy } from '../../service/index.ts';
import type { PolicySchema } from '../generated/google/iam/v1/policy_pb.ts';

/** The etag of a resource without a policy, as the cloud has it: Google's Python suite asks for it. */
const NO_POLICY_ETAG = Buffer.from('ACAB', 'base64');

/** The etag of that version of a policy. */
export function policyEtag(version: number): Buffer {
  return version === 0 ? NO_POLICY_ETAG : Buffer.from(String(version));
}

/** Undefined for the etag of something else. */
export function versionOfEtag(etag: Uint8Array): number | undefined {
  if (NO_POLICY_ETAG.equals(etag)) return 0;
  const text = Buffer.from(etag).toString('latin1');
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}

export function policyMessage({ bindings, version }: KeptPolicy): MessageInitShape<typeof PolicySchema> {
  return {
    version: version === 0 ? 0 : 1,
    etag: policyEtag(version),
    bindings: bindings.map(({ role, members }) => ({ role, members: [...members] })),
  };
}
