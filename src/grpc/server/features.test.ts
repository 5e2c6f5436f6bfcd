import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, toBinary } from '@bufbuild/protobuf';
import { FeatureFlagsSchema } from '../generated/google/bigtable/v2/feature_flags_pb.ts';
import { featureFlags } from './features.ts';

const call = (header: string | undefined) => ({
  header: (name: string) => (name === 'bigtable-features' ? header : undefined),
});

test("feature flags are those of the call's own header, whatever calls came before", () => {
  const reverse = Buffer.from(
    toBinary(FeatureFlagsSchema, create(FeatureFlagsSchema, { reverseScans: true })),
  ).toString('base64url');
  const scanned = Buffer.from(
    toBinary(FeatureFlagsSchema, create(FeatureFlagsSchema, { lastScannedRowResponses: true })),
  ).toString('base64');
  for (let round = 0; round < 2; round++) {
    assert.deepEqual(
      [featureFlags(call(reverse)).reverseScans, featureFlags(call(reverse)).lastScannedRowResponses],
      [true, false],
    );
    assert.deepEqual(
      [featureFlags(call(scanned)).reverseScans, featureFlags(call(scanned)).lastScannedRowResponses],
      [false, true],
    );
    for (const header of [undefined, '%%%', 'DwDwDw'])
      assert.equal(featureFlags(call(header)).reverseScans, false, String(header));
  }
});
