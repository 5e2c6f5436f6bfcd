/** Backups in the backup store of an Edubba server, over its own API (edubba.v1.Control). */
import type { RequestContext } from '../../env/index.ts';
import type { Backup, ExportedBackup, ListedExport, NewImport } from '../../model/index.ts';
import type { BackupService, ExportService } from '../../service/index.ts';
import type { RpcClient } from '../../wire/index.ts';
import { exportedBackupOf, listedExportOf } from '../convert/exported-backup.ts';
import { Control } from '../generated/edubba/v1/control_pb.ts';
import { controlCall, controlStream } from './remote-control.ts';
import { RemoteBackups } from './remote-backups.ts';

const control = Control.method;

export class RemoteExports implements ExportService {
  readonly #client: RpcClient;
  readonly #backups: BackupService;

  constructor(client: RpcClient) {
    this.#client = client;
    this.#backups = new RemoteBackups(client);
  }

  async exportBackup(context: RequestContext, backup: string, id: string): Promise<ExportedBackup> {
    return exportedBackupOf(await controlCall(this.#client, context, control.exportBackup, { backup, id }));
  }

  async importBackup(context: RequestContext, { name, from, expireMicros }: NewImport): Promise<Backup> {
    const request = { name, id: from, expireMicros: BigInt(expireMicros) };
    await controlCall(this.#client, context, control.importBackup, request);
    return this.#backups.getBackup(context, name);
  }

  async listExports(context: RequestContext): Promise<readonly ListedExport[]> {
    const all: ListedExport[] = [];
    for await (const { exports } of controlStream(this.#client, context, control.listExports, {}))
      all.push(...exports.map(listedExportOf));
    return all;
  }

  async deleteExport(context: RequestContext, id: string): Promise<void> {
    await controlCall(this.#client, context, control.deleteExport, { id });
  }
}
