/**
 * The names of all calls that there are, and of which kind they are: what must be known of those that are seldom asked for before their descriptors are
 * loaded. A test compares it with these.
 */
import type { RpcMethod } from '../../wire/index.ts';

type Kind = RpcMethod['kind'];

/** By service, then by kind: names with spaces between them. */
const METHODS: Readonly<Record<string, { readonly [K in Kind]?: string }>> = {
  'google.bigtable.v2.Bigtable': {
    unary: 'MutateRow CheckAndMutateRow PingAndWarm ReadModifyWriteRow PrepareQuery GetClientConfiguration',
    stream: 'ReadRows SampleRowKeys MutateRows GenerateInitialChangeStreamPartitions ReadChangeStream ExecuteQuery',
    bidi: 'OpenTable OpenAuthorizedView OpenMaterializedView',
  },
  'google.bigtable.admin.v2.BigtableTableAdmin': {
    unary:
      'CreateTable CreateTableFromSnapshot ListTables GetTable UpdateTable DeleteTable UndeleteTable CreateAuthorizedView ListAuthorizedViews ' +
      'GetAuthorizedView UpdateAuthorizedView DeleteAuthorizedView ModifyColumnFamilies DropRowRange GenerateConsistencyToken CheckConsistency ' +
      'SnapshotTable GetSnapshot ListSnapshots DeleteSnapshot CreateBackup GetBackup UpdateBackup DeleteBackup ListBackups RestoreTable CopyBackup ' +
      'GetIamPolicy SetIamPolicy TestIamPermissions CreateSchemaBundle UpdateSchemaBundle GetSchemaBundle ListSchemaBundles DeleteSchemaBundle',
  },
  'google.bigtable.admin.v2.BigtableInstanceAdmin': {
    unary:
      'CreateInstance GetInstance ListInstances UpdateInstance PartialUpdateInstance DeleteInstance CreateCluster GetCluster ListClusters ' +
      'UpdateCluster PartialUpdateCluster DeleteCluster UpdateMemoryLayer ListMemoryLayers GetMemoryLayer CreateAppProfile GetAppProfile ' +
      'ListAppProfiles UpdateAppProfile DeleteAppProfile GetIamPolicy SetIamPolicy TestIamPermissions ListHotTablets CreateLogicalView ' +
      'GetLogicalView ListLogicalViews UpdateLogicalView DeleteLogicalView CreateMaterializedView GetMaterializedView ListMaterializedViews ' +
      'UpdateMaterializedView DeleteMaterializedView',
  },
  'edubba.v1.Control': {
    unary: 'Flush SplitTablets MergeTablets GetFamilyUsage GetCounters',
    stream: 'CompactTables ListTablets ListTableNames',
  },
  'google.longrunning.Operations': {
    unary: 'ListOperations GetOperation DeleteOperation CancelOperation WaitOperation',
  },
  'grpc.health.v1.Health': {
    unary: 'Check List',
    stream: 'Watch',
  },
  'grpc.reflection.v1.ServerReflection': {
    bidi: 'ServerReflectionInfo',
  },
  'grpc.reflection.v1alpha.ServerReflection': {
    bidi: 'ServerReflectionInfo',
  },
};

export interface ApiMethod {
  /** /SERVICE/METHOD */
  readonly path: string;
  readonly kind: Kind;
}

/** Full names, in the order in which reflection tells them. */
export const API_SERVICES: readonly string[] = Object.keys(METHODS);

export const API_METHODS: readonly ApiMethod[] = Object.entries(METHODS).flatMap(([service, kinds]) =>
  Object.entries(kinds).flatMap(([kind, names]) =>
    names.split(' ').map((name) => ({ path: `/${service}/${name}`, kind: kind as Kind })),
  ),
);
