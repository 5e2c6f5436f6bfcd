/**
 * inspect: reads every file kind (SSTables, logs, METADATA and the files of the lock service) and describes the
 * contents as plain data. Pure: it reads through the seams, and changes nothing. `cli` shows the results.
 */
export { checkDatabase, type CheckOptions, type CheckProgress, type CheckReport, type WholeFile } from './check.ts';
export type { Finding } from './findings.ts';
export { type InspectedAppend, inspectLog, type InspectedRecord } from './log.ts';
export {
  type FileContents,
  inspectMetadata,
  type InspectedTablet,
  type MetadataComponents,
  type MetadataInspection,
} from './metadata.ts';
export { carryOutRepair, planRepair, type RepairPlan, type RepairResult } from './repair.ts';
export { inspectSsTable, type InspectedSsTable, type SsTableComponents, ssTableEntries } from './ss-table.ts';
