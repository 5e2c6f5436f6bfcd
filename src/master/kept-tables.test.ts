/** Tables that are deleted, kept and restored, in a cluster whose servers and masters end meanwhile. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import { metadataOf, rowsIn } from '../../test/metadata-rows.ts';
import { rejectsWith, TABLES, type Tables } from '../../test/tables.ts';
import { BigtableError, Code, unavailable } from '../base/index.ts';
import { type Env, listFiles, ManualClock, MemoryLockService, silentLogger, sleep } from '../env/index.ts';
import { deletionPath, keptFilePath, USER_RANGE } from '../metadata/index.ts';
import { callMaster, FILES_DIRECTORY, LOGS_DIRECTORY } from '../protocol/index.ts';
import { Deletions } from './deletions.ts';
import { KeptTables, MAX_KEPT_TABLES, MAX_KEPT_TABLETS } from './kept-tables.ts';

const DAY_MS = 86_400_000;
const KEPT = { servers: 2, keepDeletedMs: DAY_MS };

const undelete = ({ client }: Cluster, tables: Tables, table: string) =>
  client.undeleteTable(tables.context(), TABLES + table);
const deleteAtOnce = ({ client }: Cluster, tables: Tables, table: string) =>
  client.deleteTable(tables.context(), TABLES + table, true);
const sweep = ({ env, tables }: Cluster) => callMaster(env.transport, 'master', 'sweep', {}, tables.context());

async function deleted({ client }: Cluster, tables: Tables): Promise<string[]> {
  const all = await client.listDeletedTables(tables.context(), TABLES);
  return all.map(({ name }) => name.slice(TABLES.length));
}

/** The number of files, METADATA's in its least. */
async function fileCount(cluster: Cluster): Promise<number> {
  for await (const _ of cluster.client.compactTables(cluster.tables.context()));
  await sweep(cluster);
  return (await cluster.env.fileSystem.list(FILES_DIRECTORY)).length;
}

/** Paths of the lock service that deletions leave. */
async function leftPaths({ env }: Cluster): Promise<string[]> {
  const files = [...(await listFiles(env.lockService, deletionPath())), ...(await listFiles(env.lockService, 'kept/'))];
  return files.map(({ path }) => path);
}

/** A table of two tablets, with rows in files and in memory. */
async function filled(tables: Tables, table: string, value = '1'): Promise<void> {
  await tables.create(table, { splits: ['m'] });
  for (const row of ['a', 'n']) await tables.set(table, row, value);
  await tables.service.flush(tables.context());
  for (const row of ['b', 'o']) await tables.set(table, row, value);
}

const ALL = ['a', 'b', 'n', 'o'];

describe('deleted tables that are kept', () => {
  test(
    'are restored with their rows and their schema, also when all files were swept meanwhile',
    inCluster(async (cluster, tables) => {
      await filled(tables, 't');
      const before = await cluster.client.getTable(tables.context(), `${TABLES}t`);
      assert.equal(await cluster.client.deleteTable(tables.context(), `${TABLES}t`), true);
      await rejectsWith(Code.NOT_FOUND, tables.read('t'), /t/);
      assert.deepEqual(await cluster.client.listTables(tables.context(), ''), []);
      assert.deepEqual(await deleted(cluster, tables), ['t']);
      await sweep(cluster);
      assert.deepEqual(await undelete(cluster, tables, 't'), before);
      assert.deepEqual(await tables.rows('t'), ALL);
      await tables.set('t', 'z', '2');
      assert.deepEqual(await tables.rows('t'), [...ALL, 'z']);
      assert.deepEqual(await deleted(cluster, tables), []);
      assert.deepEqual(await leftPaths(cluster), []);
    }, KEPT),
  );

  test(
    'name no server and no log, so that a sweep deletes what only their logs were needed for',
    inCluster(async (cluster, tables) => {
      await filled(tables, 't');
      await tables.delete('t');
      await cluster.kill(0);
      await cluster.startServer();
      await sleep(cluster.clock, 65_000);
      await sweep(cluster);
      const logs = await cluster.env.fileSystem.listLogs(LOGS_DIRECTORY);
      assert.equal(logs.length, 2, 'those of the two that live');
      await undelete(cluster, tables, 't');
      assert.deepEqual(await tables.rows('t'), ALL);
    }, KEPT),
  );

  test(
    'of one name are restored last first, and not while the name is in use',
    inCluster(async (cluster, tables) => {
      for (const value of ['1', '2', '3']) {
        await tables.create('t');
        await tables.set('t', 'a', value);
        await tables.delete('t');
      }
      assert.deepEqual(await deleted(cluster, tables), ['t', 't', 't']);
      for (const value of ['3', '2', '1']) {
        await undelete(cluster, tables, 't');
        assert.deepEqual(await tables.read('t'), [['a', value]]);
        await rejectsWith(Code.ALREADY_EXISTS, undelete(cluster, tables, 't'), /exists already/);
        // it is the last again
        await tables.delete('t');
        await undelete(cluster, tables, 't');
        assert.deepEqual(await tables.read('t'), [['a', value]]);
        await deleteAtOnce(cluster, tables, 't');
      }
      await rejectsWith(Code.NOT_FOUND, undelete(cluster, tables, 't'), /not kept/);
      assert.deepEqual(await leftPaths(cluster), []);
    }, KEPT),
  );

  test(
    'are removed when their time is over, with their files',
    inCluster(
      async (cluster, tables) => {
        const before = await fileCount(cluster);
        await filled(tables, 't');
        await tables.delete('t');
        assert.ok((await fileCount(cluster)) > before);
        await sleep(cluster.clock, 540_000);
        assert.deepEqual(await deleted(cluster, tables), ['t']);
        await sleep(cluster.clock, 60_000);
        await rejectsWith(Code.NOT_FOUND, undelete(cluster, tables, 't'), /not kept any longer/);
        assert.deepEqual(await deleted(cluster, tables), []);
        await sleep(cluster.clock, 60_000);
        assert.deepEqual(await leftPaths(cluster), []);
        assert.equal(await fileCount(cluster), before);
      },
      { ...KEPT, keepDeletedMs: 600_000 },
    ),
  );

  test(
    'are restored when their time is over while they are restored',
    inCluster(
      async (cluster, tables) => {
        await filled(tables, 't');
        await tables.delete('t');
        cluster.onLockCall = (name, path, go) =>
          name === 'read' && String(path).startsWith('kept/') ? sleep(cluster.clock, 120_000).then(go) : undefined;
        await undelete(cluster, tables, 't');
        cluster.onLockCall = undefined;
        assert.deepEqual(await tables.rows('t'), ALL);
        await sleep(cluster.clock, 120_000);
        assert.deepEqual(await tables.rows('t'), ALL);
        assert.deepEqual(await leftPaths(cluster), []);
      },
      { ...KEPT, keepDeletedMs: 60_000 },
    ),
  );

  test(
    'are removed immediately where that is asked: the table, or the one that was deleted last',
    inCluster(async (cluster, tables) => {
      const before = await fileCount(cluster);
      for (const value of ['1', '2']) {
        await filled(tables, 't', value);
        await tables.delete('t');
      }
      await filled(tables, 't', '3');
      assert.equal(await deleteAtOnce(cluster, tables, 't'), false);
      assert.deepEqual(await deleted(cluster, tables), ['t', 't']);
      await deleteAtOnce(cluster, tables, 't');
      await undelete(cluster, tables, 't');
      assert.deepEqual((await tables.read('t')).slice(0, 1), [['a', '1']]);
      await tables.delete('t');
      await deleteAtOnce(cluster, tables, 't');
      await rejectsWith(Code.NOT_FOUND, deleteAtOnce(cluster, tables, 't'), /does not exist/);
      assert.deepEqual(await leftPaths(cluster), []);
      assert.equal(await fileCount(cluster), before);
    }, KEPT),
  );

  test(
    'keep the writes of a server that dies before it lets them go',
    inCluster(async (cluster, tables) => {
      await filled(tables, 't');
      let unloads = 0;
      cluster.onCall = ({ method }) =>
        method === 'unload' && unloads++ === 0
          ? cluster.kill(0).then(() => Promise.reject(unavailable('it died')))
          : undefined;
      await tables.delete('t');
      cluster.onCall = undefined;
      assert.ok(unloads > 0);
      await sleep(cluster.clock, 65_000);
      await sweep(cluster);
      await undelete(cluster, tables, 't');
      assert.deepEqual(await tables.rows('t'), ALL);
    }, KEPT),
  );

  test(
    'do not name the log of a server that never served them, and goes on writing to it',
    inCluster(async (cluster, tables) => {
      cluster.onCall = ({ method }) =>
        method === 'load' ? Promise.reject(unavailable('it does not answer')) : undefined;
      await rejectsWith(Code.UNAVAILABLE, tables.create('t', { splits: ['m'] }), /./);
      await tables.delete('t');
      cluster.onCall = undefined;
      const rows = await rowsIn(metadataOf(cluster.env), USER_RANGE, tables.context());
      assert.deepEqual(
        rows.map(({ server, logs }) => ({ server, logs })),
        [0, 1].map(() => ({ server: undefined, logs: [] })),
      );
      await undelete(cluster, tables, 't');
      await tables.set('t', 'a', '1');
      assert.deepEqual(await tables.rows('t'), ['a']);
    }, KEPT),
  );

  test(
    'are restored before their servers have let them go',
    inCluster(async (cluster, tables) => {
      await filled(tables, 't');
      cluster.onCall = ({ method }) =>
        method === 'unload' ? Promise.reject(unavailable('it does not answer')) : undefined;
      await tables.delete('t');
      const restored = undelete(cluster, tables, 't');
      cluster.onCall = undefined;
      await restored;
      assert.deepEqual(await tables.rows('t'), ALL);
      await sleep(cluster.clock, 65_000);
      assert.deepEqual(await tables.rows('t'), ALL);
      assert.deepEqual(await leftPaths(cluster), []);
    }, KEPT),
  );

  test(
    'are restored with the tablets that they were split into',
    inCluster(async (cluster, tables) => {
      await filled(tables, 't');
      await cluster.client.splitTablets(tables.context(), `${TABLES}t`, 'b');
      await tables.delete('t');
      await undelete(cluster, tables, 't');
      assert.deepEqual(await tables.rows('t'), ALL);
      assert.equal((await cluster.client.listTablets(tables.context(), `${TABLES}t`)).length, 3);
    }, KEPT),
  );

  test(
    'have their policies apart before a table of the name is there',
    inCluster(async (cluster, tables) => {
      const { lockService } = cluster.env;
      await tables.create('t');
      const { id } = await cluster.client.getTable(tables.context(), `${TABLES}t`);
      const path = `policies/${TABLES}t`;
      const policy = Buffer.from(JSON.stringify({ format: 1, requires: 0, owner: id, bindings: [], write: 'w' }));
      await lockService.write(path, policy);
      cluster.onLockCall = (name, of) =>
        name === 'write' && of === keptFilePath(id, path) ? Promise.reject(unavailable('no disk')) : undefined;
      await tables.delete('t');
      assert.ok(await lockService.read(path));
      cluster.onLockCall = undefined;
      await tables.create('t');
      assert.equal(await lockService.read(path), undefined);
      await deleteAtOnce(cluster, tables, 't');
      await undelete(cluster, tables, 't');
      assert.deepEqual(Buffer.from((await lockService.read(path))!.contents), policy);
      assert.deepEqual(await leftPaths(cluster), []);
    }, KEPT),
  );

  test(
    'are restored though no server has ever had their tablets',
    inCluster(async (cluster, tables) => {
      cluster.onCall = ({ method, message }) =>
        method === 'commit' && JSON.stringify(message).includes('"assigned"')
          ? Promise.reject(new BigtableError(Code.INTERNAL, 'nothing is assigned'))
          : undefined;
      await rejectsWith(Code.INTERNAL, tables.create('t', { splits: ['m'] }), /nothing is assigned/);
      await tables.delete('t');
      await sleep(cluster.clock, 65_000);
      cluster.onCall = undefined;
      await undelete(cluster, tables, 't');
      assert.deepEqual(await tables.rows('t'), []);
      await tables.set('t', 'a', '1');
      assert.deepEqual(await tables.rows('t'), ['a']);
    }, KEPT),
  );

  test(
    'that are protected are not deleted, and what was never deleted is not restored',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { deletionProtection: true });
      await rejectsWith(Code.FAILED_PRECONDITION, tables.delete('t'), /protected/);
      await rejectsWith(Code.FAILED_PRECONDITION, deleteAtOnce(cluster, tables, 't'), /protected/);
      await rejectsWith(Code.ALREADY_EXISTS, undelete(cluster, tables, 't'), /exists already/);
      await rejectsWith(Code.NOT_FOUND, undelete(cluster, tables, 'none'), /not kept/);
      assert.deepEqual(await leftPaths(cluster), []);
    }, KEPT),
  );

  test(
    'are none where the database keeps none',
    inCluster(async (cluster, tables) => {
      await filled(tables, 't');
      assert.equal(await cluster.client.deleteTable(tables.context(), `${TABLES}t`), false);
      await rejectsWith(Code.NOT_FOUND, undelete(cluster, tables, 't'), /not kept/);
      assert.deepEqual(await leftPaths(cluster), []);
    }),
  );

  test(
    'that have lost the copy of their schema are not restored, and nothing is changed',
    inCluster(async (cluster, tables) => {
      await filled(tables, 't');
      const { id } = await cluster.client.getTable(tables.context(), `${TABLES}t`);
      await tables.delete('t');
      await cluster.env.lockService.remove(keptFilePath(id, `schemas/${TABLES}t`));
      await rejectsWith(Code.DATA_LOSS, undelete(cluster, tables, 't'), /copy of the schema/);
      assert.deepEqual(await deleted(cluster, tables), ['t']);
      await tables.create('t');
    }, KEPT),
  );
});

/** Ends the master at its operation number `at`, in the lock service or a call. False where there were fewer. */
async function masterEndsAt(at: number): Promise<boolean> {
  let isCut = false;
  await inCluster(async (cluster, tables) => {
    await filled(tables, 't');
    let left = at;
    let ended: Promise<void> | undefined;
    const cut = (): boolean => {
      if (isCut || --left > 0) return false;
      isCut = true;
      ended = cluster.master?.close();
      return true;
    };
    const isChange = /^(deletions|kept|schemas|policies)\//;
    cluster.onLockCall = (name, path, go) =>
      (name === 'write' || name === 'remove') && isChange.test(String(path)) && cut()
        ? go().then(() => Promise.reject(unavailable('its master ended')))
        : undefined;
    cluster.onCall = ({ method, go }) =>
      (method === 'unload' || method === 'commit' || method === 'load' || method === 'schemaChanged') && cut()
        ? go().then(() => Promise.reject(unavailable('its master ended')))
        : undefined;
    const again = async (work: () => Promise<unknown>): Promise<void> => {
      const wasCut = isCut;
      await work().catch((error: unknown) => {
        if (!isCut || wasCut) throw error;
      });
      if (wasCut || !isCut) return;
      await ended;
      await cluster.startMaster();
    };
    const exists = async () => (await cluster.client.listTableNames(tables.context(), TABLES)).length > 0;
    await again(() => tables.delete('t'));
    if (await exists()) await tables.delete('t');
    await sweep(cluster);
    await again(() => undelete(cluster, tables, 't'));
    if (!(await exists())) await undelete(cluster, tables, 't');
    assert.deepEqual(await tables.rows('t'), ALL, `cut at ${at}`);
    await sleep(cluster.clock, 65_000);
    await sweep(cluster);
    assert.deepEqual(await tables.rows('t'), ALL, `cut at ${at}`);
    assert.deepEqual(await leftPaths(cluster), [], `cut at ${at}`);
    await again(() => deleteAtOnce(cluster, tables, 't'));
    if (await exists()) await deleteAtOnce(cluster, tables, 't');
    assert.deepEqual(await deleted(cluster, tables), [], `cut at ${at}`);
    await sleep(cluster.clock, 65_000);
    assert.deepEqual(await leftPaths(cluster), [], `cut at ${at}`);
  }, KEPT)();
  return isCut;
}

test('a master that ends at any step of a deletion and a restoration loses nothing', { timeout: 240_000 }, async () => {
  let steps = 0;
  for (let at = 1; await masterEndsAt(at); at++) steps++;
  assert.ok(steps > 15, `only ${steps} steps`);
});

describe('the number of kept tables is bounded', () => {
  /** Marks of kept tables, by the instance and the number of tablets of each; their ids count from 16. */
  async function marks(tables: readonly (readonly [instance: string, tablets: number])[]) {
    const clock = new ManualClock();
    const lockService = new MemoryLockService();
    const lock = await lockService.tryAcquire('master', await lockService.openSession());
    assert.ok(lock);
    const warnings: string[] = [];
    const logger = {
      ...silentLogger,
      warn: (_: string, fields?: object) => void warnings.push(JSON.stringify(fields)),
    };
    const env = { lockService, clock, logger } as unknown as Env;
    const deletions = new Deletions(env, lock);
    for (const [i, [instance, tablets]] of tables.entries()) {
      const id = (16 + i).toString(16).padStart(8, '0');
      const deletedMicros = clock.nowMicros() + i;
      await deletions.begin(id, `projects/p/instances/${instance}/tables/t${i}`, {
        deletedMicros,
        keptUntilMicros: deletedMicros + 1e12,
        tablets,
      });
    }
    const kept = new KeptTables({ env, lock, deletions } as unknown as ConstructorParameters<typeof KeptTables>[0]);
    const over = (): string[] =>
      deletions
        .kept()
        .filter(({ tableId }) => deletions.isOver(tableId))
        .map(({ name }) => name.slice('projects/p/instances/'.length));
    return { kept, over, warnings };
  }

  test('the oldest goes, of the instance that has the most', async () => {
    const small = Array.from({ length: MAX_KEPT_TABLES - 2 }, () => ['many', 1] as const);
    const { kept, over, warnings } = await marks([['few', 1], ...small, ['few', 1]]);
    assert.equal(kept.makeRoom(1), true);
    assert.deepEqual(over(), ['many/tables/t1']);
    assert.equal(warnings.length, 1);
    assert.equal(kept.makeRoom(1), false);
  });

  test('by their tablets, too; one table alone may have any number', async () => {
    const { kept, over } = await marks([
      ['i', MAX_KEPT_TABLETS / 2],
      ['i', MAX_KEPT_TABLETS / 4],
      ['i', MAX_KEPT_TABLETS / 4],
    ]);
    assert.equal(kept.makeRoom(1), true);
    assert.deepEqual(over(), ['i/tables/t0']);
    assert.equal(kept.makeRoom(2 * MAX_KEPT_TABLETS), true);
    assert.equal(over().length, 3);
    const alone = await marks([]);
    assert.equal(alone.kept.makeRoom(2 * MAX_KEPT_TABLETS), false);
  });
});
