/**
 * A tablet server never reads its own log: the tablets that it releases are in files, or other servers get the whole
 * log.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../base/index.ts';
import { Locator, MetadataClient } from '../locator/index.ts';
import {
  commitOfRow,
  keysOfTable,
  keyOfRow,
  METADATA_TABLE_ID,
  metadataKey,
  type MetadataRow,
} from '../metadata/index.ts';
import { callMaster, callServer, logPathOf, type ServerStatus, type TabletServerCalls } from '../protocol/index.ts';
import { TabletServer } from '../tabletserver/index.ts';
import { keepAlive, TABLES, type TestDatabase, World } from './fixtures.ts';
import { checkSettings, tabletServerSettings } from './settings/settings.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

/** A world that notes which logs are read. */
function watched(tabletServers = 1): { world: World; read: string[] } {
  const read: string[] = [];
  const world = new World({
    tabletServers,
    faults: (operation, path) => void (operation === 'readLog' && read.push(path)),
  });
  return { world, read };
}

function metadataOf({ env }: TestDatabase): MetadataClient {
  return new MetadataClient({ ...env, locator: new Locator(env), stopped: () => false });
}

async function onlyRow(db: TestDatabase): Promise<MetadataRow> {
  const { id } = await db.service.getTable(db.context(), `${TABLES}t`);
  for await (const [row] of metadataOf(db).scan(keysOfTable(id), db.context())) if (row) return row;
  throw new Error('METADATA has no row of the table');
}

/** The tablet of METADATA that holds the rows of all tables. */
const METADATA_KEY = metadataKey(METADATA_TABLE_ID, undefined);

const refOf = (row: MetadataRow) => ({ key: keyOfRow(row), epoch: row.epoch });
const status = (db: TestDatabase, address: string): Promise<ServerStatus> =>
  callServer(db.env.transport, address, 'status', {}, db.context());

/** Assigns the tablet to that server in METADATA, whichever server has it. */
async function assign(
  db: TestDatabase,
  row: MetadataRow,
  { name, address }: { name: string; address: string },
): Promise<MetadataRow> {
  const next = {
    ...row,
    server: { name, address },
    epoch: row.epoch + 1,
    logs: [...new Set([...row.logs, logPathOf(name)])],
  };
  const [outcome] = await metadataOf(db).commit(
    [commitOfRow('given', { kind: 'assigned', atMicros: 1 }, keyOfRow(row), row, next)],
    db.context(),
  );
  assert.equal(outcome?.kind, 'done');
  return next;
}

/** Moves the tablet to that server. Returns its row. */
async function move(db: TestDatabase, row: MetadataRow, to: TabletServer): Promise<MetadataRow> {
  const { transport } = db.env;
  const unload = { tablets: [refOf(row)], flush: true };
  assert.deepEqual(await callServer(transport, row.server!.address, 'unload', unload, db.context()), [undefined]);
  const released = await metadataOf(db).readRow(keyOfRow(row), db.context());
  const assigned = await assign(db, released!, to);
  const load = { tablets: [refOf(assigned)] };
  assert.deepEqual(await callServer(transport, to.address, 'load', load, db.context()), [undefined]);
  return assigned;
}

/** A table with the row `a`, whose tablet was moved to a second server. */
async function movedTablet(): Promise<{
  world: World;
  db: TestDatabase;
  other: TabletServer;
  assigned: MetadataRow;
}> {
  const { world } = watched();
  const db = await world.start();
  await db.create('t');
  await db.set('t', 'a', '1');
  const settings = tabletServerSettings(checkSettings({}), 2);
  const other = await TabletServer.start({ env: db.env, address: 'tablet-server-1', settings });
  return { world, db, other, assigned: await move(db, await onlyRow(db), other) };
}

/** After a restart the table has the row of its first server and that of the second. */
async function assertKept(world: World): Promise<void> {
  const db = await world.start();
  assert.deepEqual(await db.read('t'), [
    ['a', '1'],
    ['b', '2'],
  ]);
  await db.close();
}

/** The master reads all logs once, before it makes the root of a new database. */
const readByMaster = ({ server }: MetadataRow): string[] => [logPathOf(server?.name ?? '')];

describe('the own log of a tablet server', () => {
  test('is not read for a merge', async () => {
    const { world, read } = watched();
    const db = await world.start();
    await db.create('t');
    for (const row of ['a', 'b', 'y', 'z']) await db.set('t', row, row);
    const row = await onlyRow(db);
    await db.database.splitTablet(`${TABLES}t`, 'm');
    await db.set('t', 'c', 'c');
    await db.database.mergeTablets(`${TABLES}t`, 'm');
    assert.deepEqual(
      await db.read('t'),
      ['a', 'b', 'c', 'y', 'z'].map((row) => [row, row]),
    );
    assert.deepEqual(read, readByMaster(row), 'no other server reads it');
    await db.close();
    // nor did a tablet need it
    const next = await world.start();
    assert.deepEqual(await next.rows('t'), ['a', 'b', 'c', 'y', 'z']);
    await next.close();
  });

  test('is not read for a tablet that was unloaded and comes back', async () => {
    const { world, read } = watched();
    const db = await world.start();
    await db.create('t');
    await db.set('t', 'a', '1');
    const row = await onlyRow(db);
    const server = row.server!;
    assert.deepEqual(
      await callServer(
        db.env.transport,
        server.address,
        'unload',
        { tablets: [refOf(row)], flush: true },
        db.context(),
      ),
      [undefined],
    );
    const again = await assign(db, await onlyRow(db), server);
    assert.deepEqual(
      await callServer(db.env.transport, server.address, 'load', { tablets: [refOf(again)] }, db.context()),
      [undefined],
    );
    await db.set('t', 'b', '2');
    assert.deepEqual(await db.read('t'), [
      ['a', '1'],
      ['b', '2'],
    ]);
    assert.deepEqual(read, readByMaster(row), 'no other server reads it');
    await db.close();
  });

  test('is left whole by a server from which METADATA takes a tablet that is not flushed: it ends, and the next one replays', async () => {
    const { world, read } = watched();
    const db = await world.start();
    await db.create('t');
    await db.set('t', 'a', '1');
    await db.set('t', 'b', '2');
    const row = await onlyRow(db);
    const { name, address } = row.server!;
    // it is assigned to that same server again, so only its own log has the rows
    const assigned = await assign(db, row, { name, address });
    const flushed = callServer(db.env.transport, address, 'flush', { keys: [keyOfRow(row)] }, db.context());
    await assert.rejects(flushed, { code: Code.FAILED_PRECONDITION });
    const [loaded] = await callServer(
      db.env.transport,
      address,
      'load',
      { tablets: [refOf(assigned)] },
      db.context(),
    ).catch(() => [{ code: Code.UNAVAILABLE }]);
    assert.ok(loaded !== undefined, 'the incarnation that lost the tablet does not serve it again');
    assert.deepEqual(await db.read('t'), [
      ['a', '1'],
      ['b', '2'],
    ]);
    assert.notEqual((await status(db, address)).name, name);
    assert.ok(read.includes(logPathOf(name)));
    assert.ok(
      world.messages.some((message) =>
        /a tablet server ends itself .*at epoch 2, and this server had it at epoch 1/.test(message),
      ),
      world.messages.join('\n'),
    );
    await db.close();
  });

  test('is not needed for a tablet that was to be dropped and whose row is there: it is flushed', async () => {
    const { world } = watched();
    const db = await world.start();
    await db.create('t');
    await db.set('t', 'a', '1');
    const row = await onlyRow(db);
    const { address } = row.server!;
    assert.deepEqual(
      await callServer(db.env.transport, address, 'unload', { tablets: [refOf(row)], flush: false }, db.context()),
      [undefined],
    );
    const now = await onlyRow(db);
    assert.equal(Object.values(now.files).flat().length, 1);
    assert.deepEqual(now.logs, []);
    await db.close();
  });

  test('is not needed by a server that is ending and has released tablets without a flush: it loads no more', async () => {
    const { db, other, assigned } = await movedTablet();
    const { env } = db;
    // the master hands out again what a dead server had as far as it knows
    const served = [{ ...refOf(assigned), sizeBytes: 0 }];
    await callMaster(env.transport, 'master', 'tabletSplit', { server: other.name, tablets: served }, db.context());
    await db.set('t', 'b', '2');
    await other.releaseTablets('users');
    const [refused] = await callServer(
      env.transport,
      other.address,
      'load',
      { tablets: [refOf(assigned)] },
      db.context(),
    );
    assert.equal(refused?.code, Code.UNAVAILABLE);
    assert.match(refused?.message ?? '', /is ending/);
    await other.close();
    assert.deepEqual(await db.read('t'), [
      ['a', '1'],
      ['b', '2'],
    ]);
    await db.close();
  });

  test('is whole when others read it: a server that is ending does not say that it has released a tablet', async () => {
    const { world, db, other, assigned } = await movedTablet();
    await db.set('t', 'b', '2');
    const unload = (): Promise<TabletServerCalls['unload']['answer']> =>
      callServer(db.env.transport, other.address, 'unload', { tablets: [refOf(assigned)], flush: true }, db.context());
    const [, [meanwhile]] = await Promise.all([other.releaseTablets('users'), unload()]);
    const [later] = await unload();
    assert.deepEqual([meanwhile?.code, later?.code], [Code.UNAVAILABLE, Code.UNAVAILABLE]);
    assert.match(later?.message ?? '', /is ending/);
    await other.close();
    await db.close();
    await assertKept(world);
  });

  test('keeps what a server that is ending has left to be replayed, though another tablet of it is flushed', async () => {
    const { world, db, other } = await movedTablet();
    const row = await metadataOf(db).readRow(METADATA_KEY, db.context());
    assert.ok(row);
    await move(db, row, other);
    await db.set('t', 'b', '2');
    // the newest append is never trimmed
    await db.create('u');
    await other.releaseTablets('users');
    // METADATA's tablets are served until all servers have released those of users
    const flush = { keys: [METADATA_KEY] };
    assert.equal(await callServer(db.env.transport, other.address, 'flush', flush, db.context()), undefined);
    // a trim takes effect with the next append
    await db.service.deleteTable(db.context(), `${TABLES}u`);
    await other.close();
    await db.close();
    await assertKept(world);
  });
});
