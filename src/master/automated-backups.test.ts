import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import { TABLES, type Tables } from '../../test/tables.ts';
import { unavailable } from '../base/index.ts';
import { listFiles, sleep } from '../env/index.ts';
import { backupPath, decodeBackup } from '../metadata/index.ts';
import { BACKUP_POLICY, callMaster } from '../protocol/index.ts';

const HOUR_MS = 3_600_000;
/** google.bigtable.admin.v2.Table.AutomatedBackupPolicy, base64: backups are kept for 3 days. */
const THREE_DAYS = 'CgQIgOkP';
/** The same; they are hot for 24 hours. */
const HOT = 'CgQIgOkPIgQIgKMF';
/** The same; the policy is disabled. */
const DISABLED = 'CgQIgOkPKAE=';

async function backups(cluster: Cluster) {
  const files = await listFiles(cluster.env.lockService, backupPath(''));
  return files.map(({ path, contents }) => decodeBackup(path, contents));
}

async function pass(cluster: Cluster, days: number): Promise<void> {
  for (let left = 2 * days; left > 0; left--) {
    await sleep(cluster.clock, 12 * HOUR_MS);
    cluster.days += 0.5;
  }
}

const setPolicy = ({ client }: Cluster, tables: Tables, policy: string) =>
  client.updateTable(tables.context(), `${TABLES}t`, { extra: { [BACKUP_POLICY]: policy } });

describe('backups that a table asks for itself', () => {
  test(
    'are made once in 24 hours, expire, and are restored as others',
    inCluster(async (cluster, tables) => {
      const { clock } = cluster;
      await tables.create('t', { splits: ['m'] });
      await tables.create('other');
      await tables.set('t', 'a', '1');
      await sleep(clock, 60_000);
      assert.deepEqual(await backups(cluster), []);
      await setPolicy(cluster, tables, THREE_DAYS);
      await sleep(clock, 60_000);
      const [first] = await backups(cluster);
      assert.ok(first);
      assert.match(first.name, /\/clusters\/edubba\/backups\/auto-[0-9a-f]{8}-[0-9]+$/);
      assert.deepEqual([first.state, first.kind], ['ready', 'standard']);
      assert.equal(first.table, `${TABLES}t`);
      assert.ok(Math.abs(first.expireMicros - first.startMicros - 72 * HOUR_MS * 1000) < 1e6);
      await tables.set('t', 'b', '2');
      await sleep(clock, 23.5 * HOUR_MS);
      cluster.days++;
      assert.equal((await backups(cluster)).length, 1);
      await sleep(clock, HOUR_MS);
      assert.equal((await backups(cluster)).length, 2);
      await callMaster(
        cluster.env.transport,
        'master',
        'restoreTable',
        { backup: first.name, name: `${TABLES}restored` },
        tables.context(),
      );
      assert.deepEqual(await tables.rows('restored'), ['a']);
      await pass(cluster, 2.5);
      // the restored table has no policy; the first is gone
      const kept = await backups(cluster);
      assert.equal(kept.length, 3);
      assert.ok(kept.every(({ name, table }) => table === `${TABLES}t` && name !== first.name));
      await setPolicy(cluster, tables, DISABLED);
      await pass(cluster, 1.5);
      const names = new Set(kept.map(({ name }) => name));
      const left = await backups(cluster);
      assert.ok(left.length < kept.length && left.every(({ name }) => names.has(name)), 'no other was made');
    }),
  );

  test(
    'are not made twice by a master that follows, and are tried again when one fails',
    inCluster(async (cluster, tables) => {
      const { clock } = cluster;
      await tables.create('t');
      await tables.set('t', 'a', '1');
      let refused = 0;
      cluster.onCall = ({ method }) =>
        method === 'backUpTablets' && refused++ < 1 ? Promise.reject(unavailable('no time')) : undefined;
      await setPolicy(cluster, tables, HOT);
      await sleep(clock, 120_000);
      assert.ok(refused > 1);
      const [first, ...more] = await backups(cluster);
      assert.deepEqual(more, []);
      assert.ok(first?.kind === 'hot' && first.hotToStandardMicros !== undefined);
      assert.ok(Math.abs(first.hotToStandardMicros - first.startMicros - 24 * HOUR_MS * 1000) < 1e6 * 120);
      await cluster.master!.close();
      await cluster.startMaster();
      await sleep(clock, 60_000);
      assert.deepEqual(
        (await backups(cluster)).map(({ name }) => name),
        [first.name],
      );
    }),
  );

  test(
    'keep no other table waiting where one cannot be backed up, or has a policy that cannot be read',
    inCluster(async (cluster, tables) => {
      for (const table of ['t', 'u']) await tables.create(table);
      const { client, clock } = cluster;
      await client.updateTable(tables.context(), `${TABLES}u`, { extra: { [BACKUP_POLICY]: '////' } });
      cluster.onCall = ({ method }) => (method === 'backUpTablets' ? Promise.reject(unavailable('never')) : undefined);
      await setPolicy(cluster, tables, THREE_DAYS);
      await sleep(clock, 180_000);
      assert.ok(cluster.messages.some((line) => line.startsWith('a table could not be backed up')));
      cluster.onCall = undefined;
      await sleep(clock, 180_000);
      assert.equal((await backups(cluster)).filter(({ state }) => state === 'ready').length, 1);
    }),
  );
});
