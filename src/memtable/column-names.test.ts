import assert from 'node:assert/strict';
import { test } from 'node:test';
import { columnKey } from '../model/index.ts';
import { ColumnNames } from './column-names.ts';

test("the key is the model's, whichever columns were used before", () => {
  const names = new ColumnNames();
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 3000; i++) {
      const [family, qualifier] = [`f${i % 7}`, i % 11 === 0 ? '' : `qualifier ${i}\xff`];
      assert.equal(names.key(family, qualifier), columnKey(family, qualifier));
    }
  }
});

test('the objects of recurring columns are reused', () => {
  const names = new ColumnNames();
  for (let i = 0; i < 10; i++) names.key('family', `q${i}`);
  const { madeBytes } = names;
  assert.ok(madeBytes > 0);
  for (let i = 0; i < 1000; i++) names.key('family', `q${i % 10}`);
  assert.equal(names.madeBytes, madeBytes);
});
