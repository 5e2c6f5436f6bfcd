import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../base/index.ts';
import { keepAlive, TABLES, type TestDatabase, World } from './fixtures.ts';
import { Locator, MetadataClient } from '../locator/index.ts';
import {
  commitOfRow,
  keyOfRow,
  keysOfTable,
  metadataKey,
  METADATA_TABLE_ID,
  type MetadataRow,
  ROOT_RANGE,
} from '../metadata/index.ts';
import { systemClock } from '../platform/index.ts';
import { callServer, logPathOf, type TabletRef, type TabletServerCalls } from '../protocol/index.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

const ADDRESS = 'tablet-server-0';

/** Appends to logs can be made to take some turns of the event loop. */
class SlowWorld extends World {
  delayTurns = 0;

  constructor() {
    super({
      faults: async (operation) => {
        if (operation === 'appendLog') for (let i = 0; i < this.delayTurns; i++) await systemClock.yield();
      },
    });
  }
}

async function oneTablet(): Promise<{
  db: TestDatabase;
  world: SlowWorld;
  key: string;
  epoch: number;
  metadata: MetadataClient;
}> {
  const world = new SlowWorld();
  const db = await world.start();
  await db.create('t');
  const { id } = await db.service.getTable(db.context(), `${TABLES}t`);
  const metadata = new MetadataClient({ ...db.env, locator: new Locator(db.env), stopped: () => false });
  const key = metadataKey(id, undefined);
  return { db, world, key, metadata, epoch: (await metadata.readRow(key, db.context()))?.epoch ?? 0 };
}

async function rowsOf(db: TestDatabase, metadata: MetadataClient): Promise<MetadataRow[]> {
  const { id } = await db.service.getTable(db.context(), `${TABLES}t`);
  const rows: MetadataRow[] = [];
  for await (const some of metadata.scan(keysOfTable(id), db.context())) rows.push(...some);
  return rows;
}

async function rowOf(db: TestDatabase): Promise<{ row: MetadataRow; metadata: MetadataClient }> {
  const metadata = new MetadataClient({ ...db.env, locator: new Locator(db.env), stopped: () => false });
  const [row] = await rowsOf(db, metadata);
  assert.ok(row);
  return { row, metadata };
}

function unload(db: TestDatabase, tablet: TabletRef): Promise<TabletServerCalls['unload']['answer']> {
  return callServer(db.env.transport, ADDRESS, 'unload', { tablets: [tablet], flush: true }, db.context());
}

/** The files of users' tablets that the server reports as held. */
async function heldFiles(db: TestDatabase): Promise<string[]> {
  const { files } = await callServer(db.env.transport, ADDRESS, 'holdings', {}, db.context());
  const listed = new Set<string>();
  const metadata = new MetadataClient({ ...db.env, locator: new Locator(db.env), stopped: () => false });
  for (const row of [await metadata.readRoot(db.context())])
    for (const path of Object.values(row?.files ?? {}).flat()) listed.add(path);
  for await (const rows of metadata.scan(ROOT_RANGE, db.context()))
    for (const row of rows) for (const path of Object.values(row.files).flat()) listed.add(path);
  return files.filter((path) => !listed.has(path));
}

describe('loading and unloading', () => {
  test('a load that is repeated is answered, one of another epoch refused', async () => {
    const { db, key, epoch } = await oneTablet();
    const load = async (at: number) =>
      (await callServer(db.env.transport, ADDRESS, 'load', { tablets: [{ key, epoch: at }] }, db.context()))[0]?.code;
    assert.equal(await load(epoch), undefined);
    assert.equal(await load(epoch + 1), Code.FAILED_PRECONDITION);
    assert.equal(await load(epoch - 1), Code.FAILED_PRECONDITION);
    await db.set('t', 'a', '1');
    await db.close();
  });

  test('an unloaded tablet is flushed to files, is not served, and is not loaded again at that epoch or below', async () => {
    const { db, key, epoch, metadata, world } = await oneTablet();
    await db.set('t', 'a', '1');
    assert.equal((await unload(db, { key, epoch: epoch - 1 }))[0]?.code, Code.FAILED_PRECONDITION);
    assert.deepEqual(await unload(db, { key, epoch }), [undefined]);
    assert.deepEqual(await unload(db, { key, epoch }), [undefined]);
    assert.equal((await metadata.readRow(key, db.context()))?.files['default']?.length, 1);
    const [refused] = await callServer(db.env.transport, ADDRESS, 'load', { tablets: [{ key, epoch }] }, db.context());
    assert.equal(refused?.code, Code.FAILED_PRECONDITION);
    assert.match(refused?.message ?? '', /has let it go/);
    const call = callServer(
      db.env.transport,
      ADDRESS,
      'mutateRow',
      { tableId: key.slice(0, 8), row: 'a', mutations: [] },
      db.context(),
    );
    await assert.rejects(call, /not served here/);
    // the next start assigns it anew
    await db.close();
    const next = await world.start();
    assert.deepEqual(await next.read('t'), [['a', '1']]);
    await next.close();
  });

  test('a load that comes while the tablet is unloaded at that epoch does not bring it back', async () => {
    const { db, world, key, epoch } = await oneTablet();
    await db.set('t', 'a', '1');
    world.delayTurns = 20;
    let isOver = false;
    const unloading = unload(db, { key, epoch }).finally(() => (isOver = true));
    const loads: Promise<readonly ({ readonly code: Code } | undefined)[]>[] = [];
    while (!isOver) {
      loads.push(callServer(db.env.transport, ADDRESS, 'load', { tablets: [{ key, epoch }] }, db.context()));
      await db.env.clock.yield();
    }
    assert.deepEqual(await unloading, [undefined]);
    const answers = (await Promise.all(loads)).map(([error]) => error?.code);
    assert.ok(
      answers.every((code) => code === undefined || code === Code.FAILED_PRECONDITION),
      String(answers),
    );
    assert.ok(answers.includes(Code.FAILED_PRECONDITION), 'some came when it was not served any more');
    const { tablets } = await callServer(db.env.transport, ADDRESS, 'status', {}, db.context());
    assert.ok(!tablets.some((tablet) => tablet.key === key));
    world.delayTurns = 0;
    await db.close();
  });

  test('a tablet that is split while it is unloaded is released all the same, and no part of it is lost', async () => {
    let splits = 0;
    for (let turns = 0; turns < 60; turns += 2) {
      const { db, world, key, epoch, metadata } = await oneTablet();
      for (const row of ['a', 'm', 'z']) await db.set('t', row, row);
      world.delayTurns = 5;
      const unloading = unload(db, { key, epoch });
      for (let i = 0; i < turns; i++) await db.env.clock.yield();
      const split = callServer(
        db.env.transport,
        ADDRESS,
        'split',
        { tableId: key.slice(0, 8), row: 'm', near: 'row' },
        db.context(),
      ).then(
        () => true,
        () => false,
      );
      assert.deepEqual(await unloading, [undefined]);
      const { tablets } = await callServer(db.env.transport, ADDRESS, 'status', {}, db.context());
      assert.ok(!tablets.some((tablet) => tablet.key === key), `a split after ${turns} turns`);
      if (await split) splits++;
      // what METADATA says of the parts is what the server has released, or serves
      for (const row of await rowsOf(db, metadata))
        if (keyOfRow(row) === key) assert.deepEqual(row.logs, [], `a split after ${turns} turns`);
        else
          assert.ok(
            tablets.some((tablet) => tablet.key === keyOfRow(row)),
            `a split after ${turns} turns`,
          );
      world.delayTurns = 0;
      await db.close();
    }
    assert.ok(splits > 0, 'some splits came in time');
  });

  test('a tablet whose row names another server is not loaded', async () => {
    const { db, epoch } = await oneTablet();
    for (const key of [metadataKey('0000abcd', undefined), metadataKey(METADATA_TABLE_ID, 'nothing')]) {
      const [refused] = await callServer(
        db.env.transport,
        ADDRESS,
        'load',
        { tablets: [{ key, epoch }] },
        db.context(),
      );
      assert.equal(refused?.code, Code.FAILED_PRECONDITION);
      assert.match(refused?.message ?? '', /gives it to no server/);
    }
    await db.close();
  });

  test('calls that reach beyond the tablet are not served', async () => {
    const world = new World();
    const db = await world.start();
    await db.create('t', { splits: ['m'] });
    const { id } = await db.service.getTable(db.context(), `${TABLES}t`);
    const { transport } = db.env;
    await assert.rejects(
      callServer(transport, ADDRESS, 'dropRows', { tableId: id, range: { start: 'a', end: 'z' } }, db.context()),
      /not served here/,
    );
    const read = async (ranges: { start: string; end: string | undefined }[]): Promise<void> => {
      for await (const _ of transport.stream(
        ADDRESS,
        'read',
        { tableId: id, ranges, rowsLimit: 0, reversed: false },
        db.context(),
      ))
        assert.fail('an answer');
    };
    await assert.rejects(read([{ start: 'a', end: 'z' }]), /not served here/);
    await assert.rejects(read([{ start: 'a', end: undefined }]), /not served here/);
    await assert.rejects(read([]), /at least one range/);
    await read([{ start: 'a', end: 'm' }]);
    await db.close();
  });

  test('a server reports the files and logs it holds, so that a sweep spares them', async () => {
    const { db, world } = await oneTablet();
    await db.set('t', 'a', '1');
    await db.database.flush();
    const held = await callServer(db.env.transport, ADDRESS, 'holdings', {}, db.context());
    assert.deepEqual([...held.files].sort(), (await world.fileSystem.list('sstables/')).map(({ path }) => path).sort());
    assert.deepEqual(held.logs, await world.fileSystem.listLogs('logs/'));
    const status = await callServer(db.env.transport, ADDRESS, 'status', {}, db.context());
    assert.equal(status.locked, true);
    assert.equal(status.tablets.length, 3);
    await db.close();
  });

  test('among them are those of a tablet that is being loaded', async () => {
    let isSlow = false;
    let [reached, go] = [() => {}, () => {}];
    const [opening, opened] = [new Promise<void>((r) => (reached = r)), new Promise<void>((r) => (go = r))];
    const world = new World({
      faults: async (operation, path) => {
        if (!isSlow || operation !== 'read' || !path.startsWith('sstables/')) return;
        reached();
        await opened;
      },
    });
    const db = await world.start();
    await db.create('t');
    await db.set('t', 'a', '1');
    const { row, metadata } = await rowOf(db);
    const unload = { tablets: [{ key: keyOfRow(row), epoch: row.epoch }], flush: true };
    assert.deepEqual(await callServer(db.env.transport, ADDRESS, 'unload', unload, db.context()), [undefined]);
    const [now] = await rowsOf(db, metadata);
    assert.ok(now?.server);
    const given = { ...now, epoch: now.epoch + 1, logs: [logPathOf(now.server.name)] };
    await metadata.commit(
      [commitOfRow('given', { kind: 'assigned', atMicros: 1 }, keyOfRow(now), now, given)],
      db.context(),
    );
    isSlow = true;
    const load = { tablets: [{ key: keyOfRow(given), epoch: given.epoch }] };
    const loading = callServer(db.env.transport, ADDRESS, 'load', load, db.context());
    await opening;
    assert.deepEqual(await heldFiles(db), now.files['default']);
    isSlow = false;
    go();
    assert.deepEqual(await loading, [undefined]);
    assert.deepEqual(await db.read('t'), [['a', '1']]);
    await db.close();
  });

  test('and those of a tablet that is given up, as long as a read is inside a row of it', async () => {
    const world = new World({ settings: { scanCacheBytes: 0, blockCacheBytes: 0 } });
    const db = await world.start();
    await db.create('t');
    const cells = Array.from({ length: 3000 }, (_, i) => ({
      kind: 'setCell' as const,
      family: 'f',
      qualifier: `${i}`,
      timestamp: 1,
      value: Buffer.alloc(1000),
    }));
    await db.mutate('t', 'a', ...cells);
    await db.database.flush();
    const { row, metadata } = await rowOf(db);
    const answers = db.service.readRows(db.context(), { table: `${TABLES}t` })[Symbol.asyncIterator]();
    assert.equal((await answers.next()).done, false);
    await metadata.commit(
      [commitOfRow('gone', { kind: 'released', atMicros: 1 }, keyOfRow(row), row, undefined)],
      db.context(),
    );
    await db.set('t', 'b', '2');
    await db.database.flush();
    assert.deepEqual(
      (await heldFiles(db)).filter((path) => row.files['default']?.includes(path)),
      row.files['default'],
    );
    await db.database.sweep();
    while (!(await answers.next()).done);
    assert.deepEqual(await heldFiles(db), []);
    await db.close();
  });
});
