/**
 * The services of a server to all its tablets: names and deletes files, and passes their notices to the parts they
 * concern.
 */
import { type BigtableError, toBigtableError } from '../base/index.ts';
import { type NewRecord, Origin, type ServerLog } from '../commitlog/index.ts';
import type { Env, LogPosition, RequestContext } from '../env/index.ts';
import type { MetadataClient, SchemaCache } from '../locator/index.ts';
import { METADATA_TABLE_ID, type MetadataKey } from '../metadata/index.ts';
import type { TableSchema } from '../model/index.ts';
import { FILES_DIRECTORY, logPathOf } from '../protocol/index.ts';
import type { ChangeRetention } from './change-retention.ts';
import { ClockWarning } from './clock-warning.ts';
import type { CompactionSchedule } from './compaction-schedule.ts';
import type { MasterNotices } from './master-notices.ts';
import type { MemtableBudget } from './memtable-budget.ts';
import type { HostServices } from './tablet-host.ts';
import type { TabletMap } from './tablet-map.ts';
import type { TabletSplits } from './tablet-splits.ts';

export interface ServerServicesOptions {
  readonly env: Env;
  readonly serverName: string;
  readonly metadata: MetadataClient;
  readonly schemas: SchemaCache;
  readonly tablets: TabletMap;
  readonly budget: MemtableBudget;
  readonly compactions: CompactionSchedule;
  readonly notices: MasterNotices;
  /** Called late: splits are made of tablets that have these services. */
  readonly splits: () => TabletSplits;
  readonly leaseHeld: () => boolean;
  readonly serverContext: () => RequestContext;
  readonly log: Pick<ServerLog, 'append' | 'failed' | 'newestPosition'>;
  readonly retention: Pick<ChangeRetention, 'begin'>;
  readonly endServer: (reason: BigtableError) => void;
}

export class ServerServices implements HostServices {
  readonly logPath: string;
  readonly metadata: MetadataClient;
  readonly #options: ServerServicesOptions;
  readonly #clockWarning: ClockWarning;
  #files = 0;

  constructor(options: ServerServicesOptions) {
    this.#options = options;
    this.logPath = logPathOf(options.serverName);
    this.metadata = options.metadata;
    this.#clockWarning = new ClockWarning(options.env);
  }

  schema(tableId: string): TableSchema | undefined {
    return this.#options.schemas.byId(tableId);
  }

  leaseHeld(): boolean {
    return this.#options.leaseHeld();
  }

  newFilePath(): string {
    return `${FILES_DIRECTORY}${this.#options.serverName}-${this.#files++}`;
  }

  released(files: readonly string[]): void {
    void this.#delete(files);
  }

  leftToSweep(): void {
    this.#options.notices.filesLeft();
  }

  filesChanged(key: MetadataKey): void {
    const { tablets, budget, compactions, splits } = this.#options;
    const served = tablets.get(key);
    if (served === undefined) return;
    // a compaction may have flushed its memtable
    budget.count(served);
    compactions.changed(served);
    splits().filesChanged(served);
  }

  compactionEarned(key: MetadataKey): void {
    const { tablets, compactions } = this.#options;
    const served = tablets.get(key);
    if (served !== undefined) compactions.changed(served);
  }

  endServer(reason: BigtableError): void {
    this.#options.endServer(reason);
  }

  checkLog(): void {
    const { failed } = this.#options.log;
    if (failed !== undefined) throw failed;
  }

  async logIsDurable(): Promise<void> {
    await this.#options.log.append(emptyRecord(this.nowMicros())).append.durable;
  }

  written(key: MetadataKey): void {
    const { tablets, budget } = this.#options;
    const served = tablets.get(key);
    if (served !== undefined) budget.count(served);
  }

  serverContext(): RequestContext {
    return this.#options.serverContext();
  }

  uniqueName(): string {
    return this.#options.env.random.uniqueName();
  }

  nowMicros(): number {
    return this.#options.env.clock.nowMicros();
  }

  keepChanges(retentionMicros: number): LogPosition {
    return this.#options.retention.begin(retentionMicros);
  }

  newestPosition(): LogPosition {
    return this.#options.log.newestPosition;
  }

  clockIsBehind(nowMicros: number, lastMicros: number): void {
    this.#clockWarning.isBehind(nowMicros, lastMicros);
  }

  /** Deletes what can be deleted now; the sweep finds the rest. */
  async #delete(files: readonly string[]): Promise<void> {
    const { fileSystem, logger } = this.#options.env;
    for (const path of files) {
      await fileSystem.delete(path).catch((thrown: unknown) => {
        const error = toBigtableError(thrown).message;
        logger.warn('a file that is no longer needed could not be deleted', { file: path, error });
      });
    }
  }
}

/** A record that no replay applies: a log begins with it, and all earlier appends are durable once it is. */
export function emptyRecord(commitMicros: number): NewRecord {
  const body = { kind: 'rows', rows: [] } as const;
  return { tableId: METADATA_TABLE_ID, epoch: 0, commitMicros, origin: Origin.user, body };
}
