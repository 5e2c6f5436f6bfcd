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

describe('a memory layer', () => {
  test('moves files that are open into memory and back, also below a read, and takes no more than there is', async () => {
    const world = new World({ settings: { inMemoryBytes: 100_000, blockCacheBytes: 0 } });
    const db = await world.start();
    const gauge = (name: string): number => db.env.metrics.report().gauges[name]!;
    const cluster = `${TABLES.slice(0, -'/tables/'.length)}/clusters/edubba`;
    const turn = (isOn: boolean) => db.service.memoryLayers!.updateMemoryLayer(db.context(), cluster, { isOn });
    const rows = Array.from({ length: ROWS }, (_, i) => `row-${String(i).padStart(3, '0')}`);
    for (const [table, written] of [
      ['small', rows.slice(0, 20)],
      ['large', rows],
    ] as const) {
      await db.service.createTable(db.context(), {
        name: `${TABLES}${table}`,
        families: [{ name: 'f' }],
        splits: [],
        granularity: 'micros',
        deletionProtection: false,
      });
      for (const row of written) await db.set(table, row, VALUE, 'f');
    }
    await db.database.flush();
    const small = rows.slice(0, 20).map((row) => [row, VALUE]);
    assert.deepEqual(await db.read('small'), small);
    assert.equal(gauge('inMemory.usedBytes'), 0);

    await turn(true);
    assert.deepEqual(await db.read('small'), small);
    assert.ok(gauge('inMemory.usedBytes') > 20_000, 'the small table is in memory');
    assert.equal((await db.read('large')).length, ROWS);
    assert.ok(gauge('inMemory.usedBytes') <= 100_000 && gauge('inMemory.unfitBytes') > 200_000);

    for (const isOn of [false, true, false]) {
      const seen: string[] = [];
      for await (const { fragments } of db.service.readRows(db.context(), { table: `${TABLES}large` })) {
        if (seen.length === 0) await turn(isOn);
        seen.push(...fragments.map(({ row }) => row));
      }
      assert.deepEqual(seen, rows);
    }
    assert.deepEqual([gauge('inMemory.usedBytes'), gauge('inMemory.unfitBytes')], [0, 0]);
    assert.deepEqual(await db.read('small'), small);
    await db.close();
  });
});
