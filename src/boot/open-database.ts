/**
 * Opens a database: settings -> adapters -> roles. In a directory that this process then owns alone, or in memory.
 */
import { ByteBudget, type Env, InlineWorkers, LocalTransport, type Logger, MemoryFileSystem, MemoryLockService, Metrics, silentLogger } from '../env/index.ts';
import { nativeCodecs, openDirectory, openLocalLockService, systemClock, systemRandom, ThreadWorkers } from '../platform/index.ts';
import type { Service } from '../service/index.ts';
import { Database } from './database.ts';
import { checkSettings, type DatabaseSettings } from './settings.ts';

/** Where the database is: in a directory, made where there is none, or in the memory of this process. */
export type DatabasePlace = { readonly directory: string } | { readonly memory: true };

export type OpenOptions = DatabasePlace & {
  readonly settings?: Partial<DatabaseSettings> | undefined;
  /** Default: silent. */
  readonly logger?: Logger | undefined;
};

export interface OpenDatabase {
  readonly service: Service;
  readonly env: Env;
  readonly settings: DatabaseSettings;
  /** Writes everything in memory to files. What was acknowledged is durable without it. */
  flush(): Promise<void>;
  /** Deletes files and logs that nothing refers to. Answers how many. Also done at the start and after deletions of tables. */
  sweep(): Promise<{ readonly files: number; readonly logs: number }>;
  /** Ends in good order and gives the directory free. */
  close(): Promise<void>;
}

interface Storage {
  readonly adapters: Pick<Env, 'fileSystem' | 'lockService' | 'workers'>;
  release(): Promise<void>;
}

/** FAILED_PRECONDITION where another process has the directory open; INVALID_ARGUMENT for settings that are none. */
export async function openDatabase(options: OpenOptions): Promise<OpenDatabase> {
  const { logger = silentLogger } = options;
  const settings = checkSettings(options.settings);
  const storage = 'directory' in options ? await directoryStorage(options.directory, logger) : memoryStorage();
  const env: Env = {
    ...storage.adapters,
    transport: new LocalTransport(systemClock),
    clock: systemClock,
    random: systemRandom,
    codecs: nativeCodecs(),
    logger,
    metrics: new Metrics(),
    requestBudget: new ByteBudget(settings.requestBytes),
  };
  const database = await Database.start({ env, settings }).catch(async (error: unknown) => {
    await storage.release();
    throw error;
  });
  return {
    service: database.service,
    env,
    settings,
    flush: () => database.flush(),
    sweep: () => database.sweep(),
    close: async () => {
      try {
        await database.close();
      } finally {
        await storage.release();
      }
    },
  };
}

function memoryStorage(): Storage {
  return { adapters: { fileSystem: new MemoryFileSystem(), lockService: new MemoryLockService(), workers: new InlineWorkers({}) }, release: async () => {} };
}

async function directoryStorage(directory: string, logger: Logger): Promise<Storage> {
  const { fileSystem, release } = await openDirectory(directory, { checksum: nativeCodecs().checksum, clock: systemClock, logger });
  // no task runs off the main thread yet; threads start when one does
  const workers = new ThreadWorkers({ size: 1, tasks: {} });
  try {
    const lockService = await openLocalLockService(fileSystem);
    return {
      adapters: { fileSystem, lockService, workers },
      release: async () => {
        await workers.close();
        await release();
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}
