/**
 * Authorized views through the API of each kind of server: the calls that make them, and what is read and changed
 * through them, also by reads and writes that another thread carries out.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { DOORS, type OpenDoor } from '../../../test/behaviour/doors.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { BigtableTableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { AuthorizedView_ResponseView as View } from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { type ApiClient, apiClientOf, codeOf } from './fixtures.ts';

const admin = BigtableTableAdmin.method;
const data = Bigtable.method;

const PARENT = 'projects/p/instances/i';
const TABLE = `${PARENT}/tables/t`;
const VIEW = `${TABLE}/authorizedViews/v`;
const DENIED = 'PERMISSION_DENIED';

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
const set = (familyName: string, qualifier: string, value = 'x') => ({
  mutation: {
    case: 'setCell' as const,
    value: { familyName, columnQualifier: bytes(qualifier), timestampMicros: 1000n, value: bytes(value) },
  },
});
const subset = (rowPrefixes: string[], families: Record<string, { exact?: string[]; prefixes?: string[] }>) => ({
  authorizedView: {
    case: 'subsetView' as const,
    value: {
      rowPrefixes: rowPrefixes.map(bytes),
      familySubsets: Object.fromEntries(
        Object.entries(families).map(([family, { exact = [], prefixes = [] }]) => [
          family,
          { qualifiers: exact.map(bytes), qualifierPrefixes: prefixes.map(bytes) },
        ]),
      ),
    },
  },
});

for (const { name: doorName, open } of DOORS.filter((door) => door.isServer)) {
  describe(`authorized views: ${doorName}`, () => {
    let door: OpenDoor;
    let api: ApiClient;

    before(async () => {
      door = await open();
      api = apiClientOf(door);
      await createTable();
    });
    after(async () => {
      api.close();
      await door.close();
    });

    const createTable = () =>
      api.ask(admin.createTable, {
        parent: PARENT,
        tableId: 't',
        table: { columnFamilies: { f: {}, g: {} } },
        initialSplits: ['r0', 'r11', 'r12', 'r2'].map((row) => ({ key: bytes(row) })),
      });
    const make = (authorizedViewId: string, authorizedView?: object) =>
      api.ask(admin.createAuthorizedView, {
        parent: TABLE,
        authorizedViewId,
        ...(authorizedView && { authorizedView }),
      });
    const update = (authorizedView: object, ...paths: string[]) =>
      api.ask(admin.updateAuthorizedView, {
        authorizedView: { name: VIEW, ...authorizedView },
        ...(paths.length > 0 && { updateMask: { paths } }),
      });
    /** Cells as "row family:qualifier value", in the order of the answer. */
    async function read(request: object): Promise<string[]> {
      const cells: string[] = [];
      let [row, family, qualifier] = ['', '', ''];
      for (const { chunks } of await api.stream(data.readRows, request)) {
        for (const chunk of chunks) {
          if (chunk.rowKey.length > 0) row = Buffer.from(chunk.rowKey).toString('latin1');
          family = chunk.familyName ?? family;
          if (chunk.qualifier !== undefined) qualifier = Buffer.from(chunk.qualifier).toString('latin1');
          cells.push(`${row} ${family}:${qualifier} ${Buffer.from(chunk.value).toString('latin1')}`);
        }
      }
      return cells;
    }
    const write = (row: string, ...mutations: ReturnType<typeof set>[]) =>
      api.ask(data.mutateRow, { tableName: TABLE, rowKey: bytes(row), mutations });

    test('are made, shown by view, changed by a mask, protected with their table, and deleted', async () => {
      await make('v', { ...subset(['r1'], { f: { exact: ['a'] } }), deletionProtection: true });
      assert.equal(await codeOf(make('v', subset([], {}))), 'ALREADY_EXISTS');
      assert.equal(await codeOf(make('w', {})), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(make('w', subset([], { 'f:g': {} }))), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(make('w', subset(new Array(1001).fill('p'), {}))), 'INVALID_ARGUMENT');
      const get = (view: View) => api.ask(admin.getAuthorizedView, { name: VIEW, view });
      const basic = await get(View.BASIC);
      assert.deepEqual([basic.name, basic.deletionProtection, basic.authorizedView.case], [VIEW, true, undefined]);
      for (const view of [View.FULL, View.RESPONSE_VIEW_UNSPECIFIED])
        assert.equal((await get(view)).authorizedView.case, 'subsetView');
      assert.equal((await get(View.NAME_ONLY)).etag, '');
      const listed = async () =>
        (await api.ask(admin.listAuthorizedViews, { parent: TABLE })).authorizedViews.map(({ name, etag }) => [
          name,
          etag,
        ]);
      assert.deepEqual(await listed(), [[VIEW, '']]);
      const other = { name: `${TABLE}/authorizedViews/none` };
      assert.equal(await codeOf(api.ask(admin.getAuthorizedView, other)), 'NOT_FOUND');

      assert.equal(await codeOf(api.ask(admin.deleteAuthorizedView, { name: VIEW })), 'FAILED_PRECONDITION');
      assert.equal(await codeOf(api.ask(admin.deleteTable, { name: TABLE })), 'FAILED_PRECONDITION');
      // without a mask, what is set is replaced
      await update(subset(['r2'], {}));
      const changed = await get(View.FULL);
      assert.equal(changed.deletionProtection, true);
      assert.deepEqual(
        changed.authorizedView.value?.rowPrefixes.map((prefix) => Buffer.from(prefix).toString()),
        ['r2'],
      );
      assert.equal(await codeOf(update({ etag: basic.etag }, 'deletion_protection')), 'ABORTED');
      assert.equal(await codeOf(update({}, '*')), 'INVALID_ARGUMENT');
      await update(subset([], {}), '*');
      assert.equal((await get(View.BASIC)).deletionProtection, false);
      await api.ask(admin.deleteAuthorizedView, { name: VIEW });
      assert.deepEqual(await listed(), []);
    });

    test('are protected with their instance', async () => {
      const instance = 'projects/test/instances/protected';
      await api.ask(BigtableInstanceAdmin.method.createInstance, {
        parent: 'projects/test',
        instanceId: 'protected',
        instance: { displayName: 'protected' },
        clusters: { c: { location: 'projects/test/locations/zone' } },
      });
      for (const tableId of ['a', 'b'])
        await api.ask(admin.createTable, { parent: instance, tableId, table: { columnFamilies: { f: {} } } });
      const parent = `${instance}/tables/b`;
      const authorizedView = { ...subset([''], {}), deletionProtection: true };
      await api.ask(admin.createAuthorizedView, { parent, authorizedViewId: 'v', authorizedView });
      const remove = () => codeOf(api.ask(BigtableInstanceAdmin.method.deleteInstance, { name: instance }));
      assert.equal(await remove(), 'FAILED_PRECONDITION');
      assert.equal((await api.ask(admin.listTables, { parent: instance })).tables.length, 2);
      const unprotected = { name: `${parent}/authorizedViews/v`, deletionProtection: false };
      await api.ask(admin.updateAuthorizedView, {
        authorizedView: unprotected,
        updateMask: { paths: ['deletion_protection'] },
      });
      assert.equal(await remove(), 'OK');
      assert.equal(await remove(), 'NOT_FOUND');
    });

    test('are read and sampled as if they were the table', async () => {
      await write('r0', set('f', 'a'), set('g', 'a'));
      for (const row of ['r1', 'r11', 'r12', 'r2']) await write(row, set('f', 'a'), set('f', 'ab'), set('g', 'b'));
      const read1 = (request: object = {}) => read({ authorizedViewName: VIEW, ...request });
      assert.equal(await codeOf(read1()), 'NOT_FOUND');
      await make('v', subset(['r1'], { f: { exact: ['a'] }, g: { prefixes: [''] } }));
      assert.deepEqual(
        await read1(),
        ['r1', 'r11', 'r12'].flatMap((row) => [`${row} f:a x`, `${row} g:b x`]),
      );
      const rows = (...keys: string[]) => ({ rows: { rowKeys: keys.map(bytes) } });
      assert.deepEqual(await read1(rows('r0', 'r2')), []);
      assert.deepEqual(await read1(rows('r0', 'r11')), ['r11 f:a x', 'r11 g:b x']);
      assert.deepEqual(await read1({ rowsLimit: 1n }), ['r1 f:a x', 'r1 g:b x']);
      // what a filter sees is the view
      const sink = { filter: { case: 'sink', value: true } };
      const alone = { filter: { case: 'chain', value: { filters: [sink] } } };
      await assert.rejects(read1({ filter: alone }), { message: /^filter\.chain: must contain at least two filters/ });
      assert.deepEqual(await read1({ ...rows('r1'), filter: sink }), ['r1 f:a x', 'r1 g:b x']);
      const samples = async (request: object = {}) =>
        (await api.stream(data.sampleRowKeys, { authorizedViewName: VIEW, ...request })).map(({ rowKey }) =>
          Buffer.from(rowKey).toString(),
        );
      assert.deepEqual(await samples(), ['r11', 'r12', 'r2']);
      const rowRange = { startKey: { case: 'startKeyClosed', value: bytes('r11') } };
      assert.deepEqual(await samples({ rowRange }), ['r12', 'r2']);
      assert.equal(await codeOf(read1({ tableName: TABLE })), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(read1({ tableName: TABLE, ...rows('r1') })), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(read({ authorizedViewName: 'v' })), 'INVALID_ARGUMENT');
      await update(subset([], {}));
      for (let attempt = 0; attempt < 1000 && (await read1()).length > 0; attempt++);
      assert.deepEqual([await read1(), await samples()], [[], []]);
      await update(subset(['r1'], { f: { exact: ['a'] }, g: { prefixes: [''] } }));
      for (let attempt = 0; attempt < 1000 && (await read1()).length === 0; attempt++);
      assert.equal((await read1()).length, 6);
    });

    test('are changed within, and nothing outside of them is', async () => {
      const through = { authorizedViewName: VIEW };
      const apply = (row: string, ...mutations: object[]) =>
        codeOf(api.ask(data.mutateRow, { ...through, rowKey: bytes(row), mutations: mutations as [] }));
      const family = (familyName: string) => ({ mutation: { case: 'deleteFromFamily', value: { familyName } } });
      const before = await read({ tableName: TABLE });
      assert.equal(await apply('r2', set('f', 'a')), DENIED);
      assert.equal(await apply('r1', set('f', 'ab')), DENIED);
      assert.equal(await apply('r1', set('f', 'a'), set('f', 'b')), DENIED);
      assert.equal(await apply('r1', family('f')), DENIED);
      assert.equal(await apply('r1', { mutation: { case: 'deleteFromRow', value: {} } }), DENIED);
      const check = (row: string, ...trueMutations: object[]) =>
        api.ask(data.checkAndMutateRow, {
          ...through,
          rowKey: bytes(row),
          predicateFilter: { filter: { case: 'columnQualifierRegexFilter', value: bytes('ab') } },
          trueMutations: trueMutations as [],
          falseMutations: [set('f', 'a', 'unseen')],
        });
      assert.equal(await codeOf(check('r2')), DENIED);
      assert.equal(await codeOf(check('r1', set('f', 'ab'))), DENIED);
      const increment = (row: string, qualifier: string) =>
        api.ask(data.readModifyWriteRow, {
          ...through,
          rowKey: bytes(row),
          rules: [
            { familyName: 'g', columnQualifier: bytes(qualifier), rule: { case: 'appendValue', value: bytes('y') } },
          ],
        });
      assert.equal(await codeOf(increment('r2', 'b')), DENIED);
      assert.deepEqual(await read({ tableName: TABLE }), before);

      const batch = await api.stream(data.mutateRows, {
        ...through,
        entries: [
          { rowKey: bytes('r2'), mutations: [set('f', 'a', 'no')] },
          { rowKey: bytes('r11'), mutations: [set('f', 'a', 'yes')] },
          { rowKey: bytes('r11'), mutations: [] },
          { rowKey: bytes('r12'), mutations: [set('f', 'c', 'no')] },
          { rowKey: bytes('r12'), mutations: [set('g', 'c', 'yes')] },
        ],
      });
      assert.deepEqual(
        batch.flatMap(({ entries }) => entries.map(({ index, status }) => [Number(index), status?.code])),
        [
          [0, 7],
          [1, 0],
          [2, 3],
          [3, 7],
          [4, 0],
        ],
      );
      // the predicate does not see f:ab, which is in the row
      assert.equal((await check('r1')).predicateMatched, false);
      await increment('r1', 'b');
      assert.equal(await apply('r12', family('g')), 'OK');
      assert.deepEqual(await read({ authorizedViewName: VIEW }), [
        'r1 f:a unseen',
        'r1 g:b xy',
        'r1 g:b x',
        'r11 f:a yes',
        'r11 g:b x',
        'r12 f:a x',
      ]);
      assert.deepEqual(
        (await read({ tableName: TABLE })).filter((cell) => /^r(0|2)/.test(cell)),
        before.filter((cell) => /^r(0|2)/.test(cell)),
      );
    });

    test('show no cell of anything else, whatever is requested', async () => {
      const cells = (await read({ tableName: TABLE })).length;
      assert.ok(cells > 8);
      const part = fc.constantFrom('', 'a', 'b', 'r', 'r1', 'r11', 'r2', '\xff');
      const filter = fc.letrec((tie) => ({
        filter: fc.oneof(
          { maxDepth: 3 },
          fc.constantFrom<object>(
            { case: 'passAllFilter', value: true },
            { case: 'blockAllFilter', value: true },
            { case: 'sink', value: true },
            { case: 'columnQualifierRegexFilter', value: bytes('a.*') },
            { case: 'familyNameRegexFilter', value: '.*' },
            { case: 'cellsPerColumnLimitFilter', value: 1 },
            { case: 'stripValueTransformer', value: true },
          ),
          fc
            .array(tie('filter'), { minLength: 2, maxLength: 3 })
            .map((filters) => ({ case: 'interleave', value: { filters: filters.map((each) => ({ filter: each })) } })),
          fc.tuple(tie('filter'), tie('filter')).map(([predicate, shown]) => ({
            case: 'condition',
            value: {
              predicateFilter: { filter: predicate },
              trueFilter: { filter: shown },
              falseFilter: { filter: { case: 'passAllFilter', value: true } },
            },
          })),
        ),
      })).filter;
      const request = fc.record({
        rowKeys: fc.array(part, { maxLength: 3 }),
        ranges: fc.array(fc.tuple(part, part), { maxLength: 3 }),
        filter: fc.option(filter, { nil: undefined }),
      });
      await fc.assert(
        fc.asyncProperty(request, async ({ rowKeys, ranges, filter: wanted }) => {
          const asked = {
            rows: {
              rowKeys: rowKeys.filter((key) => key !== '').map(bytes),
              rowRanges: ranges.map(([start, end]) => ({
                startKey: { case: 'startKeyClosed', value: bytes(start) },
                endKey: { case: 'endKeyOpen', value: bytes(start > end ? '' : end) },
              })),
            },
            ...(wanted !== undefined && { filter: { filter: wanted } }),
          };
          try {
            for (const cell of await read({ authorizedViewName: VIEW, ...asked }))
              assert.match(cell, /^r1\d? (f:a|g:\w*) /);
          } catch (error) {
            if ((error as { code?: unknown }).code !== 3) throw error;
          }
        }),
        { numRuns: 150 },
      );
    });

    test('go with their table', async () => {
      await api.ask(admin.deleteTable, { name: TABLE });
      assert.equal(await codeOf(read({ authorizedViewName: VIEW })), 'NOT_FOUND');
      await createTable();
      assert.equal(await codeOf(read({ authorizedViewName: VIEW })), 'NOT_FOUND');
    });
  });
}
