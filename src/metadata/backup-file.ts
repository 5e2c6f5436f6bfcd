/**
 * A backup as a file of the lock service, `backups/<full name of the backup>`. The backup exists from the instant the
 * file is created to the instant it is removed; rows of METADATA under its id keep its files. Format:
 * docs/formats/metadata.md.
 */
import { assert } from '../base/index.ts';
import type { Backup, BackupSource, SourcePolicy } from '../model/index.ts';
import { encodeDocument, FEATURE_BACKUP_POLICIES, PlainObject } from './plain-json.ts';
import { readBindings } from './policy-bindings.ts';
import { decodeSchema, encodeSchema, readRestoredFrom } from './schema-file.ts';

const BACKUP_DIRECTORY = 'backups/';

/** The file of a backup; of a prefix of names, the prefix of their files. */
export function backupPath(backup: string): string {
  return BACKUP_DIRECTORY + backup;
}

/** The name of the backup that has the file. */
export function backupNameOf(path: string): string {
  assert(path.startsWith(BACKUP_DIRECTORY), 'the file is one of a backup');
  return path.slice(BACKUP_DIRECTORY.length);
}

export interface BackupFile extends Backup, BackupSource {
  /** That of its rows in METADATA. */
  readonly id: string;
  /** The unique name of the write that made this file. */
  readonly write: string;
}

export function encodeBackup({ schema, policies, ...fields }: BackupFile): Buffer {
  const isProtected = policies.length > 0;
  return encodeDocument(
    { ...fields, ...(isProtected && { policies }), schema: encodeSchema(schema).toString('utf8') },
    isProtected ? FEATURE_BACKUP_POLICIES : 0,
  );
}

/** Checks every field: CorruptionError names the one that is wrong. */
export function decodeBackup(path: string, bytes: Uint8Array): BackupFile {
  const object = PlainObject.parse(path, bytes);
  const id = object.text('id');
  if (!/^[0-9a-f]{8}$/.test(id)) throw object.wrong('id', 'eight hexadecimal digits', id);
  const name = object.text('name');
  if (backupPath(name) !== path) throw object.wrong('name', 'that of its file', name);
  return {
    id,
    ...readRestoredFrom(object),
    state: object.oneOf('state', ['creating', 'ready']),
    kind: object.oneOf('kind', ['standard', 'hot']),
    expireMicros: object.count('expireMicros'),
    ...(object.has('hotToStandardMicros') && { hotToStandardMicros: object.count('hotToStandardMicros') }),
    sizeBytes: object.count('sizeBytes'),
    schema: decodeSchema(path, Buffer.from(object.text('schema'), 'utf8')),
    policies: readPolicies(object),
    write: object.text('write'),
  };
}

/** The policies of the table and of its families. */
export function readPolicies(object: PlainObject): readonly SourcePolicy[] {
  return object.has('policies') ? object.objects('policies').map(readPolicy) : [];
}

function readPolicy(object: PlainObject): SourcePolicy {
  return { ...(object.has('family') && { family: object.text('family') }), bindings: readBindings(object) };
}
