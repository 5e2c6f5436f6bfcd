import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from './database.ts';
import { RowMutation } from './rows/row-mutation.ts';

const key = (n: number): string => `k${String(n).padStart(5, '0')}`;

test('a set of rows larger than a message to a tablet is read whole, over several tablets, in both directions and to a limit', async () => {
  const database = await open(':memory:');
  const table = await database.createTable('t', { families: { f: {} }, splits: [key(2500), key(2600)] });
  const there = Array.from({ length: 3000 }, (_, i) => i * 2);
  await table.applyAll(there.map((n) => new RowMutation(key(n)).set('f:q', 'v')));
  // every third of 12,000, in no order
  const asked = Array.from({ length: 4000 }, (_, i) => ((i * 1009) % 4000) * 3);
  const want = asked
    .filter((n) => n < 6000 && n % 2 === 0)
    .sort((a, b) => a - b)
    .map(key);
  for (const reverse of [false, true]) {
    for (const limit of [undefined, 1, 700, 5000]) {
      const got: string[] = [];
      for await (const row of table.scan({ rows: asked.map(key), reverse, ...(limit !== undefined && { limit }) }))
        got.push(row.key.toString());
      assert.deepEqual(
        got,
        (reverse ? [...want].reverse() : want).slice(0, limit),
        `reverse ${reverse}, limit ${limit}`,
      );
    }
  }
  // ranges as well, and rows of 64 KB, of which few fill a message
  const long = 'x'.repeat(60_000);
  await table.applyAll([1, 2, 3].map((n) => new RowMutation(`${long}${n}`).set('f:q', 'v')));
  const rows: string[] = [];
  for await (const row of table.scan({ rows: Array.from({ length: 60 }, (_, i) => `${long}${(i * 7) % 60}`) }))
    rows.push(row.key.subarray(60_000).toString());
  assert.deepEqual(rows, ['1', '2', '3']);
  await database.close();
});
