/**
 * Opens a database: settings -> adapters -> roles. In a directory that this process then owns exclusively, in memory,
 * or over a file system that is handed in.
 */
import { resolve } from 'node:path';
import { type ByteString, invalidArgument } from '../../base/index.ts';
import {
  ByteBudget,
  type Clock,
  type Env,
  type FileSystem,
  InlineWorkers,
  LocalTransport,
  type Logger,
  MemoryFileSystem,
  MemoryLockService,
  Metrics,
  OverlayFileSystem,
  type Random,
  silentLogger,
  type Workers,
} from '../../env/index.ts';
import {
  nativeCodecs,
  openDirectory,
  openDirectoryToRead,
  openLocalLockService,
  systemClock,
  systemRandom,
  ThreadWorkers,
  threadModule,
  warnOfNoThreads,
} from '../../platform/index.ts';
import type { Service } from '../../service/index.ts';
import { COMPACTION_TASK, type CompactionJob, type CompactionTools, compactFiles } from '../../tablet/index.ts';
import { type BackupStore, backupStoreOf } from '../store/backup-store.ts';
import { type DirectoryJob, run as compactInDirectory } from './compaction-worker.ts';
import { Database, type DatabaseOptions } from './database.ts';
import { openFilesLimit } from './descriptors.ts';
import { ReadOnlyService } from './read-only-service.ts';
import { checkSettings, type DatabaseSettings } from '../settings/settings.ts';

/**
 * The storage of the database: a directory, made where there is none; the memory of this process; or a file system that
 * nothing else uses meanwhile.
 */
export type DatabaseLocation =
  | { readonly directory: string }
  | { readonly memory: true }
  | { readonly fileSystem: FileSystem };

export type OpenOptions = DatabaseLocation & {
  /** Nothing in the directory is changed, and every call that would change it is refused. Default: false. */
  readonly readOnly?: boolean | undefined;
  readonly settings?: Partial<DatabaseSettings> | undefined;
  /** Default: silent. */
  readonly logger?: Logger | undefined;
  /** The metrics in which it counts. Default: its own. */
  readonly metrics?: Metrics | undefined;
  /** Default: the machine's. */
  readonly clock?: Clock | undefined;
  /** Default: the machine's. */
  readonly random?: Random | undefined;
};

export interface OpenDatabase {
  readonly service: Service;
  readonly env: Env;
  readonly settings: DatabaseSettings;
  /** Writes everything in memory to files. What was acknowledged is durable without it. */
  flush(): Promise<void>;
  /**
   * Deletes files and logs that nothing refers to. Returns their numbers. Also done at the start and after deletions of
   * tables.
   */
  sweep(): Promise<{ readonly files: number; readonly logs: number }>;
  /**
   * Major compactions: of the table of that full name, or of all. Afterwards each locality group of a tablet is one
   * SSTable without deleted data.
   */
  compact(table?: string): Promise<void>;
  /**
   * Splits the table's tablet before the row; without a row every tablet near its middle. FAILED_PRECONDITION where a
   * tablet has only one row.
   */
  splitTablet(table: string, row?: ByteString): Promise<void>;
  /** Makes one tablet of the two that meet at the row. FAILED_PRECONDITION where none do. */
  mergeTablets(table: string, row: ByteString): Promise<void>;
  /** Shuts down and frees the directory. */
  close(): Promise<void>;
}

interface Storage {
  readonly adapters: Pick<Env, 'fileSystem' | 'lockService' | 'workers'>;
  release(): Promise<void>;
}

/** FAILED_PRECONDITION where another process has the directory open; INVALID_ARGUMENT for invalid settings. */
export async function openDatabase(options: OpenOptions): Promise<OpenDatabase> {
  const { logger = silentLogger, clock = systemClock, random = systemRandom } = options;
  const checked = checkSettings(options.settings);
  const readOnly = options.readOnly === true;
  const settings = readOnly ? { ...checked, ...READ_ONLY_SETTINGS } : checked;
  const storage = await (readOnly
    ? readOnlyStorage(options, clock)
    : storageOf(options, { clock, logger, compactionsAtOnce: settings.compactionsAtOnce }));
  const backupStore = backupStoreOf(settings.backupStore, {
    ownDirectory: 'directory' in options ? options.directory : undefined,
  });
  const env: Env = {
    ...storage.adapters,
    backupStore: backupStore?.open,
    transport: new LocalTransport(clock),
    clock,
    random,
    codecs: nativeCodecs(),
    logger,
    metrics: options.metrics ?? new Metrics(),
    requestBudget: new ByteBudget(settings.requestBytes),
  };
  const opened = await startOn(releasedWith(storage, backupStore), { env, settings });
  return readOnly ? { ...opened, service: new ReadOnlyService(opened.service) } : opened;
}

/** The storage, with which the backup store is released. */
export function releasedWith({ adapters, release }: Storage, backupStore: BackupStore | undefined): Storage {
  return {
    adapters,
    release: async () => {
      await backupStore?.close();
      await release();
    },
  };
}

/** Starts a database over the storage, which is released with it. */
export async function startOn(storage: Storage, options: DatabaseOptions): Promise<OpenDatabase> {
  const database = await Database.start(options).catch(async (error: unknown) => {
    await storage.release();
    throw error;
  });
  const { service, env, settings } = database;
  return {
    service,
    env,
    settings,
    flush: () => database.flush(),
    sweep: () => database.sweep(),
    compact: (table) => database.compact(table),
    splitTablet: (table, row) => database.splitTablet(table, row),
    mergeTablets: (table, row) => database.mergeTablets(table, row),
    close: async () => {
      try {
        await database.close();
      } finally {
        await storage.release();
      }
    },
  };
}

/** A read-only database is neither compacted nor split: that would read all of it, and write it to memory. */
const READ_ONLY_SETTINGS = {
  compactionsAtOnce: 0,
  tabletBytes: Number.MAX_SAFE_INTEGER,
  metadataTabletBytes: Number.MAX_SAFE_INTEGER,
} as const satisfies Partial<DatabaseSettings>;

/**
 * The directory under a layer in memory, which takes all that a start writes: rows replayed from logs, locks, its own
 * log.
 */
async function readOnlyStorage(location: DatabaseLocation, clock: Clock): Promise<Storage> {
  if (!('directory' in location)) throw invalidArgument('only a directory can be opened read-only');
  const opened = await openDirectoryToRead(location.directory, { checksum: nativeCodecs().checksum, clock });
  const fileSystem = new OverlayFileSystem(opened.fileSystem);
  return storageOn(fileSystem, inlineWorkers({ fileSystem, codecs: nativeCodecs(), clock }), () => opened.close());
}

/** Storage in a file system that `release` frees; also called when this fails. */
async function storageOn(fileSystem: FileSystem, workers: Workers, release: () => Promise<void>): Promise<Storage> {
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

interface StorageParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly compactionsAtOnce: number;
  /** Default 1. */
  readonly tabletServers?: number;
}

async function storageOf(location: DatabaseLocation, parts: StorageParts): Promise<Storage> {
  if ('directory' in location) return directoryStorage(location.directory, parts);
  const fileSystem = 'fileSystem' in location ? location.fileSystem : new MemoryFileSystem();
  const lockService = 'fileSystem' in location ? await openLocalLockService(fileSystem) : new MemoryLockService();
  const workers = inlineWorkers({ fileSystem, codecs: nativeCodecs(), clock: parts.clock });
  return { adapters: { fileSystem, lockService, workers }, release: () => workers.close() };
}

/** Compactions on the event loop, in slices. */
export function inlineWorkers(tools: CompactionTools): Workers {
  return new InlineWorkers({ [COMPACTION_TASK]: (job: CompactionJob) => compactFiles(tools, job) });
}

export interface WorkersOptions extends Pick<StorageParts, 'clock' | 'logger' | 'compactionsAtOnce'> {
  readonly maxOpenFiles: number;
}

/**
 * Compactions of files in the directory, each in a thread of its own; on the event loop where a bundler has left out
 * the threads' code.
 */
export function directoryWorkers(
  directory: string,
  { maxOpenFiles, compactionsAtOnce, clock, logger }: WorkersOptions,
): Workers {
  const module = threadModule('./compaction-worker.ts', import.meta.url);
  if (module === undefined) warnOfNoThreads();
  const workers = module
    ? new ThreadWorkers({ clock, logger, size: compactionsAtOnce, tasks: { [COMPACTION_TASK]: module } })
    : new InlineWorkers({ [COMPACTION_TASK]: (job: DirectoryJob) => compactInDirectory(job) });
  return {
    run: (task, job) => workers.run(task, { directory: resolve(directory), maxOpenFiles, job }),
    close: () => workers.close(),
  };
}

/** Takes the directory. RESOURCE_EXHAUSTED where the process may not open as many files as a database needs. */
export async function directoryStorage(
  directory: string,
  { clock, logger, compactionsAtOnce, tabletServers = 1 }: StorageParts,
): Promise<Storage> {
  const maxOpenFiles = openFilesLimit(tabletServers, compactionsAtOnce);
  const { fileSystem, release } = await openDirectory(directory, {
    checksum: nativeCodecs().checksum,
    clock,
    logger,
    maxOpenFiles,
  });
  return storageOn(
    fileSystem,
    directoryWorkers(directory, { maxOpenFiles, compactionsAtOnce, clock, logger }),
    release,
  );
}
