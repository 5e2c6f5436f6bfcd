/**
 * Backups in the backup store, which is apart from the files of the database. The Cloud API has no calls for it (over
 * gRPC: edubba.v1.Control).
 *
 * Errors: FAILED_PRECONDITION where the database has no backup store.
 */
import type { RequestContext } from '../env/index.ts';
import type { Backup, ExportedBackup, ListedExport, NewImport } from '../model/index.ts';

export interface ExportService {
  /**
   * Copies the backup to the backup store. What is begun goes on when its caller has gone. A repetition answers the
   * same as the first call; ALREADY_EXISTS where another backup is there under that id.
   */
  exportBackup(context: RequestContext, backup: string, id: string): Promise<ExportedBackup>;
  /** Makes a backup of an exported one. ALREADY_EXISTS where there is one of that name. */
  importBackup(context: RequestContext, wanted: NewImport): Promise<Backup>;
  /** By id, also those that cannot be read. */
  listExports(context: RequestContext): Promise<readonly ListedExport[]>;
  /** Also one that cannot be read. NOT_FOUND where there is none. */
  deleteExport(context: RequestContext, id: string): Promise<void>;
}
