/**
 * Instances and clusters over a real connection: what each name stands for, which are listed, and which names are
 * invalid.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  create,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { Code } from '../../base/index.ts';
import type { TableSchema } from '../../model/index.ts';
import type { Service } from '../../service/index.ts';
import { apiServer } from '../fixtures.ts';
import { testEnv } from '../../../test/raw-server.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { BigtableTableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { StorageType } from '../generated/google/bigtable/admin/v2/common_pb.ts';
import {
  Cluster_State as ClusterState,
  Instance_State as InstanceState,
  Instance_Type as InstanceType,
} from '../generated/google/bigtable/admin/v2/instance_pb.ts';
import {
  Table_ClusterState_ReplicationState as ReplicationState,
  Table_View as View,
} from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { registerCloudApi } from './cloud-api.ts';

const admin = BigtableInstanceAdmin.method;
const TABLES = [
  'projects/p/instances/b/tables/t',
  'projects/p/instances/a/tables/t',
  'projects/p/instances/a/tables/u',
  'projects/pp/instances/c/tables/t',
  'projects/local/instances/z/tables/t',
];

describe('instances and clusters', () => {
  const schemas = TABLES.map(
    (name): TableSchema => ({ name, id: '1', granularity: 'millis', families: {}, deletionProtection: false }),
  );
  const service: Partial<Service> = {
    listTables: async (_context, prefix) => schemas.filter(({ name }) => name.startsWith(prefix)),
    getTable: async () => schemas[0] as TableSchema,
  };
  const env = testEnv();
  let wire: Awaited<ReturnType<typeof apiServer>>;

  before(async () => {
    wire = await apiServer(env, (server) => void registerCloudApi(server, service as Service, env));
  });

  after(() => wire.close());

  async function ask<I extends DescMethod['input'], O extends DescMethod['output']>(
    method: DescMethod & { readonly input: I; readonly output: O },
    request: MessageInitShape<I>,
  ): Promise<{ code: number; message: string; answer: MessageShape<O> }> {
    const { code, message, messages } = await wire.call(`/${method.parent.typeName}/${method.name}`, [
      Buffer.from(toBinary(method.input, create(method.input, request))),
    ]);
    return { code, message, answer: fromBinary(method.output, messages[0] ?? Buffer.alloc(0)) };
  }

  test('every instance exists and is ready, with tables or without', async () => {
    for (const name of [
      'projects/p/instances/a',
      'projects/anything/instances/any-thing',
      'projects/local/instances/local',
    ]) {
      const { code, answer } = await ask(admin.getInstance, { name });
      assert.deepEqual(
        [code, answer.name, answer.displayName, answer.state, answer.type],
        [Code.OK, name, name.split('/')[3], InstanceState.READY, InstanceType.PRODUCTION],
      );
    }
  });

  test('instances that hold tables are listed; where none does, the default one', async () => {
    const listed = async (parent: string) =>
      (await ask(admin.listInstances, { parent })).answer.instances.map(({ name }) => name);
    assert.deepEqual(await listed('projects/p'), ['projects/p/instances/a', 'projects/p/instances/b']);
    assert.deepEqual(await listed('projects/none'), ['projects/none/instances/local']);
    assert.deepEqual(await listed('projects/local'), ['projects/local/instances/local', 'projects/local/instances/z']);
  });

  test('an instance has one cluster', async () => {
    const listed = async (parent: string) =>
      (await ask(admin.listClusters, { parent })).answer.clusters.map(({ name }) => name);
    assert.deepEqual(await listed('projects/p/instances/a'), ['projects/p/instances/a/clusters/edubba']);
    assert.deepEqual(await listed('projects/p/instances/-'), [
      'projects/p/instances/a/clusters/edubba',
      'projects/p/instances/b/clusters/edubba',
    ]);
    const name = 'projects/p/instances/a/clusters/whatever';
    const { answer } = await ask(admin.getCluster, { name });
    assert.deepEqual(
      [answer.name, answer.location, answer.state, answer.serveNodes, answer.defaultStorageType],
      [name, 'projects/p/locations/local', ClusterState.READY, 1, StorageType.SSD],
    );
  });

  test('names of another form are refused with the form', async () => {
    const wrong = [
      '',
      'p',
      'projects',
      'projects/',
      'projects/p/',
      'projects//instances/i',
      'projects/p/instances/',
      'projects/p/instances/i/tables/t',
      `projects/p/instances/${'i'.repeat(1001)}`,
      'x'.repeat(100_000),
    ];
    for (const name of wrong) {
      for (const outcome of [
        await ask(admin.getInstance, { name }),
        await ask(admin.listInstances, { parent: name }),
        await ask(admin.getCluster, { name }),
        await ask(admin.listClusters, { parent: name }),
      ]) {
        assert.equal(outcome.code, Code.INVALID_ARGUMENT, name.slice(0, 50));
        assert.match(outcome.message, /^(name|parent) ".*"( \(\d+ bytes\))? must be projects\/PROJECT/);
        assert.ok(outcome.message.length < 500);
      }
    }
  });

  test('instances are not created or changed: the answer names the call', async () => {
    const { code, message } = await ask(admin.createInstance, { parent: 'projects/p', instanceId: 'i' });
    assert.deepEqual(
      [code, message],
      [
        Code.UNIMPLEMENTED,
        'google.bigtable.admin.v2.BigtableInstanceAdmin/CreateInstance is not implemented by Edubba',
      ],
    );
  });

  test('the replication view of a table says that the one cluster is ready', async () => {
    const statesIn = async (view: View) => {
      const { answer } = await ask(BigtableTableAdmin.method.getTable, { name: TABLES[0] as string, view });
      return Object.entries(answer.clusterStates).map(([cluster, { replicationState }]) => [cluster, replicationState]);
    };
    for (const view of [View.REPLICATION_VIEW, View.FULL])
      assert.deepEqual(await statesIn(view), [['edubba', ReplicationState.READY]]);
    for (const view of [View.VIEW_UNSPECIFIED, View.NAME_ONLY, View.SCHEMA_VIEW, View.ENCRYPTION_VIEW])
      assert.deepEqual(await statesIn(view), []);
  });
});
