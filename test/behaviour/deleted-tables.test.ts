/**
 * Deleted tables through every door, by the library: what was deleted before a new start is restored after it.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, openDatabase } from '../../src/boot/index.ts';
import { BigtableError, Code, type Database, overService, RowMutation } from '../../src/embedded/index.ts';
import { ByteBudget } from '../../src/env/index.ts';
import { systemClock } from '../../src/platform/index.ts';
import { startServer, startThreadedServer } from '../../src/server/index.ts';
import type { Service } from '../../src/service/index.ts';
import { ClusterStorage, openClusterDoors } from './cluster-door.ts';

const SETTINGS = { keepDeletedMs: 86_400_000 };
const BUDGET = new ByteBudget(64 * 1024 * 1024);

type Start = () => Promise<Database>;

function over(service: Service, close: () => Promise<void>): Database {
  return overService(service, { clock: systemClock, requestBudget: BUDGET }, close);
}

async function through(address: string, close: () => Promise<void>): Promise<Database> {
  const client = await connect(address);
  return over(client.service, () => client.close().then(close));
}

/** By name: starts over storage that stays. */
const STARTS: Readonly<Record<string, (directory: string) => Start>> = {
  'in this process': (directory) => async () => {
    const { service, close } = await openDatabase({ directory, settings: SETTINGS });
    return over(service, close);
  },
  'a server': (directory) => async () => {
    const { service, env, close } = await openDatabase({ directory, settings: SETTINGS });
    const server = await startServer({ service, env, address: '127.0.0.1:0' });
    return through(server.address, () => server.close().then(close));
  },
  'a server of two threads': (directory) => async () => {
    const database = { directory, tabletServers: 2, settings: SETTINGS };
    const server = await startThreadedServer({ address: '127.0.0.1:0', database });
    return through(server.address, () => server.close());
  },
  'a cluster of three servers': () => {
    const storage = new ClusterStorage();
    let starts = 0;
    return async () => {
      const { addresses, close } = await openClusterDoors(3, storage, {}, SETTINGS);
      return through(addresses[starts++ % 3]!, close);
    };
  },
};

for (const [name, starts] of Object.entries(STARTS)) {
  describe(`deleted tables: ${name}`, () => {
    let directory: string;
    let alive: NodeJS.Timeout;
    before(async () => {
      alive = setInterval(() => {}, 1000);
      directory = await mkdtemp(join(tmpdir(), 'edubba-deleted-'));
    });
    after(async () => {
      clearInterval(alive);
      await rm(directory, { recursive: true });
    });

    test('what was deleted before a new start is restored after it', { timeout: 120_000 }, async () => {
      const start = starts(directory);
      let database = await start();
      const again = async (): Promise<void> => {
        await database.close();
        database = await start();
      };
      const table = await database.createTable('t', { families: { f: { maxVersions: 2 } }, splits: ['m'] });
      for (const row of ['a', 'z']) await table.apply(new RowMutation(row).set('f:q', 'one', 1000));
      await database.flush();
      await table.apply(new RowMutation('b').set('f:q', 'in memory', 1000));
      const before = await table.schema();
      await database.deleteTable('t');
      await again();
      assert.deepEqual(await database.listTables(), []);
      const [deleted] = await database.listDeletedTables();
      assert.equal(deleted?.name, before.name);
      const restored = await database.undeleteTable('t');
      assert.deepEqual(await restored.schema(), before);
      const cells = async (): Promise<string[]> => {
        const found: string[] = [];
        for await (const row of database.table('t').scan()) found.push(`${row.name}=${row.get('f:q')?.text}`);
        return found;
      };
      assert.deepEqual(await cells(), ['a=one', 'b=in memory', 'z=one']);
      await restored.apply(new RowMutation('c').set('f:q', 'later', 1000));
      await again();
      assert.deepEqual(await cells(), ['a=one', 'b=in memory', 'c=later', 'z=one']);
      await assert.rejects(database.undeleteTable('t'), isError(Code.ALREADY_EXISTS));

      await database.deleteTable('t');
      await database.createTable('t', { families: { g: {} } });
      await again();
      assert.deepEqual(await cells(), []);
      await database.deleteTable('t', { atOnce: true });
      await database.undeleteTable('t');
      assert.deepEqual((await cells()).length, 4);
      await database.deleteTable('t', { atOnce: true });
      await again();
      assert.deepEqual(await database.listDeletedTables(), []);
      await assert.rejects(database.undeleteTable('t'), isError(Code.NOT_FOUND));
      await database.close();
    });
  });
}

function isError(code: number): (error: unknown) => boolean {
  return (error) => error instanceof BigtableError && error.code === code;
}
