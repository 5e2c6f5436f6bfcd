/**
 * Databases for tests: the whole system over a file system in memory that can crash, with the lock service's lasting
 * files in it too.
 */
import assert from 'node:assert/strict';
import { type ByteString, BigtableError, type Code } from '../base/index.ts';
import {
  ByteBudget,
  type Clock,
  type CrashChoice,
  type Env,
  type FileFaults,
  LocalTransport,
  type Logger,
  MemoryFileSystem,
  Metrics,
  type RequestContext,
  requestContext,
  SeededRandom,
  silentLogger,
} from '../env/index.ts';
import type { FamilySchema, Mutation } from '../model/index.ts';
import { nativeCodecs, openLocalLockService, systemClock } from '../platform/index.ts';
import type { ReadRequest, Service } from '../service/index.ts';
import { Database } from './open/database.ts';
import { inlineWorkers } from './open/open-database.ts';
import { checkSettings, type DatabaseSettings } from './settings/settings.ts';

export const TABLES = 'projects/p/instances/i/tables/';

/** The clock's timers do not keep a process alive; a test that waits for one does. */
export function keepAlive(): () => void {
  const timer = setInterval(() => {}, 1000);
  return () => clearInterval(timer);
}

export interface WorldOptions {
  readonly settings?: Partial<DatabaseSettings>;
  readonly tabletServers?: number;
  /** Default: the system's. */
  readonly clock?: Clock;
  readonly faults?: FileFaults;
}

/** One database after another on the same storage. */
export class World {
  fileSystem: MemoryFileSystem;
  readonly messages: string[] = [];
  readonly #options: WorldOptions;
  #starts = 0;

  constructor(options: WorldOptions = {}) {
    this.#options = options;
    this.fileSystem = new MemoryFileSystem(options.faults ? { faults: options.faults } : {});
  }

  async env(): Promise<Env> {
    const note = (message: string, fields?: object): void =>
      void this.messages.push(`${message} ${JSON.stringify(fields ?? {})}`);
    const codecs = nativeCodecs();
    const { clock = systemClock } = this.#options;
    const logger: Logger = { ...silentLogger, info: note, warn: note, error: note };
    return {
      fileSystem: this.fileSystem,
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
    const { settings, tabletServers = 1 } = this.#options;
    return new TestDatabase(
      await Database.start({ env: await this.env(), settings: checkSettings(settings), tabletServers }),
    );
  }

  /** The power fails. What was started before is dead; the next start finds what was durable. */
  crash(choice: CrashChoice = 'nothing'): void {
    this.fileSystem = this.fileSystem.crash(choice);
  }
}

/** Short words for the calls of the service. */
export class TestDatabase {
  readonly database: Database;
  readonly service: Service;

  constructor(database: Database) {
    this.database = database;
    this.service = database.service;
  }

  get env(): Env {
    return this.database.env;
  }

  context(timeoutMs = Number.POSITIVE_INFINITY): RequestContext {
    return requestContext({ budget: this.env.requestBudget, deadlineMs: this.env.clock.monotonicMs() + timeoutMs });
  }

  async create(
    table: string,
    options: { splits?: readonly ByteString[]; families?: readonly FamilySchema[]; deletionProtection?: boolean } = {},
  ): Promise<void> {
    const { splits = [], families = [{ name: 'f' }], deletionProtection = false } = options;
    await this.service.createTable(this.context(), {
      name: TABLES + table,
      families,
      splits,
      granularity: 'micros',
      deletionProtection,
    });
  }

  mutate(table: string, row: ByteString, ...mutations: Mutation[]): Promise<void> {
    return this.service.mutateRow(this.context(), TABLES + table, { row, mutations });
  }

  /** Sets f:q at time 1. */
  set(table: string, row: ByteString, value: string, family = 'f'): Promise<void> {
    return this.mutate(table, row, setCell(value, family));
  }

  async rows(table: string, request: Omit<ReadRequest, 'table'> = {}): Promise<ByteString[]> {
    return (await this.read(table, request)).map(([row]) => row);
  }

  /** Each row with its values. */
  async read(table: string, request: Omit<ReadRequest, 'table'> = {}): Promise<[ByteString, ...string[]][]> {
    const rows: [ByteString, ...string[]][] = [];
    let values: string[] = [];
    for await (const { fragments } of this.service.readRows(this.context(), { table: TABLES + table, ...request })) {
      for (const { row, cells, last } of fragments) {
        values.push(...cells.map(({ value }) => Buffer.from(value).toString()));
        if (!last) continue;
        rows.push([row, ...values]);
        values = [];
      }
    }
    return rows;
  }

  close(): Promise<void> {
    return this.database.close();
  }
}

export function setCell(value: string, family = 'f', timestamp = 1): Mutation {
  return { kind: 'setCell', family, qualifier: 'q', timestamp, value: Buffer.from(value) };
}

export async function rejectsWith(
  code: Code,
  work: Promise<unknown> | (() => Promise<unknown>),
  message = /./,
): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof BigtableError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  });
}
