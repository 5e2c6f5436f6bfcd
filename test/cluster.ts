/**
 * A cluster in memory for tests: tablet servers, a master and a client, each started by itself, in a time that goes on
 * by itself. Calls between them pass through `onCall` and `onStream`, those of the lock service through `onLockCall`.
 */
import {
  ByteBudget,
  type Env,
  InlineWorkers,
  LocalTransport,
  type Logger,
  ManualClock,
  MemoryFileSystem,
  MemoryLockService,
  MemorySlotStore,
  type LockService,
  Metrics,
  type RequestContext,
  SeededRandom,
  silentLogger,
  type Transport,
  within,
  withSlotLogs,
} from '../src/env/index.ts';
import { Client } from '../src/client/index.ts';
import { Master, type SortedLogSizes } from '../src/master/index.ts';
import { type Limits, LIMITS } from '../src/model/index.ts';
import { nativeCodecs } from '../src/platform/index.ts';
import { COMPACTION_TASK, type CompactionJob, compactFiles } from '../src/tablet/index.ts';
import { TabletServer, type TabletServerSettings } from '../src/tabletserver/index.ts';
import { inSimulatedTime } from './simulated-time.ts';
import { Tables } from './tables.ts';

const MIB = 1 << 20;

export const SETTINGS: TabletServerSettings = {
  limits: LIMITS.default,
  blockSizeBytes: 4096,
  blockCacheBytes: MIB,
  scanCacheBytes: 0,
  memtableBytes: 16 * MIB,
  /** Evicts often. */
  indexBytes: 8 * 1024,
  inMemoryBytes: MIB,
  logLimitBytes: 16 * MIB,
  tabletBytes: 1 << 30,
  metadataTabletBytes: 1 << 30,
  compactionsAtOnce: 1,
  majorCompactionMs: 86_400_000,
};

export interface InterceptedCall {
  readonly address: string;
  readonly method: string;
  readonly message: unknown;
  readonly context: RequestContext;
  /** Makes the call. */
  go(): Promise<unknown>;
}

export interface InterceptedStream extends Omit<InterceptedCall, 'go'> {
  go(): AsyncIterable<unknown>;
}

export interface ClusterOptions {
  /** Default 1. */
  readonly servers?: number;
  readonly settings?: Partial<TabletServerSettings>;
  readonly limits?: Limits;
  /** Logs are slots, as on storage that many machines share, and those of the dead are sorted. */
  readonly sortedLogs?: SortedLogSizes;
  /** With `sortedLogs`: as `SlotLogsOptions`. */
  readonly slotCostBytes?: number;
  /** As `MasterOptions`. */
  readonly keepDeletedMs?: number;
}

/** The body of a test: works on a cluster of its own and closes it. */
export function inCluster(
  work: (cluster: Cluster, tables: Tables) => Promise<void>,
  options: ClusterOptions = {},
): () => Promise<void> {
  return async () => {
    const cluster = new Cluster(options);
    await cluster.inTime(async () => {
      await cluster.start();
      await work(cluster, cluster.tables);
      await cluster.close();
    });
  };
}

export class Cluster {
  readonly clock = new ManualClock();
  readonly fileSystem = new MemoryFileSystem();
  readonly backupStore = new MemoryFileSystem();
  readonly slots = new MemorySlotStore();
  readonly env: Env;
  /** Lines of the log, with their fields. */
  readonly messages: string[] = [];
  readonly servers: (TabletServer | undefined)[] = [];
  /** Undefined: the call is made as it is. */
  onCall: ((call: InterceptedCall) => Promise<unknown> | undefined) | undefined;
  onStream: ((stream: InterceptedStream) => AsyncIterable<unknown> | undefined) | undefined;
  onLockCall:
    | ((name: keyof LockService, path: unknown, go: () => Promise<unknown>) => Promise<unknown> | undefined)
    | undefined;
  /** Watches do not report changes of files whose paths begin so. */
  hidesChangesOf: string | undefined;
  /** A test of more than a day counts them: what it waits for is to come within a day. */
  days = 0;
  master: Master | undefined;
  client!: Client;
  tables!: Tables;
  readonly #options: ClusterOptions;
  readonly #locks = new MemoryLockService();

  constructor(options: ClusterOptions = {}) {
    this.#options = options;
    const note = (message: string, fields?: object): void =>
      void this.messages.push(`${message} ${JSON.stringify(fields ?? {})}`);
    const logger: Logger = { ...silentLogger, info: note, warn: note, error: note };
    const codecs = nativeCodecs();
    const { clock } = this;
    const fileSystem =
      options.sortedLogs === undefined
        ? this.fileSystem
        : withSlotLogs(this.fileSystem, this.slots, {
            ...{ clock, random: new SeededRandom(2), slotCostBytes: options.slotCostBytes ?? 0 },
          });
    this.env = {
      fileSystem,
      backupStore: async () => this.backupStore,
      lockService: this.#lockService(this.#locks),
      transport: this.#transport(new LocalTransport(clock)),
      clock,
      random: new SeededRandom(1),
      workers: new InlineWorkers({
        [COMPACTION_TASK]: (job: CompactionJob) => compactFiles({ fileSystem, codecs, clock }, job),
      }),
      codecs,
      logger,
      metrics: new Metrics(),
      requestBudget: new ByteBudget(128 * MIB),
    };
  }

  /** For `onCall`: the call reaches nobody. Rejects when its context ends. */
  noAnswer(context: RequestContext): Promise<never> {
    return within(new Promise(() => {}), context, this.clock);
  }

  /** Lets time go on until the work has ended. */
  inTime<T>(work: () => Promise<T>): Promise<T> {
    return inSimulatedTime(
      this.clock,
      work(),
      () => '',
      () => this.days,
    );
  }

  /** Servers, then the master, then the client. */
  async start(): Promise<void> {
    for (let i = 0; i < (this.#options.servers ?? 1); i++) await this.startServer();
    await this.startMaster();
    await this.openClient();
  }

  async startServer(): Promise<TabletServer> {
    const index = this.servers.length;
    const server = await TabletServer.start({
      env: this.env,
      address: `server-${index}`,
      settings: { ...SETTINGS, ...this.#options.settings },
    });
    this.servers.push(server);
    return server;
  }

  async startMaster(): Promise<void> {
    const { sortedLogs, keepDeletedMs } = this.#options;
    this.master = await Master.start({
      env: this.env,
      address: 'master',
      ...(sortedLogs !== undefined && { sortedLogs }),
      ...(keepDeletedMs !== undefined && { keepDeletedMs }),
    });
    await this.master.assigned;
  }

  async openClient(): Promise<void> {
    this.client = await Client.open({ env: this.env, limits: this.#options.limits ?? LIMITS.default });
    this.tables = new Tables(this.env, this.client);
  }

  /** The server of that index loses its session, and ends itself. */
  async kill(index: number): Promise<void> {
    const lock = await this.env.lockService.holder(`servers/${this.servers[index]?.name}`);
    this.servers[index] = undefined;
    if (lock) await this.env.lockService.closeSession(lock.sessionId);
  }

  /** Watches of the lock service miss all changes until the returned function is called, which reports the gap. */
  missChanges(): () => void {
    return this.#locks.missChanges();
  }

  async close(): Promise<void> {
    this.client.close();
    await this.master?.close();
    for (const kind of ['users', 'metadata', 'root'] as const)
      for (const server of this.servers) await server?.releaseTablets(kind);
    for (const server of this.servers) await server?.close();
  }

  #transport(inner: Transport): Transport {
    return {
      serve: (address, handler) => inner.serve(address, handler),
      call: (address, method, message, context) => {
        const go = (): Promise<unknown> => inner.call(address, method, message, context);
        return this.onCall?.({ address, method, message, context, go }) ?? go();
      },
      stream: (address, method, message, context) => {
        const go = (): AsyncIterable<unknown> => inner.stream(address, method, message, context);
        return this.onStream?.({ address, method, message, context, go }) ?? go();
      },
    };
  }

  #watch(inner: LockService): LockService['watch'] {
    return (prefix, listener) =>
      inner.watch(prefix, (event) => {
        const { hidesChangesOf } = this;
        const isHidden = hidesChangesOf !== undefined && 'path' in event && event.path.startsWith(hidesChangesOf);
        if (!isHidden) listener(event);
      });
  }

  #lockService(inner: LockService): LockService {
    return new Proxy(inner, {
      get: (target, name: keyof LockService) => {
        const value = target[name] as unknown;
        if (typeof value !== 'function') return value;
        if (name === 'watch') return this.#watch(target);
        return (...args: unknown[]) => {
          const go = (): Promise<unknown> => value.apply(target, args) as Promise<unknown>;
          return this.onLockCall?.(name, args[0], go) ?? go();
        };
      },
    });
  }
}
