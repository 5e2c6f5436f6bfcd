import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../base/index.ts';
import { keepAlive, rejectsWith, setCell, TABLES, World } from '../fixtures.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

describe('a database in one process', () => {
  test('starts empty, keeps its data, and finds it at the next start', async () => {
    const world = new World();
    const first = await world.start();
    await first.create('t');
    await first.set('t', 'a', '1');
    await first.set('t', 'b', '2');
    assert.deepEqual(await first.read('t'), [
      ['a', '1'],
      ['b', '2'],
    ]);
    await first.close();
    const second = await world.start();
    assert.deepEqual(await second.read('t'), [
      ['a', '1'],
      ['b', '2'],
    ]);
    await second.database.flush();
    await second.set('t', 'c', '3');
    world.crash();
    const third = await world.start();
    assert.deepEqual(await third.read('t'), [
      ['a', '1'],
      ['b', '2'],
      ['c', '3'],
    ]);
    // servers whose power was cut may have been at work, and log that
    assert.deepEqual(
      world.messages.filter((message) => message.includes('could not') && !message.includes('has crashed')),
      [],
    );
    await third.close();
  });

  test('a table is read across its tablets, forward and in reverse, with limits and ranges', async () => {
    const world = new World({ tabletServers: 3 });
    const db = await world.start();
    await db.create('t', { splits: ['d', 'h', 'm', 't'] });
    const keys = [...'abcdefghijklmnopqrstuvwxyz'];
    await Promise.all(keys.map((key) => db.set('t', key, key)));
    const backwards = [...keys].reverse();
    assert.deepEqual(await db.rows('t'), keys);
    assert.deepEqual(await db.rows('t', { reversed: true }), backwards);
    for (const rowsLimit of [1, 3, 4, 8, 25, 26, 27]) {
      assert.deepEqual(await db.rows('t', { rowsLimit }), keys.slice(0, rowsLimit));
      assert.deepEqual(await db.rows('t', { rowsLimit, reversed: true }), backwards.slice(0, rowsLimit));
    }
    const ranges = [
      { start: 'y', end: undefined },
      { start: 'c', end: 'e' },
      { start: 'h', end: 'h\0' },
      { start: 'g', end: 'h' },
      { start: 'm', end: 'n' },
      { start: 'k', end: 'k' },
    ];
    assert.deepEqual(await db.rows('t', { ranges }), ['c', 'd', 'g', 'h', 'm', 'y', 'z']);
    assert.deepEqual(await db.rows('t', { ranges, reversed: true }), ['z', 'y', 'm', 'h', 'g', 'd', 'c']);
    assert.deepEqual(await db.rows('t', { ranges, rowsLimit: 4, reversed: true }), ['z', 'y', 'm', 'h']);
    assert.deepEqual(await db.rows('t', { ranges: [{ start: 'd', end: 'm' }], reversed: true }), [
      'l',
      'k',
      'j',
      'i',
      'h',
      'g',
      'f',
      'e',
      'd',
    ]);
    await db.close();
  });

  test('a batch goes to all tablets, and reports on every entry', async () => {
    const world = new World({ tabletServers: 2 });
    const db = await world.start();
    await db.create('t', { splits: ['b', 'c'] });
    const entries = ['c', 'a', 'x', 'b', 'a'].map((row, i) => ({
      row,
      mutations: [setCell(`${i}`, i === 2 ? 'none' : 'f', i)],
    }));
    const outcomes = await db.service.mutateRows(db.context(), `${TABLES}t`, entries);
    assert.deepEqual(
      outcomes.map((outcome) => outcome?.code),
      [undefined, undefined, Code.NOT_FOUND, undefined, undefined],
    );
    assert.deepEqual(await db.read('t'), [
      ['a', '4', '1'],
      ['b', '3'],
      ['c', '0'],
    ]);
    await db.close();
  });

  test('check-and-mutate and read-modify-write reach the row, wherever it is', async () => {
    const world = new World({ tabletServers: 2 });
    const db = await world.start();
    await db.create('t', { splits: ['m'] });
    for (const row of ['a', 'z']) {
      const request = { table: `${TABLES}t`, row, whenTrue: [setCell('true')], whenFalse: [setCell('false')] };
      assert.equal(await db.service.checkAndMutateRow(db.context(), request), false);
      assert.equal(await db.service.checkAndMutateRow(db.context(), request), true);
      const rules = [{ family: 'f', qualifier: 'q', change: { kind: 'append' as const, suffix: Buffer.from('!') } }];
      const cells = await db.service.readModifyWriteRow(db.context(), `${TABLES}t`, row, rules);
      assert.deepEqual(
        cells.map(({ value }) => Buffer.from(value).toString()),
        ['true!'],
      );
    }
    await db.close();
  });

  test('samples ascend to the end of the table', async () => {
    const world = new World();
    const db = await world.start();
    await db.create('t', { splits: ['g', 'p'] });
    for (const row of ['a', 'h', 'q']) await db.set('t', row, 'x'.repeat(1000));
    await db.database.flush();
    const samples = await db.service.sampleRowKeys(db.context(), `${TABLES}t`);
    assert.deepEqual(
      samples.map(({ row }) => row),
      ['g', 'p', ''],
    );
    const offsets = samples.map(({ offsetBytes }) => offsetBytes);
    assert.ok(
      offsets.every((offset, i) => offset > (offsets[i - 1] ?? 0)),
      `${offsets}`,
    );
    await db.close();
  });

  test('rows are dropped over all tablets, and stay away', async () => {
    const world = new World({ tabletServers: 2 });
    const db = await world.start();
    await db.create('t', { splits: ['c', 'f'] });
    for (const row of 'abcdefgh') await db.set('t', row, row);
    await db.database.flush();
    await db.service.dropRowRange(db.context(), `${TABLES}t`, { start: 'b', end: 'g' });
    assert.deepEqual(await db.rows('t'), ['a', 'g', 'h']);
    await db.set('t', 'd', 'again');
    world.crash();
    const next = await world.start();
    assert.deepEqual(await next.rows('t'), ['a', 'd', 'g', 'h']);
    await next.service.dropRowRange(next.context(), `${TABLES}t`, { start: '', end: undefined });
    assert.deepEqual(await next.rows('t'), []);
    await next.close();
  });

  test('consistency tokens belong to their table', async () => {
    const world = new World();
    const db = await world.start();
    await db.create('t');
    await db.create('u');
    const token = await db.service.generateConsistencyToken(db.context(), `${TABLES}t`);
    assert.equal(await db.service.checkConsistency(db.context(), `${TABLES}t`, token), true);
    await rejectsWith(Code.INVALID_ARGUMENT, db.service.checkConsistency(db.context(), `${TABLES}u`, token));
    for (const bad of ['', 'x', `${token}x`, token.slice(1), '00000010-1-00000000']) {
      await rejectsWith(Code.INVALID_ARGUMENT, db.service.checkConsistency(db.context(), `${TABLES}t`, bad));
    }
    await rejectsWith(Code.NOT_FOUND, db.service.generateConsistencyToken(db.context(), `${TABLES}none`));
    await rejectsWith(Code.NOT_FOUND, db.service.checkConsistency(db.context(), `${TABLES}none`, token));
    await db.close();
  });

  test('errors of a request are reported', async () => {
    const world = new World();
    const db = await world.start();
    await db.create('t');
    await rejectsWith(Code.NOT_FOUND, db.set('none', 'a', '1'), /does not exist/);
    await rejectsWith(Code.NOT_FOUND, db.rows('none'));
    await rejectsWith(Code.NOT_FOUND, db.set('t', 'a', '1', 'g'), /"?g"?/);
    await rejectsWith(Code.INVALID_ARGUMENT, db.set('t', '', '1'));
    await rejectsWith(Code.INVALID_ARGUMENT, db.mutate('t', 'a'));
    await rejectsWith(Code.NOT_FOUND, db.service.sampleRowKeys(db.context(), `${TABLES}none`));
    await rejectsWith(
      Code.NOT_FOUND,
      db.service.dropRowRange(db.context(), `${TABLES}none`, { start: '', end: undefined }),
    );
    await rejectsWith(Code.NOT_FOUND, db.set('t', 'a', '1', 'constructor'));
    await db.close();
  });

  test('a closed database refuses calls', async () => {
    const world = new World();
    const db = await world.start();
    await db.create('t');
    await db.set('t', 'a', '1');
    await db.close();
    await db.close();
    await rejectsWith(Code.UNAVAILABLE, db.set('t', 'a', '2'), /closed/);
    await rejectsWith(Code.UNAVAILABLE, db.rows('t'));
    await rejectsWith(Code.UNAVAILABLE, db.service.deleteTable(db.context(), `${TABLES}t`));
  });
});
