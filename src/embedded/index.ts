/**
 * embedded: the library. `open` a directory or ':memory:' and use tables in this very process. What this door exports
 * is the package's public interface; everything else may change.
 */
export { BigtableError, Code, type CodeName, CorruptionError, codeName } from '../base/index.ts';
export type { DatabaseSettings } from '../boot/index.ts';
export type {
  AggregateKind,
  Autoscaling,
  Backup,
  DeletedTable,
  ExportedBackup,
  FamilySchema,
  FamilyTotals,
  FamilyTraffic,
  FamilyUsage,
  GcRule,
  Granularity,
  GroupCompression,
  ListedBackup,
  ListedExport,
  LocalityGroup,
  TableSchema,
  TableTotals,
  TableUsage,
  UnreadableBackup,
  UnreadableExport,
} from '../model/index.ts';
export { BackupStore, type ExportBackupOptions } from './backup-store.ts';
export { BatchError, type BatchFailure } from './calls/batch-error.ts';
export { CallEndedError } from './calls/call-end.ts';
export type { CallOptions } from './calls/call-options.ts';
export {
  connect,
  type ConnectClusterOptions,
  type ConnectOptions,
  type ConnectTlsOptions,
  overService,
} from './connect.ts';
export { type CompactOptions, Database, type DeleteTableOptions, open, type OpenOptions } from './database.ts';
export type { BackupOptions, BackupUpdate, CopyBackupOptions } from './schema/backups.ts';
export type {
  AppProfile,
  AppProfileOptions,
  AppProfileUpdate,
  DeleteAppProfileOptions,
  IsolationOptions,
  RoutingOptions,
} from './schema/app-profiles.ts';
export type {
  AutoscalingOptions,
  Cluster,
  ClusterFigures,
  ClusterOptions,
  ClusterUpdate,
  Instance,
  InstanceOptions,
  InstanceUpdate,
  ListInstancesOptions,
} from './schema/instances.ts';
export type { FamilyOptions } from './schema/families.ts';
export type { FilterBound, FilterTimeRange, RowFilter } from './rows/filter.ts';
export type { GroupLayout, GroupOptions } from './schema/groups.ts';
export type { Bytes, Column, Timestamp, Value } from './values/input.ts';
export { LoadError, type LoadOptions, type LoadProgress, type MutationSource } from './rows/loading.ts';
export { Change, type Changes, type ChangesOptions } from './rows/change-stream.ts';
export { Cell, Row } from './rows/row.ts';
export { Mutations, RowMutation, type TimeRange } from './rows/row-mutation.ts';
export type { Rows, ToArrayOptions } from './rows/row-stream.ts';
export type { CheckAndMutateOutcomes, Predicate, ReadModifyWriteRule } from './rows/row-transaction.ts';
export type { RowBounds, RowOptions, ScanOptions } from './rows/scan.ts';
export type { Quota } from './schema/quota.ts';
export { Table } from './table.ts';
export type { TabletEvents, TabletInfo } from './schema/tablet-info.ts';
export type { TableOptions } from './schema/table-options.ts';
