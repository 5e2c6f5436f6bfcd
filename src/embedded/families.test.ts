import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from './database.ts';

test('families of a new table name their locality group, or are named by it', async () => {
  const database = await open(':memory:');
  const table = await database.createTable('t', { families: { a: { group: 'hot' }, b: {}, c: { group: 'cold' } }, groups: { hot: { inMemory: true }, cold: { families: ['b', 'c'] } } });
  const { families, groups } = await table.schema();
  assert.deepEqual(Object.values(families).map(({ name, group }) => [name, group]).sort(), [['a', 'hot'], ['b', 'cold'], ['c', 'cold']]);
  assert.equal(groups?.hot?.inMemory, true);
  await assert.rejects(database.createTable('u', { families: { a: { group: 'none' } } }), { code: 3, message: /"none", which is not among the table's groups/ });
  await assert.rejects(database.createTable('u', { families: { a: { group: 'x' } }, groups: { x: {}, y: { families: ['a'] } } }), { code: 3 });
  await database.close();
});
