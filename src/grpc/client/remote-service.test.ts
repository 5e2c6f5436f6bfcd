/**
 * The client side against the server side, over a real connection: each request and each answer arrives as it was sent.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code, invalidArgument } from '../../base/index.ts';
import type { Cell, RowFragment, RowMutations, TableSchema } from '../../model/index.ts';
import type { Service } from '../../service/index.ts';
import { cell, family, mutation, rowFilter, rowKey, rowRange, rule, tableSchema } from '../convert/fixtures.ts';
import { apiServer, testContext } from '../fixtures.ts';
import { testEnv } from '../../../test/raw-server.ts';
import { systemClock } from '../../platform/index.ts';
import { registerCloudApi } from '../server/cloud-api.ts';
import { overWire, type RemoteService } from './remote-service.ts';

const TABLE = 'projects/p/instances/i/tables/t';
const RUNS = { numRuns: 40 };

describe('a remote service', () => {
  const env = testEnv();
  const context = testContext(env);
  /** The last call that arrived, without its context, and what it is answered. */
  let seen: unknown[] = [];
  let answer: unknown;
  let wire: Awaited<ReturnType<typeof apiServer>>;
  let remote: RemoteService;

  before(async () => {
    const service = new Proxy({} as Service, {
      get: (_target, name) =>
        name === 'appProfiles' || name === 'resources'
          ? undefined
          : name === 'readRows'
            ? stream
            : async (_context: unknown, ...given: unknown[]) => {
                seen = [name, ...given];
                if (answer instanceof Error) throw answer;
                return answer;
              },
    });
    async function* stream(_context: unknown, ...given: unknown[]) {
      seen = ['readRows', ...given];
      yield* answer as AsyncIterable<unknown>;
    }
    wire = await apiServer(env, (server) => void registerCloudApi(server, service, env));
    remote = overWire({ address: `127.0.0.1:${wire.port}`, clock: systemClock, random: env.random });
  });

  after(async () => {
    remote.close();
    await wire.close();
  });

  test('mutations arrive as they were sent', async () => {
    answer = undefined;
    await fc.assert(
      fc.asyncProperty(rowKey, fc.array(mutation, { maxLength: 4 }), async (row, mutations) => {
        await remote.mutateRow(context, TABLE, { row, mutations });
        assert.deepEqual(plain(seen), plain(['mutateRow', TABLE, { row, mutations }]));
      }),
      RUNS,
    );
  });

  test('batches come back with an outcome for each entry', async () => {
    const entries = Array.from({ length: 4500 }, (_, i) => ({
      row: `row${i}`,
      mutations: [{ kind: 'deleteFromRow' as const }],
    }));
    answer = entries.map((_, i) => (i % 3 === 1 ? invalidArgument(`entry ${i} is wrong`) : undefined));
    const outcomes = await remote.mutateRows(context, TABLE, entries);
    assert.equal(outcomes.length, entries.length);
    assert.deepEqual(
      outcomes.map((error) => error?.message),
      (answer as (BigtableError | undefined)[]).map((error) => error?.message),
    );
    assert.deepEqual(new Set(outcomes.map((error) => error?.code)), new Set([undefined, Code.INVALID_ARGUMENT]));
    assert.deepEqual(seen, ['mutateRows', TABLE, entries]);
  });

  test('an entry that the API cannot express fails by itself, and is not sent', async () => {
    const cell = { kind: 'setCell', family: 'cf', qualifier: 'q', timestamp: 1000, value: Buffer.from('v') } as const;
    const good = (row: string): RowMutations => ({ row, mutations: [cell] });
    const bad: readonly RowMutations[] = [
      { row: 'time', mutations: [cell, { ...cell, timestamp: -1 }] },
      {
        row: 'range',
        mutations: [{ kind: 'deleteFromColumn', family: 'cf', qualifier: 'q', range: { start: -5, end: 0 } }],
      },
    ];
    answer = [undefined, invalidArgument('no'), undefined];
    const outcomes = await remote.mutateRows(context, TABLE, [
      good('a'),
      bad[0] as RowMutations,
      good('b'),
      bad[1] as RowMutations,
      good('c'),
    ]);
    assert.deepEqual(
      outcomes.map((error) => error?.message.split(',')[0]),
      [
        undefined,
        'a cell at timestamp -1 cannot be sent over the Bigtable API',
        'no',
        'a time range that ends at 0 cannot be sent over the Bigtable API',
        undefined,
      ],
    );
    assert.deepEqual(
      (seen[2] as RowMutations[]).map(({ row }) => row),
      ['a', 'b', 'c'],
    );
    answer = {
      name: TABLE,
      id: '',
      granularity: 'micros',
      families: {},
      deletionProtection: false,
    } satisfies TableSchema;
    assert.deepEqual(
      (await remote.mutateRows(context, TABLE, bad)).map((error) => error?.code),
      [Code.INVALID_ARGUMENT, Code.INVALID_ARGUMENT],
    );
    assert.deepEqual(seen, ['getTable', TABLE], 'nothing is left to send: only the table is read');
  });

  test('an entry without an answer is not taken for done', async () => {
    answer = [undefined];
    const outcomes = await remote.mutateRows(
      context,
      TABLE,
      ['a', 'b'].map((row) => ({ row, mutations: [] })),
    );
    assert.deepEqual(
      outcomes.map((error) => error?.code),
      [undefined, Code.UNAVAILABLE],
    );
  });

  test('conditions and changes arrive, their answers come back', async () => {
    await fc.assert(
      fc.asyncProperty(
        rowKey,
        fc.option(rowFilter, { nil: undefined }),
        fc.array(mutation, { maxLength: 3 }),
        fc.boolean(),
        async (row, predicate, whenTrue, matched) => {
          answer = matched;
          assert.equal(
            await remote.checkAndMutateRow(context, { table: TABLE, row, predicate, whenTrue, whenFalse: [] }),
            matched,
          );
          assert.deepEqual(
            plain(seen),
            plain(['checkAndMutateRow', { table: TABLE, row, predicate, whenTrue, whenFalse: [] }]),
          );
        },
      ),
      RUNS,
    );
    await fc.assert(
      fc.asyncProperty(rowKey, fc.array(rule, { maxLength: 3 }), cell, async (row, rules, { labels: _, ...made }) => {
        answer = [made];
        assert.deepEqual(plain(await remote.readModifyWriteRow(context, TABLE, row, rules)), plain([made]));
        // after them comes the limit for the answer, which is the server's own
        assert.deepEqual(plain((seen as unknown[]).slice(0, 4)), plain(['readModifyWriteRow', TABLE, row, rules]));
      }),
      RUNS,
    );
  });

  test('reads arrive as they were sent, rows come back', async () => {
    const fragments: fc.Arbitrary<RowFragment[]> = fc
      .uniqueArray(fc.tuple(rowKey, fc.array(cell, { minLength: 1, maxLength: 4 })), {
        selector: ([row]) => row,
        maxLength: 5,
      })
      .map((rows) => rows.map(([row, cells]) => ({ row, cells, last: true })));
    await fc.assert(
      fc.asyncProperty(
        fragments,
        fc.array(rowRange, { maxLength: 3 }),
        fc.option(rowFilter, { nil: undefined }),
        fc.nat(),
        fc.boolean(),
        async (rows, ranges, filter, rowsLimit, reversed) => {
          answer = (async function* () {
            yield { fragments: rows };
          })();
          const got: RowFragment[] = [];
          for await (const batch of remote.readRows(context, { table: TABLE, ranges, filter, rowsLimit, reversed }))
            got.push(...batch.fragments);
          assert.deepEqual(plain(got), plain(rows));
          const [, asked] = seen as [string, { ranges: { start: string }[] }];
          const byStart = (a: { start: string }, b: { start: string }) => (a.start < b.start ? -1 : 1);
          assert.deepEqual(
            { ...asked, ranges: [...asked.ranges].sort(byStart) },
            { table: TABLE, ranges: [...ranges].sort(byStart), filter, rowsLimit, reversed },
          );
        },
      ),
      RUNS,
    );
  });

  test('a read that is ended early ends on the server', async () => {
    let ended = false;
    answer = (async function* () {
      try {
        for (let i = 0; ; i++)
          yield {
            fragments: [
              {
                row: `r${i}`,
                last: true,
                cells: [{ family: 'f', qualifier: '', timestamp: 0, value: Buffer.alloc(100_000) } satisfies Cell],
              },
            ],
          };
      } finally {
        ended = true;
      }
    })();
    for await (const _batch of remote.readRows(context, { table: TABLE })) break;
    while (!ended) await systemClock.yield();
  });

  test('samples come back, or those of a range', async () => {
    answer = [
      { row: 'g', offsetBytes: 100 },
      { row: 'p', offsetBytes: 2 ** 40 },
      { row: '', offsetBytes: 2 ** 41 },
    ];
    assert.deepEqual(await remote.sampleRowKeys(context, TABLE), answer);
    assert.deepEqual(seen, ['sampleRowKeys', TABLE]);
  });

  test('tables are created, read, changed and deleted', async () => {
    const splits = ['g', 'p\xff'];
    await fc.assert(
      fc.asyncProperty(tableSchema, async (schema) => {
        answer = schema;
        const families = Object.values(schema.families).sort((a, b) => (a.name < b.name ? -1 : 1));
        const { name, granularity, deletionProtection } = schema;
        const more = { changeStream: undefined, extra: undefined };
        const table = { name, families, splits, granularity, deletionProtection, ...more };
        assert.deepEqual(await remote.createTable(context, table), schema);
        assert.deepEqual(seen, ['createTable', table]);
        assert.deepEqual(await remote.getTable(context, name), schema);
        assert.deepEqual(await remote.updateTable(context, name, { deletionProtection: true }), schema);
      }),
      RUNS,
    );
    answer = undefined;
    await remote.deleteTable(context, TABLE);
    assert.deepEqual(seen, ['deleteTable', TABLE]);
  });

  test('families are changed in their order', async () => {
    await fc.assert(
      fc.asyncProperty(family, family, async (first, second) => {
        answer = {
          name: TABLE,
          id: '',
          granularity: 'millis',
          families: {},
          deletionProtection: false,
        } satisfies TableSchema;
        const changes = [
          { kind: 'create', family: first },
          { kind: 'update', family: second, fields: ['gcRule', 'valueType'] },
          { kind: 'drop', name: 'old' },
        ] as const;
        assert.deepEqual(await remote.modifyFamilies(context, TABLE, changes), answer);
        assert.deepEqual(seen, ['modifyFamilies', TABLE, changes]);
      }),
      RUNS,
    );
  });

  test('rows are dropped by prefix or all, and in no other way', async () => {
    answer = undefined;
    for (const range of [
      { start: 'p', end: 'q' },
      { start: 'p\xff', end: 'q' },
      { start: '\xff', end: undefined },
      { start: '', end: undefined },
    ]) {
      await remote.dropRowRange(context, TABLE, range);
      assert.deepEqual(seen, ['dropRowRange', TABLE, range]);
    }
    answer = {
      name: TABLE,
      id: '',
      granularity: 'micros',
      families: {},
      deletionProtection: false,
    } satisfies TableSchema;
    await remote.dropRowRange(context, TABLE, { start: 'b', end: 'b' });
    assert.deepEqual(seen, ['getTable', TABLE], 'no rows: only the table is read');
    for (const range of [
      { start: 'a', end: 'z' },
      { start: '', end: 'z' },
      { start: 'a', end: undefined },
    ]) {
      await assert.rejects(remote.dropRowRange(context, TABLE, range), { code: Code.INVALID_ARGUMENT });
    }
  });

  test('consistency', async () => {
    answer = 'token-1';
    assert.equal(await remote.generateConsistencyToken(context, TABLE), 'token-1');
    answer = true;
    assert.equal(await remote.checkConsistency(context, TABLE, 'token-1'), true);
    assert.deepEqual(seen, ['checkConsistency', TABLE, 'token-1']);
  });

  test('failures keep their code and message', async () => {
    for (const code of [
      Code.NOT_FOUND,
      Code.ALREADY_EXISTS,
      Code.FAILED_PRECONDITION,
      Code.UNAVAILABLE,
      Code.DATA_LOSS,
      Code.UNIMPLEMENTED,
    ]) {
      answer = new BigtableError(code, `because of ${code}`);
      await assert.rejects(remote.getTable(context, TABLE), { code, message: `because of ${code}` });
    }
    answer = undefined;
    await assert.rejects(
      remote.createTable(context, {
        name: 'nonsense',
        families: [],
        splits: [],
        granularity: 'millis',
        deletionProtection: false,
      }),
      { code: Code.INVALID_ARGUMENT },
    );
  });

  test('an address without a server is UNAVAILABLE', async () => {
    const nowhere = overWire({ address: '127.0.0.1:1', clock: systemClock, random: env.random });
    await assert.rejects(nowhere.getTable(context, TABLE), {
      code: Code.UNAVAILABLE,
      message: /^cannot reach a server at 127\.0\.0\.1:1: connect ECONNREFUSED/,
    });
    nowhere.close();
  });
});

/** Bytes compare by what they hold, not by whether they are Buffers. */
function plain(given: unknown): unknown {
  if (typeof given !== 'object' || given === null) return given;
  if (ArrayBuffer.isView(given)) return Buffer.from(given as Uint8Array).toString('hex');
  if (Array.isArray(given)) return given.map(plain);
  return Object.fromEntries(Object.entries(given).map(([name, each]) => [name, plain(each)]));
}
