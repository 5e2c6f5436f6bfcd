/** Backups in the backup store: the master exports, lists, imports and deletes them. */
import type { Clock, RequestContext } from '../env/index.ts';
import type { Backup, ExportedBackup, ListedExport, NewImport } from '../model/index.ts';
import { checkBackupName, checkExportId, checkNewImport, type ExportService } from '../service/index.ts';
import type { Backups } from './backups.ts';
import type { MasterCaller } from './master-caller.ts';

export interface ExportsParts {
  readonly clock: Clock;
  readonly master: MasterCaller;
  readonly backups: Backups;
}

export class Exports implements ExportService {
  readonly #parts: ExportsParts;

  constructor(parts: ExportsParts) {
    this.#parts = parts;
  }

  async exportBackup(context: RequestContext, backup: string, id: string): Promise<ExportedBackup> {
    checkBackupName(backup);
    checkExportId(id);
    return this.#parts.master.call('exportBackup', { backup, id }, context);
  }

  async importBackup(context: RequestContext, wanted: NewImport): Promise<Backup> {
    const { clock, master, backups } = this.#parts;
    checkNewImport(wanted, clock.nowMicros());
    await backups.checkRoom(context, wanted.name);
    await master.call('importBackup', wanted, context);
    return backups.getBackup(context, wanted.name);
  }

  async listExports(context: RequestContext): Promise<readonly ListedExport[]> {
    const { exports, unreadable } = await this.#parts.master.call('listExports', {}, context);
    const all: ListedExport[] = [...exports, ...unreadable.map((id) => ({ id, state: 'unreadable' as const }))];
    return all.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async deleteExport(context: RequestContext, id: string): Promise<void> {
    checkExportId(id);
    await this.#parts.master.call('deleteExport', { id }, context);
  }
}
