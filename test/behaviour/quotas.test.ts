/** Usage and quotas at every door: writes beyond a quota are refused, deletions pass, and calls are counted. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../../src/base/index.ts';
import type { Mutation } from '../../src/model/index.ts';
import type { QuotaChange } from '../../src/service/index.ts';
import { LASTING_DOORS, LastingDoor } from './lasting-doors.ts';

const TABLE = 'projects/p/instances/i/tables/t';
const KIB = 1024;

function set(family: string, value: Uint8Array, qualifier = 'q'): Mutation {
  return { kind: 'setCell', family, qualifier, timestamp: 1000, value };
}

for (const { name: doorName, make } of LASTING_DOORS) {
  describe(`usage and quotas: ${doorName}`, () => {
    const door = new LastingDoor(make, async ({ service, context }) => {
      await service.createTable(context, {
        name: TABLE,
        families: [
          { name: 'a' },
          { name: 'b' },
          { name: 'sum', valueType: { aggregate: { kind: 'sum', input: 'int64' } } },
        ],
        splits: ['m'],
        granularity: 'micros',
        deletionProtection: false,
      });
    });

    const setQuota = (change: QuotaChange) => door.service.setQuota(door.context, TABLE, change);
    const usage = () => door.service.tableUsage(door.context, TABLE);
    const familyUsage = async (name: string) => {
      const found = (await usage()).families.find(({ family }) => family === name);
      assert.ok(found !== undefined);
      return found;
    };
    const write = (row: string, ...mutations: Mutation[]) =>
      door.service.mutateRow(door.context, TABLE, { row, mutations });
    const increment = (family: string, row: string) =>
      door.service.readModifyWriteRow(door.context, TABLE, row, [
        { family, qualifier: 'n', change: { kind: 'append', suffix: Buffer.alloc(10) } },
      ]);
    const check = (row: string, whenTrue: readonly Mutation[], whenFalse: readonly Mutation[]) =>
      door.service.checkAndMutateRow(door.context, { table: TABLE, row, whenTrue, whenFalse });
    const cells = async (row: string): Promise<number> => {
      let count = 0;
      const ranges = [{ start: row, end: `${row}\0` }];
      for await (const { fragments } of door.service.readRows(door.context, { table: TABLE, ranges }))
        for (const fragment of fragments) count += fragment.cells.length;
      return count;
    };
    const refused = (call: Promise<unknown>, ...words: RegExp[]) =>
      assert.rejects(call, (error) => {
        assert.ok(error instanceof BigtableError, String(error));
        assert.equal(error.code, Code.RESOURCE_EXHAUSTED, error.message);
        for (const each of [new RegExp(TABLE), ...words]) assert.match(error.message, each);
        return true;
      });

    test('calls are counted, by family and together, of all tablets', async () => {
      await write('ab', set('a', Buffer.alloc(100)), set('b', Buffer.alloc(50)), set('a', Buffer.alloc(1), 'q2'));
      await write('z', { kind: 'deleteFromFamily', family: 'b' });
      await increment('a', 'z');
      assert.equal(await check('z', [set('b', Buffer.alloc(7))], [set('a', Buffer.alloc(1000))]), true);
      const outcomes = await door.service.mutateRows(door.context, TABLE, [
        { row: 'c', mutations: [{ kind: 'addToCell', family: 'sum', qualifier: 's', timestamp: 1000, input: 3 }] },
        { row: 'y', mutations: [set('b', Buffer.alloc(9))] },
      ]);
      assert.deepEqual(outcomes, [undefined, undefined]);
      assert.equal(await cells('ab'), 3);
      const { families, table } = await usage();
      const bytes = (row: number, family: number, qualifier: number, value: number) =>
        row + family + qualifier + 8 + value;
      assert.deepEqual(
        families.map(({ family, cells, rowsWritten, rowsRead, bytesIn, bytesOut, quotaBytes }) => ({
          family,
          cells,
          rowsWritten,
          rowsRead,
          bytesIn,
          bytesOut,
          quotaBytes,
        })),
        [
          {
            family: 'a',
            cells: 3,
            rowsWritten: 2,
            rowsRead: 1,
            bytesIn: bytes(2, 1, 1, 100) + bytes(2, 1, 2, 1) + bytes(1, 1, 1, 10),
            bytesOut: bytes(2, 1, 1, 100) + bytes(2, 1, 2, 1),
            quotaBytes: undefined,
          },
          {
            family: 'b',
            cells: 3,
            rowsWritten: 4,
            rowsRead: 1,
            bytesIn: bytes(2, 1, 1, 50) + bytes(1, 1, 1, 7) + bytes(1, 1, 1, 9),
            bytesOut: bytes(2, 1, 1, 50),
            quotaBytes: undefined,
          },
          {
            family: 'sum',
            cells: 1,
            rowsWritten: 1,
            rowsRead: 0,
            bytesIn: bytes(1, 3, 1, 8),
            bytesOut: 0,
            quotaBytes: undefined,
          },
        ],
      );
      assert.deepEqual(table, { reads: 1, writes: 6, rowsWritten: 6, rowsRead: 1 });
    });

    test('a family over its quota takes no more cells, by any call; others do, and deletions pass', async () => {
      await setQuota({ family: 'a', quotaBytes: 64 * KIB });
      assert.equal((await familyUsage('a')).quotaBytes, 64 * KIB);
      await write('big', set('a', Buffer.alloc(32 * KIB)));
      const words = [/"a"/, /quota of 65536 bytes/, /takes \d+ bytes/];
      await refused(write('bigger', set('a', Buffer.alloc(32 * KIB))), ...words);
      assert.equal(await cells('bigger'), 0);
      await setQuota({ family: 'a', quotaBytes: 100 });
      await refused(write('more', set('b', Buffer.alloc(1)), set('a', Buffer.alloc(1))), ...words.slice(0, 1));
      assert.equal(await cells('more'), 0, 'nothing of a refused write is there');
      await refused(increment('a', 'z'), /"a"/);
      await refused(check('big', [set('a', Buffer.alloc(1))], []), /"a"/);
      assert.equal(await check('big', [set('b', Buffer.alloc(1))], [set('a', Buffer.alloc(1))]), true);
      const outcomes = await door.service.mutateRows(door.context, TABLE, [
        { row: 'more', mutations: [set('a', Buffer.alloc(1))] },
        { row: 'more', mutations: [set('b', Buffer.alloc(1))] },
        { row: 'zz', mutations: [set('a', Buffer.alloc(1))] },
        { row: 'zz', mutations: [{ kind: 'deleteFromRow' }] },
      ]);
      assert.deepEqual(
        outcomes.map((outcome) => outcome?.code),
        [Code.RESOURCE_EXHAUSTED, undefined, Code.RESOURCE_EXHAUSTED, undefined],
      );
      await setQuota({ family: 'sum', quotaBytes: 0 });
      const aggregates: Mutation[] = [
        { kind: 'addToCell', family: 'sum', qualifier: 's', timestamp: 1000, input: 3 },
        { kind: 'mergeToCell', family: 'sum', qualifier: 's', timestamp: 1000, state: Buffer.alloc(8) },
      ];
      for (const mutation of aggregates) await refused(write('c', mutation), /"sum"/, /quota of 0 bytes/);
      await setQuota({ family: 'sum' });
      await write('c', ...aggregates);
      // deletions of every kind
      await write('big', { kind: 'deleteFromColumn', family: 'a', qualifier: 'none' });
      await write('big', { kind: 'deleteFromFamily', family: 'a' });
      assert.equal(await check('ab', [{ kind: 'deleteFromRow' }], []), true);
      await door.service.dropRowRange(door.context, TABLE, { start: 'z', end: '{' });
      assert.equal(await cells('ab'), 0);
    });

    test('what was deleted makes room after a compaction', async () => {
      for await (const _ of door.service.compactTables(door.context, TABLE));
      const { diskBytes, memoryBytes } = await familyUsage('a');
      assert.equal(diskBytes + memoryBytes, 0);
      // counts what there is now
      await setQuota({ family: 'a', quotaBytes: 1000 });
      await write('more', set('a', Buffer.alloc(500)));
      await refused(write('more', set('a', Buffer.alloc(500))), /"a"/);
      await setQuota({ family: 'a' });
      await write('more', set('a', Buffer.alloc(500)));
      assert.equal((await familyUsage('a')).quotaBytes, undefined);
    });

    test('the quota of a table is of all its families and tablets', async () => {
      for (const row of ['c', 'x']) await write(row, set('b', Buffer.alloc(3 * KIB)));
      await setQuota({ quotaBytes: 4 * KIB });
      assert.equal((await usage()).table?.quotaBytes, 4 * KIB);
      for (const row of ['d', 'y'])
        for (const family of ['a', 'b'])
          await refused(
            write(row, set(family, Buffer.alloc(1))),
            /table .* has a quota of 4096 bytes, it takes \d{4,}/,
          );
      await write('c', { kind: 'deleteFromRow' });
    });

    test('a quota stays over a restart, and a change of the schema', async () => {
      await door.reopen();
      await door.service.modifyFamilies(door.context, TABLE, [
        { kind: 'update', family: { name: 'b', gcRule: { kind: 'maxVersions', versions: 1 } }, fields: ['gcRule'] },
        { kind: 'create', family: { name: 'late' } },
      ]);
      await setQuota({ family: 'late', quotaBytes: 0 });
      await door.service.modifyFamilies(door.context, TABLE, [
        { kind: 'update', family: { name: 'late', gcRule: { kind: 'maxVersions', versions: 1 } }, fields: ['gcRule'] },
      ]);
      const after = await usage();
      assert.equal(after.table?.quotaBytes, 4 * KIB);
      assert.equal(after.families.find(({ family }) => family === 'late')?.quotaBytes, 0);
      assert.deepEqual([after.table?.writes, after.table?.reads], [0, 0], 'calls are counted anew');
      await refused(write('x', set('b', Buffer.alloc(4 * KIB))), /quota of 4096 bytes/);
      await refused(write('x', set('late', Buffer.alloc(1))), /"late"/);
      await door.reopen();
      // the first write after a start: what the server has is counted before it
      await refused(write('x', set('b', Buffer.alloc(4 * KIB))), /quota of 4096 bytes/);
      await write('x', { kind: 'deleteFromRow' });
      await setQuota({});
      await write('x', set('b', Buffer.alloc(4 * KIB)));
    });

    test('a family that is created again has no quota, and its former cells do not count', async () => {
      await setQuota({ family: 'a', quotaBytes: 0 });
      await door.service.modifyFamilies(door.context, TABLE, [{ kind: 'drop', name: 'a' }]);
      await door.service.modifyFamilies(door.context, TABLE, [{ kind: 'create', family: { name: 'a' } }]);
      assert.equal((await familyUsage('a')).quotaBytes, undefined);
      await setQuota({ family: 'a', quotaBytes: 100 });
      await write('n', set('a', Buffer.alloc(50)));
    });

    test('what is no quota is refused, and changes nothing', async () => {
      const code = (call: Promise<unknown>, wanted: number) =>
        assert.rejects(call, (error) => error instanceof BigtableError && error.code === wanted);
      for (const quotaBytes of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])
        await code(setQuota({ quotaBytes }), Code.INVALID_ARGUMENT);
      for (const family of ['no such family!', ' '.repeat(3), '\0'])
        await code(setQuota({ family, quotaBytes: 1 }), Code.INVALID_ARGUMENT);
      await code(setQuota({ family: 'none', quotaBytes: 1 }), Code.NOT_FOUND);
      await code(setQuota({ family: 'constructor' }), Code.NOT_FOUND);
      const none = `${TABLE}-none`;
      await code(door.service.setQuota(door.context, none, { quotaBytes: 1 }), Code.NOT_FOUND);
      await code(door.service.tableUsage(door.context, none), Code.NOT_FOUND);
      await code(door.service.tableUsage(door.context, 't'), Code.INVALID_ARGUMENT);
      assert.equal((await usage()).table?.quotaBytes, undefined);
      await setQuota({ quotaBytes: Number.MAX_SAFE_INTEGER });
      assert.equal((await usage()).table?.quotaBytes, Number.MAX_SAFE_INTEGER);
      await write('n', set('b', Buffer.alloc(50)));
    });
  });
}
