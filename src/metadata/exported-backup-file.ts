/**
 * A backup in a backup store: SSTables, the rows of METADATA that list them, and a manifest, which is written last.
 * Both of these files are lines of JSON, the last of which is the checksum of the others. Format:
 * docs/formats/backup-store.md.
 *
 * Invariant: an exported backup exists from the instant its manifest is there to the instant that is removed.
 */
import { asBuffer, assert, CorruptionError, crc32c } from '../base/index.ts';
import type { BackupSource, ExportedBackup } from '../model/index.ts';
import { decodeBackupRow, encodeBackupRow, type MetadataRow } from './metadata-row.ts';
import { encodeDocument, FEATURE_BACKUP_POLICIES, PlainObject } from './plain-json.ts';
import { readPolicies } from './backup-file.ts';
import { decodeSchema, encodeSchema } from './schema-file.ts';

const MANIFESTS = 'manifests/';
const FILES = 'files/';

/** The manifest of the exported backup of that id; of '', the directory of all. */
export function exportPath(id: string): string {
  return MANIFESTS + id;
}

/** The id of the exported backup with that manifest. */
export function exportIdOf(path: string): string {
  assert(path.startsWith(MANIFESTS), 'the file is a manifest');
  return path.slice(MANIFESTS.length);
}

/** The directory of the other files of an exported backup. */
export function exportFilesPath(id: string): string {
  return `${FILES}${id}/`;
}

/** A file in the backup store. */
export interface ExportedFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** CRC-32C of the whole file. */
  readonly checksum: number;
}

export interface ExportManifest extends Omit<ExportedBackup, 'state'>, BackupSource {
  /** The id of the backup that was exported. */
  readonly backupId: string;
  /** The file with the rows of METADATA. */
  readonly rows: ExportedFile;
}

export function encodeExport({ schema, policies, ...fields }: ExportManifest): Buffer {
  const isProtected = policies.length > 0;
  const document = encodeDocument(
    { ...fields, ...(isProtected && { policies }), schema: encodeSchema(schema).toString('utf8') },
    isProtected ? FEATURE_BACKUP_POLICIES : 0,
  );
  return linesOf([document]);
}

/** Checks every field: CorruptionError names the one that is wrong. */
export function decodeExport(path: string, bytes: Uint8Array): ExportManifest {
  const lines = readLines(path, bytes);
  if (lines.length !== 1) throw new CorruptionError(path, 0, `${lines.length} lines in place of one`);
  const object = PlainObject.parse(path, lines[0]!);
  const id = object.text('id');
  if (exportPath(id) !== path) throw object.wrong('id', 'that of its file', id);
  return {
    id,
    backupId: object.text('backupId'),
    backup: object.text('backup'),
    table: object.text('table'),
    startMicros: object.count('startMicros'),
    endMicros: object.count('endMicros'),
    exportedMicros: object.count('exportedMicros'),
    files: object.count('files'),
    sizeBytes: object.count('sizeBytes'),
    rows: readFile(object.object('rows')),
    schema: decodeSchema(path, Buffer.from(object.text('schema'), 'utf8')),
    policies: readPolicies(object),
  };
}

export interface ExportedRows {
  /** Those of the backup. They name the files by their paths in the backup store. */
  readonly rows: readonly MetadataRow[];
  /** Every file that a row names, once. */
  readonly files: readonly ExportedFile[];
}

export function encodeExportedRows({ rows, files }: ExportedRows): Buffer {
  return linesOf([...files.map((file) => encodeDocument({ file })), ...rows.map(encodeBackupRow)]);
}

/** `tableId`: the id of the backup that the rows will have. Checks every field, and that the rows name those files. */
export function decodeExportedRows(path: string, bytes: Uint8Array, tableId: string): ExportedRows {
  const rows: MetadataRow[] = [];
  const files: ExportedFile[] = [];
  for (const line of readLines(path, bytes)) {
    const object = PlainObject.parse(path, line);
    if (object.has('file')) files.push(readFile(object.object('file')));
    else rows.push(decodeBackupRow(object, tableId));
  }
  const listed = new Set(files.map((file) => file.path));
  if (listed.size !== files.length) throw new CorruptionError(path, 0, 'a file is there twice');
  for (const row of rows)
    for (const file of Object.values(row.files).flat())
      if (!listed.has(file)) throw new CorruptionError(path, 0, `a row names ${file}, which is not among the files`);
  return { rows, files };
}

function readFile(object: PlainObject): ExportedFile {
  return { path: object.text('path'), sizeBytes: object.count('sizeBytes'), checksum: object.count('checksum') };
}

const NEWLINE = 0x0a;
const CHECKSUM_DIGITS = 8;

/** The documents, a line each, and a line with the checksum of these lines. */
function linesOf(documents: readonly Buffer[]): Buffer {
  const newline = Buffer.from([NEWLINE]);
  const lines = Buffer.concat(documents.flatMap((document) => [document, newline]));
  return Buffer.concat([lines, Buffer.from(`${checksumText(lines)}\n`, 'latin1')]);
}

function readLines(path: string, bytes: Uint8Array): Buffer[] {
  const all = asBuffer(bytes);
  const end = all.length - CHECKSUM_DIGITS - 1;
  if (end < 0 || all.at(-1) !== NEWLINE || (end > 0 && all[end - 1] !== NEWLINE))
    throw new CorruptionError(path, all.length, 'it ends before its checksum');
  if (all.toString('latin1', end, end + CHECKSUM_DIGITS) !== checksumText(all.subarray(0, end)))
    throw new CorruptionError(path, end, 'the checksum is wrong');
  const lines: Buffer[] = [];
  for (let from = 0; from < end; ) {
    const to = all.indexOf(NEWLINE, from);
    lines.push(all.subarray(from, to));
    from = to + 1;
  }
  return lines;
}

function checksumText(bytes: Uint8Array): string {
  return crc32c(bytes).toString(16).padStart(CHECKSUM_DIGITS, '0');
}
