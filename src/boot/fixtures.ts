/**
 * Databases for tests: the whole system over a file system in memory that can crash, with the lock service's lasting
 * files in it too.
 */
import assert from 'node:assert/strict';
import { Tables } from '../../test/tables.ts';
import { BigtableError } from '../base/index.ts';
import {
  ByteBudget,
  type Clock,
  type CrashChoice,
  type Env,
  type FileFaults,
  type FileOperation,
  LocalTransport,
  type Logger,
  MemoryFileSystem,
  Metrics,
  SeededRandom,
  silentLogger,
  sleep,
} from '../env/index.ts';
import { nativeCodecs, openLocalLockService, systemClock } from '../platform/index.ts';
import { Database } from './open/database.ts';
import { inlineWorkers } from './open/open-database.ts';
import { checkSettings, type DatabaseSettings } from './settings/settings.ts';

export { rejectsWith, setCell, TABLES } from '../../test/tables.ts';

/**
 * Keeps the process alive for a test that waits for a timer of the clock, which does not. Returns a function that ends
 * this.
 */
export function keepAlive(): () => void {
  const timer = setInterval(() => {}, 1000);
  return () => clearInterval(timer);
}

/** Waits until the condition holds, which is asked again every 5 ms. */
export async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await sleep(systemClock, 5);
}

export interface WorldOptions {
  readonly settings?: Partial<DatabaseSettings>;
  readonly tabletServers?: number;
  /** Smaller than a user may set it, so that METADATA has several tablets too. */
  readonly tabletBytes?: number;
  /** Default: the system's. */
  readonly clock?: Clock;
  readonly faults?: FileFaults;
}

/** The operations that change what is stored: a power failure before each of them leaves another state. */
export const STORING: ReadonlySet<FileOperation> = new Set([
  'appendFile',
  'closeFile',
  'syncFile',
  'openLog',
  'appendLog',
  'syncLog',
  'delete',
  'deleteLog',
  'fence',
  'trimLog',
]);

/** One database after another on the same storage. */
export class World {
  fileSystem: MemoryFileSystem;
  /** The backup store, to which a process whose power fails writes no more. */
  backupStore: MemoryFileSystem;
  readonly messages: string[] = [];
  readonly #options: WorldOptions;
  #starts = 0;

  constructor(options: WorldOptions = {}) {
    this.#options = options;
    const faults = options.faults ? { faults: options.faults } : {};
    this.fileSystem = new MemoryFileSystem(faults);
    this.backupStore = new MemoryFileSystem(faults);
  }

  async env(): Promise<Env> {
    const note = (message: string, fields?: object): void =>
      void this.messages.push(`${message} ${JSON.stringify(fields ?? {})}`);
    const codecs = nativeCodecs();
    const { backupStore } = this;
    const { clock = systemClock } = this.#options;
    const logger: Logger = { ...silentLogger, info: note, warn: note, error: note };
    return {
      fileSystem: this.fileSystem,
      backupStore: async () => backupStore,
      lockService: await openLocalLockService(this.fileSystem),
      transport: new LocalTransport(clock),
      clock,
      random: new SeededRandom(++this.#starts),
      workers: inlineWorkers({ fileSystem: this.fileSystem, codecs, clock }),
      codecs,
      logger,
      metrics: new Metrics(),
      requestBudget: new ByteBudget(128 * 1024 * 1024),
    };
  }

  async start(): Promise<TestDatabase> {
    const { settings, tabletBytes, tabletServers = 1 } = this.#options;
    const checked = { ...checkSettings(settings), ...(tabletBytes !== undefined && sizes(tabletBytes)) };
    return new TestDatabase(await Database.start({ env: await this.env(), settings: checked, tabletServers }));
  }

  /** The power fails. Everything started before is dead; the next start finds the durable state. */
  crash(choice: CrashChoice = 'nothing'): void {
    this.fileSystem = this.fileSystem.crash(choice);
    this.backupStore = this.backupStore.crash(choice);
  }
}

/** Short words for the calls of the service. */
export class TestDatabase extends Tables {
  readonly database: Database;

  constructor(database: Database) {
    super(database.env, database.service);
    this.database = database;
  }

  close(): Promise<void> {
    return this.database.close();
  }
}

/** The size of users' tablets and of METADATA's. */
const sizes = (tabletBytes: number): Pick<DatabaseSettings, 'tabletBytes' | 'metadataTabletBytes'> => ({
  tabletBytes,
  metadataTabletBytes: tabletBytes,
});

/**
 * Starts a database and lets it live until the storage's operation number `at`, before which the power fails. Returns
 * the world to start the next database in; `crashed`: false where the life ended before.
 */
export async function liveUntilCrash(
  at: number,
  options: Omit<WorldOptions, 'faults'>,
  live: (db: TestDatabase) => Promise<void>,
): Promise<{ readonly crashed: boolean; readonly world: World }> {
  let left = at;
  let crashed = false;
  const random = new SeededRandom(at);
  const world: World = new World({
    ...options,
    faults: (operation) => {
      if (crashed || !STORING.has(operation) || --left > 0) return;
      crashed = true;
      world.crash(random);
      tellCrash();
    },
  });
  let tellCrash = (): void => {};
  const crash = new Promise<void>((resolve) => (tellCrash = resolve));
  let db: TestDatabase | undefined;
  try {
    const life = async (): Promise<void> => {
      db = await world.start();
      await live(db);
    };
    // no call is answered once the power has failed
    await Promise.race([life(), crash]);
  } catch (error) {
    assert.ok(crashed && error instanceof BigtableError, String(error));
  }
  await db?.close().catch(() => {});
  left = Number.POSITIVE_INFINITY;
  return { crashed, world };
}
