import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import * as grpc from '@grpc/grpc-js';
import { BigtableError, Code } from '../../base/index.ts';
import { clockOf, PullStream, type RequestContext } from '../../env/index.ts';
import type { ReadBatch, RowFragment } from '../../model/index.ts';
import type { ReadRequest, Service } from '../../service/index.ts';
import { ChunkReader } from '../client/chunk-reader.ts';
import { apiServer } from '../fixtures.ts';
import { testEnv } from '../../../test/raw-server.ts';
import { systemClock } from '../../platform/index.ts';
import {
  ReadRowsRequest_RequestStatsView as StatsView,
  type ReadRowsResponse,
  ReadRowsRequestSchema,
  ReadRowsResponseSchema,
} from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { FeatureFlagsSchema } from '../generated/google/bigtable/v2/feature_flags_pb.ts';
import { registerCloudApi } from './cloud-api.ts';

const PATH = '/google.bigtable.v2.Bigtable/ReadRows';
const MIB = 1024 * 1024;
const asIs = (bytes: Buffer): Buffer => bytes;

type Source = (context: RequestContext, request: ReadRequest) => AsyncIterable<ReadBatch>;

function row(key: string, sizeBytes = 10, cells = 1): RowFragment {
  return {
    row: key,
    last: true,
    cells: Array.from({ length: cells }, (_, i) => ({
      family: 'cf',
      qualifier: `q${i}`,
      timestamp: 1000,
      value: Buffer.alloc(sizeBytes, i),
    })),
  };
}

function request(init: MessageInitShape<typeof ReadRowsRequestSchema>): Buffer {
  return Buffer.from(toBinary(ReadRowsRequestSchema, create(ReadRowsRequestSchema, { tableName: 't', ...init })));
}

function features(init: MessageInitShape<typeof FeatureFlagsSchema>): grpc.Metadata {
  const metadata = new grpc.Metadata();
  metadata.set(
    'bigtable-features',
    Buffer.from(toBinary(FeatureFlagsSchema, create(FeatureFlagsSchema, init))).toString('base64url'),
  );
  return metadata;
}

describe('ReadRows', () => {
  const env = testEnv(16 * MIB);
  let wire: Awaited<ReturnType<typeof apiServer>>;
  /** The batches that the service yields, set by each test. */
  let source: Source;

  before(async () => {
    const service = {
      readRows: (context: RequestContext, given: ReadRequest) => source(context, given),
    } as Partial<Service> as Service;
    wire = await apiServer(env, (server) => void registerCloudApi(server, service, env));
  });

  after(async () => {
    await wire.close();
  });

  async function read(init: MessageInitShape<typeof ReadRowsRequestSchema>, metadata = new grpc.Metadata()) {
    const { code, message, messages } = await wire.call(PATH, [request(init)], { metadata });
    const answers: ReadRowsResponse[] = messages.map((bytes) => fromBinary(ReadRowsResponseSchema, bytes));
    const reader = new ChunkReader();
    return { code, message, messages, answers, rows: answers.flatMap((answer) => reader.rows(answer)) };
  }

  test('rows come in order, in one message where they fit', async () => {
    source = async function* () {
      yield { fragments: [row('a'), row('b', 10, 3), row('c')] };
    };
    const { code, rows, messages } = await read({});
    assert.equal(code, Code.OK);
    assert.deepEqual(
      rows.map(({ row: key, cells }) => [key, cells.length]),
      [
        ['a', 1],
        ['b', 3],
        ['c', 1],
      ],
    );
    assert.equal(messages.length, 1);
    await untilFree();
  });

  test('synchronous and asynchronous batches are answered alike, and every read is ended once', async () => {
    const batches: ReadBatch[] = [
      { fragments: [row('a'), row('b', 300 * 1024, 4)] },
      { fragments: [] },
      { fragments: [row('c', 70_000), row('d')] },
    ];
    const sent: string[] = [];
    for (const waits of [[], [0], [1], [3], [0, 1, 2, 3]]) {
      let [next, ends] = [0, 0];
      class Batches extends PullStream<ReadBatch> {
        pull(): ReadBatch | undefined | Promise<ReadBatch | undefined> {
          const batch = batches[next];
          return waits.includes(next++) ? Promise.resolve(batch) : batch;
        }

        end(): void | Promise<void> {
          ends++;
          return waits.length > 2 ? Promise.resolve() : undefined;
        }
      }
      source = () => new Batches();
      const { code, messages } = await read({});
      assert.deepEqual([code, ends], [Code.OK, 1]);
      sent.push(Buffer.concat(messages).toString('hex'));
    }
    assert.equal(new Set(sent).size, 1);
    for (const fails of ['pull', 'end'] as const) {
      let ends = 0;
      class Failing extends PullStream<ReadBatch> {
        pull(): undefined {
          if (fails === 'pull') throw new BigtableError(Code.DATA_LOSS, 'broken');
        }

        end(): void {
          ends++;
          if (fails === 'end') throw new BigtableError(Code.DATA_LOSS, 'broken');
        }
      }
      source = () => new Failing();
      assert.deepEqual([(await read({})).code, ends], [Code.DATA_LOSS, 1]);
    }
    await untilFree();
  });

  test('a read without rows ends well and sends nothing', async () => {
    source = async function* () {};
    const { code, messages } = await read({});
    assert.deepEqual([code, messages.length], [Code.OK, 0]);
  });

  test('the fields of the request reach the service', async () => {
    let seen: ReadRequest | undefined;
    let profile = '';
    source = async function* (context, given) {
      seen = given;
      profile = context.appProfile;
      yield { fragments: [] };
    };
    await read(
      { rows: { rowKeys: [Buffer.from('k')] }, rowsLimit: 5n, reversed: true, appProfileId: 'batch' },
      features({ reverseScans: true }),
    );
    assert.deepEqual(seen, {
      table: 't',
      ranges: [{ start: 'k', end: 'k\0' }],
      filter: undefined,
      rowsLimit: 5,
      reversed: true,
    });
    assert.equal(profile, 'batch');
  });

  test('a reversed read needs a client that announces that it understands one', async () => {
    source = async function* () {};
    assert.equal((await read({ reversed: true })).code, Code.UNIMPLEMENTED);
    assert.equal((await read({ reversed: true }, features({ reverseScans: true }))).code, Code.OK);
    const nonsense = new grpc.Metadata();
    nonsense.set('bigtable-features', '!!!!');
    assert.equal((await read({ reversed: true }, nonsense)).code, Code.UNIMPLEMENTED);
  });

  test('statistics come last, where they are requested', async () => {
    source = async function* () {
      yield { fragments: [row('a', 10, 2), row('b', 10, 3)] };
    };
    const { answers, rows } = await read({ requestStatsView: StatsView.REQUEST_STATS_FULL });
    assert.equal(rows.length, 2);
    const view = answers.at(-1)?.requestStats?.statsView;
    assert.ok(view?.case === 'fullReadStatsView');
    const stats = view.value.readIterationStats;
    assert.deepEqual(
      [stats?.rowsReturnedCount, stats?.cellsReturnedCount, stats?.rowsSeenCount, stats?.cellsSeenCount],
      [2n, 5n, 2n, 5n],
    );
    assert.ok(view.value.requestLatencyStats?.frontendServerLatency);
    assert.ok((await read({})).answers.every((answer) => answer.requestStats === undefined));
  });

  test('a failure after rows sends the rows, then the failure', async () => {
    source = async function* () {
      yield { fragments: Array.from({ length: 40 }, (_, i) => row(`row${i}`, 10_000)) };
      throw new BigtableError(Code.DATA_LOSS, 'sst-9: corrupt at byte 77');
    };
    const { code, message, rows } = await read({});
    assert.deepEqual([code, message], [Code.DATA_LOSS, 'sst-9: corrupt at byte 77']);
    assert.ok(rows.length >= 25 && rows.length <= 40, `${rows.length} rows`);
    await untilFree();
  });

  test('a row that is larger than any message reads back whole', async () => {
    source = async function* () {
      for (let i = 0; i < 4; i++) yield { fragments: [{ ...row('wide', 5 * MIB), last: i === 3 }] };
    };
    const { rows, messages } = await read({});
    assert.equal(rows.length, 1);
    assert.equal(rows[0]?.cells.length, 4);
    assert.ok(messages.every((bytes) => bytes.length < MIB));
    await untilFree();
  });

  test('to gl-python every message of a row begins with its key, inside a value too', async () => {
    const metadata = new grpc.Metadata();
    metadata.set('x-goog-api-client', 'gl-python/3.11.2 grpc/1.76.0 gax/2.28.0 gccl/2.50.2');
    source = async function* () {
      yield { fragments: [row('a')] };
      for (let i = 0; i < 3; i++) yield { fragments: [{ ...row('wide', 3 * MIB), last: i === 2 }] };
    };
    const { rows, answers, messages } = await read({}, metadata);
    assert.deepEqual(
      rows.map(({ row: key, cells }) => [key, cells.length]),
      [
        ['a', 1],
        ['wide', 3],
      ],
    );
    assert.ok(answers.length > 5 && messages.every((bytes) => bytes.length < MIB));
    for (const answer of answers.slice(1)) assert.equal(Buffer.from(answer.chunks[0]?.rowKey ?? '').toString(), 'wide');
    await untilFree();
  });

  const goClient: Record<string, string>[] = [
    { 'x-goog-api-client': 'gl-go/1.26.0 gax/2.23.0 grpc/1.85.0 gccl/1.58.0' },
  ];
  for (const headers of goClient) {
    test(`a row goes to Go's client (${Object.keys(headers)[0]}) in one message, within the budget`, async () => {
      const metadata = new grpc.Metadata();
      for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
      source = async function* () {
        yield { fragments: [row('a')] };
        for (let i = 0; i < 10; i++) yield { fragments: [{ ...row('wide', MIB), last: i === 9 }] };
        yield { fragments: [row('z')] };
      };
      const { rows, answers } = await read({}, metadata);
      assert.deepEqual(
        rows.map(({ row: key, cells }) => [key, cells.length]),
        [
          ['a', 1],
          ['wide', 10],
          ['z', 1],
        ],
      );
      assert.ok(answers.every((answer) => answer.chunks.at(-1)?.rowStatus.case === 'commitRow'));
      source = async function* () {
        for (let i = 0; i < 30; i++) yield { fragments: [{ ...row('wider', MIB), last: i === 29 }] };
      };
      const over = await read({}, metadata);
      assert.equal(over.code, Code.RESOURCE_EXHAUSTED);
      assert.equal((await read({})).code, Code.OK);
      await untilFree();
    });
  }

  test('a scan without output reports how far it came, to clients that understand', async () => {
    let now = 0;
    const clock = clockOf({ ...systemClock, monotonicMs: () => (now += 400) });
    const slowEnv = { ...testEnv(), clock };
    const service = {
      readRows: async function* () {
        for (const key of ['b', 'd', 'f', 'h', 'j']) yield { fragments: [], scannedTo: key };
        yield { fragments: [{ ...row('k'), last: false }], scannedTo: 'j' };
        yield { fragments: [{ ...row('k'), last: true }], scannedTo: 'k' };
      },
    } as Partial<Service> as Service;
    const other = await apiServer(slowEnv, (server) => void registerCloudApi(server, service, slowEnv));
    const progress = async (metadata: grpc.Metadata) => {
      const { messages } = await other.call(PATH, [request({})], { metadata });
      return messages
        .map((bytes) => fromBinary(ReadRowsResponseSchema, bytes))
        .map((answer) => Buffer.from(answer.lastScannedRowKey).toString());
    };
    const keysInOrder = await progress(features({ lastScannedRowResponses: true }));
    const keys = keysInOrder.filter((key) => key !== '');
    assert.ok(keys.length >= 1, JSON.stringify(keysInOrder));
    assert.deepEqual(keys, [...keys].sort());
    assert.ok(
      keysInOrder.indexOf('') === keysInOrder.length - keysInOrder.filter((key) => key === '').length,
      'no progress is reported once rows came',
    );
    assert.ok((await progress(new grpc.Metadata())).every((key) => key === ''));
    await other.close();
  });

  test('a reader that stops holds back the scan; one that leaves ends it', async () => {
    let yielded = 0;
    let ended = false;
    source = async function* () {
      try {
        for (;;) {
          yielded++;
          yield { fragments: [row(`row${yielded}`, 100_000)] };
        }
      } finally {
        ended = true;
      }
    };
    const call = wire.client.makeServerStreamRequest(PATH, asIs, asIs, request({}));
    call.on('error', () => {});
    await new Promise((resolve) => call.once('data', (bytes) => resolve(call.pause() && bytes)));
    let [last, still] = [-1, 0];
    while (still < 200) {
      still = yielded === last ? still + 1 : 0;
      last = yielded;
      await systemClock.yield();
    }
    assert.ok(yielded < 100, `${yielded} rows were read`);
    assert.ok(env.requestBudget.usedBytes < 2 * MIB);
    assert.equal(ended, false);
    call.cancel();
    while (!ended) await systemClock.yield();
    await untilFree();
  });

  test('rows that are ready do not wait for a message to fill', async () => {
    let release = (): void => {};
    source = async function* () {
      yield { fragments: [row('a')] };
      const startMs = systemClock.monotonicMs();
      while (systemClock.monotonicMs() - startMs < 15) await systemClock.yield();
      yield { fragments: [row('b')] };
      await new Promise<void>((resolve) => {
        release = resolve;
      });
    };
    const call = wire.client.makeServerStreamRequest(PATH, asIs, asIs, request({}));
    const keys: string[] = [];
    call.on('data', (bytes: Buffer) =>
      keys.push(...new ChunkReader().rows(fromBinary(ReadRowsResponseSchema, bytes)).map((each) => each.row)),
    );
    while (keys.length < 2) await systemClock.yield();
    assert.deepEqual(keys, ['a', 'b']);
    release();
    await new Promise((resolve) => call.once('end', resolve));
  });

  async function untilFree(): Promise<void> {
    while (env.requestBudget.usedBytes > 0) await systemClock.yield();
  }
});
