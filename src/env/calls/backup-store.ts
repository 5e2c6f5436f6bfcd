/** The backup store of a process: where backups are exported to, apart from the files of the database. */
import { BigtableError, Code } from '../../base/index.ts';
import type { StoredFiles } from '../seams/file-system.ts';

/** FAILED_PRECONDITION where none is set; otherwise as opening it fails. */
export async function openBackupStore({
  backupStore,
}: {
  /** As `Env.backupStore`. */
  readonly backupStore?: (() => Promise<StoredFiles>) | undefined;
}): Promise<StoredFiles> {
  if (backupStore === undefined)
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      'there is no backup store: the setting backup-store says where backups are exported to',
    );
  return backupStore();
}
