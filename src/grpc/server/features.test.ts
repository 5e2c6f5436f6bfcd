import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { FeatureFlagsSchema } from '../generated/google/bigtable/v2/feature_flags_pb.ts';
import { FeatureFlags } from './features.ts';

const flags = new FeatureFlags();
const call = (header: string | undefined) => ({
  header: (name: string) => (name === 'bigtable-features' ? header : undefined),
});

const headerOf = (init: MessageInitShape<typeof FeatureFlagsSchema>): string =>
  Buffer.from(toBinary(FeatureFlagsSchema, create(FeatureFlagsSchema, init))).toString('base64url');

test("feature flags are those of the call's own header, whatever calls came before", () => {
  const reverse = headerOf({ reverseScans: true });
  const scanned = Buffer.from(
    toBinary(FeatureFlagsSchema, create(FeatureFlagsSchema, { lastScannedRowResponses: true })),
  ).toString('base64');
  for (let round = 0; round < 2; round++) {
    assert.deepEqual(
      [flags.of(call(reverse)).reverseScans, flags.of(call(reverse)).lastScannedRowResponses],
      [true, false],
    );
    assert.deepEqual(
      [flags.of(call(scanned)).reverseScans, flags.of(call(scanned)).lastScannedRowResponses],
      [false, true],
    );
    for (const init of [{ mutateRowsRateLimit: true }, { mutateRowsRateLimit2: true }])
      assert.ok(flags.of(call(headerOf(init))).mutateRowsRateLimit);
    assert.ok(!flags.of(call(scanned)).mutateRowsRateLimit);
    for (const header of [undefined, '%%%', 'DwDwDw'])
      assert.equal(flags.of(call(header)).reverseScans, false, String(header));
  }
});
