/** google.bigtable.admin.v2.Backup. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { invalidArgument } from '../../base/index.ts';
import type { Backup, ListedBackup, RestoredFrom } from '../../model/index.ts';
import {
  type Backup as BackupMessage,
  Backup_BackupType as BackupType,
  Backup_State as State,
  type BackupInfo,
  type BackupInfoSchema,
  BackupSchema,
} from '../generated/google/bigtable/admin/v2/table_pb.ts';
import { microsOf, timestampOf } from './time.ts';

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

export function backupInfo(backup: RestoredFrom): MessageInitShape<typeof BackupInfoSchema> {
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
export function restoredFromOf({
  backup,
  sourceTable,
  sourceBackup,
  startTime,
  endTime,
}: Pick<BackupInfo, 'backup' | 'sourceTable' | 'sourceBackup' | 'startTime' | 'endTime'>): RestoredFrom {
  return {
    name: backup,
    table: sourceTable,
    ...(sourceBackup !== '' && { sourceBackup }),
    startMicros: microsOf(startTime, 'start_time') ?? 0,
    ...(endTime && { endMicros: microsOf(endTime, 'end_time') }),
  };
}

/** As a server of Edubba has made it. */
export function backupOf(message: BackupMessage): Backup {
  const { name, state, backupType, expireTime, hotToStandardTime } = message;
  return {
    ...restoredFromOf({ ...message, backup: name }),
    state: state === State.READY ? 'ready' : 'creating',
    kind: backupType === BackupType.HOT ? 'hot' : 'standard',
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
