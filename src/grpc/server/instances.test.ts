/**
 * Instances, clusters and app profiles through the API of each kind of server: what each call changes is seen by later
 * calls, also through another thread, and which calls an app profile allows.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { openDatabase } from '../../boot/index.ts';
import { requestContext } from '../../env/index.ts';
import { BigtableInstanceAdmin as InstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { BigtableTableAdmin as TableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import {
  AppProfile_Priority as Priority,
  AppProfileSchema,
  ClusterSchema,
  Instance_Edition as Edition,
  InstanceSchema,
} from '../generated/google/bigtable/admin/v2/instance_pb.ts';
import { Table_View as View } from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import type { Operation } from '../generated/google/longrunning/operations_pb.ts';
import { Operations } from '../generated/google/longrunning/operations_pb.ts';
import { type ApiClient, apiClientOf, codeOf } from './fixtures.ts';
import { DOORS, type OpenDoor } from '../../../test/behaviour/doors.ts';

const admin = InstanceAdmin.method;
const tables = TableAdmin.method;
const data = Bigtable.method;

const ZONE = 'projects/p/locations/z';
const I = 'projects/p/instances/prod';
const NONE = 'projects/p/instances/none';

for (const { name: doorName, open } of DOORS.filter((door) => door.isServer)) {
  describe(`instances: ${doorName}`, () => {
    let door: OpenDoor;
    let api: ApiClient;

    before(async () => {
      door = await open();
      api = apiClientOf(door);
    });
    after(async () => {
      api.close();
      await door.close();
    });

    const create = (instanceId: string, more: object = {}) =>
      api.ask(admin.createInstance, {
        parent: 'projects/p',
        instanceId,
        instance: { displayName: 'The instance' },
        clusters: { c: { location: ZONE, serveNodes: 3 } },
        ...more,
      });
    const createTable = (parent: string, tableId = 't') =>
      api.ask(tables.createTable, { parent, tableId, table: { columnFamilies: { f: {} } } });
    const listed = async (parent: string) =>
      (await api.ask(admin.listInstances, { parent })).instances.map(({ name }) => name.split('/')[3]);
    const response = <T>(operation: Operation, unpack: (any: never) => T): T => {
      assert.equal(operation.done, true);
      assert.equal(operation.result.case, 'response');
      return unpack(operation.result.value as never);
    };

    test('one exists from the start, and one comes with its first table and goes with its last', async () => {
      assert.deepEqual(await listed('projects/local'), ['local']);
      assert.deepEqual(await listed('projects/other'), ['local']);
      const name = 'projects/other/instances/with-table';
      assert.equal(await codeOf(api.ask(admin.getInstance, { name })), 'NOT_FOUND');
      await createTable(name);
      assert.equal((await api.ask(admin.getInstance, { name })).displayName, 'with-table');
      assert.deepEqual(await listed('projects/other'), ['with-table']);
      assert.equal(await codeOf(api.ask(admin.getInstance, { name: 'projects/other/instances/local' })), 'NOT_FOUND');
      assert.deepEqual(await listed('projects/local'), ['local']);
      await api.ask(tables.deleteTable, { name: `${name}/tables/t` });
      assert.deepEqual(await listed('projects/other'), ['local']);
      assert.equal(await codeOf(api.ask(admin.getInstance, { name })), 'NOT_FOUND');
    });

    test('one is created with its clusters, and the operation is kept', async () => {
      const operation = await create('prod', {
        instance: { displayName: 'Production', labels: { team: 'a' }, edition: Edition.ENTERPRISE_PLUS },
        clusters: { 'c-2': { location: ZONE }, 'c-1': { location: ZONE, serveNodes: 3 } },
      });
      const made = response(operation, (any) => anyUnpack(any, InstanceSchema))!;
      assert.deepEqual([made.name, made.displayName, made.labels], [I, 'Production', { team: 'a' }]);
      assert.ok(made.createTime!.seconds > 1_700_000_000n);
      assert.deepEqual(await api.ask(admin.getInstance, { name: I }), made);
      assert.deepEqual(await api.ask(Operations.method.getOperation, { name: operation.name }), operation);
      assert.deepEqual(
        (await api.ask(admin.listClusters, { parent: I })).clusters.map(({ name, serveNodes }) => [name, serveNodes]),
        [
          [`${I}/clusters/c-1`, 3],
          [`${I}/clusters/c-2`, 1],
        ],
      );
      assert.equal(await codeOf(create('prod')), 'ALREADY_EXISTS');
      await createTable(I);
      const table = await api.ask(tables.getTable, { name: `${I}/tables/t`, view: View.REPLICATION_VIEW });
      assert.deepEqual(Object.keys(table.clusterStates), ['c-1', 'c-2']);
      assert.equal(await codeOf(api.ask(admin.getCluster, { name: `${NONE}/clusters/c` })), 'NOT_FOUND');
      assert.equal(await codeOf(api.ask(admin.getCluster, { name: `${I}/clusters/c-3` })), 'NOT_FOUND');
    });

    test('one is changed by a mask, and by a whole message its name and type alone', async () => {
      const change = (instance: object, ...paths: string[]) =>
        api.ask(admin.partialUpdateInstance, { instance: { name: I, ...instance }, updateMask: { paths } });
      await change({ labels: { team: 'b', env: 'x' }, displayName: 'not this' }, 'labels');
      let now = await api.ask(admin.getInstance, { name: I });
      assert.deepEqual([now.displayName, now.labels], ['Production', { team: 'b', env: 'x' }]);
      await change({ displayName: 'Prod' }, 'display_name', 'labels');
      now = await api.ask(admin.getInstance, { name: I });
      assert.deepEqual([now.displayName, now.labels, now.edition], ['Prod', {}, Edition.ENTERPRISE_PLUS]);
      now = await api.ask(admin.updateInstance, { name: I, displayName: 'Again', labels: { not: 'this' } });
      assert.deepEqual([now.displayName, now.labels, now.edition], ['Again', {}, Edition.ENTERPRISE_PLUS]);
      for (const paths of [[], ['name'], ['create_time'], ['nothing'], ['labels.team'], ['']])
        assert.equal(await codeOf(change({}, ...paths)), 'INVALID_ARGUMENT', String(paths));
      assert.equal(await codeOf(change({}, 'display_name')), 'INVALID_ARGUMENT');
      assert.equal(
        await codeOf(
          api.ask(admin.partialUpdateInstance, { instance: { name: NONE }, updateMask: { paths: ['labels'] } }),
        ),
        'NOT_FOUND',
      );
    });

    test('clusters are created, resized and deleted, but for the last and those that a profile uses', async () => {
      const name = `${I}/clusters/c-3`;
      const made = await api.ask(admin.createCluster, { parent: I, clusterId: 'c-3', cluster: { location: ZONE } });
      assert.equal(response(made, (any) => anyUnpack(any, ClusterSchema))!.name, name);
      await api.ask(admin.updateCluster, { name, serveNodes: 5 });
      assert.equal((await api.ask(admin.getCluster, { name })).serveNodes, 5);
      const scaling = {
        autoscalingLimits: { minServeNodes: 2, maxServeNodes: 9 },
        autoscalingTargets: { cpuUtilizationPercent: 60 },
      };
      const config = (clusterAutoscalingConfig: object) =>
        ({ case: 'clusterConfig', value: { clusterAutoscalingConfig } }) as never;
      const update = (cluster: object, ...paths: string[]) =>
        api.ask(admin.partialUpdateCluster, { cluster: { name, ...cluster }, updateMask: { paths } });
      await update({ config: config(scaling) }, 'cluster_config.cluster_autoscaling_config');
      await update(
        { config: config({ autoscalingLimits: { maxServeNodes: 7 } }) },
        'cluster_config.cluster_autoscaling_config.autoscaling_limits.max_serve_nodes',
      );
      const limits = async () =>
        (await api.ask(admin.getCluster, { name })).config.value?.clusterAutoscalingConfig?.autoscalingLimits;
      const { minServeNodes, maxServeNodes } = (await limits())!;
      assert.deepEqual([minServeNodes, maxServeNodes], [2, 7]);
      await update({ serveNodes: 4 }, 'serve_nodes', 'cluster_config');
      assert.equal(await limits(), undefined);
      assert.equal((await api.ask(admin.getCluster, { name })).serveNodes, 4);
      for (const paths of [['location'], ['cluster_config.nothing'], ['serve_nodes.deeper'], []])
        assert.equal(await codeOf(update({}, ...paths)), 'INVALID_ARGUMENT', String(paths));
      assert.equal(await codeOf(update({ serveNodes: -1 }, 'serve_nodes')), 'INVALID_ARGUMENT');

      await api.ask(admin.createAppProfile, {
        parent: I,
        appProfileId: 'on-3',
        appProfile: { routingPolicy: { case: 'singleClusterRouting', value: { clusterId: 'c-3' } } },
      });
      assert.equal(await codeOf(api.ask(admin.deleteCluster, { name })), 'FAILED_PRECONDITION');
      await api.ask(admin.deleteAppProfile, { name: `${I}/appProfiles/on-3` });
      await api.ask(admin.deleteCluster, { name });
      assert.equal(await codeOf(api.ask(admin.deleteCluster, { name })), 'NOT_FOUND');
      await api.ask(admin.deleteCluster, { name: `${I}/clusters/c-1` });
      assert.equal(await codeOf(api.ask(admin.deleteCluster, { name: `${I}/clusters/c-2` })), 'FAILED_PRECONDITION');
    });

    test('app profiles are created, changed by a mask, listed in pages and deleted', async () => {
      const make = (appProfileId: string, appProfile: object) =>
        api.ask(admin.createAppProfile, { parent: I, appProfileId, appProfile });
      const any = { routingPolicy: { case: 'multiClusterRoutingUseAny', value: {} } };
      const made = await make('b', { ...any, description: 'batch' });
      assert.deepEqual(await api.ask(admin.getAppProfile, { name: `${I}/appProfiles/b` }), made);
      assert.equal(await codeOf(make('b', any)), 'ALREADY_EXISTS');
      assert.equal(await codeOf(make('-b', any)), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(make('x', {})), 'INVALID_ARGUMENT');
      const away = { routingPolicy: { case: 'singleClusterRouting', value: { clusterId: 'none' } } };
      assert.equal(await codeOf(make('x', away)), 'FAILED_PRECONDITION');

      const update = (appProfile: object, ...paths: string[]) =>
        api.ask(admin.updateAppProfile, { appProfile: { name: made.name, ...appProfile }, updateMask: { paths } });
      const changed = response(await update({ description: 'new' }, 'description'), (any) =>
        anyUnpack(any, AppProfileSchema),
      )!;
      assert.deepEqual([changed.description, changed.routingPolicy.case], ['new', 'multiClusterRoutingUseAny']);
      assert.equal(await codeOf(update({ description: 'stale', etag: 'x' }, 'description')), 'ABORTED');
      assert.equal(await codeOf(update({ description: 'all' })), 'INVALID_ARGUMENT');
      const single = { case: 'singleClusterRouting', value: { clusterId: 'c-2', allowTransactionalWrites: true } };
      await update({ routingPolicy: single }, 'single_cluster_routing');
      await update(
        { isolation: { case: 'standardIsolation', value: { priority: Priority.LOW } } },
        'standard_isolation.priority',
      );
      const now = await api.ask(admin.getAppProfile, { name: made.name });
      assert.equal(now.routingPolicy.case, 'singleClusterRouting');
      assert.equal(now.isolation.case === 'standardIsolation' && now.isolation.value.priority, Priority.LOW);

      const pages = [];
      for (let pageToken = ''; ; ) {
        const page = await api.ask(admin.listAppProfiles, { parent: I, pageSize: 1, pageToken });
        pages.push(page.appProfiles.map(({ name }) => name.split('/')[5]));
        pageToken = page.nextPageToken;
        if (pageToken === '') break;
      }
      assert.deepEqual(pages, [['b'], ['default']]);
      const all = await api.ask(admin.listAppProfiles, { parent: 'projects/p/instances/-' });
      assert.deepEqual(all.appProfiles.length, 2);
      await api.ask(admin.deleteAppProfile, { name: made.name });
      assert.equal(await codeOf(api.ask(admin.getAppProfile, { name: made.name })), 'NOT_FOUND');
    });

    test('an app profile refuses what it does not allow, through each thread', async () => {
      const table = `${I}/tables/t`;
      const rowKey = Buffer.from('r');
      const set = { familyName: 'f', columnQualifier: Buffer.from('q'), timestampMicros: 1000n, value: rowKey };
      const mutations = [{ mutation: { case: 'setCell' as const, value: set } }];
      const rules = [
        { familyName: 'f', columnQualifier: rowKey, rule: { case: 'incrementAmount' as const, value: 1n } },
      ];
      /** The codes of a read, a write, a batch, and the two kinds of transactions. */
      const codes = (appProfileId: string) =>
        Promise.all([
          codeOf(api.stream(data.readRows, { tableName: table, appProfileId })),
          codeOf(api.stream(data.sampleRowKeys, { tableName: table, appProfileId })),
          codeOf(api.ask(data.mutateRow, { tableName: table, rowKey, mutations, appProfileId })),
          codeOf(api.stream(data.mutateRows, { tableName: table, entries: [{ rowKey, mutations }], appProfileId })),
          codeOf(api.ask(data.checkAndMutateRow, { tableName: table, rowKey, trueMutations: mutations, appProfileId })),
          codeOf(api.ask(data.readModifyWriteRow, { tableName: table, rowKey, rules, appProfileId })),
        ]);
      const ok = 'OK';
      const no = 'FAILED_PRECONDITION';
      const none = Array.from({ length: 6 }, () => 'NOT_FOUND');
      /** Calls until they are answered so: other threads come to know a change by a watch. */
      const become = async (appProfileId: string, wanted: string[]) => {
        let got: string[] = [];
        for (let attempt = 0; attempt < 1000; attempt++) {
          got = await codes(appProfileId);
          if (got.join() === wanted.join()) return;
        }
        assert.deepEqual(got, wanted, appProfileId);
      };
      const make = (appProfileId: string, appProfile: object) =>
        api.ask(admin.createAppProfile, { parent: I, appProfileId, appProfile });
      const single = (allowTransactionalWrites: boolean) => ({
        routingPolicy: { case: 'singleClusterRouting', value: { clusterId: 'c-2', allowTransactionalWrites } },
      });

      // it was created with two clusters, so that its first profile routes to any
      await become('', [ok, ok, ok, ok, no, no]);
      await become('anything', [ok, ok, ok, ok, ok, ok]);
      await make('single', single(true));
      await make('no-transactions', single(false));
      await make('boost', { ...single(false), isolation: { case: 'dataBoostIsolationReadOnly', value: {} } });
      await become('anything', none);
      await become('single', [ok, ok, ok, ok, ok, ok]);
      await become('no-transactions', [ok, ok, ok, ok, no, no]);
      await become('boost', [ok, ok, no, no, no, no]);
      const name = `${I}/appProfiles/default`;
      assert.equal(await codeOf(api.ask(admin.deleteAppProfile, { name })), no);
      await api.ask(admin.deleteAppProfile, { name, ignoreWarnings: true });
      await become('', none);
    });

    test('one is deleted with all of its tables, unless one is protected or it is the default one', async () => {
      await api.ask(tables.createTable, { parent: I, tableId: 'kept', table: { deletionProtection: true } });
      assert.equal(await codeOf(api.ask(admin.deleteInstance, { name: I })), 'FAILED_PRECONDITION');
      assert.equal((await api.ask(tables.listTables, { parent: I })).tables.length, 2);
      await api.ask(tables.updateTable, {
        table: { name: `${I}/tables/kept` },
        updateMask: { paths: ['deletion_protection'] },
      });
      await api.ask(admin.deleteInstance, { name: I });
      assert.equal(await codeOf(api.ask(admin.getInstance, { name: I })), 'NOT_FOUND');
      assert.equal((await api.ask(tables.listTables, { parent: I })).tables.length, 0);
      assert.equal(await codeOf(api.ask(admin.deleteInstance, { name: I })), 'NOT_FOUND');
      assert.equal(
        await codeOf(api.ask(admin.deleteInstance, { name: 'projects/local/instances/local' })),
        'FAILED_PRECONDITION',
      );
      await create('prod');
      assert.deepEqual(
        (await api.ask(admin.listClusters, { parent: I })).clusters.map(({ name }) => name),
        [`${I}/clusters/c`],
      );
      assert.deepEqual(await listed('projects/p'), ['prod']);
    });

    test('of another form than the API has is refused with words', async () => {
      const wrong: [string, object][] = [
        ['', {}],
        ['a', {}],
        ['Upper', {}],
        ['under_score', {}],
        ['a/b', {}],
        ['ends-', {}],
        ['x'.repeat(34), {}],
        ['ok', { instance: undefined }],
        ['ok', { instance: {} }],
        ['ok', { instance: { displayName: 'x', labels: { Upper: 'x' } } }],
        ['ok', { instance: { displayName: 'x', labels: { low: 'UP' } } }],
        ['ok', { instance: { displayName: 'x', type: 9 } }],
        ['ok', { clusters: {} }],
        ['ok', { clusters: { c: {} } }],
        ['ok', { clusters: { C: { location: ZONE } } }],
        ['ok', { clusters: { c: { location: 'z' } } }],
        ['ok', { clusters: { c: { location: ZONE, serveNodes: -1 } } }],
        ['ok', { clusters: { c: { location: ZONE, serveNodes: 3, nodeScalingFactor: 2 } } }],
        ['ok', { clusters: { c: { location: ZONE, encryptionConfig: { kmsKeyName: 'k' } } } }],
        ['ok', { parent: 'p' }],
      ];
      for (const [id, more] of wrong)
        assert.equal(await codeOf(create(id, more)), 'INVALID_ARGUMENT', `${id} ${JSON.stringify(more)}`);
      assert.deepEqual(await listed('projects/p'), ['prod']);
    });
  });
}

test('instances and app profiles survive a restart', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'edubba-instances-'));
  const context = (database: Awaited<ReturnType<typeof openDatabase>>) =>
    requestContext({ budget: database.env.requestBudget });
  try {
    let database = await openDatabase({ directory });
    const cluster = {
      id: 'c',
      zone: 'z',
      nodes: 3,
      autoscaling: undefined,
      scalingFactor: undefined,
      storage: 'ssd',
    } as const;
    const description = { displayName: 'x', type: 'production', edition: 'enterprise', labels: { a: 'b' } } as const;
    await database.service.instances!.createInstance(context(database), {
      name: I,
      ...description,
      clusters: [cluster],
    });
    const before = await database.service.instances!.changeInstance(context(database), I, {
      kind: 'createAppProfile',
      profile: {
        id: 'reads',
        description: '',
        routing: { kind: 'any', clusters: [], hasRowAffinity: false },
        isolation: { kind: 'standard', priority: 'low' },
      },
    });
    await database.close();
    database = await openDatabase({ directory });
    assert.deepEqual(
      JSON.stringify(await database.service.instances!.getInstance(context(database), I)),
      JSON.stringify(before),
    );
    await database.close();
  } finally {
    await rm(directory, { recursive: true });
  }
});
