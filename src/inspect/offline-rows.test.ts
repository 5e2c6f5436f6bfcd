import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CorruptionError } from '../base/index.ts';
import { type LogRecord, Origin, type RecordBody } from '../commitlog/index.ts';
import { ManualClock, MemoryFileSystem } from '../env/index.ts';
import { Memtable } from '../memtable/index.ts';
import { ALL_ROWS, EntryKind, type Mutation, type RowRange } from '../model/index.ts';
import { nativeCodecs } from '../platform/index.ts';
import { writeSsTable } from '../sstable/index.ts';
import { OfflineRows } from './offline-rows.ts';
import { openTable, ssTableEntries } from './ss-table.ts';

function components() {
  return { fileSystem: new MemoryFileSystem(), codecs: nativeCodecs(), clock: new ManualClock() };
}

function recordOf(body: RecordBody): LogRecord {
  return { tableId: '00000000', epoch: 1, sequence: 1, commitMicros: 0, origin: Origin.user, body };
}

function setCell(family: string, timestamp: number, value: string): Mutation {
  return { kind: 'setCell', family, qualifier: 'tablet', timestamp, value: Buffer.from(value) };
}

/** row family:qualifier@timestamp=value, in the order of a read. */
function contents(rows: OfflineRows): string[] {
  return [...rows.rows()].flatMap(({ row, cells }) =>
    cells.map(
      ({ family, qualifier, timestamp, value }) =>
        `${row} ${family}:${qualifier}@${timestamp}=${Buffer.from(value).toString()}`,
    ),
  );
}

const row = fc.constantFrom('a', 'b', 'c');
const family = fc.constantFrom('location', 'files');
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .tuple(family, fc.integer({ min: 1, max: 4 }), fc.string({ maxLength: 3, unit: 'grapheme-ascii' }))
      .map(([name, at, text]) => setCell(name, at, text)),
  },
  { weight: 1, arbitrary: fc.constant<Mutation>({ kind: 'deleteFromRow' }) },
  { weight: 1, arbitrary: family.map((name): Mutation => ({ kind: 'deleteFromFamily', family: name })) },
  {
    weight: 1,
    arbitrary: family.map((name): Mutation => ({ kind: 'deleteFromColumn', family: name, qualifier: 'tablet' })),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(family, fc.integer({ min: 1, max: 4 })).map(
      ([name, start]): Mutation => ({
        kind: 'deleteFromColumn',
        family: name,
        qualifier: 'tablet',
        range: { start, end: start + 2 },
      }),
    ),
  },
);
type Change =
  | { readonly kind: 'row'; readonly row: string; readonly mutations: readonly Mutation[] }
  | { readonly kind: 'drop'; readonly range: RowRange };
const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('row' as const),
      row,
      mutations: fc.array(mutation, { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 1, arbitrary: row.map((start): Change => ({ kind: 'drop', range: { start, end: `${start}\0` } })) },
);

describe('rows of a METADATA tablet without a server', () => {
  test('files oldest first and then the log show the result of all changes in order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(change, { maxLength: 8 }), { minLength: 1, maxLength: 4 }), async (layers) => {
        const world = components();
        const found = new OfflineRows(ALL_ROWS);
        const expected = new OfflineRows(ALL_ROWS);
        for (const [number, changes] of layers.entries()) {
          const memtable = new Memtable();
          const isLog = number === layers.length - 1;
          for (const each of changes) {
            const body: RecordBody =
              each.kind === 'drop' ? { kind: 'dropRows', range: each.range } : { kind: 'rows', rows: [each] };
            expected.applyRecord('log', recordOf(body));
            if (isLog) found.applyRecord('log', recordOf(body));
            else if (each.kind === 'drop') memtable.dropRows(each.range);
            else memtable.apply(each.row, each.mutations, () => undefined);
          }
          if (isLog) continue;
          const path = `layer-${number}`;
          const cursor = memtable.cursor();
          cursor.seekRow('');
          const written = await writeSsTable(
            { ...world, path, group: 'default' },
            cursor,
            memtable.rowRangeDeletions(),
          );
          cursor.close();
          if (!written) continue;
          const table = await openTable(world, path);
          for (const deletion of table.rowRangeDeletions()) found.dropRows(deletion);
          table.close();
          for await (const entry of ssTableEntries(world, path)) found.applyEntry(path, entry);
        }
        assert.deepEqual(contents(found), contents(expected));
      }),
      { numRuns: 150 },
    );
  });

  test('a deletion removes cells before it and none after it', () => {
    const rows = new OfflineRows(ALL_ROWS);
    const apply = (...mutations: Mutation[]): void =>
      rows.applyRecord('log', recordOf({ kind: 'rows', rows: [{ row: 'a', mutations }] }));
    apply(setCell('location', 5, 'old'), setCell('files', 1, 'kept'));
    apply({ kind: 'deleteFromColumn', family: 'location', qualifier: 'tablet' }, setCell('location', 2, 'new'));
    assert.deepEqual(contents(rows), ['a files:tablet@1=kept', 'a location:tablet@2=new']);
    apply({ kind: 'deleteFromRow' });
    assert.deepEqual(contents(rows), []);
  });

  test('only the newest version of location and files counts, and the newest twenty of events', () => {
    const rows = new OfflineRows(ALL_ROWS);
    for (let version = 1; version <= 30; version++) {
      const mutations = ['location', 'files', 'events'].map((name) => setCell(name, version, `${version}`));
      rows.applyRecord('log', recordOf({ kind: 'rows', rows: [{ row: 'a', mutations }] }));
    }
    const cells = rows.cells('a');
    assert.deepEqual(
      cells.filter((cell) => cell.family !== 'events').map((cell) => cell.timestamp),
      [30, 30],
    );
    assert.deepEqual(
      cells.filter((cell) => cell.family === 'events').map((cell) => cell.timestamp),
      Array.from({ length: 20 }, (_, i) => 30 - i),
    );
  });

  test('the rows above a row are those that follow it', () => {
    const rows = new OfflineRows(ALL_ROWS);
    for (const name of ['c', 'a', 'b'])
      rows.applyRecord(
        'log',
        recordOf({ kind: 'rows', rows: [{ row: name, mutations: [setCell('location', 1, name)] }] }),
      );
    const above = (row?: string): string[] => [...rows.rows(row)].map((found) => found.row);
    assert.deepEqual(
      [above(), above(''), above('a'), above('bb'), above('c')],
      [['a', 'b', 'c'], ['a', 'b', 'c'], ['b', 'c'], ['c'], []],
    );
  });

  test('rows outside of the tablet are skipped, in files and in the log', () => {
    const rows = new OfflineRows({ start: 'b', end: 'd' });
    for (const key of ['a', 'b', 'd']) {
      rows.applyEntry('f', {
        row: key,
        column: 'location\0tablet',
        kind: EntryKind.put,
        timestamp: 1,
        value: Buffer.from('1'),
      });
      rows.applyRecord('log', recordOf({ kind: 'rows', rows: [{ row: key, mutations: [setCell('files', 1, '2')] }] }));
    }
    assert.deepEqual(contents(rows), ['b files:tablet@1=2', 'b location:tablet@1=1']);
    const inRow = (key: string): LogRecord => recordOf({ kind: 'rows', rows: [{ row: key, mutations: [] }] });
    assert.deepEqual(
      ['a', 'b', 'cz', 'd'].map((key) => rows.concerns(inRow(key))),
      [false, true, true, false],
    );
    const drop = (start: string, end: string | undefined): boolean =>
      rows.concerns(recordOf({ kind: 'dropRows', range: { start, end } }));
    assert.deepEqual(
      [drop('', 'b'), drop('', 'c'), drop('c', undefined), drop('d', undefined)],
      [false, true, true, false],
    );
  });

  test('an aggregate does not belong in METADATA', () => {
    const rows = new OfflineRows(ALL_ROWS);
    const merge = { row: 'a', column: 'location\0tablet', kind: EntryKind.merge, timestamp: 1, value: Buffer.alloc(8) };
    assert.throws(
      () => rows.applyEntry('f.sst', merge),
      (error) => error instanceof CorruptionError && error.file === 'f.sst',
    );
    const add: Mutation = { kind: 'addToCell', family: 'location', qualifier: 'tablet', timestamp: 1, input: 1 };
    assert.throws(
      () => rows.applyRecord('logs/x', recordOf({ kind: 'rows', rows: [{ row: 'a', mutations: [add] }] })),
      (error) => error instanceof CorruptionError && error.file === 'logs/x',
    );
    const timeless: Mutation = { kind: 'setCell', family: 'location', qualifier: 'tablet', value: Buffer.alloc(1) };
    assert.throws(
      () => rows.applyRecord('logs/x', recordOf({ kind: 'rows', rows: [{ row: 'a', mutations: [timeless] }] })),
      CorruptionError,
    );
  });
});
