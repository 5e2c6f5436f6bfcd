import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import * as grpc from '@grpc/grpc-js';
import { testEnv } from '../../../test/raw-server.ts';
import type { RequestContext } from '../../env/index.ts';
import type { RowMutations } from '../../model/index.ts';
import type { Service } from '../../service/index.ts';
import { apiServer } from '../fixtures.ts';
import {
  MutateRowsRequestSchema,
  type MutateRowsResponse,
  MutateRowsResponseSchema,
} from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { FeatureFlagsSchema } from '../generated/google/bigtable/v2/feature_flags_pb.ts';
import { registerCloudApi } from './cloud-api.ts';
import { rateLimitField } from './rate-limiter.ts';

const PATH = '/google.bigtable.v2.Bigtable/MutateRows';

function factorOf(waitedShare: number): number | undefined {
  return fromBinary(MutateRowsResponseSchema, rateLimitField(waitedShare)).rateLimitInfo?.factor;
}

test('the factor falls from its highest, where nothing waits, to its lowest', () => {
  const shares = [0, 0.05, 0.1, 0.15, 0.2, 0.5, 1];
  const factors = shares.map((share) => factorOf(share)!.toFixed(2));
  assert.deepEqual(factors, ['1.30', '1.15', '1.00', '0.85', '0.70', '0.70', '0.70']);
});

describe('the answer of a batch', () => {
  const env = testEnv(1 << 20);
  let wire: Awaited<ReturnType<typeof apiServer>>;
  let waitedMs = 0;

  before(async () => {
    const mutateRows: Service['mutateRows'] = async (
      context: RequestContext,
      _table: string,
      entries: readonly RowMutations[],
    ) => {
      context.writeWait?.add(waitedMs);
      return entries.map(() => undefined);
    };
    wire = await apiServer(env, (server) => void registerCloudApi(server, { mutateRows } as Service, env));
  });

  after(() => wire.close());

  async function answersOf(rows: number, flags: MessageInitShape<typeof FeatureFlagsSchema>) {
    const metadata = new grpc.Metadata();
    const header = toBinary(FeatureFlagsSchema, create(FeatureFlagsSchema, flags));
    metadata.set('bigtable-features', Buffer.from(header).toString('base64url'));
    const request = create(MutateRowsRequestSchema, {
      tableName: 'projects/p/instances/i/tables/t',
      entries: Array.from({ length: rows }, (_, i) => ({
        rowKey: Buffer.from(`row ${i}`),
        mutations: [{ mutation: { case: 'deleteFromRow' as const, value: {} } }],
      })),
    });
    const { messages } = await wire.call(PATH, [Buffer.from(toBinary(MutateRowsRequestSchema, request))], { metadata });
    return messages.map((bytes): MutateRowsResponse => fromBinary(MutateRowsResponseSchema, bytes));
  }

  test('has a rate for clients that ask for one, in each of its messages', async () => {
    for (const flags of [{ mutateRowsRateLimit: true }, { mutateRowsRateLimit2: true }]) {
      waitedMs = 0;
      const answers = await answersOf(1200, flags);
      assert.deepEqual(
        answers.map(({ entries, rateLimitInfo }) => [
          entries.length,
          rateLimitInfo?.period?.seconds,
          rateLimitInfo?.factor,
        ]),
        [500, 500, 200].map((entries) => [entries, 5n, 1.3]),
      );
      waitedMs = 1e9;
      const [held] = await answersOf(1, flags);
      assert.equal(held?.rateLimitInfo?.factor, 0.7);
    }
  });

  test('has none for others', async () => {
    waitedMs = 1e9;
    for (const answer of await answersOf(1200, { reverseScans: true })) assert.equal(answer.rateLimitInfo, undefined);
  });
});
