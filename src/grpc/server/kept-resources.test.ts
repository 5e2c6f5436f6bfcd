/**
 * Views that are defined by SQL, and schema bundles, through the API of each kind of server: they are kept, changed
 * under their etag, and go with their parent.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { create, toBinary } from '@bufbuild/protobuf';
import { anyUnpack, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { DOORS, type OpenDoor } from '../../../test/behaviour/doors.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { BigtableTableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { LogicalViewSchema } from '../generated/google/bigtable/admin/v2/instance_pb.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { type ApiClient, apiClientOf, codeOf } from './fixtures.ts';

const admin = BigtableInstanceAdmin.method;
const tables = BigtableTableAdmin.method;
const data = Bigtable.method;

const INSTANCE = 'projects/p/instances/views';
const TABLE = `${INSTANCE}/tables/t`;
const QUERY = 'SELECT _key FROM t';

interface Field {
  readonly name: string;
  readonly number: number;
  readonly type: number;
}

/** The bytes of a descriptor of one message. */
function descriptors(fields: readonly Field[], dependency: string[] = [], name = 'M'): Uint8Array {
  const field = fields.map((each) => ({ ...each, label: 1 }));
  const file = [{ name: 'a.proto', package: 'x', syntax: 'proto3', dependency, messageType: [{ name, field }] }];
  return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file } as never));
}

const A: Field = { name: 'a', number: 1, type: 9 };
const B: Field = { name: 'b', number: 2, type: 3 };

for (const { name: doorName, open } of DOORS.filter((door) => door.isServer)) {
  describe(`resources that are kept: ${doorName}`, () => {
    let door: OpenDoor;
    let api: ApiClient;

    before(async () => {
      door = await open();
      api = apiClientOf(door);
      await api.ask(admin.createInstance, {
        parent: 'projects/p',
        instanceId: 'views',
        instance: { displayName: 'x' },
        clusters: { c: { location: 'projects/p/locations/z' } },
      });
      await createTable();
    });
    after(async () => {
      api.close();
      await door.close();
    });

    const createTable = () => api.ask(tables.createTable, { parent: INSTANCE, tableId: 't', table: {} });

    test('a logical view is kept, changed under its etag, protected and deleted', async () => {
      const name = `${INSTANCE}/logicalViews/v`;
      const make = (logicalViewId: string, logicalView?: object) =>
        api.ask(admin.createLogicalView, { parent: INSTANCE, logicalViewId, ...(logicalView && { logicalView }) });
      const operation = await make('v', { query: QUERY });
      const made = await api.ask(admin.getLogicalView, { name });
      assert.deepEqual([made.name, made.query, made.deletionProtection], [name, QUERY, false]);
      assert.equal(operation.result.case, 'response');
      assert.deepEqual(anyUnpack(operation.result.value as never, LogicalViewSchema), made);
      assert.equal(await codeOf(make('v', { query: QUERY })), 'ALREADY_EXISTS');
      for (const [id, view] of [
        ['', { query: QUERY }],
        ['a/b', { query: QUERY }],
        ['w', {}],
        ['w', { query: ' ' }],
        ['w'],
      ])
        assert.equal(await codeOf(make(id as string, view as object)), 'INVALID_ARGUMENT', JSON.stringify([id, view]));
      assert.equal(await codeOf(make('w', { query: 'x'.repeat(65 * 1024) })), 'INVALID_ARGUMENT');

      const update = (logicalView: object, ...paths: string[]) =>
        api.ask(admin.updateLogicalView, { logicalView: { name, ...logicalView }, updateMask: { paths } });
      await update({ deletionProtection: true, etag: made.etag }, 'deletion_protection');
      const changed = await api.ask(admin.getLogicalView, { name });
      assert.deepEqual([changed.query, changed.deletionProtection], [QUERY, true]);
      assert.equal(await codeOf(update({ query: 'x', etag: made.etag }, 'query')), 'ABORTED');
      assert.equal(await codeOf(update({}, 'name')), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(update({}, 'query')), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(api.ask(admin.deleteLogicalView, { name })), 'FAILED_PRECONDITION');
      await update({ query: 'SELECT 1' });
      const replaced = await api.ask(admin.getLogicalView, { name });
      assert.deepEqual([replaced.query, replaced.deletionProtection], ['SELECT 1', false]);
      assert.equal(await codeOf(api.ask(admin.deleteLogicalView, { name, etag: made.etag })), 'ABORTED');
      await api.ask(admin.deleteLogicalView, { name, etag: replaced.etag });
      assert.equal(await codeOf(api.ask(admin.getLogicalView, { name })), 'NOT_FOUND');
      assert.equal(await codeOf(api.ask(admin.deleteLogicalView, { name })), 'NOT_FOUND');
    });

    test('views are listed in pages, up to a hundred, and no instance has those of another', async () => {
      for (let i = 0; i < 100; i++)
        await api.ask(admin.createLogicalView, {
          parent: INSTANCE,
          logicalViewId: `v${i}`,
          logicalView: { query: QUERY },
        });
      const more = { parent: INSTANCE, logicalViewId: 'more', logicalView: { query: QUERY } };
      assert.equal(await codeOf(api.ask(admin.createLogicalView, more)), 'RESOURCE_EXHAUSTED');
      const ids: string[] = [];
      for (let pageToken = ''; ; ) {
        const page = await api.ask(admin.listLogicalViews, { parent: INSTANCE, pageSize: 40, pageToken });
        ids.push(...page.logicalViews.map(({ name }) => name.split('/')[5]!));
        pageToken = page.nextPageToken;
        if (pageToken === '') break;
      }
      assert.deepEqual(ids, Array.from({ length: 100 }, (_, i) => `v${i}`).sort());
      const none = 'projects/p/instances/none';
      assert.equal(await codeOf(api.ask(admin.listLogicalViews, { parent: none })), 'NOT_FOUND');
      assert.equal(await codeOf(api.ask(admin.createLogicalView, { ...more, parent: none })), 'NOT_FOUND');
      const other = await api.ask(admin.listLogicalViews, { parent: 'projects/local/instances/local' });
      assert.deepEqual(other.logicalViews, []);
    });

    test('a materialized view never changes its query, and a read of it says why it fails', async () => {
      const name = `${INSTANCE}/materializedViews/m`;
      const read = () => codeOf(api.stream(data.readRows, { materializedViewName: name }));
      const sample = () => codeOf(api.stream(data.sampleRowKeys, { materializedViewName: name }));
      assert.deepEqual([await read(), await sample()], ['NOT_FOUND', 'NOT_FOUND']);
      await api.ask(admin.createMaterializedView, {
        parent: INSTANCE,
        materializedViewId: 'm',
        materializedView: { query: QUERY, deletionProtection: true },
      });
      assert.deepEqual([await read(), await sample()], ['FAILED_PRECONDITION', 'FAILED_PRECONDITION']);
      const update = (materializedView: object, ...paths: string[]) =>
        api.ask(admin.updateMaterializedView, {
          materializedView: { name, ...materializedView },
          updateMask: { paths },
        });
      assert.equal(await codeOf(update({ query: 'x' }, 'query')), 'INVALID_ARGUMENT');
      assert.equal(await codeOf(api.ask(admin.deleteMaterializedView, { name })), 'FAILED_PRECONDITION');
      await update({}, 'deletion_protection');
      const views = (await api.ask(admin.listMaterializedViews, { parent: INSTANCE })).materializedViews;
      assert.deepEqual(
        views.map(({ query, deletionProtection }) => [query, deletionProtection]),
        [[QUERY, false]],
      );
      assert.deepEqual(await api.ask(admin.getMaterializedView, { name }), views[0]);
      await api.ask(admin.deleteMaterializedView, { name });
      assert.equal(await codeOf(api.ask(admin.getMaterializedView, { name })), 'NOT_FOUND');
    });

    test('a schema bundle is whole, and stays compatible unless warnings are ignored', async () => {
      const name = `${TABLE}/schemaBundles/b`;
      const proto = (protoDescriptors: Uint8Array) => ({
        type: { case: 'protoSchema' as const, value: { protoDescriptors } },
      });
      const make = (schemaBundle: object, schemaBundleId = 'b', parent = TABLE) =>
        api.ask(tables.createSchemaBundle, { parent, schemaBundleId, schemaBundle });
      const avro = (...jsonSchemas: string[]) => ({ type: { case: 'avroSchema' as const, value: { jsonSchemas } } });
      for (const bundle of [
        {},
        proto(Buffer.alloc(0)),
        proto(Buffer.from('not descriptors')),
        proto(descriptors([A], ['missing.proto'])),
        proto(descriptors([{ ...A, type: 11 }])),
        avro(),
        avro('{'),
        avro('{"type": "record", "name": "R", "fields": [{"name": "f", "type": "Unknown"}]}'),
      ])
        assert.equal(await codeOf(make(bundle)), 'INVALID_ARGUMENT', JSON.stringify(bundle));
      assert.equal(await codeOf(make(proto(descriptors([A, B])), 'b', `${INSTANCE}/tables/none`)), 'NOT_FOUND');
      await make(proto(descriptors([A, B])));
      await make(avro('{"type": "record", "name": "R", "fields": [{"name": "f", "type": ["null", "R"]}]}'), 'c');

      const update = (bundle: object, ignoreWarnings = false) =>
        codeOf(api.ask(tables.updateSchemaBundle, { schemaBundle: { name, ...bundle }, ignoreWarnings }));
      assert.equal(await update(proto(descriptors([A, B, { name: 'c', number: 3, type: 9 }]))), 'OK');
      assert.equal(await update(proto(descriptors([A]))), 'FAILED_PRECONDITION');
      assert.equal(await update(proto(descriptors([A, { ...B, type: 9 }]))), 'FAILED_PRECONDITION');
      assert.equal(await update(proto(descriptors([A, B], [], 'N'))), 'FAILED_PRECONDITION');
      assert.equal(await update(avro('"string"')), 'FAILED_PRECONDITION');
      assert.equal(await update(proto(descriptors([A])), true), 'OK');
      const { type } = await api.ask(tables.getSchemaBundle, { name });
      assert.deepEqual(
        type.case === 'protoSchema' && Buffer.from(type.value.protoDescriptors),
        Buffer.from(descriptors([A])),
      );
      const listed = async () =>
        (await api.ask(tables.listSchemaBundles, { parent: TABLE })).schemaBundles.map(
          (each) => each.name.split('/')[7],
        );
      assert.deepEqual(await listed(), ['b', 'c']);
      await api.ask(tables.deleteSchemaBundle, { name });
      assert.deepEqual(await listed(), ['c']);
    });

    test('they go with their table and their instance', async () => {
      await api.ask(tables.deleteTable, { name: TABLE });
      const bundles = () => api.ask(tables.listSchemaBundles, { parent: TABLE });
      assert.equal(await codeOf(bundles()), 'NOT_FOUND');
      await createTable();
      assert.deepEqual((await bundles()).schemaBundles, []);
      await api.ask(admin.deleteInstance, { name: INSTANCE });
      await createTable();
      assert.deepEqual((await api.ask(admin.listLogicalViews, { parent: INSTANCE })).logicalViews, []);
    });
  });
}
