import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { BigtableError, Code } from '../base/index.ts';
import { ManualClock, requestContext, sleep } from '../env/index.ts';
import { Locator, MetadataClient } from '../locator/index.ts';
import { type MetadataRow, ROOT_RANGE, USER_RANGE } from '../metadata/index.ts';
import { inSimulatedTime } from '../../test/simulated-time.ts';
import { keepAlive, rejectsWith, setCell, TABLES, type TestDatabase, until, World } from './fixtures.ts';
import { openDatabase } from './open/open-database.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

const T = `${TABLES}t`;

async function rowOf(db: TestDatabase): Promise<MetadataRow> {
  const metadata = new MetadataClient({ ...db.env, locator: new Locator(db.env), stopped: () => false });
  for await (const [row] of metadata.scan(USER_RANGE, db.context())) if (row) return row;
  throw new Error('there is no tablet');
}

async function flushes(db: TestDatabase, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await db.set('t', `row-${i % 10}`, `value ${i}`);
    await db.database.flush();
  }
}

const memtableBytes = ({ env }: TestDatabase): number => env.metrics.report().gauges['memtables.usedBytes']!;

describe('compactions of a database', () => {
  test('keep files few by themselves, and delete replaced ones', async () => {
    const world = new World();
    const db = await world.start();
    await db.create('t');
    await flushes(db, 40);
    await until(async () => (await rowOf(db)).files['default']!.length <= 8);
    assert.ok(db.env.metrics.get('tablet.mergingCompactions') >= 4);
    assert.equal((await db.rows('t')).length, 10);
    await db.database.compact(T);
    assert.equal((await rowOf(db)).files['default']?.length, 1);
    const metadata = new MetadataClient({ ...db.env, locator: new Locator(db.env), stopped: () => false });
    const listed = new Set(Object.values((await metadata.readRoot(db.context()))?.files ?? {}).flat());
    for (const range of [ROOT_RANGE, USER_RANGE])
      for await (const rows of metadata.scan(range, db.context()))
        for (const { files } of rows) for (const path of Object.values(files).flat()) listed.add(path);
    await until(async () => (await world.fileSystem.list('sstables/')).every(({ path }) => listed.has(path)));
    await db.close();
    const again = await world.start();
    assert.equal((await again.rows('t')).length, 10);
    await again.close();
  });

  test('major ones run within the set time, and remove deleted data from the disk', async () => {
    const world = new World({ settings: { majorCompactionMs: 1000 } });
    const db = await world.start();
    await db.create('t');
    await db.set('t', 'secret', 'deleted soon');
    await db.set('t', 'kept', 'x');
    await db.database.flush();
    await db.mutate('t', 'secret', { kind: 'deleteFromRow' });
    const holdsSecret = async (): Promise<boolean> => {
      for (const path of (await rowOf(db)).files['default'] ?? []) {
        const bytes = await world.fileSystem.read(path, 0, await world.fileSystem.size(path));
        if (bytes.includes('deleted soon')) return true;
      }
      return false;
    };
    assert.ok(await holdsSecret());
    await until(async () => !(await holdsSecret()));
    assert.deepEqual(await db.read('t'), [['kept', 'x']]);
    await db.close();
  });

  test('files over one another become one while they are read, a large memtable too', async () => {
    const clock = new ManualClock();
    const world = new World({ clock });
    const keys = Array.from({ length: 100 }, (_, i) => `row-${String(i).padStart(3, '0')}`);
    const work = async (): Promise<void> => {
      const db = await world.start();
      await db.create('t');
      const overwrite = async (value: string): Promise<void> => {
        for (const key of keys) await db.set('t', key, value);
      };
      const read = async (): Promise<void> => {
        for (let i = 0; i < 200; i++) await db.rows('t', { filter: { kind: 'stripValue' } });
        await sleep(clock, 2000);
      };
      for (const value of ['first', 'second', 'third']) {
        await overwrite(value);
        await db.database.flush();
      }
      assert.equal((await rowOf(db)).files['default']?.length, 3);
      for (let i = 0; i < 2; i++) await read();
      assert.equal((await rowOf(db)).files['default']?.length, 1);
      const value = 'v'.repeat(100_000);
      await overwrite(value);
      for (let i = 0; i < 6; i++) await read();
      assert.equal((await rowOf(db)).files['default']?.length, 1, 'the memtable was flushed and merged');
      assert.ok(db.env.metrics.get('tablet.minorCompactions') >= 4);
      assert.equal(db.env.metrics.get('tablet.mergesForReads'), 2);
      assert.ok(memtableBytes(db) < 1e6);
      const rows = await db.read('t');
      assert.deepEqual([rows.length, rows.every(([, cell]) => cell === value)], [100, true]);
      await db.close();
    };
    await inSimulatedTime(clock, work());
  });

  test('memory that the flush before a major one frees is free for other writes', async () => {
    const world = new World();
    const db = await world.start();
    await db.create('t');
    await db.set('t', 'r', 'v'.repeat(1e6));
    assert.ok(memtableBytes(db) > 1e6);
    await db.database.compact(T);
    assert.ok(memtableBytes(db) < 1e6);
    await db.close();
  });

  test('a full disk fails them, is logged, and they run later', async () => {
    let isFull = false;
    const world = new World({
      faults: (operation, path) => {
        if (isFull && operation === 'create' && path.startsWith('sstables/'))
          throw new BigtableError(Code.RESOURCE_EXHAUSTED, 'no space left on the device');
      },
    });
    const db = await world.start();
    await db.create('t');
    await flushes(db, 3);
    isFull = true;
    await rejectsWith(Code.RESOURCE_EXHAUSTED, db.database.compact(T), /no space/);
    assert.equal((await db.rows('t')).length, 3);
    assert.ok(db.env.metrics.get('tabletserver.failedCompactions') >= 1);
    assert.ok(
      world.messages.some((message) => /a major compaction failed and will be tried again.*no space/.test(message)),
    );
    isFull = false;
    await db.database.compact(T);
    assert.equal((await rowOf(db)).files['default']?.length, 1);
    await db.close();
  });

  test('a change of groups rewrites old files, and an invalid one is refused', async () => {
    const world = new World();
    const db = await world.start();
    const families = ['f', 'g', 'h'].map((name) => ({ name }));
    await db.service.createTable(db.context(), {
      name: T,
      families,
      splits: [],
      granularity: 'micros',
      deletionProtection: false,
      groups: { x: { families: ['g'], inMemory: true } },
    });
    for (const family of ['f', 'g', 'h']) await db.set('t', 'r', family, family);
    await db.database.flush();
    assert.deepEqual(Object.keys((await rowOf(db)).files).sort(), ['default', 'x']);
    const { families: schema } = await db.service.updateTable(db.context(), T, {
      groups: { y: { families: ['f', 'g'], compression: { kind: 'none' } } },
    });
    assert.deepEqual([schema['f']?.group, schema['g']?.group, schema['h']?.group], ['y', 'y', undefined]);
    await until(
      async () =>
        Object.keys((await rowOf(db)).files)
          .sort()
          .join() === 'default,y',
    );
    assert.deepEqual(await db.read('t'), [['r', 'f', 'g', 'h']]);
    await rejectsWith(
      Code.NOT_FOUND,
      db.service.updateTable(db.context(), T, { groups: { y: { families: ['missing'] } } }),
      /no column family "missing"/,
    );
    await rejectsWith(
      Code.NOT_FOUND,
      db.service.modifyFamilies(db.context(), T, [{ kind: 'create', family: { name: 'k', group: 'z' } }]),
      /no locality group "z"/,
    );
    await db.service.modifyFamilies(db.context(), T, [
      { kind: 'create', family: { name: 'k', group: 'y' } },
      { kind: 'update', family: { name: 'f', gcRule: { kind: 'maxVersions', versions: 1 } }, fields: ['gcRule'] },
    ]);
    await db.close();
    const again = await world.start();
    const { families: kept, groups } = await again.service.getTable(again.context(), T);
    assert.deepEqual([kept['k']?.group, kept['f']?.group], ['y', 'y']);
    assert.equal(JSON.stringify(groups), '{"y":{"compression":{"kind":"none"}}}');
    assert.deepEqual(await again.read('t'), [['r', 'f', 'g', 'h']]);
    await again.close();
  });

  test('in a directory they run in a thread of their own, and a sweep removes the remains of one that was cut short', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'edubba-'));
    try {
      const first = await openDatabase({ directory });
      const context = requestContext({ budget: first.env.requestBudget });
      await first.service.createTable(context, {
        name: T,
        families: [{ name: 'f' }],
        splits: [],
        granularity: 'micros',
        deletionProtection: false,
      });
      for (let i = 0; i < 9; i++) {
        await first.service.mutateRow(context, T, { row: `r${i}`, mutations: [setCell('x'.repeat(1000))] });
        await first.flush();
      }
      await until(() => first.env.metrics.get('tablet.mergingCompactions') > 0);
      await first.compact(T);
      const compacting = first.compact(T).catch(() => {});
      await first.close();
      await compacting;
      const second = await openDatabase({ directory });
      const rows: string[] = [];
      for await (const { fragments } of second.service.readRows(requestContext({ budget: second.env.requestBudget }), {
        table: T,
      }))
        rows.push(...fragments.map(({ row }) => row));
      assert.equal(rows.length, 9);
      await second.compact();
      await second.sweep();
      assert.ok((await readdir(join(directory, 'files', 'sstables'))).length < 8);
      await second.close();
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
