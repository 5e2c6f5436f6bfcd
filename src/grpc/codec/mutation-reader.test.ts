import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { clockOf, ManualClock } from '../../env/index.ts';
import { type Mutation, mutationList, type SetCell } from '../../model/index.ts';
import { filterMessage } from '../convert/filter.ts';
import { byteString, familyName, mutation, rowFilter, rowKey, rule, timestamp, value } from '../convert/fixtures.ts';
import { mutationMessage, ruleMessage } from '../convert/mutation.ts';
import {
  CheckAndMutateRowRequestSchema,
  MutateRowRequestSchema,
  MutateRowsRequestSchema,
  ReadModifyWriteRowRequestSchema,
} from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { Mutation_TimestampOrigin as Origin, MutationSchema } from '../generated/google/bigtable/v2/data_pb.ts';
import { toBytes } from '../../base/index.ts';
import { RequestDecoder } from './request-decoder.ts';
import { MutationReader } from './mutation-reader.ts';

const decoder = new RequestDecoder(new ManualClock());
before(() => decoder.load());

const TABLE = 'projects/p/instances/i/tables/t';

function reader(bytes: Uint8Array): MutationReader {
  return new MutationReader(Buffer.from(bytes), decoder, new ManualClock());
}

const mutations = fc.array(mutation, { maxLength: 6 });
const setCells = fc.record(
  { kind: fc.constant('setCell' as const), family: familyName, qualifier: byteString, timestamp, value },
  { noNullPrototype: true },
);
const target = { tableName: TABLE, appProfileId: 'batch', authorizedViewName: 'view' };
const expectedTarget = { table: TABLE, appProfile: 'batch', authorizedView: 'view' };

describe('requests with mutations', () => {
  test('MutateRow', async () => {
    await fc.assert(
      fc.asyncProperty(byteString, mutations, async (row, given) => {
        const one = reader(
          toBinary(
            MutateRowRequestSchema,
            create(MutateRowRequestSchema, { ...target, rowKey: toBytes(row), mutations: given.map(mutationMessage) }),
          ),
        );
        assert.deepEqual(plain(await one.mutateRow()), plain({ row, mutations: given }));
        assert.deepEqual(one.target, expectedTarget);
      }),
    );
  });

  test('have the tokens of writes, and no start where it is 0', async () => {
    const token = Buffer.from([0xff, 0, 1, 2, 3, 4, 5, 6]);
    const known = toBinary(
      MutateRowRequestSchema,
      create(MutateRowRequestSchema, {
        rowKey: Buffer.from('r'),
        idempotency: { token, startTime: { seconds: 1_700_000_000n, nanos: 250_000_000 } },
      }),
    );
    const text = token.toString('latin1');
    assert.deepEqual((await reader(known).mutateRow()).idempotency, { token: text, startMs: 1_700_000_000_250 });
    const entries = [
      { idempotency: { token } },
      { idempotency: { token, startTime: {} } },
      { idempotency: {} },
      {},
      { idempotency: { token, startTime: { seconds: -1n } } },
    ];
    const bytes = toBinary(MutateRowsRequestSchema, create(MutateRowsRequestSchema, { entries }));
    const read = await reader(bytes).mutateRows();
    assert.deepEqual(
      read.entries.map(({ idempotency }) => idempotency),
      [
        { token: text, startMs: undefined },
        { token: text, startMs: undefined },
        { token: '', startMs: undefined },
        undefined,
        { token: text, startMs: -1000 },
      ],
    );
    // fields that come twice are merged, as protobuf says
    const later = create(MutateRowRequestSchema, { idempotency: { startTime: { seconds: 1_700_000_001n } } });
    const both = Buffer.concat([known, toBinary(MutateRowRequestSchema, later)]);
    const { startMs } = (await reader(both).mutateRow()).idempotency ?? {};
    assert.ok(startMs !== undefined && startMs >= 1_700_000_001_000 && startMs <= 1_700_000_001_250, `${startMs}`);
  });

  test('MutateRows', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(byteString, mutations), { maxLength: 4 }), async (rows) => {
        const entries = rows.map(([row, given]) => ({ rowKey: toBytes(row), mutations: given.map(mutationMessage) }));
        const many = reader(toBinary(MutateRowsRequestSchema, create(MutateRowsRequestSchema, { ...target, entries })));
        const read = (await many.mutateRows()).entries.map((entry) => ({
          row: entry.row,
          mutations: mutationList(entry.mutations),
        }));
        assert.deepEqual(plain(read), plain(rows.map(([row, given]) => ({ row, mutations: given }))));
        assert.deepEqual(many.target, expectedTarget);
      }),
    );
  });

  test('CheckAndMutateRow', async () => {
    await fc.assert(
      fc.asyncProperty(
        byteString,
        mutations,
        mutations,
        fc.option(rowFilter, { nil: undefined }),
        async (row, whenTrue, whenFalse, predicate) => {
          const init = {
            ...target,
            rowKey: toBytes(row),
            trueMutations: whenTrue.map(mutationMessage),
            falseMutations: whenFalse.map(mutationMessage),
          };
          const message = create(CheckAndMutateRowRequestSchema, {
            ...init,
            ...(predicate && { predicateFilter: filterMessage(predicate) }),
          });
          const check = reader(toBinary(CheckAndMutateRowRequestSchema, message));
          const got = await check.checkAndMutateRow();
          assert.deepEqual(
            plain({ ...got, predicate: undefined }),
            plain({ row, predicate: undefined, whenTrue, whenFalse }),
          );
          assert.deepEqual(got.predicate, predicate);
          assert.deepEqual(check.target, expectedTarget);
        },
      ),
    );
  });

  test('ReadModifyWriteRow', async () => {
    await fc.assert(
      fc.asyncProperty(byteString, fc.array(rule, { maxLength: 5 }), async (row, rules) => {
        const init = { ...target, rowKey: toBytes(row), rules: rules.map(ruleMessage) };
        const change = reader(toBinary(ReadModifyWriteRowRequestSchema, create(ReadModifyWriteRowRequestSchema, init)));
        assert.deepEqual(plain(await change.readModifyWriteRow()), plain({ row, rules }));
        assert.deepEqual(change.target, expectedTarget);
      }),
    );
  });

  /** Valid protobuf that names nothing that can be done. */
  const MALFORMED: readonly MessageInitShape<typeof MutationSchema>[] = [
    {},
    { mutation: { case: 'addToCell', value: { familyName: 'cf' } } },
    { mutation: { case: 'mergeToCell', value: {} } },
    {
      mutation: {
        case: 'deleteFromColumn',
        value: { familyName: 'cf', timeRange: { startTimestampMicros: 2000n, endTimestampMicros: 1000n } },
      },
    },
  ];

  test('in a batch a malformed mutation fails its entry alone, whatever the other entries are', async () => {
    // mostly cells, so that the entries before and after it are runs in the same bytes
    const cells = fc.array(fc.oneof({ weight: 8, arbitrary: setCells }, { weight: 1, arbitrary: mutation }), {
      minLength: 1,
      maxLength: 5,
    });
    const malformed = fc.option(fc.record({ at: fc.nat({ max: 5 }), init: fc.constantFrom(...MALFORMED) }), {
      nil: undefined,
      freq: 2,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(rowKey, cells, malformed), { maxLength: 8 }), async (rows) => {
        const entries = rows.map(([row, given, bad]) => {
          const messages = given.map(mutationMessage);
          if (bad) messages.splice(bad.at, 0, create(MutationSchema, bad.init));
          return { rowKey: toBytes(row), mutations: messages };
        });
        const read = await reader(
          toBinary(MutateRowsRequestSchema, create(MutateRowsRequestSchema, { ...target, entries })),
        ).mutateRows();
        const good = rows.filter(([, , bad]) => bad === undefined);
        assert.deepEqual(
          plain(read.entries.map((entry) => ({ row: entry.row, mutations: mutationList(entry.mutations) }))),
          plain(good.map(([row, given]) => ({ row, mutations: given }))),
        );
        assert.deepEqual(
          read.failures.map(({ index, error }) => [index, error.code]),
          rows.flatMap(([, , bad], i) => (bad ? [[i, 3]] : [])),
        );
      }),
      { numRuns: 300 },
    );
  });

  test('a request of one row with a malformed mutation fails whole', async () => {
    for (const init of MALFORMED) {
      const one = reader(
        toBinary(
          MutateRowRequestSchema,
          create(MutateRowRequestSchema, { ...target, rowKey: Buffer.from('r'), mutations: [init] }),
        ),
      );
      await assert.rejects(async () => one.mutateRow(), { code: 3 });
      const check = reader(
        toBinary(
          CheckAndMutateRowRequestSchema,
          create(CheckAndMutateRowRequestSchema, { ...target, rowKey: Buffer.from('r'), trueMutations: [init] }),
        ),
      );
      await assert.rejects(async () => check.checkAndMutateRow(), { code: 3 });
    }
  });

  test('a check has as many mutations on each side as a request may, and not one more', async () => {
    const most = Buffer.concat(new Array<Buffer>(100_000).fill(Buffer.from([0x22, 0x02, 0x22, 0x00])));
    const other = Buffer.concat(new Array<Buffer>(100_000).fill(Buffer.from([0x2a, 0x02, 0x22, 0x00])));
    const { whenTrue, whenFalse } = await reader(Buffer.concat([most, other])).checkAndMutateRow();
    assert.deepEqual([whenTrue.length, whenFalse.length], [100_000, 100_000]);
    for (const side of [most, other]) {
      await assert.rejects(async () => reader(Buffer.concat([side, side.subarray(0, 4)])).checkAndMutateRow(), {
        code: 3,
        message: /limit is 100000/,
      });
    }
  });

  test('a request cut off anywhere is refused or read, and never breaks', async () => {
    const entries = fc
      .sample(mutations, { numRuns: 5, seed: 11 })
      .map((given) => ({ rowKey: Buffer.from('r'), mutations: given.map(mutationMessage) }));
    const whole = toBinary(MutateRowsRequestSchema, create(MutateRowsRequestSchema, { tableName: TABLE, entries }));
    let refused = 0;
    for (let length = 0; length < whole.length; length++) {
      await reader(whole.subarray(0, length))
        .mutateRows()
        .catch((error: { code: number }) => {
          assert.equal(error.code, 3);
          refused++;
        });
    }
    assert.ok(refused > whole.length / 2, `${refused} of ${whole.length} refused`);
  });

  test('flipped bytes are refused or read as something else', async () => {
    const entries = fc
      .sample(mutations, { numRuns: 5, seed: 12 })
      .map((given) => ({ rowKey: Buffer.from('r'), mutations: given.map(mutationMessage) }));
    const whole = toBinary(MutateRowsRequestSchema, create(MutateRowsRequestSchema, { tableName: TABLE, entries }));
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: whole.length - 1 }), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
        const bytes = Buffer.from(whole);
        bytes[at] = (bytes[at] as number) ^ flip;
        await reader(bytes)
          .mutateRows()
          .catch((error: { code: number }) => assert.equal(error.code, 3));
      }),
      { numRuns: 300 },
    );
  });
});

describe('the limits of a request', () => {
  const emptyMutations = (count: number): Buffer => Buffer.concat(Array.from({ length: count }, () => DELETE_ROW));
  const DELETE_ROW = Buffer.from([0x12, 0x02, 0x22, 0x00]);

  test('100,000 mutations and not one more', async () => {
    const most = reader(Buffer.concat([Buffer.from([0x12]), varint(400_000), emptyMutations(100_000)]));
    const { entries } = await most.mutateRows();
    assert.equal(entries[0]?.mutations.length, 100_000);
    await assert.rejects(
      reader(Buffer.concat([Buffer.from([0x12]), varint(400_004), emptyMutations(100_001)])).mutateRows(),
      { code: 3, message: /limit is 100000/ },
    );
  });

  test('no more entries than mutations, even if they are empty', async () => {
    const empty = Buffer.concat(Array.from({ length: 100_001 }, () => Buffer.from([0x12, 0x00])));
    await assert.rejects(reader(empty).mutateRows(), { code: 3 });
  });

  test('no more than 100,000 rules', async () => {
    const one = Buffer.from([0x1a, 0x02, 0x20, 0x01]);
    await assert.rejects(
      async () => reader(Buffer.concat(Array.from({ length: 100_001 }, () => one))).readModifyWriteRow(),
      { code: 3 },
    );
  });

  test('a predicate above 20,480 bytes is refused', async () => {
    const predicateFilter = filterMessage({ kind: 'valueRegex', regex: 'x'.repeat(20_481) });
    const bytes = toBinary(CheckAndMutateRowRequestSchema, create(CheckAndMutateRowRequestSchema, { predicateFilter }));
    await assert.rejects(async () => reader(bytes).checkAndMutateRow(), { code: 3, message: /20480/ });
  });

  test('the reading pauses between mutations when its slice is over', async () => {
    const clock = new ManualClock();
    let pauses = 0;
    const slow = clockOf({
      nowMicros: () => clock.nowMicros(),
      timer: (ms, wake) => clock.timer(ms, wake),
      monotonicMs: () => performance.now() * 1000,
      yield: async () => void pauses++,
    });
    const rule = Buffer.from([0x1a, 0x02, 0x20, 0x01]);
    const request = {
      MutateRows: Buffer.concat([Buffer.from([0x12]), varint(40_000), emptyMutations(10_000)]),
      ReadModifyWriteRow: Buffer.concat(Array.from({ length: 10_000 }, () => rule)),
    };
    await new MutationReader(request.MutateRows, decoder, slow).mutateRows();
    assert.ok(pauses > 10, `${pauses} pauses`);
    pauses = 0;
    assert.equal(
      (await new MutationReader(request.ReadModifyWriteRow, decoder, slow).readModifyWriteRow()).rules.length,
      10_000,
    );
    assert.ok(pauses > 10, `${pauses} pauses`);
  });

  test('a small request is read in one slice', () => {
    const one = toBinary(
      ReadModifyWriteRowRequestSchema,
      create(ReadModifyWriteRowRequestSchema, {
        rowKey: Buffer.from('r'),
        rules: [
          {
            familyName: 'f',
            columnQualifier: Buffer.from('q'),
            rule: { case: 'incrementAmount', value: -(2n ** 63n) },
          },
        ],
      }),
    );
    assert.deepEqual(reader(one).readModifyWriteRow(), {
      row: 'r',
      rules: [{ family: 'f', qualifier: 'q', change: { kind: 'increment', amount: -(2n ** 63n) } }],
    });
  });

  test('the last of two changes in a rule counts, and a rule without one is refused', async () => {
    const two = Buffer.from([0x1a, 0x05, 0x1a, 0x01, 0x41, 0x20, 0x03]);
    assert.deepEqual(await reader(two).readModifyWriteRow(), {
      row: '',
      rules: [{ family: '', qualifier: '', change: { kind: 'increment', amount: 3 } }],
    });
    await assert.rejects(async () => reader(Buffer.from([0x1a, 0x03, 0x0a, 0x01, 0x66])).readModifyWriteRow(), {
      code: 3,
      message: /append_value or increment_amount must be set/,
    });
  });
});

describe('timestamps that a client made up', () => {
  const set = (timestampMicros: bigint, timestampOrigin: Origin): MessageInitShape<typeof MutationSchema> => ({
    mutation: { case: 'setCell', value: { familyName: 'cf', timestampMicros } },
    timestampOrigin,
  });

  test('are truncated toward 0 on demand, others never', async () => {
    const given = [
      set(1_234_567n, Origin.CLIENT_AUTO_GENERATED),
      set(1_234_567n, Origin.USER_SPECIFIED),
      set(1_234_567n, Origin.TIMESTAMP_ORIGIN_UNSPECIFIED),
      set(5000n, Origin.CLIENT_AUTO_GENERATED),
      set(-1n, Origin.CLIENT_AUTO_GENERATED),
      set(2n ** 62n + 1n, Origin.CLIENT_AUTO_GENERATED),
    ];
    const bytes = toBinary(
      MutateRowRequestSchema,
      create(MutateRowRequestSchema, {
        tableName: TABLE,
        mutations: given.map((init) => create(MutationSchema, init)),
      }),
    );
    const request = reader(bytes);
    const read = mutationList((await request.mutateRow()).mutations);
    const timestamps = () => read.map((each) => (each as SetCell).timestamp);
    assert.deepEqual(timestamps(), [1_234_567, 1_234_567, 1_234_567, 5000, undefined, 2n ** 62n + 1n]);
    assert.equal(request.untruncated.length, 2);
    request.truncate();
    assert.deepEqual(timestamps(), [
      1_234_000,
      1_234_567,
      1_234_567,
      5000,
      undefined,
      2n ** 62n + 1n - ((2n ** 62n + 1n) % 1000n),
    ]);
  });

  test('are seen in mutations that are not read by hand, too', async () => {
    // a field from the future in front of the set-cell
    const known = toBinary(MutationSchema, create(MutationSchema, set(1_234_567n, Origin.CLIENT_AUTO_GENERATED)));
    const odd = Buffer.concat([Buffer.from([0x78, 0x01]), known]);
    const request = reader(Buffer.concat([Buffer.from([0x1a, odd.length]), odd]));
    const read = mutationList((await request.mutateRow()).mutations);
    request.truncate();
    assert.equal((read[0] as SetCell).timestamp, 1_234_000);
  });
});

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (; value >= 0x80; value = Math.floor(value / 0x80)) bytes.push((value % 0x80) | 0x80);
  return Buffer.from([...bytes, value]);
}

/** Bytes compare by what they hold, not by whether they are Buffers. */
function plain(given: unknown): unknown {
  if (typeof given !== 'object' || given === null) return given;
  if (ArrayBuffer.isView(given)) return Buffer.from(given as Uint8Array).toString('hex');
  if (Array.isArray(given)) return given.map(plain);
  return Object.fromEntries(
    Object.entries(given as Record<string, Mutation>).map(([name, each]) => [name, plain(each)]),
  );
}
