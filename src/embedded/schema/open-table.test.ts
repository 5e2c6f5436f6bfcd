/** Opening an existing table: its locality groups, and other programs that change the schema meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../base/index.ts';
import { openDatabase } from '../../boot/index.ts';
import { type Database, open, overService, type TableOptions } from '../index.ts';

const GROUPS = {
  meta: { families: ['f'], compression: { kind: 'zstd', level: 5 }, inMemory: true },
} as const satisfies TableOptions['groups'];

test('groups are created with the table, and later ones must agree with them', async () => {
  await using database = await open(':memory:');
  const table = await database.openTable('t', { families: { f: {}, g: {} }, groups: GROUPS });
  const before = await table.schema();
  const agreeing: readonly TableOptions[] = [
    { families: { f: { group: 'meta' }, g: {} }, groups: { meta: { compression: 'zstd' } } },
    { families: { f: {} }, groups: { meta: { families: ['f'] }, default: { compression: 'lz4', families: ['g'] } } },
  ];
  for (const options of agreeing) await database.openTable('t', options);
  const refused: readonly [TableOptions, RegExp][] = [
    [
      { groups: { meta: { families: ['f'], compression: 'lz4' } } },
      /group "meta" with compression \{"kind":"zstd".*asks for \{"kind":"lz4"\}.*setGroups/,
    ],
    [{ groups: { meta: { families: ['f'], inMemory: false } } }, /inMemory true/],
    [{ groups: { other: { families: ['f'] } } }, /no locality group "other".*setGroups/],
    [{ groups: { meta: { families: ['g'] } } }, /"g" in locality group "default".*"meta".*setGroups/],
  ];
  for (const [options, message] of refused)
    await assert.rejects(database.openTable('t', options), { code: Code.FAILED_PRECONDITION, message });
  assert.deepEqual(await table.schema(), before);
  await database.openTable('t', { families: { h: {} }, groups: { meta: { families: ['h'] } } });
  assert.equal((await table.schema()).families['h']?.group, 'meta');
});

/** A database in which another program changes the schema just before each change. */
async function overtaken(change: (database: Database, attempt: number) => Promise<unknown>): Promise<Database> {
  const { service, env, close } = await openDatabase({ memory: true });
  const other = overService(service, env, close);
  let attempts = 0;
  const late = new Proxy(service, {
    get: (target, name) => {
      const call = (Reflect.get(target, name) as (...args: unknown[]) => unknown).bind(target);
      if (name !== 'createTable' && name !== 'modifyFamilies') return call;
      return async (...args: unknown[]) => {
        await change(other, ++attempts);
        return call(...args);
      };
    },
  });
  return overService(late, env, close);
}

test('a table that another program creates, changes or deletes meanwhile is opened anyway', async () => {
  await using database = await overtaken(async (other, attempt) => {
    if (attempt === 1) await other.createTable('t', { families: { f: {} } });
    if (attempt === 2) await other.table('t').createFamily('g');
    if (attempt === 3) await other.deleteTable('t');
  });
  const table = await database.openTable('t', { families: { f: {}, g: {}, h: {} } });
  assert.deepEqual(Object.keys((await table.schema()).families).sort(), ['f', 'g', 'h']);
});

test('a program that is overtaken without end fails', async () => {
  await using database = await overtaken((other, attempt) =>
    attempt % 2 === 1 ? other.createTable('t') : other.deleteTable('t'),
  );
  await assert.rejects(database.openTable('t', { families: { f: {} } }), {
    name: 'BigtableError',
    code: Code.NOT_FOUND,
  });
});
