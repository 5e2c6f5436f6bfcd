/**
 * model: the data model in plain data: cells and columns, mutations, row sets, schemas, GC rules, aggregates, limits;
 * and the entries and the cursor of storage layers. Pure; all rooms above use these types.
 */
export type { DeletedTable } from './deleted-table.ts';
export { aggregateInput, checkAggregateInput, checkAggregateState, mergeAggregates } from './aggregate.ts';
export {
  type Backup,
  isBackupName,
  type ListedBackup,
  type NewBackup,
  type RestoredFrom,
  type UnreadableBackup,
} from './backup.ts';
export type { BackupSource, SourcePolicy } from './backup-source.ts';
export type { ExportedBackup, ListedExport, NewImport, UnreadableExport } from './exported-backup.ts';
export {
  type ChangeBatch,
  type ChangePosition,
  comparePositions,
  type RowChange,
  type StreamProgress,
} from './change-stream.ts';
export {
  type Cell,
  type ColumnKey,
  columnKey,
  familyEnd,
  familyOf,
  qualifierOf,
  type ReadBatch,
  type RowFragment,
} from './cell.ts';
export { CellBatchBuilder } from './cell-batch.ts';
export {
  type CellBatch,
  type CellColumn,
  type CellRun,
  columnAt,
  isCellRun,
  mutationList,
  type Mutations,
  type RowMutations,
  sliceMutations,
  timestampAt,
  valueAt,
  valueLengthAt,
} from './cell-run.ts';
export { DEFAULT_INSTANCE, DEFAULT_PARENT, DEFAULT_PROJECT } from './default-instance.ts';
export { compareHeat, type HotTablet, hottest } from './hot-tablet.ts';
export {
  DEFAULT_CLUSTER,
  DEFAULT_ZONE,
  type AnyClusterRouting,
  type AppProfile,
  type Autoscaling,
  type Cluster,
  type DataBoostIsolation,
  DEFAULT_APP_PROFILE,
  defaultAppProfile,
  type Instance,
  instanceOfTable,
  isServedFromMemory,
  type MemoryLayer,
  memoryLayersOf,
  type MemoryLayerState,
  type SingleClusterRouting,
  type StandardIsolation,
  uncreatedInstance,
} from './instance.ts';
export {
  CursorState,
  compareEntries,
  type Entry,
  EntryKind,
  type EntryPosition,
  type EntryStream,
  isDeletion,
  type Layer,
  type LayerCursor,
  type RowRangeDeletion,
} from './entry.ts';
export { type ByteTally, tallyBatch, tallyMutations } from './cell-bytes.ts';
export { type FamilyUsage, sumUsages } from './family-usage.ts';
export {
  type FamilyTotals,
  type FamilyTraffic,
  hasQuota,
  NO_TRAFFIC,
  quotaUsage,
  sumTraffic,
  type TableTotals,
  type TableTraffic,
  type TableUsage,
  usageOfTable,
} from './table-usage.ts';
export { type VersionKeeper, versionKeeper } from './gc.ts';
export {
  type Idempotency,
  MAX_TOKEN_BYTES,
  MIN_TOKEN_BYTES,
  TOKEN_FAMILY,
  TOKEN_GROUP,
  TOKEN_MS,
  TOKEN_SCHEMA,
  tokenColumn,
} from './idempotency.ts';
export { LIMITS, type Limits } from './limits.ts';
export {
  type AddToCell,
  type DeleteFromColumn,
  type DeleteFromFamily,
  type DeleteFromRow,
  type MergeToCell,
  mergedState,
  type Mutation,
  type ReadModifyWriteRule,
  type SetCell,
  setCell,
  type TimestampRange,
} from './mutation.ts';
export {
  ALL_ROWS,
  compareStarts,
  intersectRanges,
  isEmptyRange,
  joinRange,
  normalizeRanges,
  type RowRange,
  rangeContains,
  rangeOfRow,
  rowOfRange,
} from './row-set.ts';
export {
  type AggregateKind,
  DEFAULT_GROUP,
  type ChangeStream,
  type FamilySchema,
  familyName,
  familyOfTable,
  type GcRule,
  type Granularity,
  type GroupCompression,
  type GroupLayout,
  type LocalityGroup,
  storageFamily,
  type TableSchema,
  type ValueType,
} from './schema.ts';
export { carriesServerTime, cutToGranularity, needsServerTime, resolveTimestamps } from './server-time.ts';
export type { PastEvent, TabletHistory } from './tablet-history.ts';
export type { TabletStatistics } from './tablet-statistics.ts';
export type { Policy, PolicyBinding } from './policy.ts';
