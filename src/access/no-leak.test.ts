/**
 * A caller who may not read some families learns nothing of them: each of its calls is answered as by a table that has
 * the other families' cells alone.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code, codeName } from '../base/index.ts';
import { type OpenDatabase, openDatabase } from '../boot/index.ts';
import { type RequestContext, requestContext } from '../env/index.ts';
import type { RowFilter } from '../filter/index.ts';
import type { Mutation } from '../model/index.ts';
import type { ReadRequest, Service } from '../service/index.ts';
import { type GuardedService, guardOf } from './guarded-service.ts';

const PARENT = 'projects/p/instances/i/tables';
/** Has all cells. Its policies keep the caller from g and h. */
const WHOLE = `${PARENT}/whole`;
/** The same by an open table, whose families g and h are closed. */
const OPEN = `${PARENT}/open`;
/** Has the cells of f alone. */
const PART = `${PARENT}/part`;
const ROWS = ['a', 'b', 'c', 'd'];
const READER = 'token:reader';

const filter: fc.Arbitrary<RowFilter> = fc.letrec<{ filter: RowFilter }>((tie) => ({
  filter: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<RowFilter>(
      { kind: 'passAll' },
      { kind: 'blockAll' },
      { kind: 'sink' },
      { kind: 'stripValue' },
      { kind: 'familyNameRegex', regex: 'g' },
      { kind: 'familyNameRegex', regex: 'f|h' },
      { kind: 'familyNameRegex', regex: '[^f]+' },
      { kind: 'columnRange', family: 'f' },
      { kind: 'columnRange', family: 'h' },
      { kind: 'columnQualifierRegex', regex: 'q|s' },
      { kind: 'valueRegex', regex: 'secret.*' },
      { kind: 'valueRegex', regex: 'v' },
      { kind: 'cellsPerRowLimit', cells: 1 },
      { kind: 'cellsPerRowOffset', cells: 1 },
      { kind: 'cellsPerColumnLimit', cells: 1 },
      { kind: 'applyLabel', label: 'l' },
    ),
    fc.array(tie('filter'), { minLength: 2, maxLength: 3 }).map((filters): RowFilter => ({ kind: 'chain', filters })),
    fc
      .array(tie('filter'), { minLength: 2, maxLength: 3 })
      .map((filters): RowFilter => ({ kind: 'interleave', filters })),
    fc
      .tuple(tie('filter'), tie('filter'), tie('filter'))
      .map(([predicate, whenTrue, whenFalse]): RowFilter => ({ kind: 'condition', predicate, whenTrue, whenFalse })),
  ),
})).filter;

describe('a caller without rights on some families', () => {
  let database: OpenDatabase;
  let service: Service;
  let hiding: GuardedService;
  let refusing: GuardedService;
  let reader: RequestContext;

  before(async () => {
    database = await openDatabase({ memory: true });
    ({ service } = database);
    const { env } = database;
    reader = requestContext({ budget: env.requestBudget, principal: READER });
    const context = requestContext({ budget: env.requestBudget });
    await service.policySource!.start();
    hiding = guardOf({ ...env, service, unreadableFamilies: 'hide' })!;
    refusing = guardOf({ ...env, service })!;
    for (const name of [WHOLE, OPEN, PART]) {
      const families = ['f', 'g', 'h'].map((family) => ({ name: family }));
      await service.createTable(context, {
        name,
        families,
        splits: ['c'],
        granularity: 'millis',
        deletionProtection: false,
      });
    }
    const cell = (family: string, qualifier: string, value: string): Mutation => ({
      kind: 'setCell',
      family,
      qualifier,
      timestamp: 1000,
      value: Buffer.from(value),
    });
    for (const [i, row] of ROWS.entries()) {
      const seen = i === 1 ? [] : [cell('f', 'q', 'v'), ...(i > 1 ? [cell('f', 's', 'secret f')] : [])];
      const hidden = [cell('g', 'q', `secret ${i}`), ...(i !== 2 ? [cell('h', 's', 'v')] : [])];
      for (const table of [WHOLE, OPEN])
        await service.mutateRow(context, table, { row, mutations: [...seen, ...hidden] });
      if (seen.length > 0) await service.mutateRow(context, PART, { row, mutations: seen });
    }
    const allow = (resource: string, role: string, ...members: string[]) =>
      service.policies!.setPolicy(context, resource, { bindings: [{ role, members }] });
    await allow(WHOLE, 'roles/bigtable.admin', 'token:admin');
    await allow(`${WHOLE}/columnFamilies/f`, 'roles/bigtable.user', READER);
    for (const family of ['g', 'h'])
      await allow(`${OPEN}/columnFamilies/${family}`, 'roles/bigtable.admin', 'token:admin');
  });
  after(() => database.close());

  /** What a read returns, cell by cell, or the name of its error's code. */
  async function read(of: Service, request: ReadRequest): Promise<string[] | string> {
    const cells: string[] = [];
    try {
      for await (const { fragments, scannedTo } of of.readRows(reader, request)) {
        if (of !== service) assert.equal(scannedTo, undefined, 'keys of rows that are not seen are not told');
        for (const { row, cells: some } of fragments)
          for (const { family, qualifier, timestamp, value, labels } of some)
            cells.push(`${row} ${family}:${qualifier} ${timestamp} ${Buffer.from(value)} ${labels?.join() ?? ''}`);
      }
      return cells;
    } catch (error) {
      if (!(error instanceof BigtableError)) throw error;
      return codeName(error.code);
    }
  }

  test('reads what a table of the others has, whatever the filter', async () => {
    await fc.assert(
      fc.asyncProperty(fc.option(filter, { nil: undefined }), fc.boolean(), async (asked, reversed) => {
        const request = { table: PART, ...(asked && { filter: asked }), reversed };
        const expected = await read(service, request);
        for (const table of [WHOLE, OPEN]) {
          const found = await read(hiding, { ...request, table });
          assert.deepEqual(found, expected);
          const strict = await read(refusing, { ...request, table });
          if (strict !== 'PERMISSION_DENIED') assert.deepEqual(strict, expected);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('is told by conditions what a table of the others tells, whatever the predicate', async () => {
    await fc.assert(
      fc.asyncProperty(fc.option(filter, { nil: undefined }), fc.constantFrom(...ROWS), async (predicate, row) => {
        // nothing is changed: the cell does not exist
        const nothing: Mutation = { kind: 'deleteFromColumn', family: 'f', qualifier: 'none' };
        const outcome = async (of: Service, table: string): Promise<unknown> => {
          const request = { table, row, predicate, whenTrue: [nothing], whenFalse: [nothing] };
          return of
            .checkAndMutateRow(reader, request)
            .catch((error: unknown) => codeName((error as BigtableError).code));
        };
        const expected = await outcome(service, PART);
        for (const table of [WHOLE, OPEN]) {
          assert.equal(await outcome(hiding, table), expected);
          const strict = await outcome(refusing, table);
          if (strict !== 'PERMISSION_DENIED') assert.equal(strict, expected);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('is refused where the filter needs them, by their names, and reads its own', async () => {
    const needs = (filter?: RowFilter) => read(refusing, { table: WHOLE, ...(filter && { filter }) });
    assert.equal(await needs(), 'PERMISSION_DENIED');
    assert.equal(await needs({ kind: 'familyNameRegex', regex: 'f|g' }), 'PERMISSION_DENIED');
    assert.equal(await needs({ kind: 'columnRange', family: 'g' }), 'PERMISSION_DENIED');
    const own = await needs({ kind: 'familyNameRegex', regex: 'f' });
    assert.deepEqual(own, await read(service, { table: PART }));
    await assert.rejects(refusing.readRows(reader, { table: WHOLE })[Symbol.asyncIterator]().next(), {
      code: Code.PERMISSION_DENIED,
      message: /"token:reader".*column families "g, h"/,
    });
  });

  test('changes its own families alone, and no whole row', async () => {
    const mutate = async (table: string, ...mutations: Mutation[]): Promise<string> => {
      try {
        await hiding.mutateRow(reader, table, { row: 'z', mutations });
        return 'OK';
      } catch (error) {
        return codeName((error as BigtableError).code);
      }
    };
    const none = (family: string): Mutation => ({ kind: 'deleteFromFamily', family });
    for (const table of [WHOLE, OPEN]) {
      assert.equal(await mutate(table, none('f')), 'OK');
      assert.equal(await mutate(table, none('f'), none('g')), 'PERMISSION_DENIED');
      assert.equal(await mutate(table, { kind: 'deleteFromRow' }), 'PERMISSION_DENIED');
      const outcomes = await hiding.mutateRows(reader, table, [
        { row: 'y', mutations: [none('g')] },
        { row: 'z', mutations: [none('f')] },
        { row: 'z', mutations: [none('h')] },
      ]);
      assert.deepEqual(
        outcomes.map((error) => error?.code),
        [Code.PERMISSION_DENIED, undefined, Code.PERMISSION_DENIED],
      );
      for (const call of [
        hiding.sampleRowKeys(reader, table),
        hiding.listTablets(reader, table),
        hiding.dropRowRange(reader, table, { start: 'a', end: 'b' }),
        hiding.deleteTable(reader, table),
        hiding.readModifyWriteRow(reader, table, 'z', [
          { family: 'g', qualifier: 'q', change: { kind: 'append', suffix: Buffer.from('x') } },
        ]),
      ])
        await assert.rejects(call, { code: Code.PERMISSION_DENIED });
      const families = Object.keys((await hiding.getTable(reader, table)).families);
      assert.deepEqual(families, table === WHOLE ? ['f'] : ['f', 'g', 'h']);
    }
    const usage = (await hiding.familyUsage(reader, WHOLE)).map(({ family }) => family);
    assert.deepEqual(usage, ['f']);
  });
});
