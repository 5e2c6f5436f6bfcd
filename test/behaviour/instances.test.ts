/**
 * Instances by the library at every door: each change is seen by the next call, of two changes at one time none is
 * lost, and all of it is there after a new start, which on a cluster is at another server.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code, type Database, overService, RowMutation } from '../../src/embedded/index.ts';
import { ByteBudget } from '../../src/env/index.ts';
import { systemClock } from '../../src/platform/index.ts';
import type { OpenDoor } from './doors.ts';
import { LASTING_DOORS, type LastingDatabase } from './lasting-doors.ts';

const BUDGET = new ByteBudget(64 * 1024 * 1024);
const scaling = { minNodes: 2, maxNodes: 8, cpuPercent: 60, storageGib: 0 };

for (const { name: doorName, make } of LASTING_DOORS) {
  describe(`instances by the library: ${doorName}`, () => {
    let lasting: LastingDatabase;
    let door: OpenDoor;
    let database: Database;
    let alive: NodeJS.Timeout;

    async function open(): Promise<void> {
      door = await lasting.open();
      database = overService(door.service, { clock: systemClock, requestBudget: BUDGET }, async () => {});
    }
    before(async () => {
      alive = setInterval(() => {}, 60_000);
      lasting = await make();
      await open();
    });
    after(async () => {
      await door.close();
      await lasting.remove();
      clearInterval(alive);
    });

    const clusterIds = async (instance = 'games') =>
      (await database.getInstance(instance)).clusters.map(({ id }) => id);
    const profileIds = async (instance = 'games') =>
      (await database.getInstance(instance)).appProfiles.map(({ id }) => id);

    test('one is created, read and listed', async () => {
      const made = await database.createInstance('games', { clusters: { b: { nodes: 3 }, a: {} } });
      assert.deepEqual(await database.getInstance('games'), made);
      const all = await database.listInstances();
      assert.deepEqual(
        all.map(({ name }) => name),
        ['games', 'local'],
      );
      assert.deepEqual(all[0], made);
      await assert.rejects(database.createInstance('games'), { code: Code.ALREADY_EXISTS });
    });

    test('clusters are added, changed in parts, and deleted', async () => {
      const made = await database.createCluster('games', 'c', { zone: 'z', scalingFactor: 2, storage: 'hdd' });
      assert.deepEqual(made, { id: 'c', zone: 'z', nodes: 2, scalingFactor: 2, storage: 'hdd' });
      const grown = await database.updateCluster('games', 'c', { nodes: 4 });
      assert.deepEqual(grown, { ...made, nodes: 4 });
      const scaled = await database.updateCluster('games', 'c', { autoscaling: scaling });
      assert.deepEqual(scaled, { ...grown, autoscaling: scaling });
      const odd = database.updateCluster('games', 'c', { nodes: 5 });
      await assert.rejects(odd, { code: Code.INVALID_ARGUMENT, message: /multiple of the node scaling factor 2/ });
      const fixed = await database.updateCluster('games', 'c', { autoscaling: null });
      assert.deepEqual(fixed, grown);
      assert.deepEqual((await database.getInstance('games')).clusters[2], fixed);
      await database.deleteCluster('games', 'c');
      assert.deepEqual(await clusterIds(), ['a', 'b']);
      await assert.rejects(database.deleteCluster('games', 'c'), { code: Code.NOT_FOUND });
    });

    test('app profiles are made, changed in parts, and deleted', async () => {
      const made = await database.createAppProfile('games', 'batch', {
        description: 'at night',
        routing: { kind: 'any', clusters: ['b', 'a'] },
        isolation: { kind: 'standard', priority: 'low' },
      });
      assert.deepEqual(made, {
        id: 'batch',
        description: 'at night',
        routing: { kind: 'any', clusters: ['a', 'b'], hasRowAffinity: false },
        isolation: { kind: 'standard', priority: 'low' },
      });
      const described = await database.updateAppProfile('games', 'batch', { description: 'by day' });
      assert.deepEqual(described, { ...made, description: 'by day' });
      const single = { kind: 'single', cluster: 'b', allowsTransactions: false } as const;
      const routed = await database.updateAppProfile('games', 'batch', { routing: { kind: 'single', cluster: 'b' } });
      assert.deepEqual(routed, { ...described, routing: single });
      const reads = await database.updateAppProfile('games', 'batch', { isolation: { kind: 'data-boost' } });
      assert.deepEqual(reads, { ...routed, isolation: { kind: 'data-boost', hostPays: false } });
      // Data Boost cannot write
      const routing = { ...single, allowsTransactions: true };
      const writes = database.updateAppProfile('games', 'batch', { routing });
      await assert.rejects(writes, { code: Code.INVALID_ARGUMENT, message: /Data Boost/ });
      const standard = await database.updateAppProfile('games', 'batch', { routing, isolation: { kind: 'standard' } });
      assert.deepEqual(standard, { ...reads, routing, isolation: { kind: 'standard', priority: 'high' } });
      const used = database.deleteCluster('games', 'b');
      await assert.rejects(used, { code: Code.FAILED_PRECONDITION, message: /used by app profile batch/ });
      await database.deleteAppProfile('games', 'batch');
      assert.deepEqual(await profileIds(), ['default']);
      await assert.rejects(database.deleteAppProfile('games', 'default'), { code: Code.FAILED_PRECONDITION });
      await database.deleteAppProfile('games', 'default', { ignoreWarnings: true });
      assert.deepEqual(await profileIds(), []);
      await database.createAppProfile('games', 'default', { routing: { kind: 'any' } });
      assert.deepEqual(await profileIds(), ['default']);
    });

    test('of changes at one time none is lost', async () => {
      await database.createAppProfile('games', 'p', { routing: { kind: 'any' } });
      await Promise.all([
        database.updateCluster('games', 'a', { nodes: 7 }),
        database.updateCluster('games', 'a', { autoscaling: scaling }),
        database.updateAppProfile('games', 'p', { description: 'x' }),
        database.updateAppProfile('games', 'p', { routing: { kind: 'single', cluster: 'a' } }),
        database.updateAppProfile('games', 'p', { isolation: { kind: 'standard', priority: 'medium' } }),
        database.createCluster('games', 'd'),
      ]);
      const { clusters, appProfiles } = await database.getInstance('games');
      assert.deepEqual(clusters[0], { id: 'a', zone: 'local', nodes: 7, autoscaling: scaling, storage: 'ssd' });
      assert.deepEqual(appProfiles.slice(1), [
        {
          id: 'p',
          description: 'x',
          routing: { kind: 'single', cluster: 'a', allowsTransactions: false },
          isolation: { kind: 'standard', priority: 'medium' },
        },
      ]);
      assert.deepEqual(await clusterIds(), ['a', 'b', 'd']);
    });

    test('one comes with its first table, and can be changed then', async () => {
      await database.createTable('projects/local/instances/came/tables/t');
      const { createdMicros, clusters } = await database.getInstance('came');
      assert.deepEqual([createdMicros, clusters.map(({ id }) => id)], [undefined, ['edubba']]);
      await database.createCluster('came', 'more');
      assert.deepEqual(await clusterIds('came'), ['edubba', 'more']);
    });

    test('the description is changed in parts; only this process knows revisions', async () => {
      const { service, context, address } = door;
      const name = 'projects/local/instances/came';
      const instances = service.instances!;
      await instances.changeInstance(context, name, {
        kind: 'describe',
        labels: { team: 'a' },
        edition: 'enterprise-plus',
      });
      const changed = await instances.changeInstance(context, name, { kind: 'describe', displayName: 'It came' });
      const { displayName, type, edition, labels } = await database.getInstance('came');
      assert.deepEqual(
        [displayName, type, edition, labels],
        ['It came', 'production', 'enterprise-plus', { team: 'a' }],
      );
      assert.deepEqual(await instances.getInstance(context, name), changed);
      const [cluster] = changed.clusters;
      const { revision } = cluster!;
      const replacement = {
        kind: 'replaceCluster',
        cluster: { ...cluster!, nodes: 2 },
        revision: revision + 1,
      } as const;
      await assert.rejects(instances.changeInstance(context, name, replacement), {
        code: address === undefined ? Code.ABORTED : Code.UNIMPLEMENTED,
      });
    });

    test('all of it is there after a new start', async () => {
      const present = await database.listInstances();
      assert.deepEqual(
        present.map(({ name }) => name),
        ['came', 'games', 'local'],
      );
      await database.close();
      await door.close();
      await open();
      assert.deepEqual(await database.listInstances(), present);
    });

    test('one is deleted with its tables', async () => {
      const name = 'projects/local/instances/games/tables/t';
      const table = await database.createTable(name, { families: { f: {} } });
      await table.apply(new RowMutation('r').set('f:q', 'v'));
      await database.deleteInstance('games');
      await assert.rejects(database.getInstance('games'), { code: Code.NOT_FOUND });
      assert.equal(await database.hasTable(name), false);
      assert.deepEqual(
        (await database.listInstances()).map(({ name: each }) => each),
        ['came', 'local'],
      );
      // the next one of its name has nothing of it
      await database.createInstance('games');
      assert.deepEqual([await clusterIds(), await profileIds()], [['edubba'], ['default']]);
      assert.equal(await database.hasTable(name), false);
    });

    test('one that is protected stays with all of its tables', async () => {
      const { service, context } = door;
      const kept = { families: [], splits: [], granularity: 'micros', deletionProtection: true } as const;
      await service.createTable(context, { ...kept, name: 'projects/local/instances/games/tables/kept' });
      await assert.rejects(database.deleteInstance('games'), {
        code: Code.FAILED_PRECONDITION,
        message: /^instance games cannot be deleted: table .*kept is protected/,
      });
      await assert.rejects(database.deleteInstance('local'), { code: Code.FAILED_PRECONDITION });
      assert.equal(await database.hasTable('projects/local/instances/games/tables/kept'), true);
    });
  });
}
