/** Exports and imports of backups in a cluster whose servers and masters end meanwhile, and whose answers get lost. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import { rejectsWith, TABLES } from '../../test/tables.ts';
import { BigtableError, Code, toBigtableError, unavailable } from '../base/index.ts';
import { listFiles, type MemoryFileSystem } from '../env/index.ts';
import { backupPath } from '../metadata/index.ts';
import { Master } from './index.ts';
import { callMaster, FILES_DIRECTORY, type MasterCalls } from '../protocol/index.ts';

const BACKUPS = 'projects/p/instances/i/clusters/c/backups/';
const FAR = 4_000_000_000_000_000;
const IMPORTED = `${FILES_DIRECTORY}imported-`;
const TWO = { servers: 2 };

/** Addresses of masters that have taken the place of the first. */
const addresses = new WeakMap<Cluster, string>();

function call<M extends keyof MasterCalls>(
  cluster: Cluster,
  method: M,
  message: MasterCalls[M]['message'],
): Promise<MasterCalls[M]['answer']> {
  const { env, tables } = cluster;
  return callMaster(env.transport, addresses.get(cluster) ?? 'master', method, message, tables.context());
}

/** The master loses its lock, and another one takes it. */
async function replaceMaster(cluster: Cluster): Promise<void> {
  const { env } = cluster;
  const lock = await env.lockService.holder('master');
  const address = `master-${lock!.epoch}`;
  await env.lockService.closeSession(lock!.sessionId);
  const next = await Master.start({ env, address });
  await next.assigned;
  addresses.set(cluster, address);
  await cluster.master?.close();
  cluster.master = next;
}

const exportIt = (cluster: Cluster, backup = 'b') =>
  call(cluster, 'exportBackup', { backup: BACKUPS + backup, id: 'x' });
const importIt = (cluster: Cluster, name = 'c') =>
  call(cluster, 'importBackup', { name: BACKUPS + name, from: 'x', expireMicros: FAR });

/** A table of several files, and its backup `b`. */
async function prepare(cluster: Cluster): Promise<void> {
  const { tables } = cluster;
  await tables.create('t', { splits: ['d', 'm', 's'] });
  for (const row of ['a', 'e', 'n', 't']) await tables.set('t', row, row);
  await call(cluster, 'createBackup', {
    ...{ name: `${BACKUPS}b`, source: `${TABLES}t`, kind: 'standard', expireMicros: FAR },
  });
}

async function checkRestored(cluster: Cluster, backup: string): Promise<void> {
  await call(cluster, 'restoreTable', { backup: BACKUPS + backup, name: `${TABLES}of-${backup}` });
  assert.deepEqual(await cluster.tables.rows(`of-${backup}`), ['a', 'e', 'n', 't']);
}

const countOf = async (store: MemoryFileSystem, prefix = ''): Promise<number> => (await store.list(prefix)).length;

async function backupNames({ env }: Cluster): Promise<string[]> {
  const files = await listFiles(env.lockService, backupPath(''));
  return files.map(({ path }) => path.slice(path.lastIndexOf('/') + 1));
}

describe('exports and imports', () => {
  test(
    'are shared by the servers; one that dies is replaced',
    inCluster(async (cluster) => {
      await prepare(cluster);
      const asked = new Set<string>();
      let copies = 0;
      cluster.onCall = ({ method, address, go }) => {
        if (method !== 'copyFile') return undefined;
        asked.add(address);
        if (++copies === 2)
          return cluster.kill(Number(address.slice(-1))).then(() => Promise.reject(unavailable('gone')));
        return go();
      };
      const { files } = await exportIt(cluster);
      assert.equal(files, 4);
      assert.equal(asked.size, 2);
      await cluster.startServer();
      copies = 0;
      await importIt(cluster);
      cluster.onCall = undefined;
      await checkRestored(cluster, 'c');
    }, TWO),
  );

  test(
    'are made once though answers get lost, and by another server where one does not know the call',
    inCluster(async (cluster) => {
      await prepare(cluster);
      let lost = 0;
      cluster.onCall = ({ method, address, go }) => {
        if (method !== 'copyFile') return undefined;
        if (address === 'server-0') return Promise.reject(new BigtableError(Code.UNIMPLEMENTED, 'an earlier release'));
        if (++lost % 2 === 0) return undefined;
        return go().then(() => Promise.reject(unavailable('the answer is lost')));
      };
      await exportIt(cluster);
      await importIt(cluster);
      assert.ok(lost > 8, `${lost} calls`);
      cluster.onCall = undefined;
      await checkRestored(cluster, 'c');
      assert.equal(await countOf(cluster.backupStore), 6);
      await call(cluster, 'deleteExport', { id: 'x' });
      assert.equal(await countOf(cluster.backupStore), 0);
    }, TWO),
  );

  test(
    'end with their master; the next one makes them anew and leaves nothing over',
    inCluster(async (cluster) => {
      await prepare(cluster);
      for (const begin of [() => exportIt(cluster), () => importIt(cluster)]) {
        let copies = 0;
        let end = (): void => {};
        const ended = new Promise<void>((resolve) => (end = resolve));
        cluster.onCall = ({ method, go }) => {
          if (method !== 'copyFile' || ++copies !== 3) return undefined;
          return ended.then(go);
        };
        const first = begin().then(
          () => assert.fail('a master that has ended answers nothing'),
          (thrown: unknown) => assert.equal(toBigtableError(thrown).code, Code.UNAVAILABLE),
        );
        while (copies < 3) await cluster.env.lockService.read('none');
        await replaceMaster(cluster);
        end();
        await first;
        cluster.onCall = undefined;
        await begin();
      }
      await checkRestored(cluster, 'c');
      await call(cluster, 'sweep', {});
      assert.equal(await countOf(cluster.fileSystem, IMPORTED), 4);
      assert.deepEqual(await backupNames(cluster), ['b', 'c']);
      await call(cluster, 'deleteExport', { id: 'x' });
      assert.equal(await countOf(cluster.backupStore), 0);
    }, TWO),
  );

  test(
    'whose manifest lands though its answer is lost are there with their files, and a repetition finds them',
    inCluster(async (cluster) => {
      await prepare(cluster);
      let lost = 0;
      const create = cluster.backupStore.create.bind(cluster.backupStore);
      cluster.backupStore.create = async (path) => {
        const writer = await create(path);
        if (!path.startsWith('manifests/') || lost++ > 0) return writer;
        const close = async (): Promise<void> => {
          await writer.close();
          throw unavailable('the answer is lost');
        };
        return { append: (bytes) => writer.append(bytes), abort: () => writer.abort(), close };
      };
      await rejectsWith(Code.UNAVAILABLE, exportIt(cluster), /the answer is lost/);
      const { exportedMicros } = await exportIt(cluster);
      const { exports } = await call(cluster, 'listExports', {});
      assert.equal(exports[0]?.exportedMicros, exportedMicros);
      assert.equal(lost, 1);
      await importIt(cluster);
      await checkRestored(cluster, 'c');
    }),
  );

  test(
    'whose manifest lands after the next attempt has begun are there once',
    inCluster(async (cluster) => {
      await prepare(cluster);
      let land = async (): Promise<void> => {};
      let attempts = 0;
      const create = cluster.backupStore.create.bind(cluster.backupStore);
      cluster.backupStore.create = async (path) => {
        const writer = await create(path);
        if (!path.startsWith('manifests/') || attempts++ > 0) return writer;
        const close = async (): Promise<void> => {
          land = () => writer.close();
          throw unavailable('no answer');
        };
        return { append: (bytes) => writer.append(bytes), abort: () => writer.abort(), close };
      };
      await rejectsWith(Code.UNAVAILABLE, exportIt(cluster), /no answer/);
      let copies = 0;
      cluster.onCall = ({ method, go }) => (method === 'copyFile' && ++copies === 2 ? land().then(go) : undefined);
      const { files } = await exportIt(cluster);
      assert.equal(await countOf(cluster.backupStore), files + 2);
      cluster.onCall = undefined;
      await importIt(cluster);
      await checkRestored(cluster, 'c');
    }),
  );

  test(
    'that fail leave files that a deletion removes',
    inCluster(async (cluster) => {
      await prepare(cluster);
      const { list } = cluster.backupStore;
      cluster.onCall = ({ method }) => {
        if (method !== 'copyFile') return undefined;
        // nor can the files be deleted
        cluster.backupStore.list = () => Promise.reject(unavailable('the store is gone'));
        return Promise.reject(new BigtableError(Code.RESOURCE_EXHAUSTED, 'full'));
      };
      const writer = await cluster.backupStore.create('files/x/earlier/1');
      await writer.close();
      await rejectsWith(Code.RESOURCE_EXHAUSTED, exportIt(cluster), /full/);
      cluster.backupStore.list = list;
      await call(cluster, 'deleteExport', { id: 'x' });
      await rejectsWith(Code.NOT_FOUND, call(cluster, 'deleteExport', { id: 'x' }));
      assert.equal(await countOf(cluster.backupStore), 0);
    }),
  );

  test(
    'name the server that has no backup store',
    inCluster(async (cluster) => {
      await prepare(cluster);
      cluster.onCall = ({ method }) => {
        if (method !== 'copyFile') return undefined;
        return Promise.reject(new BigtableError(Code.FAILED_PRECONDITION, 'there is no backup store'));
      };
      await rejectsWith(Code.FAILED_PRECONDITION, exportIt(cluster), /^tablet server \S+ at server-0: there is no/);
    }),
  );

  test(
    'of a backup that is deleted meanwhile is NOT_FOUND, and leaves nothing',
    inCluster(async (cluster, tables) => {
      await prepare(cluster);
      let isDeleted = false;
      cluster.onCall = ({ method, go }) => {
        if (method !== 'copyFile' || isDeleted) return undefined;
        isDeleted = true;
        const gone = async (): Promise<void> => {
          await tables.delete('t');
          await call(cluster, 'deleteBackup', { name: `${BACKUPS}b` });
          await call(cluster, 'sweep', {});
        };
        return gone().then(go);
      };
      await rejectsWith(Code.NOT_FOUND, exportIt(cluster), /backup \S+b does not exist/);
      assert.equal(await countOf(cluster.backupStore), 0);
    }, TWO),
  );

  test(
    'that fail leave nothing after a sweep, and the backup can be imported again',
    inCluster(async (cluster) => {
      await prepare(cluster);
      await exportIt(cluster);
      let copies = 0;
      cluster.onCall = ({ method }) => {
        if (method !== 'copyFile' || ++copies !== 3) return undefined;
        return Promise.reject(new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full'));
      };
      await rejectsWith(Code.RESOURCE_EXHAUSTED, importIt(cluster), /full/);
      cluster.onCall = undefined;
      assert.deepEqual(await backupNames(cluster), ['b']);
      await call(cluster, 'sweep', {});
      assert.equal(await countOf(cluster.fileSystem, IMPORTED), 0);
      await importIt(cluster);
      await checkRestored(cluster, 'c');
    }, TWO),
  );

  test(
    'of backups that are not finished, or not there, are refused',
    inCluster(async (cluster) => {
      await prepare(cluster);
      let refusal: Promise<void> | undefined;
      cluster.onCall = ({ method, go }) => {
        if (method !== 'backUpTablets' || refusal !== undefined) return undefined;
        refusal = rejectsWith(Code.FAILED_PRECONDITION, exportIt(cluster, 'late'), /not finished/);
        return refusal.then(go);
      };
      await call(cluster, 'createBackup', {
        ...{ name: `${BACKUPS}late`, source: `${TABLES}t`, kind: 'standard', expireMicros: FAR },
      });
      await refusal;
      await rejectsWith(Code.NOT_FOUND, exportIt(cluster, 'none'));
      await rejectsWith(Code.NOT_FOUND, importIt(cluster), /has no backup x/);
    }),
  );
});
