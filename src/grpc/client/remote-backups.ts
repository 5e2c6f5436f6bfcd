/** Backups over the Cloud API of any Bigtable server. */
import type { RequestContext } from '../../env/index.ts';
import { type Backup, isBackupName, type ListedBackup, type NewBackup, type TableSchema } from '../../model/index.ts';
import type { BackupChange, BackupService } from '../../service/index.ts';
import type { RpcClient } from '../../wire/index.ts';
import { backupOf, listedBackupOf, typeOfKind } from '../convert/backup.ts';
import { inTwo } from '../convert/names.ts';
import { schemaOf } from '../convert/table.ts';
import { timestampOf } from '../convert/time.ts';
import { BigtableTableAdmin } from '../generated/google/bigtable/admin/v2/bigtable_table_admin_pb.ts';
import { call } from './remote-control.ts';

const admin = BigtableTableAdmin.method;

export class RemoteBackups implements BackupService {
  readonly #client: RpcClient;

  constructor(client: RpcClient) {
    this.#client = client;
  }

  /** A server that makes it in an operation of its own answers before it is ready. */
  async createBackup(context: RequestContext, backup: NewBackup): Promise<Backup> {
    const { name, source, kind, expireMicros, hotToStandardMicros } = backup;
    const [parent, backupId] = inTwo(name, '/backups/');
    const expireTime = timestampOf(expireMicros);
    if (isBackupName(source))
      await call(this.#client, context, admin.copyBackup, { parent, backupId, sourceBackup: source, expireTime });
    else {
      const hotToStandardTime = hotToStandardMicros === undefined ? undefined : timestampOf(hotToStandardMicros);
      const message = { sourceTable: source, expireTime, backupType: typeOfKind(kind), hotToStandardTime };
      await call(this.#client, context, admin.createBackup, { parent, backupId, backup: message });
    }
    return this.getBackup(context, name);
  }

  async getBackup(context: RequestContext, name: string): Promise<Backup> {
    return backupOf(await call(this.#client, context, admin.getBackup, { name }));
  }

  /** `prefix`: of a cluster, or of an instance's clusters. */
  async listBackups(context: RequestContext, prefix: string): Promise<readonly ListedBackup[]> {
    const [clusters, cluster = ''] = inTwo(prefix, '/clusters/');
    const parent = `${clusters}/clusters/${cluster.split('/')[0] || '-'}`;
    const found: ListedBackup[] = [];
    for (let pageToken = ''; ; ) {
      const page = await call(this.#client, context, admin.listBackups, { parent, orderBy: 'name', pageToken });
      found.push(...page.backups.map(listedBackupOf));
      pageToken = page.nextPageToken;
      if (pageToken === '') break;
    }
    return found.filter(({ name }) => name.startsWith(prefix));
  }

  async updateBackup(context: RequestContext, name: string, change: BackupChange): Promise<Backup> {
    const { expireMicros, hotToStandardMicros } = change;
    const paths = [
      ...(expireMicros === undefined ? [] : ['expire_time']),
      ...(hotToStandardMicros === undefined ? [] : ['hot_to_standard_time']),
    ];
    const backup = {
      name,
      ...(expireMicros !== undefined && { expireTime: timestampOf(expireMicros) }),
      ...(hotToStandardMicros != null && { hotToStandardTime: timestampOf(hotToStandardMicros) }),
    };
    return backupOf(await call(this.#client, context, admin.updateBackup, { backup, updateMask: { paths } }));
  }

  async deleteBackup(context: RequestContext, name: string): Promise<void> {
    await call(this.#client, context, admin.deleteBackup, { name });
  }

  async restoreTable(context: RequestContext, name: string, backup: string): Promise<TableSchema> {
    const [parent, tableId] = inTwo(name, '/tables/');
    await call(this.#client, context, admin.restoreTable, {
      parent,
      tableId,
      source: { case: 'backup', value: backup },
    });
    return schemaOf(await call(this.#client, context, admin.getTable, { name }));
  }
}
