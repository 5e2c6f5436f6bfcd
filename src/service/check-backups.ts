/** The checks of backups that are the same for all doors. Limits are Cloud Bigtable's. */
import { type BigtableError, invalidArgument, quote } from '../base/index.ts';
import type { Backup, NewBackup, NewImport } from '../model/index.ts';
import type { BackupChange } from './backup-service.ts';
import { parseResourceName } from './resource-names.ts';

const BACKUP_ID = /^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,49}$/;
const HOUR_MICROS = 3_600_000_000;
/** After its start. */
const MIN_EXPIRE_MICROS = 6 * HOUR_MICROS;
const MAX_EXPIRE_MICROS = 90 * 24 * HOUR_MICROS;
const MIN_HOT_MICROS = 24 * HOUR_MICROS;

/** INVALID_ARGUMENT for another form than INSTANCE/clusters/CLUSTER/backups/BACKUP. */
export function checkBackupName(name: string): void {
  const named = parseResourceName(name);
  if (named?.kind !== 'backup')
    throw wrong(
      'name',
      `backup ${quote(name, 300)} must be projects/PROJECT/instances/INSTANCE/clusters/CLUSTER/backups/BACKUP`,
    );
  if (!BACKUP_ID.test(named.id))
    throw wrong(
      'backup_id',
      `backup id ${quote(named.id)} must be 1 to 50 characters of [-_.a-zA-Z0-9], and begin with none of [-.]`,
    );
}

export function checkNewBackup(backup: NewBackup, nowMicros: number): void {
  checkBackupName(backup.name);
  const source = parseResourceName(backup.source);
  if (source?.kind !== 'table' && source?.kind !== 'backup')
    throw wrong('source', `source ${quote(backup.source, 300)} must be a table or a backup`);
  if (source.kind === 'table' && source.instance !== parseResourceName(backup.name)?.instance)
    throw wrong('source_table', `table ${quote(backup.source, 300)} must be in the instance of its backup`);
  checkTimes(backup, { ...backup, startMicros: nowMicros });
}

export function checkNewImport({ name, from, expireMicros }: NewImport, nowMicros: number): void {
  checkBackupName(name);
  checkExportId(from);
  checkTimes({ expireMicros }, { kind: 'standard', startMicros: nowMicros });
}

/** The id of a backup in the backup store. */
export function checkExportId(id: string): void {
  if (!BACKUP_ID.test(id))
    throw wrong(
      'id',
      `the id ${quote(id)} of an exported backup must be 1 to 50 characters of [-_.a-zA-Z0-9], and begin with none of [-.]`,
    );
}

export function checkBackupChange(change: BackupChange, backup: Backup): void {
  checkTimes(change, backup);
}

function checkTimes(
  { expireMicros, hotToStandardMicros }: BackupChange,
  { kind, startMicros }: Pick<Backup, 'kind' | 'startMicros'>,
): void {
  if (expireMicros !== undefined) {
    const keptMicros = expireMicros - startMicros;
    if (!(keptMicros >= MIN_EXPIRE_MICROS && keptMicros <= MAX_EXPIRE_MICROS))
      throw wrong('expire_time', 'a backup must expire 6 hours to 90 days after its start');
  }
  if (hotToStandardMicros === undefined || hotToStandardMicros === null) return;
  if (kind !== 'hot') throw wrong('hot_to_standard_time', 'only a hot backup becomes a standard one');
  if (hotToStandardMicros - startMicros < MIN_HOT_MICROS)
    throw wrong('hot_to_standard_time', 'a hot backup must stay one for at least 24 hours');
}

function wrong(field: string, message: string): BigtableError {
  return invalidArgument(message, { field });
}
