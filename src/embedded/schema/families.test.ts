import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GroupLayout } from './groups.ts';
import { open } from '../database.ts';

test('families of a new table name their locality group, or are named by it', async () => {
  const database = await open(':memory:');
  const table = await database.createTable('t', {
    families: { a: { group: 'hot' }, b: {}, c: { group: 'cold' } },
    groups: { hot: { inMemory: true }, cold: { families: ['b', 'c'] } },
  });
  const { families, groups } = await table.schema();
  assert.deepEqual(
    Object.values(families)
      .map(({ name, group }) => [name, group])
      .sort(),
    [
      ['a', 'hot'],
      ['b', 'cold'],
      ['c', 'cold'],
    ],
  );
  assert.equal(groups?.hot?.inMemory, true);
  await assert.rejects(database.createTable('u', { families: { a: { group: 'none' } } }), {
    code: 3,
    message: /"none", which is not among the table's groups/,
  });
  await assert.rejects(
    database.createTable('u', { families: { a: { group: 'x' } }, groups: { x: {}, y: { families: ['a'] } } }),
    { code: 3 },
  );
  await database.close();
});

test('a compression is an object, or its kind as text', async () => {
  await using database = await open(':memory:');
  const table = await database.createTable('t', {
    families: { a: {}, b: {} },
    groups: { default: { compression: 'zstd' }, cold: { families: ['b'], compression: { kind: 'zstd', level: 9 } } },
  });
  assert.deepEqual((await table.schema()).groups?.['default']?.compression, { kind: 'zstd' });
  assert.deepEqual((await table.schema()).groups?.['cold']?.compression, { kind: 'zstd', level: 9 });
  await table.setGroups({ default: { compression: 'lz4' } });
  assert.deepEqual((await table.schema()).groups?.['default'], { compression: { kind: 'lz4' } });
  const refused = (compression: unknown, message: RegExp): Promise<void> =>
    assert.rejects(table.setGroups({ default: { compression } } as GroupLayout), { code: 3, message });
  await refused(
    'gzip',
    /locality group "default": compression must be one of none, lz4, zstd, zstd-dict, two-pass, not gzip/,
  );
  await refused(5, /compression must be an object \{ kind \}, or its kind as text, not number 5/);
  await refused({ kind: 'zstd', leevl: 9 }, /unknown option "leevl" \(did you mean level\?\); there are kind, level/);
  await refused(null, /compression must be an object/);
  assert.deepEqual((await table.schema()).groups?.['default'], { compression: { kind: 'lz4' } });
});

test('a rule is never, or one that is built as rules are', async () => {
  await using database = await open(':memory:');
  const table = await database.createTable('t', { families: { kept: { gcRule: 'never' }, one: { maxVersions: 1 } } });
  const rules = async (): Promise<unknown> =>
    Object.fromEntries(Object.values((await table.schema()).families).map(({ name, gcRule }) => [name, gcRule]));
  assert.deepEqual(await rules(), { kept: undefined, one: { kind: 'maxVersions', versions: 1 } });
  await table.setGcRule('one', 'never');
  await table.setGcRule('kept', { kind: 'maxVersions', versions: 2 });
  assert.deepEqual(await rules(), { kept: { kind: 'maxVersions', versions: 2 }, one: undefined });
});
