/** A batch's cells as runs, and the same as objects: all code that handles mutations must treat both alike. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { toBytes } from '../../base/index.ts';
import { encodeRows, Origin, readAppends, ServerLog } from '../../commitlog/index.ts';
import { ManualClock, MemoryFileSystem, Pacer } from '../../env/index.ts';
import { Memtable } from '../../memtable/index.ts';
import {
  CursorState,
  isCellRun,
  type Limits,
  LIMITS,
  type Mutation,
  mutationList,
  resolveTimestamps,
  type RowMutations,
  type SetCell,
  sliceMutations,
  type TableSchema,
} from '../../model/index.ts';
import { checkMutateRow, checkMutateRows, checkMutations } from '../../service/index.ts';
import { mutationMessage } from '../convert/mutation.ts';
import { MutateRowRequestSchema, MutateRowsRequestSchema } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { Mutation_TimestampOrigin, MutationSchema } from '../generated/google/bigtable/v2/data_pb.ts';
import { RequestDecoder } from './request-decoder.ts';
import { MutationReader } from './mutation-reader.ts';

const decoder = new RequestDecoder(new ManualClock());
before(() => decoder.load());

const TABLE = 'projects/p/instances/i/tables/t';
const SUM = { aggregate: { kind: 'sum', input: 'int64' } } as const;
const SCHEMA = {
  id: '00000010',
  name: TABLE,
  families: { f: { name: 'f' }, g: { name: 'g' }, sum: { name: 'sum', valueType: SUM } },
  granularity: 'millis',
  deletionProtection: false,
} as unknown as TableSchema;

const known = {
  family: fc.constantFrom('f', 'g'),
  qualifier: fc.constantFrom('', 'q', 'r', 'a longer qualifier that goes through another branch'),
};
const whole = fc.nat({ max: 5 }).map((n) => n * 1000);
const good: fc.Arbitrary<SetCell> = fc.record({
  kind: fc.constant('setCell' as const),
  ...known,
  timestamp: fc.option(whole, { nil: undefined }),
  value: fc.uint8Array({ maxLength: 40 }),
});
const other: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({ kind: fc.constant('deleteFromColumn' as const), ...known }),
  fc.constant({ kind: 'deleteFromRow' as const }),
);
const bad: fc.Arbitrary<SetCell> = good.chain((cell) =>
  fc.constantFrom<SetCell>(
    { ...cell, timestamp: 2n ** 62n + 1n },
    { ...cell, timestamp: -5 },
    { ...cell, timestamp: 1001 },
    { ...cell, family: '' },
    { ...cell, family: 'none' },
    { ...cell, family: 'sum' },
    { ...cell, family: 'größe' },
    { ...cell, qualifier: 'q'.repeat(17 * 1024) },
  ),
);
const rowsOf = (mutation: fc.Arbitrary<Mutation>): fc.Arbitrary<RowMutations[]> =>
  fc.array(
    fc.record({
      row: fc.constantFrom('a', 'b', 'c', 'd'),
      mutations: fc.array(mutation, { minLength: 1, maxLength: 5 }),
    }),
    { minLength: 1, maxLength: 8 },
  );
const goodRows = rowsOf(fc.oneof({ weight: 9, arbitrary: good }, { weight: 1, arbitrary: other }));
const anyRows = rowsOf(fc.oneof({ weight: 9, arbitrary: good }, { weight: 1, arbitrary: bad }));

/** The rows as a request's reader returns them. */
async function read(rows: readonly RowMutations[]): Promise<RowMutations[]> {
  const entries = rows.map(({ row, mutations }) => ({
    rowKey: toBytes(row),
    mutations: mutationList(mutations).map(mutationMessage),
  }));
  const bytes = toBinary(MutateRowsRequestSchema, create(MutateRowsRequestSchema, { tableName: TABLE, entries }));
  const { entries: read, failures } = await new MutationReader(
    Buffer.from(bytes),
    decoder,
    new ManualClock(),
  ).mutateRows();
  assert.deepEqual(failures, []);
  return read;
}

/** One row as the reader of a request of one row returns it. */
async function readRow(mutations: readonly Mutation[]): Promise<RowMutations> {
  const bytes = toBinary(
    MutateRowRequestSchema,
    create(MutateRowRequestSchema, {
      tableName: TABLE,
      rowKey: toBytes('a'),
      mutations: mutations.map(mutationMessage),
    }),
  );
  return new MutationReader(Buffer.from(bytes), decoder, new ManualClock()).mutateRow();
}

/** Applies mutations as a tablet applies a row that is too large for one slice: part by part, apart from the row. */
function storedInParts({ row, mutations }: RowMutations, part: number): unknown[] {
  const memtable = new Memtable();
  const edit = memtable.edit(row, () => undefined);
  for (let from = 0; from < mutations.length; from += part) edit.add(sliceMutations(mutations, from, from + part));
  edit.commit();
  return entriesOf(memtable);
}

const asObjects = (entries: readonly RowMutations[]): RowMutations[] =>
  entries.map(({ row, mutations }) => ({ row, mutations: mutationList(mutations) }));

/** A mutation to be compared, whatever its bytes are a view of. */
function plain(mutation: Mutation): unknown {
  return mutation.kind === 'setCell' ? { ...mutation, value: Buffer.from(mutation.value).toString('hex') } : mutation;
}

function failuresOf(entries: readonly RowMutations[], limits: Limits): unknown[] {
  const failures: unknown[] = [];
  checkMutateRows(TABLE, entries, limits, (index, error) => void failures.push([index, error]));
  return failures;
}

function thrownBy(work: () => unknown): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Sets missing times as the tablet server does before it passes mutations on. */
function resolved(entries: readonly RowMutations[]): RowMutations[] {
  return entries.map(({ row, mutations }) => ({ row, mutations: resolveTimestamps(mutations, 7_777_777, 'millis') }));
}

async function logged(changes: readonly RowMutations[]): Promise<unknown> {
  const fileSystem = new MemoryFileSystem();
  const log = await ServerLog.open({ fileSystem, path: 'log' });
  const record = {
    tableId: '1',
    epoch: 1,
    commitMicros: 1,
    origin: Origin.user,
    body: { kind: 'rows' as const, rows: changes },
  };
  await log.append(record).append.durable;
  const bytes: Buffer[] = [];
  for await (const append of fileSystem.readLog('log')) bytes.push(append.bytes);
  const records = [];
  for await (const append of readAppends(fileSystem, 'log')) records.push(...append.records);
  return { bytes, records };
}

function stored(changes: readonly RowMutations[]): unknown[] {
  const memtable = new Memtable();
  for (const { row, mutations } of changes) memtable.apply(row, mutations, () => undefined);
  return entriesOf(memtable);
}

function entriesOf(memtable: Memtable): unknown[] {
  const cursor = memtable.cursor();
  const entries: unknown[] = [memtable.sizeBytes];
  for (cursor.seekRow(''); cursor.state === CursorState.ready; cursor.next()) {
    entries.push([
      cursor.row,
      cursor.column,
      cursor.kind,
      cursor.timestamp,
      cursor.rangeEnd,
      Buffer.from(cursor.value()).toString('hex'),
    ]);
  }
  return entries;
}

describe('cells of a batch as runs and as objects', () => {
  test('rows of set-cells are read as runs, all others as objects', async () => {
    await fc.assert(
      fc.asyncProperty(goodRows, async (rows) => {
        const entries = await read(rows);
        for (const [i, { row, mutations }] of rows.entries()) {
          const entry = entries[i] as RowMutations;
          assert.equal(entry.row, row);
          assert.equal(
            isCellRun(entry.mutations),
            mutationList(mutations).every(({ kind }) => kind === 'setCell'),
          );
          assert.equal(entry.mutations.length, mutations.length);
        }
      }),
    );
  });

  test('their form and their schema are accepted or refused alike', async () => {
    await fc.assert(
      fc.asyncProperty(anyRows, fc.boolean(), async (rows, cloud) => {
        const entries = await read(rows);
        const limits = cloud ? LIMITS.cloud : LIMITS.default;
        assert.deepEqual(failuresOf(entries, limits), failuresOf(asObjects(entries), limits));
        for (const { mutations } of entries) {
          assert.deepEqual(
            thrownBy(() => checkMutations(SCHEMA, mutations)),
            thrownBy(() => checkMutations(SCHEMA, mutationList(mutations))),
          );
        }
      }),
      { numRuns: 200 },
    );
  });

  test('the same bytes are logged', async () => {
    await fc.assert(
      fc.asyncProperty(goodRows, async (rows) => {
        const entries = await read(rows);
        assert.deepEqual(await logged(resolved(entries)), await logged(resolved(asObjects(entries))));
      }),
    );
  });

  test('the same is stored, as the request had it', async () => {
    await fc.assert(
      fc.asyncProperty(goodRows, async (rows) => {
        const entries = await read(rows);
        const found = stored(resolved(entries));
        assert.deepEqual(found, stored(resolved(asObjects(entries))));
        assert.deepEqual(found, stored(resolved(rows)));
      }),
    );
  });

  test('a large request of one row is a run where it has set-cells alone, wherever another kind is in it', async () => {
    const cells = (count: number): Mutation[] =>
      Array.from({ length: count }, (_, i) => ({
        kind: 'setCell',
        family: i % 3 === 0 ? 'g' : 'f',
        qualifier: `q${i % 700}`,
        timestamp: 1000 * (i % 5),
        value: Buffer.alloc(60, i),
      }));
    const deletion: Mutation = { kind: 'deleteFromFamily', family: 'g' };
    const requests = [
      cells(3000),
      [...cells(3000), deletion],
      [deletion, ...cells(3000)],
      [...cells(1500), deletion, ...cells(1500)],
      cells(3),
    ];
    for (const mutations of requests) {
      const entry = await readRow(mutations);
      assert.equal(isCellRun(entry.mutations), mutations.length === 3000);
      assert.deepEqual(mutationList(entry.mutations).map(plain), mutations.map(plain));
      const [change, objects] = [
        resolved([entry])[0] as RowMutations,
        resolved([{ row: 'a', mutations }])[0] as RowMutations,
      ];
      for (const part of [1, 64, 5000]) assert.deepEqual(storedInParts(change, part), storedInParts(objects, part));
      const steps = async (rows: readonly RowMutations[]): Promise<string> =>
        Buffer.concat(await encodeRows(rows, new Pacer(new ManualClock()))).toString('hex');
      assert.equal(await steps([change]), await steps([objects]));
      assert.equal(
        thrownBy(() => checkMutateRow(TABLE, entry, LIMITS.default)),
        undefined,
      );
      const narrow = { ...LIMITS.default, valueBytes: 10 };
      assert.deepEqual(
        thrownBy(() => checkMutateRow(TABLE, entry, narrow)),
        thrownBy(() => checkMutateRow(TABLE, { row: 'a', mutations }, narrow)),
      );
    }
  });

  test('the same after it has crossed to another thread', async () => {
    const entries = await read([
      {
        row: 'a',
        mutations: [{ kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1000, value: Buffer.from('v') }],
      },
    ]);
    const there = structuredClone(entries);
    assert.equal(isCellRun((there[0] as RowMutations).mutations), true);
    assert.deepEqual(await logged(there), await logged(entries));
  });

  test('a time of the server is filled in once, and only where one is missing', async () => {
    const [entry] = await read([
      { row: 'a', mutations: [{ kind: 'setCell', family: 'f', qualifier: 'q', value: Buffer.from('v') }] },
    ]);
    const { mutations } = entry as RowMutations;
    const first = resolveTimestamps(mutations, 5_000_999, 'millis');
    assert.deepEqual(
      mutationList(first).map((each) => each.kind === 'setCell' && each.timestamp),
      [5_000_000],
    );
    assert.equal(resolveTimestamps(first, 9_000_000, 'millis'), first);
    assert.deepEqual(
      mutationList(mutations).map((each) => each.kind === 'setCell' && each.timestamp),
      [undefined],
      'the request itself stays as it was',
    );
  });

  test('a row of very many cells, and times that the client made up, come as objects', async () => {
    const cell: SetCell = { kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1000, value: Buffer.from('v') };
    const [many, few] = await read([
      { row: 'a', mutations: Array.from({ length: 257 }, (_, i) => ({ ...cell, qualifier: `q${i}` })) },
      { row: 'b', mutations: [cell] },
    ]);
    assert.equal(isCellRun((many as RowMutations).mutations), false);
    assert.deepEqual(
      mutationList((many as RowMutations).mutations).map((each) => each.kind === 'setCell' && each.qualifier),
      Array.from({ length: 257 }, (_, i) => `q${i}`),
    );
    assert.equal(isCellRun((few as RowMutations).mutations), true);

    const madeUp = create(MutationSchema, {
      ...mutationMessage({ ...cell, timestamp: 1_234_567 }),
      timestampOrigin: Mutation_TimestampOrigin.CLIENT_AUTO_GENERATED,
    });
    const request = toBinary(
      MutateRowsRequestSchema,
      create(MutateRowsRequestSchema, {
        tableName: TABLE,
        entries: [{ rowKey: toBytes('a'), mutations: [mutationMessage(cell), madeUp] }],
      }),
    );
    const reader = new MutationReader(Buffer.from(request), decoder, new ManualClock());
    const [entry] = (await reader.mutateRows()).entries;
    reader.truncate();
    assert.deepEqual(
      mutationList((entry as RowMutations).mutations).map((each) => each.kind === 'setCell' && each.timestamp),
      [1000, 1_234_000],
    );
  });
});
