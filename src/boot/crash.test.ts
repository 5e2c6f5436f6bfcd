import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { keepAlive, liveUntilCrash, setCell, TABLES, type TestDatabase, World } from './fixtures.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

/** The answers that the client received. */
interface Promises {
  /** Rows of table `a`, acknowledged. */
  readonly written: Map<string, string>;
  /** Rows whose write was requested and not answered. */
  readonly unknown: Set<string>;
  created: boolean;
  familyDropped: 'no' | 'unknown' | 'yes';
  doomed: 'no' | 'there' | 'unknown' | 'gone';
}

/**
 * A life of a database: tables are created and deleted, a family is dropped and created again, memtables are flushed.
 */
async function live(db: TestDatabase, promises: Promises): Promise<void> {
  const write = async (row: string, value: string): Promise<void> => {
    promises.unknown.add(row);
    await db.set('a', row, value);
    promises.unknown.delete(row);
    promises.written.set(row, value);
  };
  await db.create('a', { splits: ['m'], families: [{ name: 'f' }, { name: 'g' }] });
  promises.created = true;
  for (const row of ['a', 'b', 'x']) await write(row, '1');
  await db.set('a', 'old', 'old', 'g');
  promises.doomed = 'unknown';
  await db.create('doomed');
  promises.doomed = 'there';
  await db.set('doomed', 'r', '1');
  await db.database.flush();
  promises.familyDropped = 'unknown';
  await db.service.modifyFamilies(db.context(), `${TABLES}a`, [
    { kind: 'drop', name: 'g' },
    { kind: 'create', family: { name: 'g' } },
  ]);
  promises.familyDropped = 'yes';
  for (const row of ['c', 'y']) await write(row, '2');
  promises.doomed = 'unknown';
  await db.service.deleteTable(db.context(), `${TABLES}doomed`);
  promises.doomed = 'gone';
  await db.database.flush();
  await db.database.sweep();
  for (const row of ['d', 'z']) await write(row, '3');
  await db.close();
}

async function check(db: TestDatabase, promises: Promises): Promise<void> {
  const names = (await db.service.listTables(db.context(), TABLES)).map(({ name }) => name.slice(TABLES.length));
  if (promises.created) assert.ok(names.includes('a'), 'an acknowledged table is gone');
  if (promises.doomed === 'there') assert.ok(names.includes('doomed'));
  if (promises.doomed === 'gone') assert.ok(!names.includes('doomed'), 'a deleted table is back');
  if (names.includes('a')) {
    const rows = new Map((await db.read('a')).map(([row, ...values]) => [row, values.join()]));
    for (const [row, value] of promises.written) assert.equal(rows.get(row), value, `row ${row}`);
    for (const row of rows.keys())
      assert.ok(
        promises.written.has(row) || promises.unknown.has(row) || row === 'old',
        `row ${row} was never written`,
      );
    if (promises.familyDropped === 'yes') assert.ok(!rows.has('old'), 'a dropped family is back');
    await db.set('a', 'zz', 'after');
    assert.deepEqual(await db.read('a', { ranges: [{ start: 'zz', end: undefined }] }), [['zz', 'after']]);
  } else {
    await db.create('a');
    assert.deepEqual(await db.rows('a'), []);
  }
  if (!names.includes('doomed')) {
    await db.create('doomed');
    assert.deepEqual(await db.rows('doomed'), [], 'rows of a deleted table are back');
  }
  await db.mutate('doomed', 'r', setCell('new', 'f', 5));
}

/**
 * Runs the life until the file system's operation number `at`, then lets the power fail. False where the life ended
 * before.
 */
async function crashAt(at: number): Promise<boolean> {
  const promises: Promises = {
    written: new Map(),
    unknown: new Set(),
    created: false,
    familyDropped: 'no',
    doomed: 'no',
  };
  const { crashed, world } = await liveUntilCrash(at, {}, (db) => live(db, promises));
  const next = await world.start();
  await check(next, promises);
  await next.database.sweep();
  assert.deepEqual(await next.database.sweep(), { files: 0, logs: 0 });
  await next.close();
  const again = await world.start();
  assert.ok((await again.rows('a')).length > 0 || promises.written.size === 0);
  await again.close();
  return crashed;
}

describe('the power fails', () => {
  test('at any point: nothing acknowledged is lost, nothing deleted comes back, no files are left over', {
    timeout: 120_000,
  }, async () => {
    let points = 0;
    for (let at = 1; await crashAt(at); at += 2) points++;
    assert.ok(points > 20, `only ${points} points`);
  });

  test('again and again in the midst of starting', { timeout: 60_000 }, async () => {
    let left = Number.POSITIVE_INFINITY;
    let tellCrash = (): void => {};
    const world: World = new World({
      faults: () => {
        if (--left > 0) return;
        left = Number.POSITIVE_INFINITY;
        world.crash('torn');
        tellCrash();
      },
    });
    const first = await world.start();
    await first.create('a', { splits: ['m'] });
    for (const row of ['a', 'z']) await first.set('a', row, row);
    world.crash();
    await first.close().catch(() => {});
    for (let at = 1; at < 40; at += 3) {
      left = at;
      const crash = new Promise<undefined>((resolve) => (tellCrash = () => resolve(undefined)));
      const db = await Promise.race([world.start().catch(() => undefined), crash]);
      left = Number.POSITIVE_INFINITY;
      if (db) world.crash();
      await db?.close().catch(() => {});
    }
    const last = await world.start();
    assert.deepEqual(await last.read('a'), [
      ['a', 'a'],
      ['z', 'z'],
    ]);
    await last.close();
  });
});
