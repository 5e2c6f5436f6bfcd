/** Backups: the master creates, deletes and restores them; their files are read, and times in them changed, here. */
import { BigtableError, Code, notFound, toBigtableError } from '../base/index.ts';
import { type Env, listFiles, type RequestContext, type SmallFile, within, writeSettled } from '../env/index.ts';
import { type BackupFile, backupNameOf, backupPath, decodeBackup, encodeBackup } from '../metadata/index.ts';
import type { Backup, BackupSource, Limits, ListedBackup, NewBackup, TableSchema } from '../model/index.ts';
import type { Policies } from '../resources/index.ts';
import {
  type BackupChange,
  type BackupService,
  checkBackupChange,
  checkBackupName,
  checkNewBackup,
  checkTableName,
  parseResourceName,
} from '../service/index.ts';
import type { MasterCaller } from './master-caller.ts';

/** The master and other clients may change the file that was read. */
const ATTEMPTS = 20;
/** Every list has all of an instance. */
const MAX_BACKUPS = 1000;

export interface BackupsParts {
  readonly env: Env;
  readonly limits: Limits;
  readonly master: MasterCaller;
  readonly policies: Policies;
  /** NOT_FOUND where the cluster does not exist. */
  readonly checkCluster: (context: RequestContext, instance: string, cluster: string) => Promise<void>;
  /** Called with the name of a table that may have been restored. */
  readonly restored: (name: string) => Promise<void>;
}

interface Found {
  readonly file: BackupFile;
  readonly version: number;
}

export class Backups implements BackupService {
  readonly #parts: BackupsParts;

  constructor(parts: BackupsParts) {
    this.#parts = parts;
  }

  async createBackup(context: RequestContext, backup: NewBackup): Promise<Backup> {
    checkNewBackup(backup, this.#parts.env.clock.nowMicros());
    const { name } = backup;
    await this.checkRoom(context, name);
    await this.#parts.master.call('createBackup', backup, context);
    return this.getBackup(context, name);
  }

  /** NOT_FOUND where its cluster does not exist, RESOURCE_EXHAUSTED where the instance may have no more backups. */
  async checkRoom(context: RequestContext, name: string): Promise<void> {
    const { instance } = parseResourceName(name)!;
    await this.#parts.checkCluster(context, instance, clusterOf(name));
    const all = backupPath(`${instance}/clusters/`);
    if ((await this.#within(context, listFiles(this.#parts.env.lockService, all))).length >= MAX_BACKUPS)
      throw new BigtableError(Code.RESOURCE_EXHAUSTED, `${instance} has ${MAX_BACKUPS} backups, and may have no more`);
  }

  async getBackup(context: RequestContext, name: string): Promise<Backup> {
    checkBackupName(name);
    const { file } = await this.#within(context, this.#find(name));
    return backupOf(file, this.#parts.env.clock.nowMicros());
  }

  async sourceOf(context: RequestContext, name: string): Promise<BackupSource> {
    checkBackupName(name);
    const { schema, policies } = (await this.#within(context, this.#find(name))).file;
    return { schema, policies };
  }

  async listBackups(context: RequestContext, prefix: string): Promise<readonly ListedBackup[]> {
    const { lockService, clock } = this.#parts.env;
    const files = await this.#within(context, listFiles(lockService, backupPath(prefix)));
    const now = clock.nowMicros();
    return files.map(({ path, contents }) => {
      try {
        return backupOf(decodeBackup(path, contents), now);
      } catch (thrown) {
        if (toBigtableError(thrown).code !== Code.DATA_LOSS) throw thrown;
        return { name: backupNameOf(path), state: 'unreadable' };
      }
    });
  }

  async updateBackup(context: RequestContext, name: string, change: BackupChange): Promise<Backup> {
    checkBackupName(name);
    const { clock } = this.#parts.env;
    return backupOf(await this.#within(context, this.#update(name, change)), clock.nowMicros());
  }

  async deleteBackup(context: RequestContext, name: string): Promise<void> {
    checkBackupName(name);
    await this.#within(context, this.#file(name));
    // a later one of that name has another owner; what is left now is seen no more
    await this.#parts.master.call('deleteBackup', { name }, context);
    await this.#parts.policies.forget(context, name).catch((thrown: unknown) => {
      const error = toBigtableError(thrown).message;
      this.#parts.env.logger.warn('the policy of a deleted backup is left', { backup: name, error });
    });
  }

  async restoreTable(context: RequestContext, name: string, backup: string): Promise<TableSchema> {
    checkTableName(name, this.#parts.limits);
    checkBackupName(backup);
    try {
      return await this.#parts.master.call('restoreTable', { name, backup }, context);
    } finally {
      await this.#parts.restored(name).catch(() => {});
    }
  }

  /** What tells the backup of that name from a later one. */
  async ownerOf(context: RequestContext, name: string): Promise<string> {
    return (await this.#within(context, this.#find(name))).file.id;
  }

  #within<T>(context: RequestContext, work: Promise<T>): Promise<T> {
    return within(work, context, this.#parts.env.clock);
  }

  async #file(name: string): Promise<SmallFile> {
    const file = await this.#parts.env.lockService.read(backupPath(name));
    if (file === undefined) throw notFound(`backup ${name} does not exist`);
    return file;
  }

  async #find(name: string): Promise<Found> {
    const { path, contents, version } = await this.#file(name);
    return { file: decodeBackup(path, contents), version };
  }

  async #update(name: string, { expireMicros, hotToStandardMicros }: BackupChange): Promise<BackupFile> {
    const { env } = this.#parts;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const { file, version } = await this.#find(name);
      if (file.state !== 'ready')
        throw new BigtableError(Code.FAILED_PRECONDITION, `backup ${name} is not finished yet`);
      checkBackupChange({ expireMicros, hotToStandardMicros }, file);
      const change = {
        ...(expireMicros !== undefined && { expireMicros }),
        ...(hotToStandardMicros !== undefined && { hotToStandardMicros: hotToStandardMicros ?? undefined }),
      };
      const changed = { ...file, ...change, write: env.random.uniqueName() };
      try {
        await writeSettled(env, backupPath(name), encodeBackup(changed), { version });
        return changed;
      } catch (thrown) {
        if (toBigtableError(thrown).code !== Code.ABORTED) throw thrown;
      }
    }
    throw new BigtableError(Code.ABORTED, `backup ${name} is being changed by many others: try again`);
  }
}

/** A hot backup whose time has come is a standard one. */
function backupOf(file: BackupFile, nowMicros: number): Backup {
  const { id: _id, schema: _schema, policies: _policies, write: _write, ...backup } = file;
  const isStandard = backup.hotToStandardMicros !== undefined && backup.hotToStandardMicros <= nowMicros;
  return isStandard ? { ...backup, kind: 'standard' } : backup;
}

function clusterOf(name: string): string {
  return name.split('/')[5] ?? '';
}
