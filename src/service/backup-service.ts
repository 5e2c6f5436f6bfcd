/** Backups of tables (API: google.bigtable.admin.v2.BigtableTableAdmin). */
import type { RequestContext } from '../env/index.ts';
import type { Backup, BackupSource, ListedBackup, NewBackup, TableSchema } from '../model/index.ts';

export interface BackupChange {
  readonly expireMicros?: number | undefined;
  /** null: it stays hot. */
  readonly hotToStandardMicros?: number | null | undefined;
}

export interface BackupService {
  /** Backs up a table, or copies a backup. ALREADY_EXISTS where there is one of that name. */
  createBackup(context: RequestContext, backup: NewBackup): Promise<Backup>;
  /** NOT_FOUND where there is none, DATA_LOSS where its file cannot be read. */
  getBackup(context: RequestContext, name: string): Promise<Backup>;
  /**
   * What it is of: for those who check rights before this service. Undefined where that is done elsewhere. Errors as
   * `getBackup`.
   */
  sourceOf?(context: RequestContext, name: string): Promise<BackupSource>;
  /** Those whose names begin so, by name, also those that cannot be read. */
  listBackups(context: RequestContext, prefix: string): Promise<readonly ListedBackup[]>;
  updateBackup(context: RequestContext, name: string, change: BackupChange): Promise<Backup>;
  /** Also one that cannot be read. NOT_FOUND where there is none. */
  deleteBackup(context: RequestContext, name: string): Promise<void>;
  /** Creates a table of that name from a backup. ALREADY_EXISTS where there is one. */
  restoreTable(context: RequestContext, name: string, backup: string): Promise<TableSchema>;
}
