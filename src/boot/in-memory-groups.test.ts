import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { keepAlive, TABLES, World } from './fixtures.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

const ROWS = 200;
const VALUE = 'v'.repeat(1000);

describe('in-memory locality groups', () => {
  test('that grow beyond their memory are served all the same', async () => {
    const world = new World({ settings: { inMemoryBytes: 20_000 } });
    const db = await world.start();
    await db.service.createTable(db.context(), {
      name: `${TABLES}t`,
      families: [{ name: 'f' }, { name: 'g' }],
      splits: [],
      granularity: 'micros',
      deletionProtection: false,
      groups: { hot: { families: ['f'], inMemory: true } },
    });
    const rows = Array.from({ length: ROWS }, (_, i) => `row-${String(i).padStart(3, '0')}`);
    const gauge = (name: string): number => db.env.metrics.report().gauges[name]!;
    const expected = (written: number): string[][] => rows.slice(0, written).map((row) => [row, VALUE]);
    for (const written of [10, ROWS]) {
      for (const row of rows.slice(0, written)) await db.set('t', row, VALUE, 'f');
      await db.database.flush();
      assert.deepEqual(await db.read('t'), expected(written));
    }
    assert.ok(gauge('inMemory.usedBytes') <= 20_000 && gauge('inMemory.unfitBytes') > 100_000);
    await db.database.compact();
    assert.deepEqual(await db.read('t'), expected(ROWS));
    await db.close();
  });
});
