/**
 * A good request for each of the 84 calls of the API, and what its answer must be. The steps are in an order in which a
 * call finds what it needs, and deletions come last.
 *
 * Invariant: each call of the descriptors has a step. Its outcome on a server is one word (`outcomeOf`).
 */
import assert from 'node:assert/strict';
import {
  create,
  type DescMessage,
  type DescMethod,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { BigtableError, codeName } from '../../../base/index.ts';
import { BigtableInstanceAdmin } from '../../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import { BigtableTableAdmin } from '../../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { Bigtable } from '../../generated/google/bigtable/v2/bigtable_pb.ts';
import type { ReadRowsResponse } from '../../generated/google/bigtable/v2/bigtable_pb.ts';
import type { Operation } from '../../generated/google/longrunning/operations_pb.ts';
import { type ApiClient, codeOf } from '../fixtures.ts';

export const METHODS: readonly DescMethod[] = [Bigtable, BigtableTableAdmin, BigtableInstanceAdmin].flatMap(
  (service): readonly DescMethod[] => service.methods,
);

/** Answers of earlier steps that a later request quotes. */
export interface Memory {
  consistencyToken: string;
}

export interface Step {
  readonly method: DescMethod;
  request(memory: Memory): MessageInitShape<DescMessage>;
  /** Throws where the answers are not what the API says. */
  check(answers: readonly MessageShape<DescMessage>[], api: ApiClient, memory: Memory): Promise<void>;
}

/** "google.bigtable.v2.Bigtable/ReadRows". Three calls of policies have the same name in two services. */
export const nameOf = (method: DescMethod): string => `${method.parent.typeName}/${method.name}`;

/** The check of a call that is not implemented: once it answers, its step says what it must answer. */
function notYet(): void {
  throw new Error('the step of this call has no check');
}

function step<I extends DescMessage, O extends DescMessage>(
  method: DescMethod & { readonly input: I; readonly output: O },
  request: MessageInitShape<I> | ((memory: Memory) => MessageInitShape<I>),
  check: (answers: readonly MessageShape<O>[], api: ApiClient, memory: Memory) => void | Promise<void> = notYet,
): Step {
  return {
    method,
    request: (memory) => (typeof request === 'function' ? request(memory) : request) as never,
    check: async (answers, api, memory) => check(answers as never, api, memory),
  };
}

const data = Bigtable.method;
const tables = BigtableTableAdmin.method;
const instances = BigtableInstanceAdmin.method;

const PROJECT = 'projects/project';
const LOCATION = `${PROJECT}/locations/z`;
const INSTANCE = `${PROJECT}/instances/calls`;
const CLUSTER = `${INSTANCE}/clusters/one`;
const PROFILE = `${INSTANCE}/appProfiles/profile`;
const TABLE = `${INSTANCE}/tables/t`;
const VIEW = `${TABLE}/authorizedViews/view`;
const BUNDLE = `${TABLE}/schemaBundles/bundle`;
const BACKUP = `${CLUSTER}/backups/backup`;
const LOGICAL = `${INSTANCE}/logicalViews/logical`;
const MATERIALIZED = `${INSTANCE}/materializedViews/materialized`;
const SNAPSHOT = `${CLUSTER}/snapshots/snapshot`;
const MEMORY_LAYER = `${CLUSTER}/memoryLayer`;
const DAY_SECONDS = 86_400;

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
const mask = (...paths: string[]) => ({ paths });
const inDays = (days: number) => ({ seconds: BigInt(Math.floor(Date.now() / 1000) + days * DAY_SECONDS) });
const set = (columnQualifier: string, value: string) => ({
  mutation: {
    case: 'setCell' as const,
    value: {
      familyName: 'f',
      columnQualifier: bytes(columnQualifier),
      timestampMicros: 1000n,
      value: bytes(value),
    },
  },
});
const subset = (prefix: string) => ({
  authorizedView: {
    case: 'subsetView' as const,
    value: { rowPrefixes: [bytes(prefix)], familySubsets: { f: { qualifierPrefixes: [bytes('')] } } },
  },
});
const POLICY = { bindings: [{ role: 'roles/bigtable.admin', members: ['allUsers'] }] };
const PERMISSIONS = ['bigtable.tables.get', 'bigtable.tables.readRows'];
const QUERY = 'SELECT _key FROM t';

/** A schema bundle of a file with one message of that name. */
function bundle(name: string) {
  const file = [{ name: 'a.proto', syntax: 'proto3', messageType: [{ name }] }];
  const protoDescriptors = toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }));
  return { type: { case: 'protoSchema' as const, value: { protoDescriptors } } };
}

/** "row qualifier=value" of each cell. */
function cells(answers: readonly ReadRowsResponse[]): string[] {
  let [row, qualifier] = ['', ''];
  return answers
    .flatMap(({ chunks }) => chunks)
    .map((chunk) => {
      if (chunk.rowKey.length > 0) row = Buffer.from(chunk.rowKey).toString();
      if (chunk.qualifier !== undefined) qualifier = Buffer.from(chunk.qualifier).toString();
      return `${row} ${qualifier}=${Buffer.from(chunk.value).toString('latin1')}`;
    });
}
const cellsOf = async (api: ApiClient, tableName = TABLE): Promise<string[]> =>
  cells(await api.stream(data.readRows, { tableName }));
const namesOf = (of: readonly { readonly name: string }[]): string[] => of.map(({ name }) => name);
const equal: (seen: unknown, expected: unknown, message?: string) => void = assert.deepEqual;

/** An operation ends before its call answers. */
function succeeded([operation]: readonly Operation[]): void {
  equal([operation?.done, operation?.result.case], [true, 'response']);
}
async function isGone(call: Promise<unknown>): Promise<void> {
  equal(await codeOf(call), 'NOT_FOUND');
}

const INSTANCES: readonly Step[] = [
  step(
    instances.createInstance,
    {
      parent: PROJECT,
      instanceId: 'calls',
      instance: { displayName: 'made' },
      clusters: { one: { location: LOCATION, serveNodes: 1 } },
    },
    succeeded,
  ),
  step(instances.getInstance, { name: INSTANCE }, ([found]) =>
    equal([found?.name, found?.displayName], [INSTANCE, 'made']),
  ),
  step(instances.listInstances, { parent: PROJECT }, ([found]) =>
    assert.ok(namesOf(found!.instances).includes(INSTANCE)),
  ),
  step(instances.updateInstance, { name: INSTANCE, displayName: 'changed' }, ([found]) =>
    equal([found?.name, found?.displayName], [INSTANCE, 'changed']),
  ),
  step(
    instances.partialUpdateInstance,
    { instance: { name: INSTANCE, displayName: 'again' }, updateMask: mask('display_name') },
    async (answers, api) => {
      succeeded(answers);
      equal((await api.ask(instances.getInstance, { name: INSTANCE })).displayName, 'again');
    },
  ),
  step(
    instances.createCluster,
    { parent: INSTANCE, clusterId: 'two', cluster: { location: LOCATION, serveNodes: 1 } },
    succeeded,
  ),
  step(instances.getCluster, { name: CLUSTER }, ([found]) =>
    equal([found?.name, found?.location], [CLUSTER, LOCATION]),
  ),
  step(instances.listClusters, { parent: INSTANCE }, ([found]) =>
    equal(namesOf(found!.clusters).sort(), [CLUSTER, `${INSTANCE}/clusters/two`]),
  ),
  step(instances.updateCluster, { name: CLUSTER, serveNodes: 3 }, async (answers, api) => {
    succeeded(answers);
    equal((await api.ask(instances.getCluster, { name: CLUSTER })).serveNodes, 3);
  }),
  step(
    instances.partialUpdateCluster,
    { cluster: { name: CLUSTER, serveNodes: 2 }, updateMask: mask('serve_nodes') },
    async (answers, api) => {
      succeeded(answers);
      equal((await api.ask(instances.getCluster, { name: CLUSTER })).serveNodes, 2);
    },
  ),
  step(instances.listMemoryLayers, { parent: CLUSTER }, ([found]) =>
    equal(namesOf(found!.memoryLayers), [MEMORY_LAYER]),
  ),
  step(instances.getMemoryLayer, { name: MEMORY_LAYER }, ([found]) => equal(found?.memoryConfig, undefined)),
  step(
    instances.updateMemoryLayer,
    { memoryLayer: { name: MEMORY_LAYER, memoryConfig: {} }, updateMask: mask('memory_config') },
    async (answers, api) => {
      succeeded(answers);
      const { memoryConfig } = await api.ask(instances.getMemoryLayer, { name: MEMORY_LAYER });
      assert.ok(memoryConfig !== undefined);
    },
  ),
  step(
    instances.createAppProfile,
    {
      parent: INSTANCE,
      appProfileId: 'profile',
      appProfile: {
        description: 'made',
        routingPolicy: { case: 'singleClusterRouting', value: { clusterId: 'one', allowTransactionalWrites: true } },
      },
    },
    ([made]) => equal([made?.name, made?.description], [PROFILE, 'made']),
  ),
  step(instances.getAppProfile, { name: PROFILE }, ([found]) =>
    equal([found?.name, found?.routingPolicy.case], [PROFILE, 'singleClusterRouting']),
  ),
  step(instances.listAppProfiles, { parent: INSTANCE }, ([found]) =>
    assert.ok(namesOf(found!.appProfiles).includes(PROFILE)),
  ),
  step(
    instances.updateAppProfile,
    { appProfile: { name: PROFILE, description: 'changed' }, updateMask: mask('description'), ignoreWarnings: true },
    async (answers, api) => {
      succeeded(answers);
      equal((await api.ask(instances.getAppProfile, { name: PROFILE })).description, 'changed');
    },
  ),
];

const TABLES: readonly Step[] = [
  step(
    tables.createTable,
    { parent: INSTANCE, tableId: 't', table: { columnFamilies: { f: {} } }, initialSplits: [{ key: bytes('m') }] },
    ([made]) => equal([made?.name, Object.keys(made!.columnFamilies)], [TABLE, ['f']]),
  ),
  step(tables.listTables, { parent: INSTANCE }, ([found]) => equal(namesOf(found!.tables), [TABLE])),
  step(tables.getTable, { name: TABLE }, ([found]) =>
    equal([found?.name, Object.keys(found!.columnFamilies)], [TABLE, ['f']]),
  ),
  step(
    tables.modifyColumnFamilies,
    {
      name: TABLE,
      modifications: [
        {
          id: 'g',
          mod: { case: 'create', value: { gcRule: { rule: { case: 'maxNumVersions', value: 2 } } } },
        },
      ],
    },
    ([changed]) => {
      equal(Object.keys(changed!.columnFamilies).sort(), ['f', 'g']);
      equal(changed?.columnFamilies['g']?.gcRule?.rule, { case: 'maxNumVersions', value: 2 });
    },
  ),
  step(
    tables.updateTable,
    {
      table: { name: TABLE, changeStreamConfig: { retentionPeriod: { seconds: BigInt(DAY_SECONDS) } } },
      updateMask: mask('change_stream_config'),
    },
    async (answers, api) => {
      succeeded(answers);
      const { changeStreamConfig } = await api.ask(tables.getTable, { name: TABLE });
      equal(changeStreamConfig?.retentionPeriod?.seconds, BigInt(DAY_SECONDS));
    },
  ),
];

const ROWS: readonly Step[] = [
  step(data.pingAndWarm, { name: INSTANCE }, (answers) => equal(answers.length, 1)),
  step(data.getClientConfiguration, { instanceName: INSTANCE }, ([answer]) =>
    equal(answer?.sessionConfiguration?.sessionLoad, 0),
  ),
  step(data.mutateRow, { tableName: TABLE, rowKey: bytes('a'), mutations: [set('x', '1')] }, async (_, api) =>
    equal(await cellsOf(api), ['a x=1']),
  ),
  step(
    data.mutateRows,
    {
      tableName: TABLE,
      entries: [
        { rowKey: bytes('b'), mutations: [set('x', '2')] },
        { rowKey: bytes('c'), mutations: [{ ...set('x', '2'), mutation: { case: undefined } }] },
        { rowKey: bytes('z'), mutations: [set('x', '3')] },
      ],
    },
    async (answers, api) => {
      const codes = answers.flatMap(({ entries }) => entries.map(({ index, status }) => [index, status?.code ?? 0]));
      equal(
        codes.sort().map(([index, code]) => [index, code === 0]),
        [
          [0n, true],
          [1n, false],
          [2n, true],
        ],
      );
      equal(await cellsOf(api), ['a x=1', 'b x=2', 'z x=3']);
    },
  ),
  step(
    data.readRows,
    {
      tableName: TABLE,
      rows: { rowRanges: [{ startKey: { case: 'startKeyOpen', value: bytes('a') } }] },
      rowsLimit: 1n,
    },
    (answers) => equal(cells(answers), ['b x=2']),
  ),
  step(data.sampleRowKeys, { tableName: TABLE }, (answers) => {
    const keys = answers.map(({ rowKey }) => Buffer.from(rowKey).toString());
    equal([keys.at(-1), keys.slice(0, -1)], ['', keys.slice(0, -1).sort()]);
  }),
  step(
    data.checkAndMutateRow,
    {
      tableName: TABLE,
      rowKey: bytes('a'),
      predicateFilter: { filter: { case: 'valueRegexFilter', value: bytes('1') } },
      trueMutations: [set('y', 'then')],
      falseMutations: [set('y', 'else')],
    },
    async ([answer], api) => {
      equal(answer?.predicateMatched, true);
      equal((await cellsOf(api)).slice(0, 2), ['a x=1', 'a y=then']);
    },
  ),
  step(
    data.readModifyWriteRow,
    {
      tableName: TABLE,
      rowKey: bytes('a'),
      rules: [
        { familyName: 'f', columnQualifier: bytes('n'), rule: { case: 'incrementAmount', value: 5n } },
        { familyName: 'f', columnQualifier: bytes('x'), rule: { case: 'appendValue', value: bytes('!') } },
      ],
    },
    ([answer]) =>
      equal(
        answer?.row?.families.flatMap(({ columns }) =>
          columns.map((column) => Buffer.from(column.cells[0]!.value).toString('latin1')),
        ),
        ['\0\0\0\0\0\0\0\x05', '1!'],
      ),
  ),
  step(data.generateInitialChangeStreamPartitions, { tableName: TABLE }, (answers) => {
    const bounds = answers.map(({ partition }) => partition?.rowRange);
    equal(Buffer.from(bounds[0]?.startKey.value ?? 'none').toString(), '');
    equal(Buffer.from(bounds.at(-1)?.endKey.value ?? 'none').toString(), '');
  }),
  step(
    data.readChangeStream,
    () => ({
      tableName: TABLE,
      partition: { rowRange: { endKey: { case: 'endKeyOpen' as const, value: bytes('b') } } },
      startFrom: { case: 'startTime' as const, value: { seconds: inDays(0).seconds - 60n } },
      heartbeatDuration: { seconds: 1n },
      endTime: { seconds: inDays(0).seconds + 1n },
    }),
    (answers) => {
      const [first] = answers.flatMap(({ streamRecord: { case: is, value } }) => (is === 'dataChange' ? [value] : []));
      equal([Buffer.from(first?.rowKey ?? []).toString(), first?.chunks.length], ['a', 1]);
      equal(answers.at(-1)?.streamRecord.case, 'closeStream');
    },
  ),
  step(data.prepareQuery, { instanceName: INSTANCE, query: QUERY, dataFormat: { case: 'protoFormat', value: {} } }),
  step(data.executeQuery, { instanceName: INSTANCE, query: QUERY, dataFormat: { case: 'protoFormat', value: {} } }),
  step(data.openTable, {}),
  step(data.openAuthorizedView, {}),
  step(data.openMaterializedView, {}),
  step(tables.generateConsistencyToken, { name: TABLE }, ([answer], _, memory) => {
    assert.ok(answer!.consistencyToken !== '');
    memory.consistencyToken = answer!.consistencyToken;
  }),
  step(
    tables.checkConsistency,
    ({ consistencyToken }) => ({ name: TABLE, consistencyToken }),
    ([answer]) => equal(answer?.consistent, true),
  ),
];

const KEPT: readonly Step[] = [
  step(
    tables.createAuthorizedView,
    { parent: TABLE, authorizedViewId: 'view', authorizedView: subset('a') },
    async (answers, api) => {
      succeeded(answers);
      const seen = cells(await api.stream(data.readRows, { authorizedViewName: VIEW }));
      equal([...new Set(seen.map((cell) => cell[0]))], ['a'], 'no row outside of the view');
    },
  ),
  step(tables.getAuthorizedView, { name: VIEW }, ([found]) => equal(found?.name, VIEW)),
  step(tables.listAuthorizedViews, { parent: TABLE }, ([found]) => equal(namesOf(found!.authorizedViews), [VIEW])),
  step(
    tables.updateAuthorizedView,
    { authorizedView: { name: VIEW, ...subset('b') }, updateMask: mask('subset_view') },
    async (answers, api) => {
      succeeded(answers);
      equal(cells(await api.stream(data.readRows, { authorizedViewName: VIEW })), ['b x=2']);
    },
  ),
  step(tables.createSchemaBundle, { parent: TABLE, schemaBundleId: 'bundle', schemaBundle: bundle('Made') }, succeeded),
  step(tables.getSchemaBundle, { name: BUNDLE }, ([found]) => {
    assert.ok(found?.type.case === 'protoSchema');
    assert.ok(Buffer.from(found.type.value.protoDescriptors).includes('Made'));
  }),
  step(tables.listSchemaBundles, { parent: TABLE }, ([found]) => equal(namesOf(found!.schemaBundles), [BUNDLE])),
  step(
    tables.updateSchemaBundle,
    { schemaBundle: { name: BUNDLE, ...bundle('Changed') }, updateMask: mask('proto_schema'), ignoreWarnings: true },
    async (answers, api) => {
      succeeded(answers);
      const { type } = await api.ask(tables.getSchemaBundle, { name: BUNDLE });
      assert.ok(type.case === 'protoSchema' && Buffer.from(type.value.protoDescriptors).includes('Changed'));
    },
  ),
  step(
    instances.createLogicalView,
    { parent: INSTANCE, logicalViewId: 'logical', logicalView: { query: QUERY } },
    succeeded,
  ),
  step(instances.getLogicalView, { name: LOGICAL }, ([found]) => equal(found?.query, QUERY)),
  step(instances.listLogicalViews, { parent: INSTANCE }, ([found]) => equal(namesOf(found!.logicalViews), [LOGICAL])),
  step(
    instances.updateLogicalView,
    { logicalView: { name: LOGICAL, query: 'SELECT 1' }, updateMask: mask('query') },
    async (answers, api) => {
      succeeded(answers);
      equal((await api.ask(instances.getLogicalView, { name: LOGICAL })).query, 'SELECT 1');
    },
  ),
  step(
    instances.createMaterializedView,
    { parent: INSTANCE, materializedViewId: 'materialized', materializedView: { query: QUERY } },
    succeeded,
  ),
  step(instances.getMaterializedView, { name: MATERIALIZED }, ([found]) => equal(found?.query, QUERY)),
  step(instances.listMaterializedViews, { parent: INSTANCE }, ([found]) =>
    equal(namesOf(found!.materializedViews), [MATERIALIZED]),
  ),
  step(
    instances.updateMaterializedView,
    { materializedView: { name: MATERIALIZED, deletionProtection: true }, updateMask: mask('deletion_protection') },
    async (answers, api) => {
      succeeded(answers);
      equal(await codeOf(api.ask(instances.deleteMaterializedView, { name: MATERIALIZED })), 'FAILED_PRECONDITION');
      const materializedView = { name: MATERIALIZED, deletionProtection: false };
      await api.ask(instances.updateMaterializedView, { materializedView, updateMask: mask('deletion_protection') });
    },
  ),
  // none in the first minute of a server
  step(instances.listHotTablets, { parent: CLUSTER }, ([found]) =>
    assert.ok(found!.hotTablets.every(({ tableName }) => tableName.startsWith('projects/'))),
  ),
];

const BACKUPS: readonly Step[] = [
  step(
    tables.createBackup,
    { parent: CLUSTER, backupId: 'backup', backup: { sourceTable: TABLE, expireTime: inDays(1) } },
    succeeded,
  ),
  step(tables.getBackup, { name: BACKUP }, ([found]) => equal([found?.name, found?.sourceTable], [BACKUP, TABLE])),
  step(tables.listBackups, { parent: CLUSTER }, ([found]) => equal(namesOf(found!.backups), [BACKUP])),
  step(
    tables.updateBackup,
    { backup: { name: BACKUP, expireTime: inDays(3) }, updateMask: mask('expire_time') },
    async ([changed], api) => {
      const found = await api.ask(tables.getBackup, { name: BACKUP });
      assert.ok(found.expireTime!.seconds > inDays(2).seconds);
      equal(changed?.expireTime, found.expireTime);
    },
  ),
  step(
    tables.copyBackup,
    { parent: CLUSTER, backupId: 'copy', sourceBackup: BACKUP, expireTime: inDays(1) },
    async (answers, api) => {
      succeeded(answers);
      const name = `${CLUSTER}/backups/copy`;
      equal((await api.ask(tables.getBackup, { name })).sourceBackup, BACKUP);
      await api.ask(tables.deleteBackup, { name });
    },
  ),
  step(
    tables.restoreTable,
    { parent: INSTANCE, tableId: 'restored', source: { case: 'backup', value: BACKUP } },
    async (answers, api) => {
      succeeded(answers);
      equal(await cellsOf(api, `${INSTANCE}/tables/restored`), await cellsOf(api));
    },
  ),
  step(tables.snapshotTable, { name: TABLE, cluster: CLUSTER, snapshotId: 'snapshot' }),
  step(tables.getSnapshot, { name: SNAPSHOT }),
  step(tables.listSnapshots, { parent: CLUSTER }),
  step(tables.createTableFromSnapshot, { parent: INSTANCE, tableId: 'from-snapshot', sourceSnapshot: SNAPSHOT }),
  step(tables.deleteSnapshot, { name: SNAPSHOT }),
];

const policies = (methods: typeof tables | typeof instances, resource: string): readonly Step[] => [
  step(methods.setIamPolicy, { resource, policy: POLICY }, ([policy]) =>
    equal(
      policy?.bindings.map(({ role, members }) => ({ role, members })),
      POLICY.bindings,
    ),
  ),
  step(methods.getIamPolicy, { resource }, ([policy]) =>
    equal(
      policy?.bindings.map(({ role, members }) => ({ role, members })),
      POLICY.bindings,
    ),
  ),
  step(methods.testIamPermissions, { resource, permissions: PERMISSIONS }, ([answer]) =>
    equal(answer?.permissions, PERMISSIONS),
  ),
];

const DELETIONS: readonly Step[] = [
  step(tables.dropRowRange, { name: TABLE, target: { case: 'rowKeyPrefix', value: bytes('b') } }, async (_, api) =>
    assert.ok((await cellsOf(api)).every((cell) => !cell.startsWith('b'))),
  ),
  step(tables.deleteBackup, { name: BACKUP }, (_, api) => isGone(api.ask(tables.getBackup, { name: BACKUP }))),
  step(tables.deleteSchemaBundle, { name: BUNDLE }, (_, api) =>
    isGone(api.ask(tables.getSchemaBundle, { name: BUNDLE })),
  ),
  step(tables.deleteAuthorizedView, { name: VIEW }, (_, api) =>
    isGone(api.ask(tables.getAuthorizedView, { name: VIEW })),
  ),
  step(instances.deleteMaterializedView, { name: MATERIALIZED }, (_, api) =>
    isGone(api.ask(instances.getMaterializedView, { name: MATERIALIZED })),
  ),
  step(instances.deleteLogicalView, { name: LOGICAL }, (_, api) =>
    isGone(api.ask(instances.getLogicalView, { name: LOGICAL })),
  ),
  step(instances.deleteAppProfile, { name: PROFILE, ignoreWarnings: true }, (_, api) =>
    isGone(api.ask(instances.getAppProfile, { name: PROFILE })),
  ),
  step(tables.deleteTable, { name: TABLE }, (_, api) => isGone(api.ask(tables.getTable, { name: TABLE }))),
  step(tables.undeleteTable, { name: TABLE }, async (answers, api) => {
    succeeded(answers);
    equal((await api.ask(tables.getTable, { name: TABLE })).name, TABLE);
    assert.ok((await cellsOf(api)).length > 0);
  }),
  step(instances.deleteCluster, { name: `${INSTANCE}/clusters/two` }, (_, api) =>
    isGone(api.ask(instances.getCluster, { name: `${INSTANCE}/clusters/two` })),
  ),
  step(instances.deleteInstance, { name: INSTANCE }, (_, api) =>
    isGone(api.ask(instances.getInstance, { name: INSTANCE })),
  ),
];

export const STEPS: readonly Step[] = [
  ...INSTANCES,
  ...TABLES,
  ...ROWS,
  ...KEPT,
  ...BACKUPS,
  ...policies(tables, TABLE),
  ...policies(instances, INSTANCE),
  ...DELETIONS,
];

/** `word`: 'works', 'wrong', or the name of the code; `detail`: what was wrong, or the error's message. */
export interface Outcome {
  readonly word: string;
  readonly detail: string;
}

/** The outcome of work: what it throws is the server's answer, or says what is wrong with it. */
export async function outcomeOf(work: () => Promise<void>): Promise<Outcome> {
  try {
    await work();
    return { word: 'works', detail: '' };
  } catch (error) {
    const word = error instanceof BigtableError ? codeName(error.code) : 'wrong';
    return { word, detail: String(error) };
  }
}

/** Takes one step. An error of a call that the check makes is a wrong answer of this call. */
export function takeStep({ method, request, check }: Step, api: ApiClient, memory: Memory): Promise<Outcome> {
  return outcomeOf(async () => {
    const answers = await api.stream(method, request(memory));
    await check(answers, api, memory).catch((error: unknown) => {
      throw error instanceof BigtableError ? new Error(`the check: ${error}`) : error;
    });
  });
}
