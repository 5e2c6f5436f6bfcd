/**
 * metadata: METADATA's rows: their keys, contents and encoding, the conditional commits by which alone they change, and
 * tables' schemas as files. Pure; the rooms that read and write them are above.
 */
export {
  commitOfMerge,
  commitOfRow,
  commitOfSplit,
  givenTo,
  judge,
  type MetadataCommit,
  mutationsOf,
  releasedAt,
  withoutLog,
  type TabletPart,
} from './commit.ts';
export { type BackupFile, backupNameOf, backupPath, decodeBackup, encodeBackup } from './backup-file.ts';
export {
  decodeDeletionMark,
  type DeletionMark,
  deletionPath,
  encodeDeletionMark,
  keptFilePath,
  type KeptTable,
} from './deletion-mark.ts';
export {
  boundaryAfter,
  dividesTablet,
  isMetadataTablet,
  keyBeforeBoundary,
  keysOfTable,
  lookupKey,
  METADATA_TABLE_ID,
  type MetadataKey,
  metadataKey,
  parseMetadataKey,
  ROOT_KEY,
  ROOT_RANGE,
  USER_RANGE,
} from './keys.ts';
export {
  decodeExport,
  decodeExportedRows,
  encodeExport,
  encodeExportedRows,
  type ExportedFile,
  type ExportedRows,
  exportFilesPath,
  type ExportManifest,
  exportIdOf,
  exportPath,
} from './exported-backup-file.ts';
export {
  decodeEvents,
  decodeHistory,
  decodeLocation,
  decodeRootFile,
  decodeRow,
  encodeRootFile,
  keyOfRow,
  LOCATION_FAMILY,
  METADATA_SCHEMA,
  type MetadataRow,
  type PastOwner,
  type ServerLocation,
  type TabletLocation,
} from './metadata-row.ts';
export {
  decodeNextTableId,
  encodeNextTableId,
  FIRST_TABLE_ID,
  LAST_TABLE_ID,
  NEXT_TABLE_ID_PATH,
} from './next-table-id.ts';
export { assertDisjoint, assertPartition, continues } from './partition.ts';
export { ownersSince } from './past-owners.ts';
export { encodeDocument, PlainObject } from './plain-json.ts';
export { readBindings } from './policy-bindings.ts';
export { decodeSchema, encodeSchema, schemaPath } from './schema-file.ts';
