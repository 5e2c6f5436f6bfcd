/**
 * inspect: looks inside every file kind (SSTables, logs, METADATA and the files of the lock service) and tells what is there as plain data. Pure: what it
 * reads comes through the seams, and it changes nothing. How it is shown is the business of `cli`.
 */
export { type InspectedAppend, inspectLog, type InspectedRecord, type MutationCounts } from './log.ts';
export { inspectMetadata, type InspectedTablet, type MetadataInspection, type TabletEventNote } from './metadata.ts';
export { inspectSsTable, type InspectedSsTable, ssTableEntries } from './ss-table.ts';
