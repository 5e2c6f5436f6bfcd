/** Backups through the API of each kind of server. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { DOORS, type OpenDoor } from '../../../test/behaviour/doors.ts';
import { connect, openDatabase } from '../../boot/index.ts';
import { requestContext } from '../../env/index.ts';
import { backupPath } from '../../metadata/index.ts';
import type { Backup } from '../../model/index.ts';
import { startServer } from '../../server/index.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import {
  BigtableTableAdmin,
  CopyBackupMetadataSchema,
  CreateBackupMetadataSchema,
  RestoreTableMetadataSchema,
} from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import {
  Backup_BackupType as BackupType,
  Backup_State as State,
  BackupSchema,
  RestoreSourceType,
  TableSchema,
} from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { Operations } from '../generated/google/longrunning/operations_pb.ts';
import { backupFilter, backupOrder } from './backup-filter.ts';
import { type ApiClient, apiClientOf, codeOf } from './fixtures.ts';

const admin = BigtableTableAdmin.method;
const INSTANCE = 'projects/p/instances/backups';
const CLUSTER = `${INSTANCE}/clusters/c`;
const TABLE = `${INSTANCE}/tables/t`;
const HOURS = 3600;
const inHours = (hours: number) => ({ seconds: BigInt(Math.floor(Date.now() / 1000) + hours * HOURS), nanos: 0 });

for (const { name: doorName, open } of DOORS.filter((door) => door.isServer)) {
  describe(`backups: ${doorName}`, () => {
    let door: OpenDoor;
    let api: ApiClient;

    before(async () => {
      door = await open();
      api = apiClientOf(door);
      await api.ask(BigtableInstanceAdmin.method.createInstance, {
        parent: 'projects/p',
        instanceId: 'backups',
        instance: { displayName: 'x' },
        clusters: { c: { location: 'projects/p/locations/z' } },
      });
      await api.ask(admin.createTable, {
        parent: INSTANCE,
        tableId: 't',
        table: {
          columnFamilies: { f: { gcRule: { rule: { case: 'maxNumVersions', value: 3 } } } },
          deletionProtection: true,
        },
        initialSplits: [{ key: Buffer.from('m') }],
      });
      await set('a', 'n');
    });
    after(async () => {
      api.close();
      await door.close();
    });

    const set = async (...rows: string[]): Promise<void> => {
      for (const row of rows)
        await api.ask(Bigtable.method.mutateRow, {
          tableName: TABLE,
          rowKey: Buffer.from(row),
          mutations: [{ mutation: { case: 'setCell', value: { familyName: 'f', timestampMicros: 1000n } } }],
        });
    };
    const rowsOf = async (table: string): Promise<string[]> => {
      const answers = await api.stream(Bigtable.method.readRows, { tableName: `${INSTANCE}/tables/${table}` });
      return answers.flatMap(({ chunks }) => chunks.map(({ rowKey }) => Buffer.from(rowKey).toString()));
    };
    const backUp = (backupId: string, more: object = {}, parent = CLUSTER) =>
      api.ask(admin.createBackup, {
        parent,
        backupId,
        backup: { sourceTable: TABLE, expireTime: inHours(24), ...more },
      });
    const restore = (backup: string, tableId: string) =>
      api.ask(admin.restoreTable, {
        parent: INSTANCE,
        tableId,
        source: { case: 'backup', value: `${CLUSTER}/backups/${backup}` },
      });

    test('a table is backed up and restored; the operations tell when and what', async () => {
      const made = await backUp('one');
      const [metadata, answer] = [
        anyUnpack(made.metadata!, CreateBackupMetadataSchema)!,
        anyUnpack(made.result.value as never, BackupSchema)!,
      ];
      assert.deepEqual([metadata.name, metadata.sourceTable], [`${CLUSTER}/backups/one`, TABLE]);
      const backup = await api.ask(admin.getBackup, { name: metadata.name });
      assert.deepEqual(answer, backup);
      assert.equal(backup.encryptionInfo?.encryptionType, 0, 'a client that looks for the type finds none');
      assert.deepEqual(
        [backup.state, backup.backupType, backup.sourceTable],
        [State.READY, BackupType.STANDARD, TABLE],
      );
      assert.ok(backup.sizeBytes > 0n && metadata.startTime!.seconds <= backup.endTime!.seconds);
      const found = await api.ask(Operations.method.getOperation, { name: made.name });
      assert.ok(found.done);

      await set('b');
      const restored = await restore('one', 'u');
      const info = anyUnpack(restored.metadata!, RestoreTableMetadataSchema)!;
      assert.deepEqual(
        [info.name, info.sourceType, info.sourceInfo.value?.backup, info.progress?.progressPercent],
        [`${INSTANCE}/tables/u`, RestoreSourceType.BACKUP, metadata.name, 100],
      );
      const table = anyUnpack(restored.result.value as never, TableSchema)!;
      assert.equal(table.deletionProtection, false);
      assert.deepEqual(await rowsOf('u'), ['a', 'n']);
      const { columnFamilies, restoreInfo } = await api.ask(admin.getTable, { name: table.name });
      assert.deepEqual(restoreInfo, table.restoreInfo);
      assert.deepEqual(
        [restoreInfo?.sourceType, restoreInfo?.sourceInfo.value],
        [RestoreSourceType.BACKUP, info.sourceInfo.value],
      );
      assert.deepEqual(info.sourceInfo.value?.endTime, backup.endTime);
      assert.equal((await api.ask(admin.getTable, { name: TABLE })).restoreInfo, undefined);
      assert.equal(columnFamilies['f']?.gcRule?.rule.value, 3);
      await api.ask(admin.deleteBackup, { name: metadata.name });
      assert.equal(await codeOf(api.ask(admin.getBackup, { name: metadata.name })), 'NOT_FOUND');
      assert.equal(await codeOf(restore('one', 'v')), 'NOT_FOUND');
      assert.deepEqual(await rowsOf('u'), ['a', 'n']);
    });

    test('a backup is copied, and its times are changed', async () => {
      await backUp('two', { backupType: BackupType.HOT, hotToStandardTime: inHours(48) });
      const name = `${CLUSTER}/backups/two`;
      const copied = await api.ask(admin.copyBackup, {
        parent: CLUSTER,
        backupId: 'copy',
        sourceBackup: name,
        expireTime: inHours(12),
      });
      const metadata = anyUnpack(copied.metadata!, CopyBackupMetadataSchema)!;
      assert.equal(metadata.sourceBackupInfo?.backup, name);
      const copy = await api.ask(admin.getBackup, { name: metadata.name });
      assert.deepEqual([copy.sourceBackup, copy.sourceTable, copy.backupType], [name, TABLE, BackupType.STANDARD]);

      const update = (backup: object, ...paths: string[]) =>
        api.ask(admin.updateBackup, { backup: { name, ...backup }, updateMask: { paths } });
      const later = inHours(72);
      const changed = await update({ expireTime: later }, 'expire_time');
      assert.equal(changed.expireTime?.seconds, later.seconds);
      assert.equal((await api.ask(admin.getBackup, { name })).expireTime?.seconds, later.seconds);
      assert.equal(
        (await update({ hotToStandardTime: later }, 'hot_to_standard_time')).hotToStandardTime?.seconds,
        later.seconds,
      );
      assert.equal((await update({}, 'hot_to_standard_time')).hotToStandardTime, undefined);
      assert.equal((await api.ask(admin.getBackup, { name })).hotToStandardTime, undefined);
      for (const [backup, ...paths] of [
        [{ expireTime: inHours(5) }, 'expire_time'],
        [{ expireTime: inHours(91 * 24) }, 'expire_time'],
        [{}, 'expire_time'],
        [{ sizeBytes: 1n }, 'size_bytes'],
        [{}],
        [{ hotToStandardTime: inHours(1) }, 'hot_to_standard_time'],
        [{ expireTime: { seconds: -1n } }, 'expire_time'],
      ] as const)
        assert.equal(await codeOf(update(backup, ...paths)), 'INVALID_ARGUMENT', JSON.stringify(paths));
      await api.ask(admin.deleteBackup, { name });
      await restore('copy', 'w');
      assert.ok((await rowsOf('w')).includes('a'));
      await api.ask(admin.deleteBackup, { name: copy.name });
    });

    test('backups are listed, filtered, in order and by pages', async () => {
      for (const id of ['x', 'y', 'z']) await backUp(id);
      const list = async (request: object = {}, parent = CLUSTER): Promise<string> => {
        const names: string[] = [];
        for (let pageToken = ''; ; ) {
          const page = await api.ask(admin.listBackups, { parent, pageToken, ...request });
          names.push(...page.backups.map(({ name }) => name.slice(`${CLUSTER}/backups/`.length)));
          if (page.nextPageToken === '') return names.join('');
          pageToken = page.nextPageToken;
        }
      };
      assert.equal(await list(), 'zyx', 'the latest first');
      assert.equal(await list({ orderBy: 'name' }, `${INSTANCE}/clusters/-`), 'xyz');
      assert.equal(await list({ orderBy: 'source_table, name desc', pageSize: 1 }), 'zyx');
      assert.equal(await list({ filter: 'name:backups/y' }), 'y');
      assert.equal(await list({ filter: '(state:READY) AND NOT (name:/y)', pageSize: 2 }), 'zx');
      assert.equal(await list({}, `${INSTANCE}/clusters/other`), '');
      for (const request of [{ filter: 'colour = 1' }, { orderBy: 'colour' }, { pageSize: -1 }])
        assert.equal(await codeOf(list(request)), 'INVALID_ARGUMENT', JSON.stringify(request));
      const { deleteInstance, deleteCluster } = BigtableInstanceAdmin.method;
      assert.equal(await codeOf(api.ask(deleteInstance, { name: INSTANCE })), 'FAILED_PRECONDITION');
      assert.equal(await codeOf(api.ask(deleteCluster, { name: CLUSTER })), 'FAILED_PRECONDITION');
      for (const id of ['x', 'y', 'z']) await api.ask(admin.deleteBackup, { name: `${CLUSTER}/backups/${id}` });
    });

    test('bad requests are refused, and make nothing', async () => {
      for (const [expected, call] of [
        ['INVALID_ARGUMENT', () => backUp('', {})],
        ['INVALID_ARGUMENT', () => backUp('-b')],
        ['INVALID_ARGUMENT', () => backUp('b'.repeat(51))],
        ['INVALID_ARGUMENT', () => backUp('a/b')],
        ['INVALID_ARGUMENT', () => backUp('b', {}, INSTANCE)],
        ['NOT_FOUND', () => backUp('b', {}, `${INSTANCE}/clusters/none`)],
        ['INVALID_ARGUMENT', () => backUp('b', { sourceTable: '' })],
        ['NOT_FOUND', () => backUp('b', { sourceTable: `${INSTANCE}/tables/none` })],
        ['INVALID_ARGUMENT', () => backUp('b', { sourceTable: 'projects/p/instances/other/tables/t' })],
        ['INVALID_ARGUMENT', () => backUp('b', { expireTime: undefined })],
        ['INVALID_ARGUMENT', () => backUp('b', { expireTime: inHours(1) })],
        ['INVALID_ARGUMENT', () => backUp('b', { hotToStandardTime: inHours(48) })],
        ['INVALID_ARGUMENT', () => backUp('b', { backupType: 7 })],
        ['INVALID_ARGUMENT', () => api.ask(admin.createBackup, { parent: CLUSTER, backupId: 'b' })],
        ['NOT_FOUND', () => restore('none', 'x')],
        ['NOT_FOUND', () => api.ask(admin.deleteBackup, { name: `${CLUSTER}/backups/none` })],
        ['INVALID_ARGUMENT', () => api.ask(admin.deleteBackup, { name: CLUSTER })],
        ['INVALID_ARGUMENT', () => api.ask(admin.restoreTable, { parent: INSTANCE, tableId: 'x' })],
      ] as const)
        assert.equal(await codeOf(call()), expected);
      assert.deepEqual((await api.ask(admin.listBackups, { parent: CLUSTER })).backups, []);
      await backUp('b');
      assert.equal(await codeOf(backUp('b')), 'ALREADY_EXISTS');
      assert.equal(await codeOf(restore('b', 't')), 'ALREADY_EXISTS');
      assert.equal(await codeOf(restore('b', 'a b')), 'INVALID_ARGUMENT');
      await api.ask(admin.deleteBackup, { name: `${CLUSTER}/backups/b` });
    });
  });
}

describe('the filter of backups', () => {
  const backup: Backup = {
    name: 'projects/p/instances/i/clusters/c/backups/howling',
    table: 'projects/p/instances/i/tables/prod',
    state: 'ready',
    kind: 'standard',
    startMicros: Date.parse('2024-03-28T14:50:00Z') * 1000,
    endMicros: Date.parse('2024-03-28T14:51:00Z') * 1000,
    expireMicros: Date.parse('2024-04-28T14:50:00Z') * 1000,
    sizeBytes: 12_000,
  };
  for (const [filter, expected] of [
    ['', true],
    ['name:howl', true],
    ['NAME:HOWL', true],
    ['name:"howl"', false],
    [`name:"${backup.name}"`, true],
    [`name = "${backup.name}"`, true],
    [`name != "${backup.name}"`, false],
    ['source_table:prod', true],
    ['state:CREATING', false],
    ['state:ready', true],
    ['size_bytes > 10000', true],
    ['size_bytes<=10000', false],
    ['(name:howl) AND (start_time < "2024-03-28T14:50:01Z")', true],
    ['(name:howl) (start_time < "2024-03-28T14:50:00Z")', false],
    ['name:x OR state:READY', true],
    ['name:x OR state:READY AND size_bytes < 1', false],
    ['NOT name:x', true],
    ['not (name:x or name:howl)', false],
    ['end_time >= "2024-03-28T14:51:00Z" AND expire_time != "2024-03-28T14:51:00Z"', true],
  ] as const)
    test(`${filter} is ${expected}`, () => assert.equal(backupFilter(filter)(backup), expected));
  for (const filter of [
    'colour = 1',
    'constructor = 1',
    'name',
    'name =',
    '= x',
    '(name:x',
    'name:x)',
    'name:x AND',
    'name "x"',
    'size_bytes > many',
    'start_time < soon',
    '"name" = x',
    'name:"x',
    `${'('.repeat(100)}name:x${')'.repeat(100)}`,
    `${'NOT '.repeat(100)}name:x`,
    `name:${'x'.repeat(3000)}`,
  ])
    test(`${filter.slice(0, 40)} is refused`, () =>
      assert.throws(() => backupFilter(filter), { name: 'BigtableError', code: 3 }));
  test('an order of unknown fields is refused', () => {
    for (const order of ['colour', 'name up', 'name desc asc', ',', 'toString'])
      assert.throws(() => backupOrder(order), { name: 'BigtableError', code: 3 }, order);
  });
});

test('a backup whose file is damaged is listed among the others, without a state, and can be deleted', async () => {
  const { service, env, close } = await openDatabase({ memory: true });
  const server = await startServer({ service, env, address: '127.0.0.1:0' });
  const remote = await connect(server.address);
  const context = requestContext({ budget: remote.env.requestBudget });
  const api = apiClientOf({ address: server.address, context });
  const [parent, tableId] = ['projects/p/instances/i', 't'];
  const backups = `${parent}/clusters/edubba/backups/`;
  await api.ask(admin.createTable, { parent, tableId, table: {} });
  const backup = { sourceTable: `${parent}/tables/t`, expireTime: inHours(24) };
  for (const backupId of ['whole', 'damaged'])
    await api.ask(admin.createBackup, { parent: `${parent}/clusters/edubba`, backupId, backup });
  const name = `${backups}damaged`;
  await env.lockService.write(backupPath(name), Buffer.from('{'));
  const list = async (filter = ''): Promise<unknown> => {
    const answer = await api.ask(admin.listBackups, { parent: `${parent}/clusters/-`, orderBy: 'name', filter });
    return answer.backups.map((one) => [one.name.slice(backups.length), one.state, one.startTime?.seconds === 0n]);
  };
  const damaged = ['damaged', State.STATE_UNSPECIFIED, true];
  assert.deepEqual(await list(), [damaged, ['whole', State.READY, false]]);
  assert.deepEqual(await list('state:STATE_UNSPECIFIED'), [damaged]);
  assert.deepEqual(
    (await remote.service.backups!.listBackups(context, `${parent}/clusters/`)).map(({ state }) => state),
    ['unreadable', 'ready'],
  );
  assert.equal(await codeOf(api.ask(admin.getBackup, { name })), 'DATA_LOSS');
  const source = { case: 'backup', value: name } as const;
  assert.equal(await codeOf(api.ask(admin.restoreTable, { parent, tableId: 'u', source })), 'DATA_LOSS');
  await api.ask(admin.deleteBackup, { name });
  assert.deepEqual(await list(), [['whole', State.READY, false]]);
  api.close();
  await remote.close();
  await server.close();
  await close();
});
