/**
 * Backups, as far as the caller has rights on them, and on what they are of: who may not read a family of a table may
 * neither back it up nor restore it, because a copy has no policies.
 */
import type { RequestContext } from '../env/index.ts';
import { type Backup, isBackupName, type ListedBackup, type NewBackup, type TableSchema } from '../model/index.ts';
import type { BackupChange, BackupService } from '../service/index.ts';
import type { Gate } from './gate.ts';
import { denied } from './rights.ts';

export class GuardedBackups implements BackupService {
  readonly #backups: BackupService;
  readonly #gate: Gate;

  constructor(backups: BackupService, gate: Gate) {
    this.#backups = backups;
    this.#gate = gate;
  }

  createBackup(context: RequestContext, backup: NewBackup): Promise<Backup> {
    const { name, source } = backup;
    const isCopy = isBackupName(source);
    return this.#gate.change(
      context,
      isCopy ? 'CopyBackup' : 'CreateBackup',
      'bigtable.backups.create',
      instanceOf(name),
      async () => {
        if (isCopy) await this.#checkSource(context, 'bigtable.backups.read', source);
        else this.#checkFamilies(context, source);
        return this.#backups.createBackup(context, backup);
      },
    );
  }

  async getBackup(context: RequestContext, name: string): Promise<Backup> {
    this.#gate.check(context, 'GetBackup', 'bigtable.backups.get', name);
    return this.#backups.getBackup(context, name);
  }

  /** Those that the caller may see. PERMISSION_DENIED where the instance is closed to it, and none is seen. */
  async listBackups(context: RequestContext, prefix: string): Promise<readonly ListedBackup[]> {
    const { rights } = this.#gate;
    const all = await this.#backups.listBackups(context, prefix);
    const seen = all.filter(({ name }) => rights.allows(context.principal, 'bigtable.backups.get', name));
    if (seen.length === 0) this.#gate.check(context, 'ListBackups', 'bigtable.backups.list', instanceOf(prefix));
    return seen;
  }

  updateBackup(context: RequestContext, name: string, change: BackupChange): Promise<Backup> {
    return this.#gate.change(context, 'UpdateBackup', 'bigtable.backups.update', name, () =>
      this.#backups.updateBackup(context, name, change),
    );
  }

  deleteBackup(context: RequestContext, name: string): Promise<void> {
    return this.#gate.change(context, 'DeleteBackup', 'bigtable.backups.delete', name, () =>
      this.#backups.deleteBackup(context, name),
    );
  }

  restoreTable(context: RequestContext, name: string, backup: string): Promise<TableSchema> {
    return this.#gate.change(context, 'RestoreTable', 'bigtable.tables.create', instanceOf(name), async () => {
      await this.#checkSource(context, 'bigtable.backups.restore', backup);
      return this.#backups.restoreTable(context, name, backup);
    });
  }

  async #checkSource(context: RequestContext, permission: string, backup: string): Promise<void> {
    this.#gate.rights.check(context, permission, backup);
    const { rights } = this.#gate;
    if (rights.isOpen) return;
    const source = await this.#backups.sourceOf?.(context, backup);
    if (source === undefined || !rights.readsBackup(context.principal, source))
      throw denied(context.principal, 'bigtable.tables.readRows', source?.schema.name ?? backup);
  }

  #checkFamilies(context: RequestContext, table: string): void {
    if (!this.#gate.rights.readsAll(context.principal, table))
      throw denied(context.principal, 'bigtable.tables.readRows', table);
  }
}

function instanceOf(name: string): string {
  return /^projects\/[^/]+\/instances\/[^/]+/.exec(name)?.[0] ?? '';
}
