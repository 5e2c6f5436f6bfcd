/**
 * Splits and merges of tablets over the whole system: the rows of METADATA, the answers of reads, and the files on the
 * disk.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { BigtableError, Code } from '../base/index.ts';
import { ManualClock, sleep } from '../env/index.ts';
import { Locator, MetadataClient } from '../locator/index.ts';
import { keysOfTable, type MetadataRow } from '../metadata/index.ts';
import { SERVERS_DIRECTORY } from '../protocol/index.ts';
import { systemClock } from '../platform/index.ts';
import { inSimulatedTime } from '../../test/simulated-time.ts';
import { keepAlive, rejectsWith, TABLES, type TestDatabase, World } from './fixtures.ts';

const KEYS = Array.from({ length: 60 }, (_, i) => `k${String(i).padStart(3, '0')}`);

/** The table's rows of METADATA, which partition it. */
async function tablets(db: TestDatabase, table: string): Promise<MetadataRow[]> {
  const { id } = await db.service.getTable(db.context(), TABLES + table);
  const metadata = new MetadataClient({ ...db.env, locator: new Locator(db.env), stopped: () => false });
  const rows: MetadataRow[] = [];
  for await (const some of metadata.scan(keysOfTable(id), db.context())) rows.push(...some);
  for (const [i, { range }] of rows.entries()) {
    assert.equal(range.start, i === 0 ? '' : rows[i - 1]?.range.end, 'the rows of METADATA partition the table');
    assert.equal(range.end === undefined, i === rows.length - 1);
  }
  return rows;
}

const startsOf = (rows: readonly MetadataRow[]): string[] => rows.map(({ range }) => range.start);

async function filled(world: World): Promise<TestDatabase> {
  const db = await world.start();
  await db.create('t');
  for (const key of KEYS) await db.set('t', key, `value of ${key}`);
  return db;
}

const filesOf = (row: MetadataRow | undefined): string[] => Object.values(row?.files ?? {}).flat();
const noise = ({ env }: TestDatabase, length: number): string =>
  String.fromCharCode(...Array.from({ length }, () => 32 + Math.floor(env.random.float() * 90)));
const split = ({ database }: TestDatabase, row?: string): Promise<void> => database.splitTablet(`${TABLES}t`, row);
const merge = ({ database }: TestDatabase, row: string): Promise<void> => database.mergeTablets(`${TABLES}t`, row);

async function assertAllThere(db: TestDatabase, expected: readonly string[] = KEYS): Promise<void> {
  assert.deepEqual(await db.rows('t'), expected);
  assert.deepEqual(await db.rows('t', { reversed: true }), [...expected].reverse());
  for (const key of expected.filter((_, i) => i % 7 === 0))
    assert.deepEqual(await db.rows('t', { ranges: [{ start: key, end: `${key}\0` }] }), [key]);
}

const ends: (() => void)[] = [];
before(() => void ends.push(keepAlive()));
after(() => ends.forEach((end) => end()));

describe('splits of tablets', () => {
  test('a tablet is split at a row, and both parts are read, written, and served after a start', async () => {
    const world = new World();
    let db = await filled(world);
    await split(db, 'k030');
    const [low, high] = await tablets(db, 't');
    assert.deepEqual(
      [low?.range, high?.range],
      [
        { start: '', end: 'k030' },
        { start: 'k030', end: undefined },
      ],
    );
    assert.equal(low?.epoch, high?.epoch);
    assert.deepEqual(low?.files, high?.files, 'they share their files');
    await assertAllThere(db);
    await db.set('t', 'k010', 'new');
    await db.set('t', 'k050', 'new');
    assert.deepEqual(
      await db.read('t', {
        ranges: [
          { start: 'k010', end: 'k011' },
          { start: 'k050', end: 'k051' },
        ],
      }),
      [
        ['k010', 'new'],
        ['k050', 'new'],
      ],
    );
    await split(db, 'k030');
    assert.equal((await tablets(db, 't')).length, 2, 'a tablet that begins there already is unchanged');
    await db.close();
    db = await world.start();
    await assertAllThere(db);
    await db.close();
  });

  test('without a row it is split near the middle by bytes; a tablet of one row cannot be', async () => {
    const db = await new World({ settings: { blockSizeBytes: 1024 } }).start();
    await db.create('t');
    for (const key of KEYS) await db.set('t', key, noise(db, 500));
    await split(db);
    const [, high] = await tablets(db, 't');
    assert.ok(high && high.range.start > 'k024' && high.range.start < 'k036', `split at ${high?.range.start}`);
    await db.create('one');
    await db.set('one', 'row', 'x');
    await rejectsWith(Code.FAILED_PRECONDITION, db.database.splitTablet(`${TABLES}one`), /no two rows/);
    await db.close();
  });

  test('tablets that have grown split by themselves, until each is small enough, and no further', async () => {
    const world = new World({ settings: { tabletBytes: 1 << 20, memtableBytes: 1 << 20, blockSizeBytes: 4096 } });
    const db = await world.start();
    await db.create('t');
    const keys = Array.from({ length: 600 }, (_, i) => `k${String((i * 7919) % 600).padStart(3, '0')}`);

    for (const key of keys) await db.set('t', key, noise(db, 6000));
    await db.database.flush();
    await db.database.compact();
    const rows = await tablets(db, 't');
    assert.ok(rows.length >= 2 && rows.length < 12, `${rows.length} tablets: ${startsOf(rows)}`);
    assert.deepEqual(await db.rows('t'), [...keys].sort());
    const before = (await tablets(db, 't')).length;
    await db.database.flush();
    assert.equal((await tablets(db, 't')).length, before, 'bytes of shared files that belong to others do not count');
    await db.close();
  });

  test('a read that is under way while its tablet is split returns every row once', async () => {
    const db = await filled(new World());
    for (const reversed of [false, true]) {
      const seen: string[] = [];
      for await (const { fragments } of db.service.readRows(db.context(), { table: `${TABLES}t`, reversed })) {
        for (const { row, last } of fragments) if (last) seen.push(row);
        if (seen.length > 0 && (await tablets(db, 't')).length < 4)
          await split(db, `k0${(await tablets(db, 't')).length}5`);
      }
      assert.deepEqual(seen, reversed ? [...KEYS].reverse() : KEYS);
    }
    await db.close();
  });

  test('writes succeed while a table is split and merged, and nothing that was acknowledged is lost', async () => {
    const db = await filled(new World());
    let over = false;
    const counts = new Map<string, number>();
    const writer = async (key: string): Promise<void> => {
      for (let i = 1; !over; i++) {
        // memory answers immediately, and would leave no turn to other work
        await systemClock.yield();
        await db.set('t', key, String(i));
        counts.set(key, i);
      }
    };
    const writers = ['k001', 'k015', 'k030', 'k044', 'k059'].map(writer);
    for (const row of ['k030', 'k015', 'k045']) await split(db, row);
    for (const row of ['k015', 'k030', 'k045']) await merge(db, row);
    over = true;
    await Promise.all(writers);
    assert.equal((await tablets(db, 't')).length, 1);
    for (const [key, count] of counts)
      assert.deepEqual(await db.read('t', { ranges: [{ start: key, end: `${key}\0` }] }), [[key, String(count)]]);
    await db.close();
  });

  test('files that both parts have compacted are deleted with the next sweep, and not before', async () => {
    const world = new World();
    const db = await filled(world);
    await split(db, 'k030');
    const shared = Object.values((await tablets(db, 't'))[0]?.files ?? {}).flat();
    await db.database.sweep();
    for (const path of shared) assert.ok((await world.fileSystem.list('sstables/')).some((file) => file.path === path));
    await db.database.compact(`${TABLES}t`);
    const lists = (await tablets(db, 't')).map(({ files }) => Object.values(files).flat());
    assert.ok(
      lists.every((paths) => paths.every((path) => !shared.includes(path))),
      'each has a file of its own',
    );
    await db.database.sweep();
    for (const path of shared)
      assert.ok(!(await world.fileSystem.list('sstables/')).some((file) => file.path === path));
    await assertAllThere(db);
    await db.close();
  });
});

describe('merges of tablets', () => {
  test('one requested in the instant in which the only server has ended does not prevent the assignment of METADATA to the next', async () => {
    let failing: string | undefined;
    const world = new World({
      faults: (operation, path) => {
        if (operation === 'syncLog' && path === failing) throw new BigtableError(Code.UNAVAILABLE, 'the disk is gone');
      },
    });
    const db = await filled(world);
    await split(db, 'k030');
    let merging: Promise<PromiseSettledResult<void>[]> | undefined;
    // notified after the master was, before it does other work
    const stop = db.env.lockService.watch('', (event) => {
      if (merging !== undefined || (event.kind !== 'deleted' && event.kind !== 'lock-lost')) return;
      if (!event.path.startsWith(SERVERS_DIRECTORY)) return;
      merging = Promise.allSettled([merge(db, 'k030')]);
    });
    [failing] = await world.fileSystem.listLogs('logs/');
    await Promise.allSettled([db.set('t', 'k000', 'lost or not')]);
    await db.set('t', 'k001', 'after');
    assert.ok(merging, 'the server has ended');
    await merging;
    stop();
    assert.deepEqual((await db.rows('t')).length, KEYS.length);
    await db.close();
  });

  test('one requested after METADATA could not be assigned to a server fails, and does not prevent the next attempt', async () => {
    let failing: string | undefined;
    let isUnreadable = false;
    const world = new World({
      faults: (operation, path) => {
        if (operation === 'syncLog' && path === failing) throw new BigtableError(Code.UNAVAILABLE, 'the disk is gone');
        if (operation === 'readLog' && isUnreadable) throw new BigtableError(Code.UNAVAILABLE, 'no log can be read');
      },
    });
    const db = await filled(world);
    await split(db, 'k030');
    [failing] = await world.fileSystem.listLogs('logs/');
    isUnreadable = true;
    const write = Promise.allSettled([db.set('t', 'k000', 'lost or not')]);
    while (!world.messages.some((message) => message.includes('the master could not assign')))
      await new Promise((resolve) => setImmediate(resolve));
    await assert.rejects(merge(db, 'k030'), /no log can be read|no tablet server is alive/);
    isUnreadable = false;
    await write;
    await db.set('t', 'k001', 'after');
    assert.equal((await db.rows('t')).length, KEYS.length);
    await db.close();
  });

  test('rows that one of two had deleted and compacted do not come back with the files of the other', async () => {
    const world = new World();
    let db = await filled(world);
    await db.database.flush();
    await split(db, 'k030');
    const [low, high] = await tablets(db, 't');
    const shared = filesOf(low)[0]!;
    assert.deepEqual([filesOf(low), filesOf(high)], [[shared], [shared]]);
    for (const key of KEYS.slice(30, 50)) {
      await db.mutate('t', key, { kind: 'deleteFromRow' });
      if (Number(key.slice(1)) % 2 === 0) await db.database.flush();
    }
    await db.service.dropRowRange(db.context(), `${TABLES}t`, { start: 'k050', end: 'k055' });
    await db.database.flush();
    // the files of the upper part are merged, with the shared one, of which the lower part still needs its own rows
    while (filesOf((await tablets(db, 't'))[1]).includes(shared)) await sleep(systemClock, 5);
    assert.deepEqual(filesOf((await tablets(db, 't'))[0]), [shared]);
    const left = KEYS.filter((key) => key < 'k030' || key >= 'k055');
    await assertAllThere(db, left);
    await merge(db, 'k030');
    const [merged] = await tablets(db, 't');
    assert.deepEqual(merged?.clips?.[shared], [{ start: '', end: 'k030' }]);
    assert.ok(merged && low && high && merged.epoch > Math.max(low.epoch, high.epoch));
    await assertAllThere(db, left);
    await db.close();
    db = await world.start();
    await assertAllThere(db, left);
    await db.database.compact();
    const [compacted] = await tablets(db, 't');
    assert.equal(compacted?.clips, undefined, 'clips are gone with the files that needed them');
    await assertAllThere(db, left);
    await db.close();
  });

  test('tablets are merged only where they meet', async () => {
    const db = await filled(new World());
    await rejectsWith(Code.FAILED_PRECONDITION, merge(db, 'k030'), /no two tablets/);
    await rejectsWith(Code.NOT_FOUND, db.database.mergeTablets(`${TABLES}none`, 'k030'));
    await split(db, 'k030');
    await rejectsWith(Code.FAILED_PRECONDITION, merge(db, 'k031'), /no two tablets/);
    await merge(db, 'k030');
    assert.equal((await tablets(db, 't')).length, 1);
    await assertAllThere(db);
    await db.close();
  });

  test('split, merged and split again at the same row', async () => {
    const world = new World({ tabletServers: 2 });
    const db = await filled(world);
    for (let i = 0; i < 3; i++) {
      await split(db, 'k030');
      await db.set('t', 'k029', `low ${i}`);
      await db.set('t', 'k030', `high ${i}`);
      await merge(db, 'k030');
      assert.deepEqual(await db.read('t', { ranges: [{ start: 'k029', end: 'k031' }] }), [
        ['k029', `low ${i}`],
        ['k030', `high ${i}`],
      ]);
    }
    await assertAllThere(db);
    await db.close();
  });

  for (const other of ['deletion', 'split', 'merge', 'flush'] as const) {
    test(`a merge concurrent with a ${other} of the same tablets ends as one of the two orders would, whatever the turn`, async () => {
      const allowed = new Set([Code.NOT_FOUND, Code.FAILED_PRECONDITION, Code.ABORTED, Code.UNAVAILABLE]);
      for (let turns = 0; turns < 900; turns += 13) {
        const db = await filled(new World({ tabletServers: 2 }));
        await split(db, 'k030');
        const others = {
          deletion: () => db.service.deleteTable(db.context(), `${TABLES}t`),
          split: () => split(db, turns % 2 === 0 ? 'k020' : 'k040'),
          merge: () => merge(db, 'k030'),
          flush: () => db.service.flush(db.context()),
        };
        const merged = merge(db, 'k030');
        for (let i = 0; i < turns; i++) await Promise.resolve();
        const outcomes = await Promise.allSettled([merged, others[other]()]);
        for (const outcome of outcomes) {
          if (outcome.status === 'rejected')
            assert.ok(allowed.has(outcome.reason.code), `after ${turns} turns: ${outcome.reason.message}`);
        }
        if (other !== 'deletion') await assertAllThere(db);
        await db.close();
      }
    });
  }
});

test('a flush of all tables skips a table that is deleted meanwhile, whatever the turn', async () => {
  for (let turns = 0; turns < 900; turns += 13) {
    const db = await filled(new World());
    await db.create('u');
    await db.set('u', 'row', 'value');
    const deleted = db.service.deleteTable(db.context(), `${TABLES}u`);
    for (let i = 0; i < turns; i++) await Promise.resolve();
    await db.service.flush(db.context());
    await deleted;
    await assertAllThere(db);
    await db.close();
  }
});

describe('balance of tablets', () => {
  test('where one server has more tablets than the other after splits, some are moved', async () => {
    const clock = new ManualClock();
    const world = new World({ tabletServers: 2, clock });
    const work = async (): Promise<void> => {
      const db = await filled(world);
      for (const row of ['k010', 'k020', 'k030', 'k040', 'k050']) await split(db, row);
      const serversOf = async (): Promise<number[]> => {
        const names = (await tablets(db, 't')).map(({ server }) => server?.name);
        return [...new Set(names)].map((name) => names.filter((other) => other === name).length);
      };
      assert.deepEqual(await serversOf(), [6], 'the parts of a tablet begin on its server');
      while ((db.env.metrics.snapshot()['master.movedTablets'] ?? 0) < 3) await sleep(clock, 1000);
      assert.deepEqual(await serversOf(), [3, 3]);
      await assertAllThere(db);
      await db.close();
    };
    await inSimulatedTime(clock, work());
  });
});
