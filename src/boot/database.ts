/**
 * A database in one process, over whatever adapters it is given: tablet servers, a master and a client library, composed as a
 * cluster is. Nothing in it knows that the others are near.
 *
 * Invariant: a tablet server that ends itself is followed by a new incarnation, to which the master gives its tablets.
 */
import { toBigtableError } from '../base/index.ts';
import { Client } from '../client/index.ts';
import { type Env, requestContext, sleep } from '../env/index.ts';
import { Master } from '../master/index.ts';
import { LIMITS } from '../model/index.ts';
import { callMaster } from '../protocol/index.ts';
import type { Service } from '../service/index.ts';
import { TabletServer } from '../tabletserver/index.ts';
import type { DatabaseSettings } from './settings.ts';

const MASTER_ADDRESS = 'master';
const RESTART_MS = 500;
/** A start that cannot reach METADATA fails after this time. */
const START_PATIENCE_MS = 5000;

export interface DatabaseOptions {
  readonly env: Env;
  readonly settings: DatabaseSettings;
  /** Default 1. They share the sizes of the settings evenly. */
  readonly tabletServers?: number;
}

export class Database {
  readonly env: Env;
  readonly settings: DatabaseSettings;
  readonly service: Service;
  readonly #client: Client;
  readonly #master: Master;
  readonly #servers: (TabletServer | undefined)[];
  /** Starts of new incarnations under way. */
  readonly #restarts = new Set<Promise<void>>();
  readonly #abort: AbortController;

  private constructor(options: DatabaseOptions, parts: { client: Client; master: Master; servers: (TabletServer | undefined)[]; abort: AbortController }) {
    this.env = options.env;
    this.settings = options.settings;
    this.service = parts.client;
    this.#client = parts.client;
    this.#master = parts.master;
    this.#servers = parts.servers;
    this.#abort = parts.abort;
  }

  /** Resolves when every tablet that can be served is. */
  static async start(options: DatabaseOptions): Promise<Database> {
    const { env, settings, tabletServers = 1 } = options;
    const abort = new AbortController();
    const servers: (TabletServer | undefined)[] = [];
    let database: Database | undefined;
    let failed = false;
    const onEnd = (place: number): void => {
      if (database) database.replace(place);
      else failed = true;
    };
    let firstFailureMs: number | undefined;
    const givesUp = (): boolean => {
      firstFailureMs ??= env.clock.monotonicMs();
      return database === undefined && (failed || env.clock.monotonicMs() - firstFailureMs > START_PATIENCE_MS);
    };
    try {
      for (let i = 0; i < tabletServers; i++) servers.push(await startServer(options, i, () => onEnd(i)));
      const master = await Master.start({ env, address: MASTER_ADDRESS, givesUp });
      const client = await Client.open({ env, limits: LIMITS[settings.limits] });
      database = new Database(options, { client, master, servers, abort });
      return database;
    } catch (error) {
      for (const server of servers) await server?.close();
      throw error;
    }
  }

  /** Writes everything in memory to files. */
  async flush(): Promise<void> {
    for (const server of this.#servers) await server?.flush();
  }

  /** Deletes files and logs that nothing refers to. Answers how many. */
  sweep(): Promise<{ readonly files: number; readonly logs: number }> {
    return callMaster(this.env.transport, MASTER_ADDRESS, 'sweep', {}, requestContext({ budget: this.env.requestBudget, principal: 'operator' }));
  }

  /** Ends in good order. Calls under way end first; later ones fail with UNAVAILABLE. */
  async close(): Promise<void> {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort();
    this.#client.close();
    await this.#master.close();
    await Promise.all(this.#restarts);
    for (const kind of ['users', 'metadata', 'root'] as const) for (const server of this.#servers) await server?.giveUpTablets(kind);
    for (const server of this.#servers) await server?.close();
  }

  /** The server of that place has ended itself: a new incarnation is started, again and again while that fails. */
  replace(place: number): void {
    this.#servers[place] = undefined;
    const restart = this.#restart(place).finally(() => this.#restarts.delete(restart));
    this.#restarts.add(restart);
  }

  async #restart(place: number): Promise<void> {
    const { signal } = this.#abort;
    const options = { env: this.env, settings: this.settings, tabletServers: this.#servers.length };
    while (!signal.aborted) {
      try {
        this.#servers[place] = await startServer(options, place, () => this.replace(place));
        return;
      } catch (error) {
        this.env.logger.error('no new tablet server could be started', { error: toBigtableError(error).message });
        await sleep(this.env.clock, RESTART_MS, signal).catch(() => {});
      }
    }
  }
}

function startServer({ env, settings, tabletServers = 1 }: DatabaseOptions, place: number, onEnd: () => void): Promise<TabletServer> {
  const { memtableBytes, blockCacheBytes, logLimitBytes, blockSizeBytes, limits } = settings;
  return TabletServer.start({
    env,
    address: `tablet-server-${place}`,
    settings: {
      limits: LIMITS[limits],
      blockSizeBytes,
      memtableBytes: Math.floor(memtableBytes / tabletServers),
      blockCacheBytes: Math.floor(blockCacheBytes / tabletServers),
      logLimitBytes: Math.floor(logLimitBytes / tabletServers),
    },
    onEnd,
  });
}
