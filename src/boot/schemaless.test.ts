/**
 * Tablets whose table has no schema: the remains of interrupted creations and deletions are removed, tablets of a lost
 * schema are kept.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code, unavailable } from '../base/index.ts';
import type { Env, LockService, Transport } from '../env/index.ts';
import { Locator, MetadataClient } from '../locator/index.ts';
import { keyOfRow, METADATA_TABLE_ID, USER_RANGE } from '../metadata/index.ts';
import { callServer } from '../protocol/index.ts';
import { Database } from './open/database.ts';
import { keepAlive, rejectsWith, TABLES, TestDatabase, until, World } from './fixtures.ts';
import { checkSettings } from './settings/settings.ts';

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

const forEver = new Promise<never>(() => {});

/** The file of the lock service that holds the table's schema, with its bytes. */
async function schemaFile({ fileSystem }: World, table: string): Promise<{ path: string; bytes: Buffer }> {
  for (const { path, sizeBytes } of await fileSystem.list('lock-service/files/')) {
    const bytes = await fileSystem.read(path, 0, sizeBytes);
    if (bytes.includes(`schemas/${TABLES}${table}`)) return { path, bytes };
  }
  throw new Error(`no file holds the schema of ${table}`);
}

/** Replaces that method for small files whose path has the prefix by `instead`, as long as that returns a promise. */
function failing(
  inner: LockService,
  method: 'write' | 'remove',
  prefix: string,
  instead: () => Promise<never> | undefined,
): LockService {
  return new Proxy(inner, {
    get: (target, name: keyof LockService) => {
      const value = target[name] as unknown;
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) =>
        ((name === method && String(args[0]).startsWith(prefix) && instead()) || value.apply(target, args)) as unknown;
    },
  });
}

async function start(env: Env): Promise<TestDatabase> {
  return new TestDatabase(await Database.start({ env, settings: checkSettings({}) }));
}

async function metadataKeys(db: TestDatabase): Promise<string[]> {
  const { env } = db;
  const metadata = new MetadataClient({ ...env, locator: new Locator(env), stopped: () => false });
  const keys: string[] = [];
  for await (const rows of metadata.scan(USER_RANGE, db.context())) keys.push(...rows.map(keyOfRow));
  return keys;
}

const marks = async ({ env }: TestDatabase): Promise<string[]> =>
  (await env.lockService.list('deletions/')).map(({ path }) => path);

describe('tablets of a table without a schema', () => {
  test('are kept, with their files and logs, where the schema’s file has vanished', async () => {
    const world = new World({ tabletServers: 2 });
    let db = await world.start();
    for (const table of ['old', 'young', 'other']) await db.create(table);
    await db.set('old', 'a', 'in a file');
    await db.database.flush();
    await db.set('young', 'b', 'in the log alone');
    await db.set('other', 'c', '1');
    const ids = await Promise.all(
      ['old', 'young'].map(async (table) => (await db.service.getTable(db.context(), TABLES + table)).id),
    );
    await db.close();
    const lost = await Promise.all(['old', 'young'].map((table) => schemaFile(world, table)));
    for (const { path } of lost) await world.fileSystem.delete(path);

    // two starts: the servers that the rows name are long dead by then
    for (let i = 0; i < 2; i++) {
      world.messages.length = 0;
      db = await world.start();
      assert.deepEqual(await db.read('other'), [['c', '1']]);
      await db.set('other', 'c', '1');
      await db.database.flush();
      await (await world.fileSystem.create(`sstables/garbage-${i}`)).close();
      assert.equal((await db.database.sweep()).files, 1, 'sweeps continue, and spare them');
      for (const id of ids)
        assert.equal(
          world.messages.filter((message) => message.startsWith(`table ${id} has tablets and no schema`)).length,
          1,
          world.messages.join('\n'),
        );
      await db.close();
    }

    for (const { path, bytes } of lost) {
      const writer = await world.fileSystem.create(path);
      await writer.append(bytes);
      await writer.close();
    }
    db = await world.start();
    assert.deepEqual(await db.read('old'), [['a', 'in a file']]);
    assert.deepEqual(await db.read('young'), [['b', 'in the log alone']]);
    await db.close();
  });

  test('are removed soon after the start where the table’s deletion was cut short', async () => {
    const world = new World();
    const env = await world.env();
    let reached = (): void => {};
    const stuck = new Promise<void>((resolve) => (reached = resolve));
    let armed = false;
    const transport: Transport = {
      serve: (address, handler) => env.transport.serve(address, handler),
      stream: (address, method, message, context) => env.transport.stream(address, method, message, context),
      call: (address, method, message, context) => {
        if (!armed || method !== 'commit' || context.principal !== 'master')
          return env.transport.call(address, method, message, context);
        reached();
        return forEver;
      },
    };
    let db = await start({ ...env, transport });
    await db.create('t', { splits: ['m'] });
    for (const row of ['a', 'z']) await db.set('t', row, row);
    await db.database.flush();
    armed = true;
    db.service.deleteTable(db.context(), `${TABLES}t`).catch(() => {});
    await stuck;
    world.crash();
    db = await world.start();
    await rejectsWith(Code.NOT_FOUND, db.rows('t'));
    // the master finishes the deletion after the start
    await until(async () => (await marks(db)).length === 0);
    assert.deepEqual(await metadataKeys(db), []);
    assert.ok(!world.messages.some((message) => /no schema/.test(message)), world.messages.join('\n'));
    await db.database.flush();
    assert.ok((await db.database.sweep()).files >= 2);
    await db.close();
  });

  test('are removed where the table’s creation was cut short', async () => {
    const world = new World();
    const env = await world.env();
    let reached = (): void => {};
    const stuck = new Promise<void>((resolve) => (reached = resolve));
    const lockService = failing(env.lockService, 'write', 'schemas/', () => {
      reached();
      return forEver;
    });
    let db = await start({ ...env, lockService });
    db.create('t', { splits: ['m'] }).catch(() => {});
    await stuck;
    assert.equal((await metadataKeys(db)).length, 2);
    world.crash('all');
    db = await world.start();
    assert.deepEqual(await metadataKeys(db), []);
    assert.ok(!world.messages.some((message) => /no schema/.test(message)), world.messages.join('\n'));
    await db.create('t');
    await db.set('t', 'a', '1');
    await db.close();
  });
});

describe('a table whose deletion fails', () => {
  test('stays, and is not mistaken for a deleted one later', async () => {
    const world = new World();
    const env = await world.env();
    let fails = true;
    const lockService = failing(env.lockService, 'remove', 'schemas/', () =>
      fails ? Promise.reject(unavailable('not now')) : undefined,
    );
    const db = await start({ ...env, lockService });
    await db.create('t');
    await db.set('t', 'a', '1');
    await rejectsWith(Code.UNAVAILABLE, db.service.deleteTable(db.context(), `${TABLES}t`), /not now/);
    assert.deepEqual(await marks(db), []);
    assert.deepEqual(await db.read('t'), [['a', '1']]);
    fails = false;
    await db.service.deleteTable(db.context(), `${TABLES}t`);
    assert.deepEqual(await metadataKeys(db), []);
    assert.deepEqual(await marks(db), []);
    await db.close();
  });

  test('leaves its server with the next sweep, if the call to drop it was lost', async () => {
    const world = new World();
    const env = await world.env();
    const { transport } = env;
    const losing: Transport = Object.assign(Object.create(transport) as Transport, {
      serve: transport.serve.bind(transport),
      stream: transport.stream.bind(transport),
      call: (...args: Parameters<Transport['call']>) =>
        args[1] === 'unload' ? Promise.reject(unavailable('lost')) : transport.call(...args),
    });
    const db = await start({ ...env, transport: losing });
    await db.create('t');
    await db.set('t', 'a', '1');
    await db.database.flush();
    await db.service.deleteTable(db.context(), `${TABLES}t`);
    assert.deepEqual(await metadataKeys(db), []);
    const address = 'tablet-server-0';
    const usersTablets = async (): Promise<number> => {
      const { tablets } = await callServer(transport, address, 'status', {}, db.context());
      return tablets.filter(({ key }) => !key.startsWith(METADATA_TABLE_ID)).length;
    };
    // the first sweep after a start may come in between
    assert.ok((await usersTablets()) <= 1);
    await callServer(transport, address, 'holdings', {}, db.context());
    assert.equal(await usersTablets(), 0);
    await db.close();
  });

  test('stays where the power failed before its schema was removed', async () => {
    const world = new World();
    const env = await world.env();
    let reached = (): void => {};
    const stuck = new Promise<void>((resolve) => (reached = resolve));
    const lockService = failing(env.lockService, 'remove', 'schemas/', () => {
      reached();
      return forEver;
    });
    let db = await start({ ...env, lockService });
    await db.create('t');
    await db.set('t', 'a', '1');
    db.service.deleteTable(db.context(), `${TABLES}t`).catch(() => {});
    await stuck;
    assert.equal((await marks(db)).length, 1);
    world.crash();
    db = await world.start();
    assert.deepEqual(await db.read('t'), [['a', '1']]);
    assert.deepEqual(await marks(db), []);
    await db.close();
  });
});
