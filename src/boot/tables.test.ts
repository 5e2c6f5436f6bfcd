import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../base/index.ts';
import { Locator, MetadataClient } from '../locator/index.ts';
import { USER_RANGE } from '../metadata/index.ts';
import { keepAlive, rejectsWith, setCell, TABLES, World } from './fixtures.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

describe('tables', () => {
  test('a thousand are created concurrently, found at the next start, and each is separate', async () => {
    const world = new World({ tabletServers: 2 });
    const first = await world.start();
    const names = Array.from({ length: 1000 }, (_, i) => `t${String(i).padStart(4, '0')}`);
    await Promise.all(names.map((name) => first.create(name)));
    await Promise.all(names.map((name) => first.set(name, 'r', name)));
    await first.close();
    const second = await world.start();
    const listed = await second.service.listTables(second.context(), TABLES);
    assert.deepEqual(
      listed.map(({ name }) => name.slice(TABLES.length)),
      names,
    );
    assert.equal(new Set(listed.map(({ id }) => id)).size, 1000);
    for (const name of [names[0], names[499], names[999]] as string[])
      assert.deepEqual(await second.read(name), [['r', name]]);
    await second.close();
  });

  test('exist once, under names with a common prefix too', async () => {
    const world = new World();
    const db = await world.start();
    await db.create('t');
    await rejectsWith(Code.ALREADY_EXISTS, db.create('t'));
    const both = await Promise.allSettled([db.create('u'), db.create('u'), db.create('u')]);
    assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected', 'rejected']);
    await db.create('t2');
    assert.deepEqual(
      (await db.service.listTables(db.context(), `${TABLES}t`)).map(({ name }) => name),
      [`${TABLES}t`, `${TABLES}t2`],
    );
    assert.deepEqual(await db.service.listTables(db.context(), 'projects/other/'), []);
    await db.close();
  });

  test('a deleted table is gone immediately, its rows, files and logs soon; its name is free', async () => {
    const world = new World();
    const db = await world.start();
    await db.create('t', { splits: ['m'] });
    for (const row of ['a', 'z']) await db.set('t', row, row);
    await db.database.flush();
    const before = (await world.fileSystem.list('sstables/')).length;
    const { id } = await db.service.getTable(db.context(), `${TABLES}t`);
    await db.service.deleteTable(db.context(), `${TABLES}t`);
    await rejectsWith(Code.NOT_FOUND, db.rows('t'));
    await rejectsWith(Code.NOT_FOUND, db.set('t', 'a', '1'));
    await rejectsWith(Code.NOT_FOUND, db.service.deleteTable(db.context(), `${TABLES}t`));
    await db.database.sweep();
    assert.equal((await world.fileSystem.list('sstables/')).length, before - 2);
    const metadata = new MetadataClient({ ...db.env, locator: new Locator(db.env), stopped: () => false });
    for await (const rows of metadata.scan(USER_RANGE, db.context())) assert.deepEqual(rows, []);
    await db.create('t');
    assert.notEqual((await db.service.getTable(db.context(), `${TABLES}t`)).id, id);
    assert.deepEqual(await db.rows('t'), []);
    await db.set('t', 'a', 'new');
    assert.deepEqual(await db.read('t'), [['a', 'new']]);
    await db.close();
  });

  test('another client library uses the new table of an old name', async () => {
    const world = new World();
    const db = await world.start();
    const { Client } = await import('../client/index.ts');
    const { LIMITS } = await import('../model/index.ts');
    const other = await Client.open({ env: db.env, limits: LIMITS.default });
    await db.create('t');
    await other.mutateRow(db.context(), `${TABLES}t`, { row: 'a', mutations: [setCell('1')] });
    await db.service.deleteTable(db.context(), `${TABLES}t`);
    await db.create('t');
    await other.mutateRow(db.context(), `${TABLES}t`, { row: 'b', mutations: [setCell('2')] });
    assert.deepEqual(await db.rows('t'), ['b']);
    other.close();
    await db.close();
  });

  test('protection keeps the table and its families', async () => {
    const world = new World();
    const db = await world.start();
    await db.create('t', { deletionProtection: true });
    await rejectsWith(Code.FAILED_PRECONDITION, db.service.deleteTable(db.context(), `${TABLES}t`), /protected/);
    await rejectsWith(
      Code.FAILED_PRECONDITION,
      db.service.modifyFamilies(db.context(), `${TABLES}t`, [{ kind: 'drop', name: 'f' }]),
      /protected/,
    );
    const changed = await db.service.updateTable(db.context(), `${TABLES}t`, {
      deletionProtection: false,
      extra: { labels: 'eA==' },
    });
    assert.equal(changed.deletionProtection, false);
    assert.equal((await db.service.getTable(db.context(), `${TABLES}t`)).extra?.['labels'], 'eA==');
    await db.service.deleteTable(db.context(), `${TABLES}t`);
    await rejectsWith(Code.NOT_FOUND, db.service.updateTable(db.context(), `${TABLES}t`, {}));
    await db.close();
  });

  test('a family dropped and created again has no cells of the old one, over flushes and restarts', async () => {
    const world = new World();
    const db = await world.start();
    await db.create('t', { families: [{ name: 'f' }, { name: 'g' }] });
    await db.mutate('t', 'a', setCell('keep'), setCell('old', 'g'));
    await db.database.flush();
    await db.mutate('t', 'b', setCell('old', 'g'));
    const change = (...changes: Parameters<typeof db.service.modifyFamilies>[2]) =>
      db.service.modifyFamilies(db.context(), `${TABLES}t`, changes);
    await change({ kind: 'drop', name: 'g' });
    assert.deepEqual(await db.read('t'), [['a', 'keep']]);
    await rejectsWith(Code.NOT_FOUND, db.set('t', 'a', '1', 'g'));
    await change({ kind: 'create', family: { name: 'g' } });
    assert.deepEqual(await db.read('t'), [['a', 'keep']]);
    await db.set('t', 'b', 'new', 'g');
    assert.deepEqual(await db.read('t'), [
      ['a', 'keep'],
      ['b', 'new'],
    ]);
    await change({ kind: 'drop', name: 'g' }, { kind: 'create', family: { name: 'g' } });
    assert.deepEqual(await db.read('t'), [['a', 'keep']]);
    await db.set('t', 'c', 'newest', 'g');
    world.crash();
    const next = await world.start();
    assert.deepEqual(await next.read('t'), [
      ['a', 'keep'],
      ['c', 'newest'],
    ]);
    await next.database.flush();
    assert.deepEqual(await next.read('t', { filter: { kind: 'familyNameRegex', regex: 'g' } }), [['c', 'newest']]);
    await next.close();
  });

  test('changes of families are made all or none', async () => {
    const world = new World();
    const db = await world.start();
    await db.create('t');
    const modify = (...changes: Parameters<typeof db.service.modifyFamilies>[2]) =>
      db.service.modifyFamilies(db.context(), `${TABLES}t`, changes);
    await rejectsWith(
      Code.NOT_FOUND,
      modify({ kind: 'create', family: { name: 'g' } }, { kind: 'drop', name: 'none' }),
    );
    await rejectsWith(
      Code.ALREADY_EXISTS,
      modify(
        { kind: 'drop', name: 'f' },
        { kind: 'create', family: { name: 'g' } },
        { kind: 'create', family: { name: 'g' } },
      ),
    );
    assert.deepEqual(Object.keys((await db.service.getTable(db.context(), `${TABLES}t`)).families), ['f']);
    const gcRule = { kind: 'maxVersions', versions: 1 } as const;
    const changed = await modify({ kind: 'update', family: { name: 'f', gcRule }, fields: ['gcRule'] });
    assert.deepEqual(changed.families['f'], { name: 'f', gcRule });
    await db.mutate('t', 'a', setCell('1', 'f', 1), setCell('2', 'f', 2));
    assert.deepEqual(await db.read('t'), [['a', '2']]);
    await db.close();
  });
});
