/**
 * The backup store, for operators alone: it is the same for all instances, and its files have no policies of their own.
 */
import type { RequestContext } from '../env/index.ts';
import type { Backup, ExportedBackup, ListedExport, NewImport } from '../model/index.ts';
import type { ExportService } from '../service/index.ts';
import type { Gate } from './gate.ts';

export class GuardedExports implements ExportService {
  readonly #exports: ExportService;
  readonly #gate: Gate;

  constructor(exports: ExportService, gate: Gate) {
    this.#exports = exports;
    this.#gate = gate;
  }

  exportBackup(context: RequestContext, backup: string, id: string): Promise<ExportedBackup> {
    return this.#gate.operate(context, 'ExportBackup', backup, () => this.#exports.exportBackup(context, backup, id));
  }

  importBackup(context: RequestContext, wanted: NewImport): Promise<Backup> {
    return this.#gate.operate(context, 'ImportBackup', wanted.name, () => this.#exports.importBackup(context, wanted));
  }

  async listExports(context: RequestContext): Promise<readonly ListedExport[]> {
    this.#gate.checkOperator(context, 'ListExports');
    return this.#exports.listExports(context);
  }

  deleteExport(context: RequestContext, id: string): Promise<void> {
    return this.#gate.operate(context, 'DeleteExport', id, () => this.#exports.deleteExport(context, id));
  }
}
