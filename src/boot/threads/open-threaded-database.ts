/**
 * Opens a database in a directory with its tablet servers in threads: this thread owns the directory, and has the lock
 * service, the master and a client library; each tablet server has a thread of its own, and so may use a core of its
 * own.
 */
import { resolve } from 'node:path';
import { ByteBudget, LocalTransport, type Logger, Metrics, type MetricsReport, silentLogger } from '../../env/index.ts';
import { nativeCodecs, PortTransport, systemClock, systemRandom } from '../../platform/index.ts';
import { directoryStorage, type OpenDatabase, releasedWith, startOn } from '../open/open-database.ts';
import { backupStoreOf } from '../store/backup-store.ts';
import { ThreadPool } from './thread-pool.ts';
import { checkSettings, checkShares, type DatabaseSettings } from '../settings/settings.ts';

export interface ThreadedOptions {
  readonly directory: string;
  readonly tabletServers: number;
  /** The program of the threads: a module that calls `runServerThread`. */
  readonly module: URL;
  readonly settings?: Partial<DatabaseSettings> | undefined;
  /** Default: silent. Lines of threads have the field `thread`. */
  readonly logger?: Logger | undefined;
  /** The main thread's metrics. Default: new ones. */
  readonly metrics?: Metrics | undefined;
}

export interface ThreadedDatabase extends OpenDatabase {
  /** Each thread listens, with these options (plain cloneable data); threads that start later do too. */
  listen(options: unknown): Promise<void>;
  stopListening(): Promise<void>;
  /** The counters of each tablet server's thread, by the thread's index. */
  counters(): Promise<ReadonlyMap<number, Readonly<Record<string, number>>>>;
  /**
   * The metrics of the tablet servers' threads, with the last reports of those that have ended or do not answer in
   * time.
   */
  reports(): Promise<readonly MetricsReport[]>;
}

/**
 * As `openDatabase`. The threads share the sizes of the settings evenly; INVALID_ARGUMENT where a share would be too
 * small.
 */
export async function openThreadedDatabase(options: ThreadedOptions): Promise<ThreadedDatabase> {
  const { directory, tabletServers, module, logger = silentLogger } = options;
  const settings = checkSettings(options.settings);
  checkShares(settings, tabletServers);
  const storage = await directoryStorage(directory, {
    clock: systemClock,
    logger,
    compactionsAtOnce: settings.compactionsAtOnce,
    tabletServers,
  });
  const backupStore = backupStoreOf(settings.backupStore, { ownDirectory: directory });
  const env = {
    ...storage.adapters,
    backupStore: backupStore?.open,
    transport: new PortTransport(new LocalTransport(systemClock)),
    clock: systemClock,
    random: systemRandom,
    codecs: nativeCodecs(),
    logger,
    metrics: options.metrics ?? new Metrics(),
    requestBudget: new ByteBudget(settings.requestBytes),
  };
  const threads = new ThreadPool({ env, settings, directory: resolve(directory), count: tabletServers, module });
  const database = await startOn(releasedWith(storage, backupStore), {
    env,
    settings,
    tabletServers,
    startServer: (index, onEnd) => threads.start(index, onEnd),
  });
  return {
    ...database,
    listen: (listenOptions) => threads.listen(listenOptions),
    stopListening: () => threads.stopListening(),
    counters: () => threads.counters(),
    reports: () => threads.reports(),
  };
}
