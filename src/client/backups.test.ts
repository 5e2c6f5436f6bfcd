/** Backups by the client library: what it checks itself, and what it changes in their files. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import { rejectsWith, TABLES } from '../../test/tables.ts';
import { Code, unavailable } from '../base/index.ts';
import { backupPath, decodeBackup, encodeBackup } from '../metadata/index.ts';
import type { NewBackup } from '../model/index.ts';

const HOUR_MICROS = 3_600_000_000;
const CLUSTER = 'projects/p/instances/i/clusters/edubba';
const nameOf = (id: string): string => `${CLUSTER}/backups/${id}`;

const create = ({ client, clock, tables }: Cluster, id: string, more: Partial<NewBackup> = {}) =>
  client.backups.createBackup(tables.context(), {
    name: nameOf(id),
    source: `${TABLES}t`,
    kind: 'standard',
    expireMicros: clock.nowMicros() + 24 * HOUR_MICROS,
    ...more,
  });

/** A file of that backup that its master has not finished. */
async function unfinish({ env }: Cluster, id: string): Promise<void> {
  const path = backupPath(nameOf(id));
  const { contents } = (await env.lockService.read(path))!;
  await env.lockService.write(path, encodeBackup({ ...decodeBackup(path, contents), state: 'creating' }));
}

describe('backups', () => {
  test(
    'are made, found, listed, changed, copied, restored and deleted',
    inCluster(async (cluster, tables) => {
      const { client, clock } = cluster;
      const { backups } = client;
      const context = tables.context();
      await tables.create('t');
      await tables.set('t', 'a', '1');
      const hotToStandardMicros = clock.nowMicros() + 48 * HOUR_MICROS;
      const made = await create(cluster, 'b', { kind: 'hot', hotToStandardMicros });
      assert.deepEqual(await backups.getBackup(context, nameOf('b')), made);
      assert.deepEqual([made.state, made.kind, made.table], ['ready', 'hot', `${TABLES}t`]);
      await create(cluster, 'copy', { source: nameOf('b') });
      const all = await backups.listBackups(context, `${CLUSTER}/`);
      assert.deepEqual(
        all.map(({ name }) => name),
        [nameOf('b'), nameOf('copy')],
      );
      const expireMicros = made.startMicros + 30 * HOUR_MICROS;
      assert.equal((await backups.updateBackup(context, nameOf('b'), { expireMicros })).expireMicros, expireMicros);
      const stays = await backups.updateBackup(context, nameOf('b'), { hotToStandardMicros: null });
      assert.deepEqual([stays.hotToStandardMicros, stays.expireMicros], [undefined, expireMicros]);
      const schema = await backups.restoreTable(context, `${TABLES}u`, nameOf('copy'));
      assert.equal(schema.name, `${TABLES}u`);
      assert.deepEqual(await tables.rows('u'), ['a']);
      for (const id of ['b', 'copy']) await backups.deleteBackup(context, nameOf(id));
      assert.deepEqual(await backups.listBackups(context, `${CLUSTER}/`), []);
    }),
  );

  test(
    'a hot one becomes a standard one',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      const { client, clock } = cluster;
      await create(cluster, 'b', { kind: 'hot', hotToStandardMicros: clock.nowMicros() + 25 * HOUR_MICROS });
      const path = backupPath(nameOf('b'));
      const { lockService } = cluster.env;
      const file = decodeBackup(path, (await lockService.read(path))!.contents);
      await lockService.write(path, encodeBackup({ ...file, hotToStandardMicros: clock.nowMicros() }));
      assert.equal((await client.backups.getBackup(tables.context(), nameOf('b'))).kind, 'standard');
    }),
  );

  test(
    'bad requests are refused before the master hears of them',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      const { client, clock } = cluster;
      const { backups } = client;
      const context = tables.context();
      const now = clock.nowMicros();
      cluster.onCall = ({ method }) =>
        method.endsWith('Backup') || method === 'restoreTable'
          ? Promise.reject(unavailable('it was called'))
          : undefined;
      for (const [call, code, message] of [
        [() => create(cluster, '-b'), Code.INVALID_ARGUMENT, /begin with none of/],
        [() => create(cluster, 'b', { name: `${TABLES}t` }), Code.INVALID_ARGUMENT, /must be projects/],
        [() => create(cluster, 'b', { source: 't' }), Code.INVALID_ARGUMENT, /a table or a backup/],
        [() => create(cluster, 'b', { source: 'projects/p/instances/j/tables/t' }), Code.INVALID_ARGUMENT, /instance/],
        [() => create(cluster, 'b', { expireMicros: now }), Code.INVALID_ARGUMENT, /6 hours to 90 days/],
        [() => create(cluster, 'b', { hotToStandardMicros: now }), Code.INVALID_ARGUMENT, /only a hot backup/],
        [
          () => create(cluster, 'b', { kind: 'hot', hotToStandardMicros: now }),
          Code.INVALID_ARGUMENT,
          /at least 24 hours/,
        ],
        [() => create(cluster, 'b', { name: nameOf('b').replace('edubba', 'c') }), Code.NOT_FOUND, /no cluster "c"/],
        [() => backups.getBackup(context, 'b'), Code.INVALID_ARGUMENT, /must be projects/],
        [() => backups.getBackup(context, nameOf('b')), Code.NOT_FOUND, /does not exist/],
        [() => backups.updateBackup(context, nameOf('b'), {}), Code.NOT_FOUND, /does not exist/],
        [() => backups.deleteBackup(context, nameOf('b')), Code.NOT_FOUND, /does not exist/],
        [() => backups.restoreTable(context, 'u', nameOf('b')), Code.INVALID_ARGUMENT, /table name/],
        [() => backups.restoreTable(context, `${TABLES}u`, 'b'), Code.INVALID_ARGUMENT, /must be projects/],
      ] as const)
        await rejectsWith(code, call(), message);
      await rejectsWith(Code.UNAVAILABLE, create(cluster, 'b'), /it was called/);
    }),
  );

  test(
    'are changed though others change them, and not before they are finished',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      const { client, env } = cluster;
      const made = await create(cluster, 'b');
      const path = backupPath(nameOf('b'));
      let overtaken = 0;
      const most = { now: 2 };
      cluster.onLockCall = (name, of, go) => {
        if (name !== 'write' || of !== path || overtaken >= most.now) return undefined;
        overtaken++;
        cluster.onLockCall = undefined;
        return env.lockService
          .read(path)
          .then((file) => env.lockService.write(path, file!.contents))
          .then(() => {
            cluster.onLockCall = overtake;
            return go();
          });
      };
      const overtake = cluster.onLockCall;
      const expireMicros = made.startMicros + 30 * HOUR_MICROS;
      const change = () => client.backups.updateBackup(tables.context(), nameOf('b'), { expireMicros });
      assert.equal((await change()).expireMicros, expireMicros);
      assert.equal(overtaken, 2);
      most.now = Number.POSITIVE_INFINITY;
      await rejectsWith(Code.ABORTED, change(), /changed by many others/);
      cluster.onLockCall = undefined;
      await unfinish(cluster, 'b');
      await rejectsWith(Code.FAILED_PRECONDITION, change(), /not finished yet/);
    }),
  );

  test(
    'one of which cannot be read is listed as such among the others, and may only be deleted',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { splits: ['m'] });
      await tables.set('t', 'a', '1');
      const { client, env } = cluster;
      const { backups } = client;
      const context = tables.context();
      for (const id of ['a', 'b', 'c']) await create(cluster, id);
      const path = backupPath(nameOf('b'));
      const other = (await env.lockService.read(backupPath(nameOf('a'))))!.contents;
      const { contents } = (await env.lockService.read(path))!;
      for (const damaged of [contents.subarray(0, 20), Buffer.from('{"format":2,"requires":0}'), other]) {
        await env.lockService.write(path, damaged);
        const all = await backups.listBackups(context, `${CLUSTER}/`);
        assert.deepEqual(
          all.map(({ name, state }) => [name, state]),
          [
            [nameOf('a'), 'ready'],
            [nameOf('b'), 'unreadable'],
            [nameOf('c'), 'ready'],
          ],
        );
        for (const call of [
          () => backups.getBackup(context, nameOf('b')),
          () => backups.updateBackup(context, nameOf('b'), {}),
          () => backups.restoreTable(context, `${TABLES}u`, nameOf('b')),
          () => create(cluster, 'copy', { source: nameOf('b') }),
        ])
          await rejectsWith(Code.DATA_LOSS, call(), /backups\/b/);
        await rejectsWith(Code.ALREADY_EXISTS, create(cluster, 'b'), /cannot be read: delete it first/);
      }
      await backups.deleteBackup(context, nameOf('b'));
      await rejectsWith(Code.NOT_FOUND, backups.getBackup(context, nameOf('b')), /does not exist/);
      await create(cluster, 'b');
      await backups.restoreTable(context, `${TABLES}u`, nameOf('b'));
      assert.deepEqual(await tables.rows('u'), ['a']);
    }),
  );

  test(
    'have a policy, which goes with them',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      const { client } = cluster;
      const context = tables.context();
      const bindings = [{ role: 'roles/bigtable.viewer', members: ['token:a'] }];
      for (const fails of [false, true]) {
        await create(cluster, 'b');
        await client.policies.setPolicy(context, nameOf('b'), { bindings });
        assert.deepEqual((await client.policies.getPolicy(context, nameOf('b'))).bindings, bindings);
        cluster.onLockCall = (name, path) =>
          fails && name === 'remove' && String(path).startsWith('policies/')
            ? Promise.reject(unavailable('no answer'))
            : undefined;
        await client.backups.deleteBackup(context, nameOf('b'));
        cluster.onLockCall = undefined;
        assert.equal(
          cluster.messages.some((text) => text.includes('policy of a deleted backup is left')),
          fails,
        );
      }
      await create(cluster, 'b');
      assert.deepEqual((await client.policies.getPolicy(context, nameOf('b'))).bindings, [], 'of the former one');
      await rejectsWith(Code.NOT_FOUND, client.policies.getPolicy(context, nameOf('c')), /does not exist/);
    }),
  );
});
