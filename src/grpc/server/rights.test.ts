/**
 * Rights through the API of each kind of server: principals by their tokens, each call of the API, policies that stay
 * over a restart.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { create, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { addToken } from '../../auth/index.ts';
import { BigtableError, type Code } from '../../base/index.ts';
import { openDatabase } from '../../boot/index.ts';
import { ByteBudget, requestContext } from '../../env/index.ts';
import { type ServerOptions, startServer, startThreadedServer } from '../../server/index.ts';
import { Control } from '../generated/edubba/v1/control_pb.ts';
import { BigtableInstanceAdmin } from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { BigtableTableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { Table_View as TableView } from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import { Operations } from '../generated/google/longrunning/operations_pb.ts';
import { ClusterStorage, openClusterDoors } from '../../../test/behaviour/cluster-door.ts';
import { type ApiClient, apiClientOf, codeOf } from './fixtures.ts';

const data = Bigtable.method;
const tables = BigtableTableAdmin.method;
const instances = BigtableInstanceAdmin.method;
const control = Control.method;
const operations = Operations.method;

const INSTANCE = 'projects/local/instances/local';
const TABLE = `${INSTANCE}/tables/t`;
const CLUSTER = `${INSTANCE}/clusters/edubba`;
const VIEW = `${TABLE}/authorizedViews/v`;
const DENIED = 'PERMISSION_DENIED';

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
const set = (familyName: string) => ({
  mutation: {
    case: 'setCell' as const,
    value: { familyName, columnQualifier: bytes('q'), timestampMicros: 1000n, value: bytes('x') },
  },
});
const ofFamily = (regex: string) => ({ filter: { case: 'familyNameRegexFilter' as const, value: regex } });
const subset = {
  authorizedView: {
    case: 'subsetView' as const,
    value: { rowPrefixes: [bytes('')], familySubsets: { f: { qualifierPrefixes: [bytes('')] } } },
  },
};

const DESCRIPTORS = toBinary(
  FileDescriptorSetSchema,
  create(FileDescriptorSetSchema, { file: [{ name: 'a.proto', syntax: 'proto3', messageType: [{ name: 'M' }] }] }),
);

/** Who has which role: on the instance, but `family` on the family f alone. A letter each, for the table below. */
const ROLES = {
  user: 'roles/bigtable.user',
  reader: 'roles/bigtable.reader',
  viewer: 'roles/bigtable.viewer',
  writer: 'roles/edubba.writer',
  incrementer: 'roles/edubba.incrementer',
  family: 'roles/bigtable.reader',
  stranger: undefined,
  /** The last: it changes what the others are refused. */
  admin: 'roles/bigtable.admin',
} as const;
type Principal = keyof typeof ROLES;
const PRINCIPALS = Object.keys(ROLES) as Principal[];

/** The call of each name, by an API client: `n` tells its objects from those of others. */
const CALLS: Readonly<Record<string, readonly [who: string, call: (api: ApiClient, n: string) => Promise<unknown>]>> = {
  // a letter for each who may: Admin, User, Reader, Viewer, Writer, Incrementer, Family, Stranger
  'ReadRows of all': ['AUR', (api) => api.stream(data.readRows, { tableName: TABLE })],
  'ReadRows of f': ['AURF', (api) => api.stream(data.readRows, { tableName: TABLE, filter: ofFamily('f') })],
  'ReadRows of one row': [
    'AURF',
    (api) =>
      api.stream(data.readRows, {
        tableName: TABLE,
        rows: { rowKeys: [bytes('r')] },
        filter: ofFamily('f'),
        rowsLimit: 1n,
      }),
  ],
  'ReadRows of a view': ['AURF', (api) => api.stream(data.readRows, { authorizedViewName: VIEW })],
  SampleRowKeys: ['AUR', (api) => api.stream(data.sampleRowKeys, { tableName: TABLE })],
  'SampleRowKeys of a view': ['AUR', (api) => api.stream(data.sampleRowKeys, { authorizedViewName: VIEW })],
  GenerateInitialChangeStreamPartitions: [
    'AUR',
    (api) => api.stream(data.generateInitialChangeStreamPartitions, { tableName: TABLE }),
  ],
  // the table has several tablets: the stream of all rows is closed immediately
  ReadChangeStream: ['AUR', (api) => api.stream(data.readChangeStream, { tableName: TABLE, partition: {} })],
  MutateRow: ['AUW', (api) => api.ask(data.mutateRow, { tableName: TABLE, rowKey: bytes('r'), mutations: [set('f')] })],
  'MutateRow of a view': [
    'AUW',
    (api) => api.ask(data.mutateRow, { authorizedViewName: VIEW, rowKey: bytes('r'), mutations: [set('f')] }),
  ],
  'MutateRow of a row': [
    'AUW',
    (api) =>
      api.ask(data.mutateRow, {
        tableName: TABLE,
        rowKey: bytes('z'),
        mutations: [{ mutation: { case: 'deleteFromRow', value: {} } }],
      }),
  ],
  CheckAndMutateRow: [
    'AU',
    (api) =>
      api.ask(data.checkAndMutateRow, {
        tableName: TABLE,
        rowKey: bytes('r'),
        trueMutations: [set('f')],
        predicateFilter: ofFamily('f'),
      }),
  ],
  ReadModifyWriteRow: [
    'AUI',
    (api) =>
      api.ask(data.readModifyWriteRow, {
        tableName: TABLE,
        rowKey: bytes('n'),
        rules: [{ familyName: 'f', columnQualifier: bytes('n'), rule: { case: 'incrementAmount', value: 1n } }],
      }),
  ],
  PingAndWarm: ['AURVWIFS', (api) => api.ask(data.pingAndWarm, { name: INSTANCE })],
  GetTable: ['AURVWIF', (api) => api.ask(tables.getTable, { name: TABLE })],
  'GetTable in full': ['AURVWIF', (api) => api.ask(tables.getTable, { name: TABLE, view: TableView.FULL })],
  'GetTable of none': ['AURV', (api) => api.ask(tables.getTable, { name: `${INSTANCE}/tables/none` })],
  ListTables: ['AURVWIF', (api) => api.ask(tables.listTables, { parent: INSTANCE })],
  CreateTable: ['A', (api, n) => api.ask(tables.createTable, { parent: INSTANCE, tableId: `t-${n}` })],
  UpdateTable: [
    'A',
    (api) =>
      api.ask(tables.updateTable, {
        table: { name: TABLE, deletionProtection: true },
        updateMask: { paths: ['deletion_protection'] },
      }),
  ],
  'ModifyColumnFamilies, a new one': [
    'A',
    (api, n) =>
      api.ask(tables.modifyColumnFamilies, {
        name: TABLE,
        modifications: [{ id: n, mod: { case: 'create', value: {} } }],
      }),
  ],
  'ModifyColumnFamilies of f': [
    'A',
    (api) =>
      api.ask(tables.modifyColumnFamilies, {
        name: TABLE,
        modifications: [{ id: 'f', mod: { case: 'update', value: {} } }],
      }),
  ],
  DropRowRange: [
    'AUW',
    (api) => api.ask(tables.dropRowRange, { name: TABLE, target: { case: 'rowKeyPrefix', value: bytes('zz') } }),
  ],
  GenerateConsistencyToken: ['AUR', (api) => api.ask(tables.generateConsistencyToken, { name: TABLE })],
  CheckConsistency: ['AUR', (api) => api.ask(tables.checkConsistency, { name: TABLE, consistencyToken: 'x' })],
  DeleteTable: ['A', (api) => api.ask(tables.deleteTable, { name: TABLE })],
  UndeleteTable: ['A', (api) => api.ask(tables.undeleteTable, { name: `${INSTANCE}/tables/none` })],
  CreateAuthorizedView: [
    'A',
    (api, n) => api.ask(tables.createAuthorizedView, { parent: TABLE, authorizedViewId: n, authorizedView: subset }),
  ],
  GetAuthorizedView: ['AURV', (api) => api.ask(tables.getAuthorizedView, { name: VIEW })],
  ListAuthorizedViews: ['AURV', (api) => api.ask(tables.listAuthorizedViews, { parent: TABLE })],
  UpdateAuthorizedView: [
    'A',
    (api) => api.ask(tables.updateAuthorizedView, { authorizedView: { name: VIEW, ...subset } }),
  ],
  DeleteAuthorizedView: [
    'A',
    (api) => api.ask(tables.deleteAuthorizedView, { name: `${TABLE}/authorizedViews/admin` }),
  ],
  CreateSchemaBundle: [
    'A',
    (api) =>
      api.ask(tables.createSchemaBundle, {
        parent: TABLE,
        schemaBundleId: 'b',
        schemaBundle: { type: { case: 'protoSchema', value: { protoDescriptors: DESCRIPTORS } } },
      }),
  ],
  GetSchemaBundle: ['AURV', (api) => api.ask(tables.getSchemaBundle, { name: `${TABLE}/schemaBundles/b` })],
  ListSchemaBundles: ['AURV', (api) => api.ask(tables.listSchemaBundles, { parent: TABLE })],
  UpdateSchemaBundle: [
    'A',
    (api) =>
      api.ask(tables.updateSchemaBundle, {
        schemaBundle: {
          name: `${TABLE}/schemaBundles/b`,
          type: { case: 'protoSchema', value: { protoDescriptors: DESCRIPTORS } },
        },
      }),
  ],
  DeleteSchemaBundle: ['A', (api) => api.ask(tables.deleteSchemaBundle, { name: `${TABLE}/schemaBundles/b` })],
  CreateInstance: [
    'AURVWIFS',
    (api, n) =>
      api.ask(instances.createInstance, {
        parent: 'projects/q',
        instanceId: `i-${n}`,
        instance: { displayName: 'x' },
        clusters: { c: { location: 'projects/q/locations/z', serveNodes: 1 } },
      }),
  ],
  GetInstance: ['AURV', (api) => api.ask(instances.getInstance, { name: INSTANCE })],
  ListInstances: ['AURVWIFS', (api) => api.ask(instances.listInstances, { parent: 'projects/local' })],
  PartialUpdateInstance: [
    'A',
    (api) =>
      api.ask(instances.partialUpdateInstance, {
        instance: { name: INSTANCE, displayName: 'y' },
        updateMask: { paths: ['display_name'] },
      }),
  ],
  DeleteInstance: ['A', (api) => api.ask(instances.deleteInstance, { name: INSTANCE })],
  CreateCluster: [
    'A',
    (api, n) =>
      api.ask(instances.createCluster, {
        parent: INSTANCE,
        clusterId: `c-${n}`,
        cluster: { location: 'projects/local/locations/z', serveNodes: 1 },
      }),
  ],
  GetCluster: ['AURV', (api) => api.ask(instances.getCluster, { name: `${INSTANCE}/clusters/edubba` })],
  ListClusters: ['AURV', (api) => api.ask(instances.listClusters, { parent: INSTANCE })],
  DeleteCluster: ['A', (api, n) => api.ask(instances.deleteCluster, { name: `${INSTANCE}/clusters/c-${n}` })],
  CreateAppProfile: [
    'A',
    (api, n) =>
      api.ask(instances.createAppProfile, {
        parent: INSTANCE,
        appProfileId: `a-${n}`,
        appProfile: { routingPolicy: { case: 'multiClusterRoutingUseAny', value: {} } },
      }),
  ],
  GetAppProfile: ['AURV', (api) => api.ask(instances.getAppProfile, { name: `${INSTANCE}/appProfiles/default` })],
  ListAppProfiles: ['AURV', (api) => api.ask(instances.listAppProfiles, { parent: INSTANCE })],
  DeleteAppProfile: [
    'A',
    (api, n) => api.ask(instances.deleteAppProfile, { name: `${INSTANCE}/appProfiles/a-${n}`, ignoreWarnings: true }),
  ],
  CreateLogicalView: [
    'A',
    (api, n) =>
      api.ask(instances.createLogicalView, { parent: INSTANCE, logicalViewId: n, logicalView: { query: 'SELECT 1' } }),
  ],
  ListLogicalViews: ['AURV', (api) => api.ask(instances.listLogicalViews, { parent: INSTANCE })],
  ListMaterializedViews: ['AURV', (api) => api.ask(instances.listMaterializedViews, { parent: INSTANCE })],
  MutateRows: [
    'AUW',
    async (api) => {
      const entries = [{ rowKey: bytes('r'), mutations: [set('f')] }];
      const [answer] = await api.stream(data.mutateRows, { tableName: TABLE, entries });
      const code = answer?.entries[0]?.status?.code ?? 0;
      if (code !== 0) throw new BigtableError(code as Code, 'the entry');
    },
  ],
  UpdateInstance: ['A', (api) => api.ask(instances.updateInstance, { name: INSTANCE, displayName: 'z' })],
  UpdateCluster: [
    'A',
    (api) => api.ask(instances.updateCluster, { name: `${INSTANCE}/clusters/edubba`, serveNodes: 1 }),
  ],
  PartialUpdateCluster: [
    'A',
    (api) =>
      api.ask(instances.partialUpdateCluster, {
        cluster: { name: `${INSTANCE}/clusters/edubba`, serveNodes: 2 },
        updateMask: { paths: ['serve_nodes'] },
      }),
  ],
  UpdateAppProfile: [
    'A',
    (api) =>
      api.ask(instances.updateAppProfile, {
        appProfile: { name: `${INSTANCE}/appProfiles/default`, description: 'x' },
        updateMask: { paths: ['description'] },
      }),
  ],
  GetMemoryLayer: ['AURV', (api) => api.ask(instances.getMemoryLayer, { name: `${CLUSTER}/memoryLayer` })],
  ListMemoryLayers: ['AURV', (api) => api.ask(instances.listMemoryLayers, { parent: CLUSTER })],
  UpdateMemoryLayer: [
    'A',
    (api) => api.ask(instances.updateMemoryLayer, { memoryLayer: { name: `${CLUSTER}/memoryLayer` } }),
  ],
  ListHotTablets: ['AURV', (api) => api.ask(instances.listHotTablets, { parent: CLUSTER })],
  GetLogicalView: ['AURV', (api) => api.ask(instances.getLogicalView, { name: `${INSTANCE}/logicalViews/admin` })],
  UpdateLogicalView: [
    'A',
    (api) =>
      api.ask(instances.updateLogicalView, {
        logicalView: { name: `${INSTANCE}/logicalViews/admin`, query: 'SELECT 2' },
        updateMask: { paths: ['query'] },
      }),
  ],
  DeleteLogicalView: ['A', (api) => api.ask(instances.deleteLogicalView, { name: `${INSTANCE}/logicalViews/admin` })],
  CreateMaterializedView: [
    'A',
    (api, n) =>
      api.ask(instances.createMaterializedView, {
        parent: INSTANCE,
        materializedViewId: n,
        materializedView: { query: 'SELECT 1' },
      }),
  ],
  GetMaterializedView: [
    'AURV',
    (api) => api.ask(instances.getMaterializedView, { name: `${INSTANCE}/materializedViews/admin` }),
  ],
  UpdateMaterializedView: [
    'A',
    (api) =>
      api.ask(instances.updateMaterializedView, {
        materializedView: { name: `${INSTANCE}/materializedViews/admin`, deletionProtection: false },
        updateMask: { paths: ['deletion_protection'] },
      }),
  ],
  DeleteMaterializedView: [
    'A',
    (api) => api.ask(instances.deleteMaterializedView, { name: `${INSTANCE}/materializedViews/admin` }),
  ],
  CreateBackup: [
    'A',
    (api, n) =>
      api.ask(tables.createBackup, {
        parent: `${INSTANCE}/clusters/edubba`,
        backupId: n,
        backup: { sourceTable: TABLE, expireTime: { seconds: BigInt(Math.floor(Date.now() / 1000) + 86_400) } },
      }),
  ],
  CopyBackup: [
    'A',
    (api, n) =>
      api.ask(tables.copyBackup, {
        parent: `${INSTANCE}/clusters/edubba`,
        backupId: `copy-${n}`,
        sourceBackup: `${INSTANCE}/clusters/edubba/backups/admin`,
        expireTime: { seconds: BigInt(Math.floor(Date.now() / 1000) + 86_400) },
      }),
  ],
  GetBackup: ['AURV', (api) => api.ask(tables.getBackup, { name: `${INSTANCE}/clusters/edubba/backups/admin` })],
  ListBackups: ['AURV', (api) => api.ask(tables.listBackups, { parent: `${INSTANCE}/clusters/-` })],
  UpdateBackup: [
    'A',
    (api) =>
      api.ask(tables.updateBackup, {
        backup: {
          name: `${INSTANCE}/clusters/edubba/backups/admin`,
          expireTime: { seconds: BigInt(Math.floor(Date.now() / 1000) + 172_800) },
        },
        updateMask: { paths: ['expire_time'] },
      }),
  ],
  RestoreTable: [
    'A',
    (api, n) =>
      api.ask(tables.restoreTable, {
        parent: INSTANCE,
        tableId: `restored-${n}`,
        source: { case: 'backup', value: `${INSTANCE}/clusters/edubba/backups/admin` },
      }),
  ],
  'GetIamPolicy of a backup': [
    'A',
    (api) => api.ask(tables.getIamPolicy, { resource: `${INSTANCE}/clusters/edubba/backups/admin` }),
  ],
  DeleteBackup: ['A', (api) => api.ask(tables.deleteBackup, { name: `${INSTANCE}/clusters/edubba/backups/admin` })],
  'GetIamPolicy of a table': ['A', (api) => api.ask(tables.getIamPolicy, { resource: TABLE })],
  'GetIamPolicy of a family': ['A', (api) => api.ask(tables.getIamPolicy, { resource: `${TABLE}/columnFamilies/f` })],
  'GetIamPolicy of the instance': ['A', (api) => api.ask(instances.getIamPolicy, { resource: INSTANCE })],
  'SetIamPolicy of a view': ['A', (api) => api.ask(tables.setIamPolicy, { resource: VIEW, policy: {} })],
  TestIamPermissions: [
    'AURVWIFS',
    (api) => api.ask(tables.testIamPermissions, { resource: TABLE, permissions: ['bigtable.tables.get'] }),
  ],
  ListTablets: ['AUR', (api) => api.stream(control.listTablets, { table: TABLE })],
  ListTabletEvents: ['AUR', (api) => api.stream(control.listTabletEvents, { table: TABLE })],
  ListTableNames: ['AURVWIF', (api) => api.stream(control.listTableNames, { prefix: `${INSTANCE}/tables/` })],
  DeleteTableAtOnce: ['A', (api) => api.ask(control.deleteTableAtOnce, { table: `${INSTANCE}/tables/none` })],
  ListDeletedTables: ['AURV', (api) => api.stream(control.listDeletedTables, { prefix: `${INSTANCE}/tables/` })],
  GetFamilyUsage: ['AURVWIF', (api) => api.ask(control.getFamilyUsage, { table: TABLE })],
  GetTableUsage: ['AURF', (api) => api.ask(control.getTableUsage, { table: TABLE })],
  SetQuota: ['A', (api) => api.ask(control.setQuota, { table: TABLE, quotaBytes: 1n << 40n })],
  'SetQuota of a family': [
    'A',
    (api) => api.ask(control.setQuota, { table: TABLE, family: 'g', quotaBytes: 1n << 40n }),
  ],
  SplitTablets: ['A', (api) => api.ask(control.splitTablets, { table: TABLE, row: bytes('m') })],
  MergeTablets: ['A', (api) => api.ask(control.mergeTablets, { table: TABLE, row: bytes('m') })],
  'CompactTables of one': ['A', (api) => api.stream(control.compactTables, { table: TABLE })],
  'CompactTables of all': ['A', (api) => api.stream(control.compactTables, {})],
  Flush: ['A', (api) => api.ask(control.flush, {})],
  ExportBackup: ['A', (api) => api.ask(control.exportBackup, { backup: `${CLUSTER}/backups/none`, id: 'x' })],
  ImportBackup: [
    'A',
    (api) => api.ask(control.importBackup, { name: `${CLUSTER}/backups/none`, id: 'x', expireMicros: 1n << 52n }),
  ],
  ListExports: ['A', (api) => api.stream(control.listExports, {})],
  DeleteExport: ['A', (api) => api.ask(control.deleteExport, { id: 'x' })],
  GetCounters: ['A', (api) => api.ask(control.getCounters, {})],
  ListOperations: ['AURVWIFS', (api) => api.ask(operations.listOperations, { name: 'operations' })],
};

/** Calls that answer everyone the same, and those that are not implemented. */
const UNGUARDED = /^(Open|GetClientConfiguration|PrepareQuery|ExecuteQuery|.*Snapshot)/;

test('rights of every call of the API are tested', () => {
  const tested = new Set(Object.keys(CALLS).map((name) => /^\w+/.exec(name)![0]));
  const missing = [Bigtable, BigtableTableAdmin, BigtableInstanceAdmin, Control]
    .flatMap(({ methods }) => methods.map(({ name }) => name))
    .filter((name) => !tested.has(name) && !UNGUARDED.test(name));
  assert.deepEqual(missing, []);
});

interface Door {
  /** One for each of its servers. */
  readonly addresses: readonly string[];
  close(): Promise<void>;
}
type Rest = Omit<ServerOptions, 'service' | 'env' | 'address'>;
/** That of clusters, by directory. */
const STORAGE = new Map<string, ClusterStorage>();
const DOORS: readonly { readonly name: string; open(directory: string, rest: Rest): Promise<Door> }[] = [
  {
    name: 'a server',
    async open(directory, rest) {
      const { service, env, close } = await openDatabase({ directory });
      const server = await startServer({ service, env, address: '127.0.0.1:0', ...rest });
      return { addresses: [server.address], close: () => server.close().finally(close) };
    },
  },
  {
    name: 'a server of two threads',
    async open(directory, rest) {
      const database = { directory, tabletServers: 2 };
      const { address, close } = await startThreadedServer({ address: '127.0.0.1:0', database, ...rest });
      return { addresses: [address], close };
    },
  },
  {
    name: 'a cluster of three servers',
    open(directory, rest) {
      let storage = STORAGE.get(directory);
      if (storage === undefined) STORAGE.set(directory, (storage = new ClusterStorage()));
      return openClusterDoors(3, storage, rest);
    },
  },
];

for (const { name: doorName, open } of DOORS) {
  describe(`rights: ${doorName}`, () => {
    let directory = '';
    let rest: Rest = {};
    let door: Door;
    const tokens = new Map<string, string>();
    const clients = new Map<string, ApiClient>();
    const context = requestContext({ budget: new ByteBudget(1 << 30) });

    /** Each principal calls another server: what one has changed must hold at all of them. */
    const clientOf = (principal: string): ApiClient => {
      let client = clients.get(principal);
      if (client === undefined) {
        const address = door.addresses[PRINCIPALS.indexOf(principal as Principal) % door.addresses.length]!;
        client = apiClientOf({ address, context }, tokens.get(principal));
        clients.set(principal, client);
      }
      return client;
    };
    const hangUp = (): void => {
      for (const client of clients.values()) client.close();
      clients.clear();
    };
    const allow = (api: ApiClient, resource: string, ...bindings: { role: string; members: string[] }[]) =>
      api.ask(tables.setIamPolicy, { resource, policy: { bindings } });

    before(async () => {
      directory = await mkdtemp(join(tmpdir(), 'edubba-rights-'));
      const tokensFile = join(directory, 'tokens');
      for (const principal of PRINCIPALS) tokens.set(principal, await addToken(tokensFile, principal, '-'));
      rest = { access: { tokensFile } };
      door = await open(join(directory, 'data'), rest);
      const admin = clientOf('admin');
      await admin.ask(tables.createTable, {
        parent: INSTANCE,
        tableId: 't',
        table: { columnFamilies: { f: {}, g: {} }, changeStreamConfig: { retentionPeriod: { seconds: 86_400n } } },
        initialSplits: [{ key: bytes('m') }, { key: bytes('p') }],
      });
      await admin.ask(tables.createAuthorizedView, { parent: TABLE, authorizedViewId: 'v', authorizedView: subset });
      await admin.ask(data.mutateRow, { tableName: TABLE, rowKey: bytes('r'), mutations: [set('f'), set('g')] });
    });
    after(async () => {
      hangUp();
      await door.close();
      await rm(directory, { recursive: true });
    });

    test('everyone may do everything without a policy', async () => {
      for (const principal of PRINCIPALS)
        for (const call of ['ReadRows of all', 'MutateRow', 'GetTable', 'GetIamPolicy of a table', 'Flush'])
          assert.equal(await codeOf(CALLS[call]![1](clientOf(principal), 'x')), 'OK', `${principal} ${call}`);
    });

    test('a caller cannot take the right to set the policy from itself', async () => {
      const admin = clientOf('admin');
      const foreign = allow(admin, INSTANCE, { role: 'roles/bigtable.admin', members: ['token:user'] });
      assert.equal(await codeOf(foreign), 'FAILED_PRECONDITION');
      for (const [role, member] of [
        ['roles/none', 'token:admin'],
        ['roles/bigtable.admin', 'admin'],
        ['roles/bigtable.admin', 'token:'],
      ] as const)
        assert.equal(await codeOf(allow(admin, INSTANCE, { role, members: [member] })), 'INVALID_ARGUMENT');
      for (const resource of ['', 'projects/local', `${TABLE}/x/y`])
        assert.equal(await codeOf(allow(admin, resource)), 'INVALID_ARGUMENT', resource);
      for (const resource of [
        `${INSTANCE}/tables/none`,
        `${TABLE}/columnFamilies/none`,
        `${TABLE}/authorizedViews/none`,
      ])
        assert.equal(await codeOf(allow(admin, resource)), 'NOT_FOUND', resource);
    });

    test('principals have what their roles give, in every call', async () => {
      const admin = clientOf('admin');
      const bindings = PRINCIPALS.flatMap((principal) => {
        const role = ROLES[principal];
        return role === undefined || principal === 'family' ? [] : [{ role, members: [`token:${principal}`] }];
      });
      await allow(
        admin,
        `${TABLE}/columnFamilies/f`,
        { role: ROLES.family, members: ['token:family', 'token:admin'] },
        { role: ROLES.admin, members: ['token:admin'] },
      );
      await allow(admin, INSTANCE, ...bindings);
      for (const principal of PRINCIPALS.filter((each) => each !== 'admin'))
        assert.equal(await codeOf(CALLS['Flush']![1](clientOf(principal), '')), DENIED);
      const wrong: string[] = [];
      for (const [name, [who, call]] of Object.entries(CALLS)) {
        for (const principal of PRINCIPALS) {
          if (name === 'DeleteTable' && principal === 'admin') continue;
          if (name === 'DeleteInstance' && principal === 'admin') continue;
          const outcome = await codeOf(call(clientOf(principal), principal));
          const isAllowed = who.includes(principal[0]!.toUpperCase());
          if ((outcome === DENIED) === isAllowed) wrong.push(`${principal}: ${name}: ${outcome}`);
        }
      }
      assert.deepEqual(wrong, []);
    });

    test('policies have etags, and refuse what they cannot keep', async () => {
      const admin = clientOf('admin');
      const name = `${TABLE}/columnFamilies/g`;
      const own = { role: 'roles/bigtable.admin', members: ['token:admin'] };
      const none = await admin.ask(tables.getIamPolicy, { resource: name });
      assert.deepEqual(none.bindings, []);
      const first = await admin.ask(tables.setIamPolicy, {
        resource: name,
        policy: { bindings: [own], etag: none.etag },
      });
      const again = admin.ask(tables.setIamPolicy, { resource: name, policy: { bindings: [own], etag: none.etag } });
      assert.equal(await codeOf(again), 'ABORTED');
      assert.equal(
        await codeOf(admin.ask(tables.setIamPolicy, { resource: name, policy: { etag: bytes('x') } })),
        'ABORTED',
      );
      const read = await admin.ask(instances.getIamPolicy, { resource: name });
      assert.deepEqual([read.etag, read.bindings.map(({ role }) => role)], [first.etag, ['roles/bigtable.admin']]);
      for (const policy of [
        { bindings: [{ ...own, condition: { expression: 'true' } }] },
        { bindings: [own], auditConfigs: [{ service: 'x' }] },
      ])
        assert.equal(await codeOf(admin.ask(tables.setIamPolicy, { resource: name, policy })), 'INVALID_ARGUMENT');
      const emptied = await admin.ask(tables.setIamPolicy, {
        resource: name,
        policy: { bindings: [{ role: own.role }], etag: first.etag },
      });
      assert.deepEqual([emptied.etag, emptied.bindings], [none.etag, []]);
    });

    test('permissions are tested as they are', async () => {
      const asked = ['bigtable.tables.readRows', 'bigtable.tables.mutateRows', 'bigtable.tables.get', 'unknown.x'];
      const held = async (principal: Principal, resource: string): Promise<string[]> =>
        (await clientOf(principal).ask(tables.testIamPermissions, { resource, permissions: asked })).permissions;
      assert.deepEqual(await held('admin', TABLE), asked.slice(0, 3));
      assert.deepEqual(await held('reader', TABLE), [asked[0], asked[2]]);
      assert.deepEqual(await held('writer', TABLE), [asked[1]]);
      assert.deepEqual(await held('family', TABLE), []);
      assert.deepEqual(await held('family', `${TABLE}/columnFamilies/f`), [asked[0], asked[2]]);
      assert.deepEqual(await held('family', `${TABLE}/columnFamilies/g`), []);
      const wild = clientOf('admin').ask(tables.testIamPermissions, { resource: TABLE, permissions: ['bigtable.*'] });
      assert.equal(await codeOf(wild), 'INVALID_ARGUMENT');
    });

    test('a batch is carried out as far as it is allowed', async () => {
      const own = { role: 'roles/edubba.writer', members: ['token:stranger'] };
      const admin = { role: 'roles/bigtable.admin', members: ['token:admin'] };
      await allow(clientOf('admin'), `${TABLE}/columnFamilies/g`, own, admin);
      const stranger = clientOf('stranger');
      const mutate = async (...families: string[]): Promise<number[]> => {
        const entries = families.map((family) => ({ rowKey: bytes('batch'), mutations: [set(family)] }));
        const answers = await stranger.stream(data.mutateRows, { tableName: TABLE, entries });
        return answers.flatMap((answer) => answer.entries.map(({ status }) => status?.code ?? 0));
      };
      assert.equal((await mutate('g'))[0], 0);
      assert.deepEqual(await mutate('f', 'g', 'f', 'none'), [7, 0, 7, 7]);
      const row = { tableName: TABLE, rows: { rowKeys: [bytes('batch')] } };
      assert.equal(await codeOf(stranger.stream(data.readRows, row)), DENIED, 'who may write may not read');
      const [{ chunks } = { chunks: [] }] = await clientOf('reader').stream(data.readRows, row);
      assert.deepEqual(
        chunks.map(({ familyName }) => familyName),
        ['g'],
      );
    });

    test('policies stay over a restart, where owners stand above them', async () => {
      hangUp();
      await door.close();
      door = await open(join(directory, 'data'), { ...rest, rights: { owners: ['token:stranger'] } });
      assert.equal(await codeOf(CALLS['ReadRows of all']![1](clientOf('reader'), '')), 'OK');
      assert.equal(await codeOf(CALLS['MutateRow']![1](clientOf('reader'), '')), DENIED);
      assert.equal(await codeOf(CALLS['Flush']![1](clientOf('stranger'), '')), 'OK');
      assert.equal(await codeOf(CALLS['Flush']![1](clientOf('admin'), '')), DENIED, 'the database has owners now');
      const create = CALLS['CreateInstance']![1];
      assert.equal(await codeOf(create(clientOf('admin'), 'later')), DENIED, 'what has no policy is theirs');
      assert.equal(await codeOf(create(clientOf('stranger'), 'later')), 'OK');
    });

    test('families that the caller may not read can be hidden', async () => {
      hangUp();
      await door.close();
      door = await open(join(directory, 'data'), { ...rest, rights: { unreadableFamilies: 'hide' } });
      const answers = await clientOf('family').stream(data.readRows, { tableName: TABLE });
      const families = answers.flatMap(({ chunks }) => chunks.map(({ familyName }) => familyName));
      assert.deepEqual(
        [...new Set(families)].filter((name) => name !== undefined),
        ['f'],
      );
    });

    test('a later table or family of the same name has no policy of the former', async () => {
      const admin = clientOf('admin');
      const recreate = async (): Promise<void> => {
        await admin.ask(tables.createTable, { parent: INSTANCE, tableId: 'u', table: { columnFamilies: { f: {} } } });
      };
      const name = `${INSTANCE}/tables/u`;
      const own = { role: 'roles/bigtable.reader', members: ['token:stranger'] };
      const read = () => codeOf(clientOf('stranger').stream(data.readRows, { tableName: name }));
      await recreate();
      await allow(admin, name, own);
      assert.equal(await read(), 'OK');
      await admin.ask(tables.deleteTable, { name });
      await recreate();
      assert.equal(await read(), DENIED);
      assert.deepEqual((await admin.ask(tables.getIamPolicy, { resource: name })).bindings, []);

      const family = `${name}/columnFamilies/f`;
      await allow(admin, family, own);
      assert.equal(await read(), 'OK');
      const change = (mod: object) =>
        admin.ask(tables.modifyColumnFamilies, { name, modifications: [{ id: 'f', ...mod }] });
      await change({ mod: { case: 'drop', value: true } });
      await change({ mod: { case: 'create', value: {} } });
      assert.equal(await read(), DENIED);
      assert.deepEqual((await admin.ask(tables.getIamPolicy, { resource: family })).bindings, []);
    });
  });
}

/** The same object, but for what is in `instead`. */
function withChanges<T extends object>(object: T, instead: Partial<T>): T {
  return new Proxy(object, {
    get: (target, name) => {
      if (name in instead) return instead[name as keyof T];
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

test('a server that may have missed changes of policies decides nothing', async () => {
  const { service, env, close } = await openDatabase({ memory: true });
  const known = { isCurrent: true };
  const policySource = withChanges(service.policySource!, known);
  const stale = withChanges(service, { policySource });
  const server = await startServer({ service: stale, env, address: '127.0.0.1:0' });
  const context = requestContext({ budget: new ByteBudget(1 << 30) });
  const api = apiClientOf({ address: server.address, context });
  const answered: string[] = [];
  try {
    await api.ask(tables.createTable, { parent: INSTANCE, tableId: 't', table: { columnFamilies: { f: {} } } });
    known.isCurrent = false;
    for (const [name, [, call]] of Object.entries(CALLS)) {
      const code = await codeOf(call(api, 'x'));
      if (code !== 'UNAVAILABLE') answered.push(`${name}: ${code}`);
    }
  } finally {
    api.close();
    await server.close();
    await close();
  }
  // they tell nothing: there is no operation
  assert.deepEqual(answered, ['PingAndWarm: OK', 'ListOperations: OK']);
});
