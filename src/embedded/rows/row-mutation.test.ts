import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, RowMutation } from '../index.ts';

test('an object that only has the prototype of RowMutation is refused as INVALID_ARGUMENT', async () => {
  const database = await open(':memory:');
  try {
    const table = await database.openTable('t', { families: { f: {} } });
    const hollow = Object.create(RowMutation.prototype) as RowMutation;
    const refusal = { codeName: 'INVALID_ARGUMENT', message: /mutation .*must be a RowMutation/ };
    await assert.rejects(table.apply(hollow), refusal);
    await assert.rejects(table.applyAll([hollow]), refusal);
    await assert.rejects(table.load([hollow]), /mutation .*must be a RowMutation/);
  } finally {
    await database.close();
  }
});
