/**
 * The stack of every error goes on to the line of the program that made the call: for each call of the library, in this
 * process and through a server. The calls are listed by the classes themselves, so that a new one cannot be forgotten.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { BigtableError, Code, Database, open, RowMutation, Table } from '../../src/embedded/index.ts';
import { DOORS } from './doors.ts';

interface Given {
  readonly database: Database;
  /** It has the family f. */
  readonly table: Table;
  /** There is no such table. */
  readonly none: Table;
  readonly closed: Database;
}

type Call = (given: Given) => Promise<unknown>;

async function allOf(rows: AsyncIterable<unknown>): Promise<void> {
  for await (const _row of rows);
}

const CALLS_OF_A_DATABASE: Readonly<Record<string, Call>> = {
  createTable: ({ database }) => database.createTable('t'),
  openTable: ({ database }) => database.openTable('t', { families: { f: { maxVersions: 7 } } }),
  hasTable: ({ database }) => database.hasTable('no table id!'),
  listTables: ({ closed }) => closed.listTables(),
  listTableNames: ({ database }) => database.listTableNames(''),
  deleteTable: ({ database }) => database.deleteTable('none'),
  undeleteTable: ({ database }) => database.undeleteTable('none'),
  listDeletedTables: ({ closed }) => closed.listDeletedTables(),
  compact: ({ database }) => database.compact('none'),
  split: ({ database }) => database.split('none', 'r'),
  merge: ({ database }) => database.merge('none', 'r'),
  createBackup: ({ database }) => database.createBackup('none', 'b'),
  copyBackup: ({ database }) => database.copyBackup('none', 'b'),
  getBackup: ({ database }) => database.getBackup('none'),
  listBackups: ({ closed }) => closed.listBackups(),
  updateBackup: ({ database }) => database.updateBackup('none', { expires: 5n }),
  deleteBackup: ({ database }) => database.deleteBackup('none'),
  restoreTable: ({ database }) => database.restoreTable('none', 'u'),
  createInstance: ({ database }) => database.createInstance('local'),
  getInstance: ({ database }) => database.getInstance('none'),
  listInstances: ({ closed }) => closed.listInstances(),
  updateInstance: ({ database }) => database.updateInstance('none', { labels: {} }),
  deleteInstance: ({ database }) => database.deleteInstance('local'),
  createCluster: ({ database }) => database.createCluster('local', 'edubba'),
  updateCluster: ({ database }) => database.updateCluster('local', 'none', { nodes: 2 }),
  deleteCluster: ({ database }) => database.deleteCluster('local', 'edubba'),
  createAppProfile: ({ database }) => database.createAppProfile('local', 'default', { routing: { kind: 'any' } }),
  updateAppProfile: ({ database }) => database.updateAppProfile('local', 'none', { description: 'x' }),
  deleteAppProfile: ({ database }) => database.deleteAppProfile('local', 'default'),
};

const CALLS_OF_A_TABLE: Readonly<Record<string, Call>> = {
  apply: ({ none }) => none.apply(new RowMutation('r').set('f:q', 'v')),
  applyAll: ({ none }) => none.applyAll([new RowMutation('r').set('f:q', 'v')]),
  load: ({ none }) => none.load([new RowMutation('r').set('f:q', 'v')]),
  get: ({ none }) => none.get('r'),
  getNow: async ({ none }) => none.getNow('r'),
  getMany: ({ none }) => none.getMany(['r']),
  getCell: ({ none }) => none.getCell('r', 'f:q'),
  increment: ({ none }) => none.increment('r', 'f:q'),
  append: ({ none }) => none.append('r', 'f:q', 'v'),
  readModifyWrite: ({ none }) =>
    none.readModifyWrite('r', [{ family: 'f', qualifier: 'q', change: { kind: 'append', suffix: 'v' } }]),
  checkAndMutate: ({ none }) => none.checkAndMutate('r', { column: 'f:q' }, { then: (row) => row.deleteRow() }),
  deleteRow: ({ none }) => none.deleteRow('r'),
  deleteRows: ({ none }) => none.deleteRows({ prefix: 'r' }),
  deleteAllRows: ({ none }) => none.deleteAllRows(),
  sampleKeys: ({ none }) => none.sampleKeys(),
  statistics: ({ none }) => none.statistics(),
  usage: ({ none }) => none.usage(),
  setQuota: ({ none }) => none.setQuota({ bytes: 1 }),
  tablets: ({ none }) => none.tablets(),
  tabletEvents: ({ none }) => none.tabletEvents(),
  keepChanges: ({ none }) => none.keepChanges(1),
  schema: ({ none }) => none.schema(),
  createFamily: ({ table }) => table.createFamily('f'),
  setGcRule: ({ table }) => table.setGcRule('g', 'never'),
  setGroups: ({ table }) => table.setGroups({ meta: { families: ['g'] } }),
  deleteFamily: ({ table }) => table.deleteFamily('g'),
};

/** Reads are lazy, so they fail at their first row. */
const READS: Readonly<Record<string, Call>> = {
  'scan: a loop': ({ none }) => allOf(none.scan()),
  'scan: next': ({ none }) => none.scan().next(),
  'scan: toArray': ({ none }) => none.scan().toArray(),
  'scan: timeout': ({ table }) => table.scan({ timeoutMs: 0 }).toArray(),
  'readChanges: a loop': ({ none }) => allOf(none.readChanges()),
  'readChanges: next': ({ none }) => none.readChanges().next(),
  'readChanges: a wrong token': ({ table }) => allOf(table.readChanges({ token: 'x' })),
  'scan: a wrong bound': ({ table }) => allOf(table.scan({ start: 'b', end: 'a' })),
};

/** Further ways into the same calls. */
const OTHERS: Readonly<Record<string, Call>> = {
  'apply: an unknown family': ({ table }) => table.apply(new RowMutation('r').set('g:q', 'v')),
  'applyAll: an unknown family': ({ table }) => table.applyAll([new RowMutation('r').set('g:q', 'v')]),
  'apply: many at once': ({ none }) =>
    Promise.all(Array.from({ length: 10 }, (_, i) => none.apply(new RowMutation(`r${i}`).set('f:q', 'v')))),
  'get: aborted': ({ table }) => table.get('r', { signal: AbortSignal.abort(new Error('enough')) }),
  'apply: timeout': ({ table }) => table.apply(new RowMutation('r').set('f:q', 'v'), { timeoutMs: 0 }),
  'get: closed': ({ closed }) => closed.table('t').get('r'),
  'apply: closed': ({ closed }) => closed.table('t').apply(new RowMutation('r').set('f:q', 'v')),
};

/** They are not awaited, or do not fail. */
const NOT_ASYNC = ['constructor', 'table', 'counters', 'close', 'flush', 'scan', 'readChanges'];

function methodsOf(type: { readonly prototype: object }): string[] {
  return Object.entries(Object.getOwnPropertyDescriptors(type.prototype))
    .filter(([name, { value }]) => typeof value === 'function' && !NOT_ASYNC.includes(name))
    .map(([name]) => name)
    .sort();
}

test('every call is tried', () => {
  assert.deepEqual(Object.keys(CALLS_OF_A_DATABASE).sort(), methodsOf(Database));
  assert.deepEqual(Object.keys(CALLS_OF_A_TABLE).sort(), methodsOf(Table));
});

/** The program whose line is to be seen. */
async function theProgram(call: Call, given: Given): Promise<void> {
  await call(given);
}

/** A function that calls another and awaits it, as programs are made of. */
async function theMain(call: Call, given: Given): Promise<void> {
  await theProgram(call, given);
}

async function errorOf(call: Call, given: Given): Promise<BigtableError> {
  try {
    await theMain(call, given);
  } catch (error) {
    assert.ok(error instanceof BigtableError, String(error));
    return error;
  }
  assert.fail('nothing failed');
}

for (const door of DOORS) {
  describe(`stacks: ${door.name}`, () => {
    let given: Given;
    before(async () => {
      const database = await door.open();
      const table = await database.openTable('t', { families: { f: {} } });
      const closed = await open(':memory:');
      await closed.close();
      given = { database, table, none: database.table('none'), closed };
    });
    after(() => given.database.close());

    for (const [name, call] of Object.entries({ ...CALLS_OF_A_DATABASE, ...CALLS_OF_A_TABLE, ...READS, ...OTHERS })) {
      test(name, async () => {
        const { stack = '', message } = await errorOf(call, given);
        assert.match(stack, /theProgram.*stacks\.test/);
        assert.match(stack, /theMain/);
        assert.ok(stack.includes(message), stack);
        assert.doesNotMatch(stack, /projects\/local/);
      });
    }
  });
}

test('opening a database', async () => {
  const given = {} as Given;
  const calls: readonly Call[] = [() => open('package.json'), () => open(':memory:', { blockCacheBytes: -1 })];
  for (const call of calls) assert.match((await errorOf(call, given)).stack ?? '', /theProgram.*stacks\.test/);
});

test('one failure of many callers has the lines of each', async () => {
  const database = await open(':memory:');
  const none = database.table('none');
  const one = async (): Promise<unknown> => await none.apply(new RowMutation('r').set('f:q', '1'));
  const other = async (): Promise<unknown> => await none.apply(new RowMutation('r').set('f:q', '2'));
  const stacks = (await Promise.allSettled([one(), other()])).map((outcome) => {
    assert.ok(outcome.status === 'rejected');
    return String((outcome.reason as Error).stack);
  });
  assert.match(stacks[0] as string, /\bone\b/);
  assert.doesNotMatch(stacks[0] as string, /\bother\b/);
  assert.match(stacks[1] as string, /\bother\b/);
  await database.close();
});

test('the code is there by number and by name', () => {
  const error = new BigtableError(Code.ALREADY_EXISTS, 'x');
  assert.deepEqual([error.code, error.codeName], [6, 'ALREADY_EXISTS']);
});
