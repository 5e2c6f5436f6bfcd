/**
 * service: the interface that every door (embedded library, gRPC, command line) uses and the client library implements:
 * data and admin calls in the terms of the model, and the checks of form and limits that are the same for all doors.
 */
export { type AppProfileRules, type CallKind, InstanceRules } from './app-profile-rules.ts';
export { AuthorizedView, clipSamples, type FamilySubset, type SubsetView } from './authorized-view.ts';
export type { BackupChange, BackupService } from './backup-service.ts';
export type { ChangeService, ChangeStreamRequest, StreamEvent, StreamToken } from './change-service.ts';
export { checkDropRowRange, checkGcRule, checkModifyFamilies, checkNewTable, checkUpdateTable } from './check-admin.ts';
export { checkBackupChange, checkBackupName, checkExportId, checkNewBackup, checkNewImport } from './check-backups.ts';
export { checkQuota, checkTabletBound } from './check-control.ts';
export {
  checkCheckAndMutateRow,
  checkMutateRow,
  checkMutateRows,
  checkReadModifyWriteRow,
  checkReadRanges,
  checkReadRows,
  type Slicer,
} from './check-data.ts';
export { checkGroupLayout } from './check-groups.ts';
export { checkRowRange, checkTableName } from './check-names.ts';
export { checkClusterName, checkInstanceChange, checkInstanceName, checkNewInstance } from './check-instances.ts';
export { checkMember, checkPolicy } from './check-policies.ts';
export { checkMutations, checkRules, effectiveMutations } from './check-schema.ts';
export type { CompactionProgress, ControlService, QuotaChange } from './control-service.ts';
export type { ExportService } from './export-service.ts';
export { forgetResources } from './forget-resources.ts';
export { changedInstance, newInstance, partOf } from './instance-changes.ts';
export {
  checkTimeSpan,
  type HotTabletService,
  lastDay,
  MAX_HOT_TABLETS,
  type TimeSpan,
} from './hot-tablet-service.ts';
export type {
  AppProfileChange,
  ClusterChange,
  InstanceChange,
  InstanceService,
  NewAppProfile,
  NewCluster,
  NewInstance,
} from './instance-service.ts';
export type { MemoryLayerChange, MemoryLayerService, MemoryLayerSource } from './memory-layer-service.ts';
export { type KeptOperation, MAX_OPERATION_BYTES, type OperationStore } from './operation-store.ts';
export { overQuota, withoutUsage } from './over-quota.ts';
export { changedPolicy, type KeptPolicy, type PolicySource, type PolicyStore } from './policy-store.ts';
export { type NamedKind, type NamedResource, parseResourceName } from './resource-names.ts';
export { type FamilyRight, PERMISSIONS, PERMISSIONS_OF_RIGHTS, PERMITTED_AS, ROLES } from './roles.ts';
export { changedSinceRead } from './stale-change.ts';
export {
  canReadOn,
  type RawCallHandler,
  type RawCallPasser,
  type RawRead,
  type RawWrite,
  type ReadPart,
  type RowService,
} from './raw-calls.ts';
export {
  type AuthorizedViewSource,
  type KeptResource,
  MAX_RESOURCE_BYTES,
  type ResourceKind,
  type ResourceStore,
} from './resource-store.ts';
export type {
  AdminService,
  CheckAndMutateRequest,
  DataService,
  FamilyChange,
  KeySample,
  NewTable,
  ReadRequest,
  Service,
  TableChange,
} from './service.ts';
