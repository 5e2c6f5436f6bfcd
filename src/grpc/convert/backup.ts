/** google.bigtable.admin.v2.Backup. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { type BigtableError, invalidArgument } from '../../base/index.ts';
import type { Backup, ListedBackup } from '../../model/index.ts';
import {
  type Backup as BackupMessage,
  Backup_BackupType as BackupType,
  Backup_State as State,
  type BackupInfoSchema,
  BackupSchema,
} from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { timestampOf } from './time.ts';

/** A backup with all fields of the message, also where its file cannot be read. */
export type ShownBackup = Omit<Backup, 'state'> & Pick<ListedBackup, 'state'>;

const STATES: Readonly<Record<ShownBackup['state'], State>> = {
  creating: State.CREATING,
  ready: State.READY,
  unreadable: State.STATE_UNSPECIFIED,
};
/** The times are 1970, and not left out, because Google's client for Go needs some. */
const UNKNOWN = { table: '', kind: 'standard', startMicros: 0, endMicros: 0, expireMicros: 0, sizeBytes: 0 } as const;

export function shownBackup(backup: ListedBackup): ShownBackup {
  return backup.state === 'unreadable' ? { ...UNKNOWN, ...backup } : backup;
}

export function backupMessage(backup: ShownBackup): BackupMessage {
  const { name, table, sourceBackup, state, kind, startMicros, endMicros, expireMicros, hotToStandardMicros } = backup;
  return create(BackupSchema, {
    name,
    sourceTable: table,
    sourceBackup: sourceBackup ?? '',
    expireTime: timestampOf(expireMicros),
    startTime: timestampOf(startMicros),
    ...(endMicros !== undefined && { endTime: timestampOf(endMicros) }),
    sizeBytes: BigInt(backup.sizeBytes),
    // of no type: files are not encrypted. Google's client for Go needs the field
    encryptionInfo: {},
    state: STATES[state],
    backupType: typeOfKind(kind),
    ...(hotToStandardMicros !== undefined && { hotToStandardTime: timestampOf(hotToStandardMicros) }),
  });
}

export function backupInfo(backup: Backup): MessageInitShape<typeof BackupInfoSchema> {
  const { name, table, sourceBackup = '', startMicros, endMicros } = backup;
  return {
    backup: name,
    startTime: timestampOf(startMicros),
    ...(endMicros !== undefined && { endTime: timestampOf(endMicros) }),
    sourceTable: table,
    sourceBackup,
  };
}

/** As a server of Edubba has made it. */
export function backupOf(message: BackupMessage): Backup {
  const { name, sourceTable, sourceBackup, state, backupType, startTime, endTime, expireTime, hotToStandardTime } =
    message;
  return {
    name,
    table: sourceTable,
    ...(sourceBackup !== '' && { sourceBackup }),
    state: state === State.READY ? 'ready' : 'creating',
    kind: backupType === BackupType.HOT ? 'hot' : 'standard',
    startMicros: microsOf(startTime, 'start_time') ?? 0,
    ...(endTime && { endMicros: microsOf(endTime, 'end_time') }),
    expireMicros: microsOf(expireTime, 'expire_time') ?? 0,
    ...(hotToStandardTime && { hotToStandardMicros: microsOf(hotToStandardTime, 'hot_to_standard_time') }),
    sizeBytes: Number(message.sizeBytes),
  };
}

export function listedBackupOf(message: BackupMessage): ListedBackup {
  if (message.state === State.STATE_UNSPECIFIED) return { name: message.name, state: 'unreadable' };
  return backupOf(message);
}

export function typeOfKind(kind: Backup['kind']): BackupType {
  return kind === 'hot' ? BackupType.HOT : BackupType.STANDARD;
}

export function kindOf(type: BackupType): Backup['kind'] {
  if (type === BackupType.HOT) return 'hot';
  if (type === BackupType.STANDARD || type === BackupType.BACKUP_TYPE_UNSPECIFIED) return 'standard';
  throw invalidArgument(`backup_type ${type} is not one that is known`, { field: 'backup_type' });
}

/** Microseconds since 1970. INVALID_ARGUMENT for a time that no Timestamp may have. */
export function microsOf(time: Timestamp | undefined, field: string): number | undefined {
  if (time === undefined) return undefined;
  const { seconds, nanos } = time;
  // from the year 1 to 9999, as protobuf says; none before 1970 is of use
  if (seconds < 0n || seconds > 253_402_300_799n || nanos < 0 || nanos > 999_999_999) throw wrongTime(field);
  return Number(seconds) * 1e6 + Math.floor(nanos / 1000);
}

function wrongTime(field: string): BigtableError {
  return invalidArgument(`${field} must be a time from 1970 to 9999`, { field });
}
