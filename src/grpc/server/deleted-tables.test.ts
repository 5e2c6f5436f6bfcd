/** Tables that are deleted, kept and restored, through the API of each kind of server. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { DOORS, type OpenDoor } from '../../../test/behaviour/doors.ts';
import { Control } from '../generated/edubba/v1/control_pb.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import {
  BigtableTableAdmin,
  UndeleteTableMetadataSchema,
} from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { TableSchema } from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { Operations } from '../generated/google/longrunning/operations_pb.ts';
import { type ApiClient, apiClientOf, codeOf } from './fixtures.ts';

const admin = BigtableTableAdmin.method;
const INSTANCE = 'projects/p/instances/deleted';
const DAY_MS = 86_400_000;
const DAY_MICROS = BigInt(DAY_MS) * 1000n;
const READER = 'roles/bigtable.reader';

for (const { name: doorName, open } of DOORS.filter((door) => door.isServer)) {
  describe(`deleted tables: ${doorName}`, () => {
    let door: OpenDoor;
    let api: ApiClient;

    before(async () => {
      door = await open({ keepDeletedMs: 7 * DAY_MS });
      api = apiClientOf(door);
    });
    after(async () => {
      api.close();
      await door.close();
    });

    const create = async (tableId: string, ...rows: string[]): Promise<string> => {
      const table = await api.ask(admin.createTable, {
        parent: INSTANCE,
        tableId,
        table: { columnFamilies: { f: { gcRule: { rule: { case: 'maxNumVersions', value: 3 } } }, g: {} } },
        initialSplits: [{ key: Buffer.from('m') }],
      });
      for (const row of rows)
        await api.ask(Bigtable.method.mutateRow, {
          tableName: table.name,
          rowKey: Buffer.from(row),
          mutations: [{ mutation: { case: 'setCell', value: { familyName: 'f', timestampMicros: 1000n } } }],
        });
      return table.name;
    };
    const rowsOf = async (tableName: string, more: object = { tableName }): Promise<string[]> => {
      const answers = await api.stream(Bigtable.method.readRows, more);
      return answers.flatMap(({ chunks }) => chunks.map(({ rowKey }) => Buffer.from(rowKey).toString()));
    };
    const remove = (name: string) => api.ask(admin.deleteTable, { name });
    const undelete = (name: string) => api.ask(admin.undeleteTable, { name });
    const removeAtOnce = (table: string) => api.ask(Control.method.deleteTableAtOnce, { table });
    const listed = async (prefix = `${INSTANCE}/tables/`) =>
      (await api.stream(Control.method.listDeletedTables, { prefix })).flatMap(({ tables }) => tables);
    const policyOf = async (resource: string): Promise<string[]> =>
      (await api.ask(admin.getIamPolicy, { resource })).bindings.flatMap(({ role, members }) =>
        role === READER ? members : [],
      );
    const setPolicy = (resource: string, ...members: string[]) =>
      api.ask(admin.setIamPolicy, {
        resource,
        policy: {
          bindings: [
            { role: READER, members },
            { role: 'roles/bigtable.admin', members: ['allUsers'] },
          ],
        },
      });
    const createView = (parent: string, authorizedViewId: string, prefix: string) =>
      api.ask(admin.createAuthorizedView, {
        parent,
        authorizedViewId,
        authorizedView: {
          authorizedView: {
            case: 'subsetView',
            value: {
              rowPrefixes: [Buffer.from(prefix)],
              familySubsets: { f: { qualifierPrefixes: [Buffer.alloc(0)] } },
            },
          },
        },
      });

    test('a table is restored with its rows and its schema; the operation tells when', async () => {
      const name = await create('t', 'a', 'n');
      const before = await api.ask(admin.getTable, { name });
      await remove(name);
      assert.equal(await codeOf(api.ask(admin.getTable, { name })), 'NOT_FOUND');
      assert.equal(await codeOf(rowsOf(name)), 'NOT_FOUND');
      assert.equal(await codeOf(remove(name)), 'NOT_FOUND');
      const { tables } = await api.ask(admin.listTables, { parent: INSTANCE });
      assert.deepEqual(tables, []);
      const [kept] = await listed();
      assert.equal(kept?.name, name);
      assert.equal(kept.keptUntilMicros - kept.deletedMicros, 7n * DAY_MICROS);

      const restored = await undelete(name);
      const metadata = anyUnpack(restored.metadata!, UndeleteTableMetadataSchema)!;
      assert.equal(metadata.name, name);
      assert.ok(metadata.startTime!.seconds <= metadata.endTime!.seconds);
      assert.equal(anyUnpack(restored.result.value as never, TableSchema)!.name, name);
      assert.ok((await api.ask(Operations.method.getOperation, { name: restored.name })).done);
      assert.deepEqual(await api.ask(admin.getTable, { name }), before);
      assert.deepEqual(await rowsOf(name), ['a', 'n']);
      assert.deepEqual(await listed(), []);
      assert.equal(await codeOf(undelete(name)), 'ALREADY_EXISTS');
      await removeAtOnce(name);
      assert.equal(await codeOf(undelete(name)), 'NOT_FOUND');
    });

    test('policies, views and bundles are restored with their table, and are not those of a later one', async () => {
      const name = await create('p', 'a1', 'b1');
      await createView(name, 'v', 'a');
      const view = `${name}/authorizedViews/v`;
      await setPolicy(name, 'user:one');
      await setPolicy(`${name}/columnFamilies/g`, 'user:two');
      await setPolicy(view, 'user:three');
      await remove(name);

      await create('p', 'z');
      for (const resource of [name, `${name}/columnFamilies/g`]) assert.deepEqual(await policyOf(resource), []);
      assert.equal(await codeOf(api.ask(admin.getAuthorizedView, { name: view })), 'NOT_FOUND');
      await createView(name, 'v', 'z');
      await createView(name, 'other', 'z');
      await setPolicy(name, 'user:later');
      await removeAtOnce(name);

      await undelete(name);
      assert.deepEqual(await policyOf(name), ['user:one']);
      assert.deepEqual(await policyOf(`${name}/columnFamilies/g`), ['user:two']);
      assert.deepEqual(await policyOf(view), ['user:three']);
      assert.deepEqual(await rowsOf(name, { authorizedViewName: view }), ['a1']);
      const { authorizedViews } = await api.ask(admin.listAuthorizedViews, { parent: name });
      assert.deepEqual(
        authorizedViews.map((each) => each.name),
        [view],
      );
      await setPolicy(name, 'user:four');
      await remove(name);
      await undelete(name);
      assert.deepEqual(await policyOf(name), ['user:four']);
      await removeAtOnce(name);
    });

    test('the table that was deleted last is restored; with that removed, the one before it', async () => {
      const name = await create('n', 'first');
      await remove(name);
      await create('n', 'second');
      await remove(name);
      assert.equal((await listed()).length, 2);
      await create('n', 'third');
      assert.equal(await codeOf(undelete(name)), 'ALREADY_EXISTS');
      await removeAtOnce(name);
      await undelete(name);
      assert.deepEqual(await rowsOf(name), ['second']);
      await removeAtOnce(name);
      await undelete(name);
      assert.deepEqual(await rowsOf(name), ['first']);
      await remove(name);
      await removeAtOnce(name);
      assert.equal(await codeOf(removeAtOnce(name)), 'NOT_FOUND');
      assert.deepEqual(await listed(), []);
    });

    test('a backup of a deleted table is restored, and the table after it', async () => {
      const name = await create('b', 'a');
      const cluster = `${INSTANCE}/clusters/edubba`;
      const expireTime = { seconds: BigInt(Math.floor(Date.now() / 1000) + 86_400), nanos: 0 };
      await api.ask(BigtableInstanceAdmin.method.getInstance, { name: INSTANCE });
      await api.ask(admin.createBackup, {
        parent: cluster,
        backupId: 'one',
        backup: { sourceTable: name, expireTime },
      });
      await remove(name);
      const source = { case: 'backup' as const, value: `${cluster}/backups/one` };
      await api.ask(admin.restoreTable, { parent: INSTANCE, tableId: 'of-b', source });
      assert.deepEqual(await rowsOf(`${INSTANCE}/tables/of-b`), ['a']);
      assert.equal(await codeOf(undelete(name)), 'OK');
      assert.deepEqual(await rowsOf(name), ['a']);
      await api.ask(admin.deleteBackup, { name: source.value });
      assert.deepEqual(await rowsOf(name), ['a']);
      for (const table of [name, `${INSTANCE}/tables/of-b`]) await removeAtOnce(table);
    });

    test('a protected view protects its table, also from an immediate deletion', async () => {
      const name = await create('w', 'a');
      await createView(name, 'v', 'a');
      const view = { name: `${name}/authorizedViews/v` };
      const protect = (deletionProtection: boolean) =>
        api.ask(admin.updateAuthorizedView, {
          authorizedView: { ...view, deletionProtection },
          updateMask: { paths: ['deletion_protection'] },
        });
      await protect(true);
      assert.equal(await codeOf(remove(name)), 'FAILED_PRECONDITION');
      assert.equal(await codeOf(removeAtOnce(name)), 'FAILED_PRECONDITION');
      await protect(false);
      await removeAtOnce(name);
    });

    test('the deleted tables of an instance go with it', async () => {
      const parent = 'projects/p';
      const instance = `${parent}/instances/gone`;
      await api.ask(BigtableInstanceAdmin.method.createInstance, {
        parent,
        instanceId: 'gone',
        instance: { displayName: 'x' },
        clusters: { c: { location: 'projects/p/locations/z' } },
      });
      for (let i = 0; i < 2; i++) {
        await api.ask(admin.createTable, { parent: instance, tableId: 't' });
        await remove(`${instance}/tables/t`);
      }
      assert.equal((await listed(instance)).length, 2);
      await api.ask(BigtableInstanceAdmin.method.deleteInstance, { name: instance });
      assert.deepEqual(await listed(instance), []);
      assert.equal(await codeOf(undelete(`${instance}/tables/t`)), 'NOT_FOUND');
    });
  });
}
