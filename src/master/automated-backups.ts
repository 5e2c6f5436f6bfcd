/**
 * Backups that tables ask for themselves (API: Table.AutomatedBackupPolicy): one in 24 hours, named
 * `auto-<id of the table>-<seconds since 1970>`. They are backups like others: they expire, and can be restored, copied
 * and deleted.
 *
 * Invariant: what is due follows from the backups that there are, so another master goes on where this one was.
 */
import { assert, toBigtableError } from '../base/index.ts';
import { type Env, listFiles, type RequestContext } from '../env/index.ts';
import type { SchemaCache } from '../locator/index.ts';
import { backupNameOf, backupPath, decodeBackup } from '../metadata/index.ts';
import { instanceOfTable, type NewBackup, type TableSchema } from '../model/index.ts';
import { type BackupPolicy, backupPolicyOf } from '../protocol/index.ts';
import { firstClusterOf } from '../resources/index.ts';
import type { Backups } from './backups.ts';

/** From the start of one to that of the next: the only period that the API knows. */
const PERIOD_MICROS = 86_400e6;

export interface AutomatedBackupsOptions {
  readonly env: Pick<Env, 'clock' | 'lockService' | 'logger'>;
  readonly schemas: Pick<SchemaCache, 'list'>;
  readonly backups: Pick<Backups, 'create'>;
}

export class AutomatedBackups {
  readonly #options: AutomatedBackupsOptions;

  constructor(options: AutomatedBackupsOptions) {
    this.#options = options;
  }

  /** True when a table wants backups. */
  get areWanted(): boolean {
    return this.#options.schemas.list('').some((schema) => this.#policyOf(schema) !== undefined);
  }

  /** Makes those that are due. One that fails is logged, and is due again. */
  async run(context: RequestContext): Promise<void> {
    const { env, schemas, backups } = this.#options;
    for (const schema of schemas.list('')) {
      const policy = this.#policyOf(schema);
      if (policy === undefined) continue;
      try {
        const wanted = await this.#due(schema, policy);
        if (wanted === undefined) continue;
        await backups.create(wanted, context);
        env.logger.info('a table was backed up, as its policy says', { table: schema.name, backup: wanted.name });
      } catch (thrown) {
        const error = toBigtableError(thrown).message;
        env.logger.warn('a table could not be backed up as its policy says', { table: schema.name, error });
      }
    }
  }

  #policyOf(schema: TableSchema): BackupPolicy | undefined {
    try {
      return backupPolicyOf(schema);
    } catch {
      // an earlier version kept what it was given
      return undefined;
    }
  }

  /** Undefined while the last one is younger than the period. */
  async #due({ name: table, id }: TableSchema, policy: BackupPolicy): Promise<NewBackup | undefined> {
    const { clock, lockService } = this.#options.env;
    const nowMicros = clock.nowMicros();
    const instance = instanceOfTable(table);
    const prefix = `${instance}/clusters/${await firstClusterOf(lockService, instance)}/backups/auto-${id}-`;
    for (const { path, contents } of await listFiles(lockService, backupPath(prefix))) {
      assert(backupNameOf(path).startsWith(prefix), 'files are listed by their prefix');
      if (startOf(path, contents) > nowMicros - PERIOD_MICROS) return undefined;
    }
    const { retentionMicros, hotMicros } = policy;
    return {
      name: `${prefix}${Math.floor(nowMicros / 1e6)}`,
      source: table,
      kind: hotMicros === undefined ? 'standard' : 'hot',
      expireMicros: nowMicros + retentionMicros,
      ...(hotMicros !== undefined && { hotToStandardMicros: nowMicros + hotMicros }),
    };
  }
}

/** The start of the backup; of one that cannot be read, or is not finished, the beginning of time. */
function startOf(path: string, contents: Uint8Array): number {
  try {
    const { state, startMicros } = decodeBackup(path, contents);
    return state === 'ready' ? startMicros : 0;
  } catch {
    return 0;
  }
}
