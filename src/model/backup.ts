/** Backups of tables (API: google.bigtable.admin.v2.Backup). */

export interface Backup {
  /** projects/P/instances/I/clusters/C/backups/B. */
  readonly name: string;
  /** The full name of its table. */
  readonly table: string;
  /** The backup that it is a copy of. */
  readonly sourceBackup?: string | undefined;
  /** A backup that is being created has no rows yet. */
  readonly state: 'creating' | 'ready';
  /** Both are the same here: a restored table is as quick as the one that was backed up. */
  readonly kind: 'standard' | 'hot';
  /** Each row is as it was at one instant from this time to `endMicros`, µs since 1970. */
  readonly startMicros: number;
  readonly endMicros?: number | undefined;
  /** It is deleted then. */
  readonly expireMicros: number;
  /** When a hot backup becomes a standard one. */
  readonly hotToStandardMicros?: number | undefined;
  /** The bytes of its files, some of which other tables and backups may share. */
  readonly sizeBytes: number;
}

/** The backup that a table was restored from, which may exist no more. */
export type RestoredFrom = Pick<Backup, 'name' | 'table' | 'sourceBackup' | 'startMicros' | 'endMicros'>;

/** One whose file is damaged, or of a later release: only its name is known. It can be deleted, and nothing else. */
export interface UnreadableBackup {
  readonly name: string;
  readonly state: 'unreadable';
}

export type ListedBackup = Backup | UnreadableBackup;

const BACKUP_NAME = /^projects\/[^/]+\/instances\/[^/]+\/clusters\/[^/]+\/backups\/[^/]+$/;

/** True for the full name of a backup, whether or not there is one. */
export function isBackupName(name: string): boolean {
  return BACKUP_NAME.test(name);
}

export interface NewBackup extends Pick<Backup, 'name' | 'kind' | 'expireMicros' | 'hotToStandardMicros'> {
  /** The full name of a table, or of a backup to be copied. */
  readonly source: string;
}
