/** Backups and tables that are restored from them, in a cluster whose servers and masters end meanwhile. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import { allRows } from '../../test/metadata-rows.ts';
import { rejectsWith, setCell, TABLES, type Tables } from '../../test/tables.ts';
import { Code, unavailable } from '../base/index.ts';
import { listFiles, sleep } from '../env/index.ts';
import { backupPath, decodeBackup } from '../metadata/index.ts';
import type { NewBackup, TableSchema } from '../model/index.ts';
import { callMaster, FILES_DIRECTORY, type MasterCalls } from '../protocol/index.ts';
import { Master } from './index.ts';

const BACKUPS = 'projects/p/instances/i/clusters/c/backups/';
const FAR = 4_000_000_000_000_000;

function call<M extends keyof MasterCalls>(
  { env, tables }: Cluster,
  method: M,
  message: MasterCalls[M]['message'],
): Promise<MasterCalls[M]['answer']> {
  return callMaster(env.transport, 'master', method, message, tables.context());
}

const backUp = (cluster: Cluster, name: string, source = `${TABLES}t`, more: Partial<NewBackup> = {}) =>
  call(cluster, 'createBackup', { name: BACKUPS + name, source, kind: 'standard', expireMicros: FAR, ...more });
const restore = (cluster: Cluster, backup: string, table: string) =>
  call(cluster, 'restoreTable', { backup: BACKUPS + backup, name: TABLES + table });
const remove = (cluster: Cluster, backup: string) => call(cluster, 'deleteBackup', { name: BACKUPS + backup });
const sweep = (cluster: Cluster) => call(cluster, 'sweep', {});

async function backups(cluster: Cluster) {
  const files = await listFiles(cluster.env.lockService, backupPath(''));
  return files.map(({ path, contents }) => decodeBackup(path, contents));
}

/** Replaces all files of the table by others. */
async function rewrite({ client }: Cluster, tables: Tables, table: string): Promise<void> {
  for await (const _ of client.compactTables(tables.context(), TABLES + table));
}

async function backupRowCount({ env, tables }: Cluster): Promise<number> {
  return (await allRows(env, tables.context())).users.filter(({ isOfBackup }) => isOfBackup).length;
}

async function fileCount({ env }: Cluster): Promise<number> {
  return (await env.fileSystem.list(FILES_DIRECTORY)).length;
}

const TWO = { servers: 2 };

describe('backups', () => {
  test(
    'are restored without the quotas of their table',
    inCluster(async (cluster, tables) => {
      const { client } = cluster;
      await tables.create('t');
      const [family] = Object.keys((await client.getTable(tables.context(), `${TABLES}t`)).families);
      await client.setQuota(tables.context(), `${TABLES}t`, { quotaBytes: 1 });
      await client.setQuota(tables.context(), `${TABLES}t`, { family, quotaBytes: 1 });
      await backUp(cluster, 'b');
      await rejectsWith(Code.RESOURCE_EXHAUSTED, tables.set('t', 'a', 'more than a byte'), /quota/);
      const { quotaBytes, families } = (await restore(cluster, 'b', 'u')) as TableSchema;
      assert.deepEqual([quotaBytes, families[family!]?.quotaBytes], [undefined, undefined]);
      await tables.set('u', 'a', 'more than a byte');
      assert.deepEqual(await tables.rows('u'), ['a']);
    }),
  );

  test(
    'have the tokens of writes: one that is in the backup is not made again in the restored table',
    inCluster(async (cluster, tables) => {
      const { client } = cluster;
      await tables.create('t');
      const once = (table: string, row: string): Promise<void> =>
        client.mutateRow(tables.context(), TABLES + table, {
          row,
          mutations: [setCell(row)],
          idempotency: { token: 'token-01' },
        });
      await once('t', 'a');
      await backUp(cluster, 'b');
      await restore(cluster, 'b', 'u');
      await client.dropRowRange(tables.context(), `${TABLES}u`, { start: '', end: undefined });
      for (const row of ['a', 'b']) await once('u', row);
      assert.deepEqual(await tables.rows('u'), ['b']);
      await sweep(cluster);
      await once('u', 'a');
      assert.deepEqual([await tables.rows('u'), await tables.rows('t')], [['b'], ['a']]);
    }),
  );

  test(
    'have the rows of their time, also when the table has changed and its files were swept',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { splits: ['m'] });
      for (const row of ['a', 'n']) await tables.set('t', row, '1');
      await backUp(cluster, 'b');
      for (const row of ['a', 'o']) await tables.set('t', row, '2');
      await rewrite(cluster, tables, 't');
      await sweep(cluster);
      await restore(cluster, 'b', 'u');
      assert.deepEqual(await tables.read('u'), [
        ['a', '1'],
        ['n', '1'],
      ]);
      await tables.set('u', 'b', '3');
      await rewrite(cluster, tables, 'u');
      await sweep(cluster);
      await restore(cluster, 'b', 'v');
      assert.deepEqual(await tables.rows('v'), ['a', 'n']);
      assert.deepEqual(await tables.rows('u'), ['a', 'b', 'n']);
      assert.deepEqual(await tables.rows('t'), ['a', 'n', 'o']);
      const [known] = await backups(cluster);
      assert.equal(known?.state, 'ready');
      assert.ok(known.sizeBytes > 0 && known.startMicros <= known.endMicros!);
    }, TWO),
  );

  test(
    'outlive their table, and a copy its backup; files go with the last that lists them',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { splits: ['m'] });
      for (const row of ['a', 'n']) await tables.set('t', row, '1');
      await backUp(cluster, 'b');
      await backUp(cluster, 'copy', `${BACKUPS}b`);
      const before = await fileCount(cluster);
      await tables.delete('t');
      await remove(cluster, 'b');
      await sweep(cluster);
      assert.deepEqual(
        (await backups(cluster)).map(({ name, sourceBackup }) => [name, sourceBackup]),
        [[`${BACKUPS}copy`, `${BACKUPS}b`]],
      );
      await restore(cluster, 'copy', 'u');
      assert.deepEqual(await tables.rows('u'), ['a', 'n']);
      await remove(cluster, 'copy');
      await tables.delete('u');
      await cluster.tables.create('other');
      await sweep(cluster);
      assert.ok((await fileCount(cluster)) < before);
    }),
  );

  test(
    'an empty table is backed up and restored',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { splits: ['m'] });
      await backUp(cluster, 'b');
      await tables.set('t', 'a', '1');
      await restore(cluster, 'b', 'u');
      assert.deepEqual(await tables.rows('u'), []);
      await tables.set('u', 'z', '1');
      assert.deepEqual(await tables.rows('u'), ['z']);
    }),
  );

  test(
    'bad requests change nothing',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      await rejectsWith(Code.NOT_FOUND, backUp(cluster, 'b', `${TABLES}none`), /none does not exist/);
      await rejectsWith(Code.NOT_FOUND, backUp(cluster, 'b', `${BACKUPS}none`), /none does not exist/);
      await rejectsWith(Code.NOT_FOUND, remove(cluster, 'b'), /b does not exist/);
      await rejectsWith(Code.NOT_FOUND, restore(cluster, 'b', 'u'), /b does not exist/);
      await backUp(cluster, 'b');
      await rejectsWith(Code.ALREADY_EXISTS, backUp(cluster, 'b'), /b exists already/);
      await rejectsWith(Code.ALREADY_EXISTS, restore(cluster, 'b', 't'), /t exists already/);
      assert.equal((await backups(cluster)).length, 1);
      assert.deepEqual(await tables.rows('t'), []);
    }),
  );

  test(
    'wait for a tablet that moves, and begin anew when one was split',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { splits: ['g'] });
      for (const row of ['a', 'h', 'n', 'z']) await tables.set('t', row, '1');
      let splits = 0;
      cluster.onCall = ({ method, go }) => {
        if (method !== 'backUpTablets' || splits++ > 0) return undefined;
        return cluster.client.splitTablets(tables.context(), `${TABLES}t`, 'n').then(go);
      };
      await backUp(cluster, 'b');
      cluster.onCall = undefined;
      assert.ok(splits > 1);
      await restore(cluster, 'b', 'u');
      assert.deepEqual(await tables.rows('u'), ['a', 'h', 'n', 'z']);
    }, TWO),
  );

  test(
    'a server that dies while its tablets are backed up is waited for',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { splits: ['g', 'n'] });
      for (const row of ['a', 'h', 'z']) await tables.set('t', row, '1');
      let calls = 0;
      cluster.onCall = ({ method }) =>
        method === 'backUpTablets' && calls++ === 0
          ? cluster.kill(0).then(() => Promise.reject(unavailable('it died')))
          : undefined;
      await backUp(cluster, 'b');
      assert.ok(calls > 1);
      await restore(cluster, 'b', 'u');
      assert.deepEqual(await tables.rows('u'), ['a', 'h', 'z']);
    }, TWO),
  );

  test(
    'that expire are deleted',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      await tables.set('t', 'a', '1');
      await backUp(cluster, 'kept');
      await backUp(cluster, 'b', undefined, { expireMicros: cluster.clock.nowMicros() + 60_000_000 });
      await sleep(cluster.clock, 55_000);
      assert.equal((await backups(cluster)).length, 2);
      await sleep(cluster.clock, 65_000);
      assert.deepEqual(
        (await backups(cluster)).map(({ name }) => name),
        [`${BACKUPS}kept`],
      );
    }),
  );

  test(
    'that are finished while the master looks for those that are not stay',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      await tables.set('t', 'a', '1');
      await backUp(cluster, 'earlier');
      let release = (): void => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      let lists = 0;
      cluster.onCall = (one) => (one.method === 'backUpTablets' ? held.then(() => one.go()) : undefined);
      const made = backUp(cluster, 'b');
      // the master sees it while it is being created, and learns of that when it is not any more
      cluster.onLockCall = (name, of, list) => {
        if (name !== 'list' || of !== backupPath('') || lists++ > 0) return undefined;
        return list().then(async (files) => {
          release();
          await made;
          return files;
        });
      };
      await sleep(cluster.clock, 65_000);
      await made;
      assert.ok(lists > 0);
      cluster.onLockCall = undefined;
      await sleep(cluster.clock, 65_000);
      await restore(cluster, 'b', 'u');
      assert.deepEqual(await tables.rows('u'), ['a']);
    }, TWO),
  );

  test(
    'one of which cannot be read do not keep others from their end',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      await tables.set('t', 'a', '1');
      const soon = { expireMicros: cluster.clock.nowMicros() + 60_000_000 };
      for (const name of ['damaged', 'soon']) await backUp(cluster, name, undefined, soon);
      const { lockService } = cluster.env;
      await lockService.write(backupPath(`${BACKUPS}damaged`), Buffer.from('{"format":1,"requires":0,"id":7}'));
      await sleep(cluster.clock, 125_000);
      const files = await listFiles(lockService, backupPath(''));
      assert.deepEqual(
        files.map(({ path }) => path),
        [backupPath(`${BACKUPS}damaged`)],
      );
      assert.ok(cluster.messages.some((message) => message.includes('a backup cannot be read')));
      assert.equal(await backupRowCount(cluster), 1);
      await remove(cluster, 'damaged');
      await sleep(cluster.clock, 65_000);
      assert.equal(await backupRowCount(cluster), 0, 'its rows go without the file that named them');
    }),
  );

  test(
    'are deleted though their times are changed meanwhile',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      await backUp(cluster, 'b');
      const path = backupPath(`${BACKUPS}b`);
      const { lockService } = cluster.env;
      let changes = 0;
      cluster.onLockCall = (name, of, go) =>
        name === 'remove' && of === path && changes++ === 0
          ? lockService
              .read(path)
              .then((file) => lockService.write(path, file!.contents))
              .then(go)
          : undefined;
      await remove(cluster, 'b');
      assert.ok(changes > 1);
      assert.deepEqual(await backups(cluster), []);
    }),
  );

  test(
    'whose creation the end of a master cuts short are removed by the next, and may be created',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { splits: ['m'] });
      await tables.set('t', 'a', '1');
      for (const cutAt of ['backUpTablets', 'commit']) {
        let isCut = false;
        let ended: Promise<void> | undefined;
        cluster.onCall = ({ method, message, go }) => {
          const isRow = JSON.stringify(message).includes('isOfBackup');
          if (isCut || method !== cutAt || (cutAt === 'commit' && !isRow)) return undefined;
          isCut = true;
          ended = cluster.master!.close();
          return go().then(() => Promise.reject(unavailable('its master ended')));
        };
        await rejectsWith(Code.UNAVAILABLE, backUp(cluster, `b-${cutAt}`), /./);
        cluster.onCall = undefined;
        assert.ok(isCut);
        await ended;
        cluster.master = await Master.start({ env: cluster.env, address: 'master' });
        await cluster.master.assigned;
        await sleep(cluster.clock, 65_000);
        await backUp(cluster, `b-${cutAt}`);
        await restore(cluster, `b-${cutAt}`, `u-${cutAt}`);
        assert.deepEqual(await tables.rows(`u-${cutAt}`), ['a']);
      }
      assert.equal((await backups(cluster)).length, 2);
    }),
  );
});
