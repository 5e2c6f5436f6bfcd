import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { BigtableError, Code } from '../base/index.ts';
import type { FileFaults } from '../env/index.ts';
import { keepAlive, rejectsWith, setCell, TABLES, World } from './fixtures.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

const value = 'x'.repeat(1000);

describe('recovery and memory', () => {
  test('a server whose log fails is followed by another, which has all acknowledged writes', async () => {
    let failing = false;
    const faults: FileFaults = (operation) => {
      if (failing && operation === 'syncLog') {
        failing = false;
        throw new BigtableError(Code.UNAVAILABLE, 'the disk is gone for a moment');
      }
    };
    const world = new World({ faults });
    const db = await world.start();
    await db.create('t', { splits: ['m'] });
    for (const row of ['a', 'z']) await db.set('t', row, '1');
    failing = true;
    await rejectsWith(Code.UNAVAILABLE, db.set('t', 'b', '1'));
    await db.set('t', 'c', '2');
    const rows = await db.rows('t');
    assert.deepEqual(
      rows.filter((row) => row !== 'b'),
      ['a', 'c', 'z'],
    );
    await db.database.flush();
    await db.database.sweep();
    assert.equal(
      (await world.fileSystem.listLogs('logs/')).length,
      1,
      'the dead log is deleted once no tablet needs it',
    );
    await db.close();
  });

  test('one of two servers dies: the other serves its tablets', async () => {
    let failLog: string | undefined;
    const world = new World({
      tabletServers: 2,
      faults: (operation, path) => {
        if (operation === 'syncLog' && path === failLog) throw new BigtableError(Code.UNAVAILABLE, 'the disk is gone');
      },
    });
    const db = await world.start();
    await db.create('t', { splits: ['c', 'f', 'j'] });
    const rows = [...'abcdefghijkl'];
    for (const row of rows) await db.set('t', row, row);
    failLog = (await world.fileSystem.listLogs('logs/'))[1];
    // a write to each tablet: those of the failing server get no answer that they were made
    const outcomes = await Promise.allSettled(['a', 'd', 'g', 'k'].map((row) => db.set('t', row, 'again')));
    assert.ok(outcomes.some(({ status }) => status === 'rejected'));
    assert.deepEqual(await db.rows('t'), rows);
    assert.deepEqual(await db.rows('t', { reversed: true }), [...rows].reverse());
    await db.close();
  });

  test('unflushed rows of METADATA do not keep a log that no other tablet needs', async () => {
    const mib = 1024 * 1024;
    const world = new World({ settings: { memtableBytes: mib, logLimitBytes: 8 * mib } });
    const db = await world.start();
    await db.create('t');
    let maxBytes = 0;
    for (let i = 0; i < 14 * 16; i++) {
      await Promise.all(Array.from({ length: 64 }, (_, k) => db.set('t', `row-${i * 64 + k}`, value)));
      let logBytes = 0;
      for (const path of await world.fileSystem.listLogs('logs/'))
        for await (const { bytes } of world.fileSystem.readLog(path)) logBytes += bytes.length;
      maxBytes = Math.max(maxBytes, logBytes);
    }
    // two quarters of the limit for METADATA, and writes during flushes of others; without the early flush five
    // quarters and more
    assert.ok(maxBytes < 9 * mib, `the log grew to ${maxBytes} bytes`);
    assert.ok(maxBytes > mib / 2, `the log grew to ${maxBytes} bytes only: nothing was tried`);
    await db.close();
  });

  test('memtables are flushed by themselves, writes wait and none fails, the log is trimmed', async () => {
    const world = new World({ settings: { memtableBytes: 1024 * 1024, logLimitBytes: 1024 * 1024 } });
    const db = await world.start();
    await db.create('t');
    await db.create('small');
    await db.set('small', 'a', '1');
    for (let i = 0; i < 100; i++) {
      await Promise.all(
        Array.from({ length: 50 }, (_, k) => db.set('t', `row-${String(i * 50 + k).padStart(5, '0')}`, value)),
      );
    }
    assert.ok(db.env.metrics.get('tablet.minorCompactions') >= 4);
    const log = (await world.fileSystem.listLogs('logs/'))[0]!;
    let logBytes = 0;
    for await (const { bytes } of world.fileSystem.readLog(log)) logBytes += bytes.length;
    assert.ok(logBytes < 4 * 1024 * 1024, `the log has ${logBytes} bytes`);
    world.crash();
    const next = await world.start();
    assert.equal((await next.rows('t')).length, 5000);
    assert.deepEqual(await next.rows('small'), ['a']);
    await next.close();
  });

  test('a write that waits for memory ends with its deadline', async () => {
    let stuck = true;
    let endAppend = (): void => {};
    const gate = new Promise<void>((resolve) => (endAppend = resolve));
    const world = new World({
      settings: { memtableBytes: 1024 * 1024 },
      faults: (operation, path) =>
        stuck && operation === 'closeFile' && path.startsWith('sstables/') ? gate : undefined,
    });
    const db = await world.start();
    await db.create('t');
    let refused: unknown;
    for (let i = 0; i < 3000 && refused === undefined; i++) {
      const entry = { row: `${i}`, mutations: [setCell(value)] };
      await db.service.mutateRow(db.context(100), `${TABLES}t`, entry).catch((error: unknown) => (refused = error));
    }
    assert.ok(refused instanceof BigtableError && refused.code === Code.DEADLINE_EXCEEDED, String(refused));
    assert.ok(db.env.metrics.get('tabletserver.writesThatWaited') > 0);
    stuck = false;
    endAppend();
    await db.set('t', 'after', value);
    assert.deepEqual(await db.rows('t', { ranges: [{ start: 'after', end: undefined }] }), ['after']);
    await db.close();
  });

  test('a full disk fails writes and is survived', async () => {
    let full = false;
    const world = new World({
      faults: (operation) => {
        if (full && operation === 'appendLog') throw new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full');
      },
    });
    const db = await world.start();
    await db.create('t');
    await db.set('t', 'a', '1');
    full = true;
    await rejectsWith(Code.RESOURCE_EXHAUSTED, db.set('t', 'b', '1'));
    full = false;
    await db.set('t', 'c', '1');
    assert.deepEqual(await db.rows('t'), ['a', 'c']);
    await db.close();
  });

  test('a tablet whose file is damaged is logged, and the others are served', async () => {
    const world = new World();
    const first = await world.start();
    await first.create('good');
    await first.create('bad');
    await first.set('good', 'a', '1');
    await first.database.flush();
    const before = new Set((await world.fileSystem.list('sstables/')).map(({ path }) => path));
    await first.set('bad', 'a', '1');
    await first.database.flush();
    const [file] = (await world.fileSystem.list('sstables/')).filter(({ path }) => !before.has(path));
    await first.close();
    assert.ok(file);
    world.fileSystem.damage(file.path, file.sizeBytes - 2);
    const second = await world.start();
    assert.deepEqual(await second.rows('good'), ['a']);
    const context = second.context(100);
    await assert.rejects(
      async () => {
        for await (const _ of second.service.readRows(context, { table: `${TABLES}bad` }))
          assert.fail('a damaged tablet answers');
      },
      (error: unknown) =>
        error instanceof BigtableError && error.code === Code.DATA_LOSS && error.message.includes(file.path),
    );
    assert.ok(world.messages.some((message) => message.includes('could not be loaded') && message.includes(file.path)));
    await second.close();
  });
});
