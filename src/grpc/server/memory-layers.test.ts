/** Memory layers and hot tablets through the API of each kind of server. What they do: test/behaviour. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import type { OpenDoor } from '../../../test/behaviour/doors.ts';
import { LASTING_DOORS, type LastingDatabase } from '../../../test/behaviour/lasting-doors.ts';
import {
  BigtableInstanceAdmin,
  UpdateMemoryLayerMetadataSchema,
} from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import {
  type HotTablet,
  type MemoryLayer,
  MemoryLayer_State as State,
  MemoryLayerSchema,
} from '../generated/google/bigtable/admin/v2/instance_pb.ts';
import { BigtableTableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { type Operation, Operations } from '../generated/google/longrunning/operations_pb.ts';
import { type ApiClient, apiClientOf, codeOf } from './fixtures.ts';

const admin = BigtableInstanceAdmin.method;
const INSTANCE = 'projects/p/instances/quick';
const layerOf = (cluster: string): string => `${INSTANCE}/clusters/${cluster}/memoryLayer`;
const NAME = layerOf('c-1');

for (const { name: doorName, make } of LASTING_DOORS.filter(({ name }) => name !== 'in this process')) {
  describe(`memory layers and hot tablets: ${doorName}`, () => {
    let database: LastingDatabase;
    let door: OpenDoor;
    let api: ApiClient;

    before(async () => {
      database = await make({ hotTabletPercent: 0 });
      door = await database.open();
      api = apiClientOf(door);
      const location = 'projects/p/locations/z';
      await api.ask(admin.createInstance, {
        parent: 'projects/p',
        instanceId: 'quick',
        instance: { displayName: 'x' },
        clusters: { 'c-1': { location }, 'c-2': { location } },
      });
    });
    after(async () => {
      api.close();
      await door.close();
      await database.remove();
    });

    const get = (name = NAME): Promise<MemoryLayer> => api.ask(admin.getMemoryLayer, { name });
    const update = (memoryLayer: object, ...paths: string[]): Promise<Operation> =>
      api.ask(admin.updateMemoryLayer, { memoryLayer: { name: NAME, ...memoryLayer }, updateMask: { paths } });
    const on = { memoryConfig: {} };

    test('an update is an operation with the memory layer, which is kept', async () => {
      const off = await get();
      assert.deepEqual([off.name, off.memoryConfig, off.state], [NAME, undefined, State.DISABLED]);
      const operation = await update(on, 'memory_config');
      assert.ok(operation.done && operation.result.case === 'response');
      const changed = anyUnpack(operation.result.value, MemoryLayerSchema)!;
      assert.deepEqual(changed, await get());
      assert.deepEqual([changed.name, changed.state], [NAME, State.READY]);
      assert.ok(changed.memoryConfig !== undefined && changed.etag !== off.etag);
      const metadata = anyUnpack(operation.metadata!, UpdateMemoryLayerMetadataSchema)!;
      assert.deepEqual(metadata.originalRequest?.memoryLayer?.name, NAME);
      assert.ok(metadata.requestTime !== undefined && metadata.finishTime !== undefined);
      assert.deepEqual(await api.ask(Operations.method.getOperation, { name: operation.name }), operation);
      assert.equal((await get(layerOf('c-2'))).state, State.DISABLED);
    });

    test('an etag of another state is refused, and that of the present one is taken', async () => {
      const { etag } = await get();
      assert.equal(await codeOf(update({ etag: 'x' }, 'memory_config')), 'ABORTED');
      assert.equal((await get()).state, State.READY);
      assert.equal(await codeOf(update({ etag }, 'memory_config')), 'OK');
      assert.equal((await get()).state, State.DISABLED);
      assert.equal(await codeOf(update({ etag, ...on }, 'memory_config')), 'ABORTED');
      assert.equal(await codeOf(update({ etag: (await get(layerOf('c-2'))).etag, ...on })), 'ABORTED');
    });

    test('a mask names the configuration, or nothing; what the server says is not set', async () => {
      for (const paths of [['name'], ['state'], ['etag'], ['nothing'], ['memory_config.storage_size_gib'], ['']])
        assert.equal(await codeOf(update(on, ...paths)), 'INVALID_ARGUMENT', String(paths));
      await update({ memoryConfig: { storageSizeGib: 99 }, state: State.RESIZING });
      const now = await get();
      assert.deepEqual([now.state, now.memoryConfig?.storageSizeGib], [State.READY, 0]);
      await update({});
      assert.equal((await get()).state, State.DISABLED);
      assert.equal(await codeOf(api.ask(admin.updateMemoryLayer, {})), 'INVALID_ARGUMENT');
    });

    test('it stays as it is while its cluster is changed, and goes with it', async () => {
      await update({ name: layerOf('c-2'), ...on });
      const before = await get(layerOf('c-2'));
      await api.ask(admin.updateCluster, { name: `${INSTANCE}/clusters/c-2`, serveNodes: 3 });
      assert.deepEqual(await get(layerOf('c-2')), before);
      await api.ask(admin.deleteCluster, { name: `${INSTANCE}/clusters/c-2` });
      assert.equal(await codeOf(get(layerOf('c-2'))), 'NOT_FOUND');
      await api.ask(admin.createCluster, {
        parent: INSTANCE,
        clusterId: 'c-2',
        cluster: { location: 'projects/p/locations/z' },
      });
      assert.equal((await get(layerOf('c-2'))).state, State.DISABLED);
    });

    test('those of an instance are listed in pages, and that of one cluster', async () => {
      const list = (cluster: string, more: object = {}) =>
        api.ask(admin.listMemoryLayers, { parent: `${INSTANCE}/clusters/${cluster}`, ...more });
      const names: string[][] = [];
      for (let pageToken = ''; ; ) {
        const page = await list('-', { pageSize: 1, pageToken });
        names.push(page.memoryLayers.map(({ name }) => name));
        pageToken = page.nextPageToken;
        if (pageToken === '') break;
      }
      assert.deepEqual(names, [[NAME], [layerOf('c-2')]]);
      assert.deepEqual((await list('c-2')).memoryLayers, [await get(layerOf('c-2'))]);
      assert.equal(await codeOf(list('none')), 'NOT_FOUND');
      assert.equal(await codeOf(list('-', { pageSize: -1 })), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(list('-', { pageToken: 'eHl6' })), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(api.ask(admin.listMemoryLayers, { parent: INSTANCE })), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(get(`${INSTANCE}/clusters/c-1`)), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(get(layerOf('none'))), 'NOT_FOUND');
      assert.equal(await codeOf(get('projects/p/instances/none/clusters/c/memoryLayer')), 'NOT_FOUND');
    });

    test('hot tablets are listed in pages of one list, with their keys as texts', async () => {
      const splits = [Buffer.from('größe'), Buffer.from([0x67, 0xff]), Buffer.from('m\0')];
      await api.ask(BigtableTableAdmin.method.createTable, {
        parent: INSTANCE,
        tableId: 't',
        table: { columnFamilies: { f: {} } },
        initialSplits: splits.map((key) => ({ key })),
      });
      const rows = [Buffer.from('a'), ...splits];
      for (const [i, rowKey] of rows.entries())
        for (let times = 0; times <= 3 * i; times++)
          await api.ask(Bigtable.method.mutateRow, {
            tableName: `${INSTANCE}/tables/t`,
            rowKey,
            mutations: [{ mutation: { case: 'setCell', value: { familyName: 'f', timestampMicros: 1000n } } }],
          });
      const parent = `${INSTANCE}/clusters/c-1`;
      const list = (more: object) => api.ask(admin.listHotTablets, { parent, ...more });
      const found: HotTablet[] = [];
      const first = await list({ pageSize: 3 });
      found.push(...first.hotTablets);
      assert.ok(first.hotTablets.length === 3 && first.nextPageToken !== '');
      const second = await list({ pageToken: first.nextPageToken });
      found.push(...second.hotTablets);
      assert.equal(second.nextPageToken, '');
      assert.deepEqual(found.map(({ startKey, endKey }) => `${startKey}..${endKey}`).sort(), [
        '..größe',
        'g\\xff..m',
        'größe..g\\xff',
        'm\0..',
      ]);
      for (const { name, tableName } of found) {
        assert.match(name, /^projects\/p\/instances\/quick\/clusters\/c-1\/hotTablets\/[-_a-zA-Z0-9]+$/);
        assert.equal(tableName, `${INSTANCE}/tables/t`);
      }
      const heat = found.map(({ nodeCpuUsagePercent }) => nodeCpuUsagePercent);
      assert.deepEqual(
        heat,
        [...heat].sort((a, b) => b - a),
      );
      const pageToken = first.nextPageToken;
      assert.equal(await codeOf(list({ pageToken, pageSize: 3 })), 'OK');
      assert.equal(await codeOf(list({ pageToken, pageSize: 4 })), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(list({ pageToken, startTime: { seconds: 1n } })), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(list({ pageToken, parent: `${INSTANCE}/clusters/c-2` })), 'INVALID_ARGUMENT');
      for (const wrong of [
        'x',
        Buffer.from('[]').toString('base64url'),
        Buffer.from('[1,2,3,4,5,6]').toString('base64url'),
      ])
        assert.equal(await codeOf(list({ pageToken: wrong })), 'INVALID_ARGUMENT', wrong);
      assert.equal(await codeOf(list({ pageSize: -1 })), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(list({ parent: INSTANCE })), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(list({ parent: `${INSTANCE}/clusters/none` })), 'NOT_FOUND');
      assert.equal(await codeOf(list({ startTime: { seconds: 1n } })), 'INVALID_ARGUMENT');
    });
  });
}
