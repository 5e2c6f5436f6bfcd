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
import type { ChangeStreamRequest, ReadRequest, Service, StreamToken } from '../service/index.ts';
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

  let timer: NodeJS.Timeout | undefined;

  before(async () => {
    // the timers of the clock do not keep the process alive
    timer = setInterval(() => {}, 1000);
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
  after(async () => {
    await database.close();
    clearInterval(timer);
  });

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

  /** Calls of the reader on a table, its change stream and its backups. */
  type Call = (of: GuardedService, table: string, stream: Stream) => Promise<unknown>;

  /** What the admin knows of the table's change stream, and may have told. */
  interface Stream {
    readonly startMicros: number;
    tokens: readonly StreamToken[];
    backup: string;
  }

  const listOf = async <T>(all: AsyncIterable<T>): Promise<T[]> => {
    const list: T[] = [];
    for await (const one of all) list.push(one);
    return list;
  };
  const streamOf = (of: Service, context: RequestContext, table: string, from: Partial<ChangeStreamRequest>) =>
    listOf(
      of.changes!.readChanges(context, {
        table,
        range: { start: '', end: undefined },
        endMicros: Math.max(database.env.clock.nowMicros(), from.startMicros ?? 0),
        ...from,
      }),
    );
  let copies = 0;
  const backupOf = (table: string, id: string): string =>
    `${table.replace(/\/tables\/.*/, '')}/clusters/edubba/backups/${id}`;
  const later = () => database.env.clock.nowMicros() + 7 * 86_400e6;

  /** Without the keys up to which a read has come: they are no rows, and told to those alone who may read all. */
  const rowsOf = async (of: Service, request: ReadRequest): Promise<unknown> =>
    (await listOf(of.readRows(reader, request))).flatMap(({ fragments }) => fragments);

  const CALLS: Readonly<Record<string, Call>> = {
    rows: (of, table) => rowsOf(of, { table }),
    'rows of g': (of, table) => rowsOf(of, { table, filter: { kind: 'familyNameRegex', regex: 'g' } }),
    'the stream from its beginning': (of, table, { startMicros }) => streamOf(of, reader, table, { startMicros }),
    'the stream from tokens': (of, table, { tokens }) => streamOf(of, reader, table, { tokens }),
    'the stream of a row': (of, table, { startMicros }) =>
      streamOf(of, reader, table, { startMicros, range: { start: 'HIDDEN', end: 'HIDDEN\0' } }),
    partitions: (of, table) => of.changes!.changeStreamRanges(reader, table),
    'its backup': (of, _table, { backup }) => of.backups!.getBackup(reader, backup),
    'all backups': (of, table) => of.backups!.listBackups(reader, table.replace(/\/tables\/.*/, '')),
    'a backup of its own': async (of, table) => {
      const name = backupOf(table, `own${copies++}`);
      await of.backups!.createBackup(reader, { name, source: table, kind: 'standard', expireMicros: later() });
      return restored(of, table, name);
    },
    'a copy of the backup': async (of, table, { backup }) => {
      const name = backupOf(table, `copy${copies++}`);
      await of.backups!.createBackup(reader, { name, source: backup, kind: 'standard', expireMicros: later() });
      return restored(of, table, name);
    },
    'a table from the backup': (of, table, { backup }) => restored(of, table, backup),
    keys: (of, table) => of.sampleRowKeys(reader, table),
    tablets: (of, table) => of.listTablets(reader, table),
    usage: (of, table) => of.familyUsage(reader, table),
    schema: (of, table) => of.getTable(reader, table),
  };

  async function restored(of: GuardedService, table: string, backup: string): Promise<unknown> {
    const name = `${table.slice(0, table.lastIndexOf('/'))}/restored${copies++}`;
    await of.backups!.restoreTable(reader, name, backup);
    return rowsOf(of, { table: name });
  }

  test('learns nothing by any sequence of calls, those on change streams and backups included', async () => {
    const context = requestContext({ budget: database.env.requestBudget });
    const admin = requestContext({ budget: database.env.requestBudget, principal: 'token:admin' });
    const call = fc.record({ call: fc.constantFrom(...Object.keys(CALLS)), hides: fc.boolean() });
    const change = fc.constantFrom(
      'write',
      'write a hidden row',
      'delete a hidden row',
      'compact',
      'split',
      'back up',
      'read the stream',
      'make the family anew',
    );
    const steps = fc.array(fc.oneof({ arbitrary: call, weight: 3 }, { arbitrary: change, weight: 2 }), {
      minLength: 10,
      maxLength: 30,
    });
    /** The family is open in the end, and every call is answered. */
    const allAnswered = [
      ...['write', 'read the stream', 'make the family anew', 'write', 'back up', 'read the stream'],
      ...Object.keys(CALLS).flatMap((name) => [true, false].map((hides) => ({ call: name, hides }))),
    ];
    const answered = new Map<string, number>();
    let tables = 0;
    await fc.assert(
      fc.asyncProperty(fc.boolean(), steps, async (isOpenTable, all) => {
        const table = `${PARENT}/run${tables++}`;
        const startMicros = database.env.clock.nowMicros();
        await service.createTable(context, {
          name: table,
          families: [{ name: 'f' }, { name: 'g', gcRule: { kind: 'maxVersions', versions: 1 } }],
          splits: [],
          granularity: 'micros',
          deletionProtection: false,
          changeStream: { retentionMicros: 86_400e6 },
        });
        const allow = (resource: string, member: string) =>
          service.policies!.setPolicy(context, resource, {
            bindings: [{ role: 'roles/bigtable.admin', members: [member] }],
          });
        await allow(`${table}/columnFamilies/${isOpenTable ? 'g' : 'f'}`, isOpenTable ? 'token:admin' : READER);
        if (!isOpenTable) await allow(table, 'token:admin');
        const stream: Stream = { startMicros, tokens: [], backup: backupOf(table, 'none') };
        /** Its family has a policy. */
        let isClosed = true;
        let writes = 0;
        const cell = (family: string, word: string): Mutation => ({
          kind: 'setCell',
          family,
          qualifier: word,
          timestamp: ++writes,
          value: Buffer.from(word),
        });
        const act = async (one: string): Promise<unknown> => {
          const hidden = [cell('g', isClosed ? 'HIDDEN' : 'open')];
          if (one === 'write')
            return service.mutateRow(context, table, { row: 'seen', mutations: [cell('f', 'v'), ...hidden] });
          if (one === 'write a hidden row' && isClosed)
            return service.mutateRow(context, table, { row: 'HIDDEN', mutations: hidden });
          if (one === 'compact') return listOf(service.compactTables(context, table));
          if (one === 'split') return service.splitTablets(context, table, 's').catch(() => {});
          if (one === 'read the stream') {
            for (const event of await streamOf(hiding, admin, table, { startMicros }))
              if (event.kind === 'closed') stream.tokens = event.tokens;
              else stream.tokens = [{ range: { start: '', end: undefined }, token: event.token }];
          }
          if (one === 'back up') {
            stream.backup = backupOf(table, `b${copies++}`);
            const backup = { name: stream.backup, source: table, kind: 'standard', expireMicros: later() } as const;
            return hiding.backups!.createBackup(admin, backup);
          }
          // the row stays hidden: the stream tells keys of deleted rows
          if (one === 'delete a hidden row' && isClosed)
            return service.mutateRow(context, table, {
              row: 'HIDDEN',
              mutations: [{ kind: 'deleteFromFamily', family: 'g' }],
            });
          // the new one has no policy
          if (one === 'make the family anew') {
            isClosed &&= !isOpenTable;
            await service.modifyFamilies(context, table, [{ kind: 'drop', name: 'g' }]);
            await service.modifyFamilies(context, table, [{ kind: 'create', family: { name: 'g' } }]);
          }
        };
        for (const one of all) {
          if (typeof one === 'string') {
            await act(one);
            continue;
          }
          let answer: unknown;
          try {
            answer = await CALLS[one.call]!(one.hides ? hiding : refusing, table, stream);
            if (!Array.isArray(answer) || answer.length > 0) answered.set(one.call, (answered.get(one.call) ?? 0) + 1);
          } catch (thrown) {
            if (!(thrown instanceof BigtableError)) throw thrown;
            answer = thrown.message;
          }
          assert.doesNotMatch(textOf(answer), /HIDDEN/, one.call);
        }
      }),
      { numRuns: 60, includeErrorInReport: true, examples: [[true, allAnswered]] },
    );
    // else nothing was shown
    for (const what of Object.keys(CALLS))
      assert.ok((answered.get(what) ?? 0) > 0, `${what}: ${JSON.stringify([...answered])}`);
  });
});

/** All bytes and texts in an answer. */
function textOf(answer: unknown): string {
  return JSON.stringify(answer, (_key, value: unknown) => {
    if (typeof value === 'bigint') return String(value);
    const bytes = value as { readonly type?: string; readonly data?: readonly number[] } | null;
    if (bytes?.type === 'Buffer') return Buffer.from(bytes.data ?? []).toString('latin1');
    return value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value;
  });
}
