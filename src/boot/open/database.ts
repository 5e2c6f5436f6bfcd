/**
 * A database in one process, over the adapters it is given: tablet servers, a master and a client library, composed as
 * a cluster is. No part depends on being in the same process as the others.
 *
 * Invariant: a tablet server that ends itself is followed by a new incarnation, to which the master assigns its
 * tablets.
 */
import { type ByteString, unavailable } from '../../base/index.ts';
import { Client } from '../../client/index.ts';
import { type Env, type RequestContext, requestContext } from '../../env/index.ts';
import { Master } from '../../master/index.ts';
import { LIMITS } from '../../model/index.ts';
import { callMaster } from '../../protocol/index.ts';
import { MemoryLayerCache } from '../../resources/index.ts';
import type { Service } from '../../service/index.ts';
import { TabletServer } from '../../tabletserver/index.ts';
import { type DatabaseSettings, tabletServerSettings } from '../settings/settings.ts';
import { startAgain } from './start-again.ts';

export const MASTER_ADDRESS = 'master';
const MAX_RESTART_MS = 500;
/** A start that cannot reach METADATA fails after this time. */
const MAX_START_MS = 5000;

/** A tablet server under the database's control: in this thread, or in one of its own. */
export interface HostedServer {
  releaseTablets(kind: 'users' | 'metadata' | 'root'): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts a new incarnation of the server of that index, from 0; `onEnd` is called once, when it ends without having
 * been closed.
 */
export type StartServer = (index: number, onEnd: () => void) => Promise<HostedServer>;

export interface DatabaseOptions {
  readonly env: Env;
  readonly settings: DatabaseSettings;
  /** Default: 1. They share the sizes of the settings evenly. */
  readonly tabletServers?: number;
  /** Default: in this thread. */
  readonly startServer?: StartServer;
}

export class Database {
  readonly env: Env;
  readonly settings: DatabaseSettings;
  readonly service: Service;
  readonly #client: Client;
  readonly #memoryLayers: MemoryLayerCache;
  readonly #master: Master;
  readonly #servers: (HostedServer | undefined)[];
  /** Starts of new incarnations under way. */
  readonly #restarts = new Set<Promise<void>>();
  readonly #abort = new AbortController();
  readonly #startServer: StartServer;

  private constructor(
    options: DatabaseOptions,
    parts: {
      client: Client;
      memoryLayers: MemoryLayerCache;
      master: Master;
      servers: (HostedServer | undefined)[];
      startServer: StartServer;
    },
  ) {
    this.env = options.env;
    this.settings = options.settings;
    this.service = parts.client;
    this.#client = parts.client;
    this.#memoryLayers = parts.memoryLayers;
    this.#master = parts.master;
    this.#servers = parts.servers;
    this.#startServer = parts.startServer;
  }

  /** Resolves when every tablet that can be served is. */
  static async start(options: DatabaseOptions): Promise<Database> {
    const { env, settings, tabletServers = 1 } = options;
    const memoryLayers = new MemoryLayerCache(env);
    const { startServer = inThisThread(options, memoryLayers) } = options;
    const servers: (HostedServer | undefined)[] = [];
    let database: Database | undefined;
    let failed = false;
    let failure: PromiseRejectedResult | undefined;
    let master: Master | undefined;
    let client: Client | undefined;
    const onEnd = (index: number): void => {
      if (database) database.replace(index);
      else failed = true;
    };
    let firstFailureMs: number | undefined;
    const isCancelled = (): boolean => {
      firstFailureMs ??= env.clock.monotonicMs();
      return database === undefined && (failed || env.clock.monotonicMs() - firstFailureMs > MAX_START_MS);
    };
    try {
      // known before the first tablet is loaded
      await memoryLayers.start();
      const starts = Array.from({ length: tabletServers }, (_, index) => startServer(index, () => onEnd(index)));
      for (const start of await Promise.allSettled(starts)) {
        if (start.status === 'fulfilled') servers.push(start.value);
        else failure ??= start;
      }
      if (failure) throw failure.reason;
      const { keepDeletedMs } = settings;
      master = await Master.start({ env, address: MASTER_ADDRESS, isCancelled, keepDeletedMs });
      await master.assigned;
      client = await Client.open({ env, limits: LIMITS[settings.limits], memoryLayers });
      // nothing would start it again: until here a new incarnation is the caller's to ask for
      if (failed) throw unavailable('a tablet server has ended itself while the database was started');
      database = new Database(options, { client, memoryLayers, master, servers, startServer });
      return database;
    } catch (error) {
      client?.close();
      memoryLayers.stop();
      await master?.close();
      for (const server of servers) await server?.close();
      throw error;
    }
  }

  /** Writes everything in memory to files. */
  flush(): Promise<void> {
    return this.service.flush(this.#context());
  }

  /** Major compactions of the table of that full name, or of all. NOT_FOUND where there is none. */
  async compact(table?: string): Promise<void> {
    for await (const _progress of this.service.compactTables(this.#context(), table));
  }

  /** Splits the tablet of the row before it; without a row every tablet of the table near its middle. */
  splitTablet(table: string, row?: ByteString): Promise<void> {
    return this.service.splitTablets(this.#context(), table, row);
  }

  /** Makes one tablet of the two that meet at the row. */
  mergeTablets(table: string, row: ByteString): Promise<void> {
    return this.service.mergeTablets(this.#context(), table, row);
  }

  /** Deletes files and logs that nothing refers to. Returns their numbers. */
  sweep(): Promise<{ readonly files: number; readonly logs: number }> {
    return callMaster(this.env.transport, MASTER_ADDRESS, 'sweep', {}, this.#context());
  }

  #context(): RequestContext {
    return requestContext({ budget: this.env.requestBudget, principal: 'operator' });
  }

  /** Shuts down. Calls under way end first; later ones fail with UNAVAILABLE. */
  async close(): Promise<void> {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort();
    this.#client.close();
    this.#memoryLayers.stop();
    await this.#master.close();
    await Promise.all(this.#restarts);
    for (const kind of ['users', 'metadata', 'root'] as const)
      for (const server of this.#servers) await server?.releaseTablets(kind);
    for (const server of this.#servers) await server?.close();
  }

  /** Starts a new incarnation of a server that has ended itself. */
  replace(index: number): void {
    this.#servers[index] = undefined;
    const again = { env: this.env, what: 'a tablet server', signal: this.#abort.signal, mostMs: MAX_RESTART_MS };
    const start = async (): Promise<void> => {
      this.#servers[index] = await this.#startServer(index, () => this.replace(index));
    };
    const restart = startAgain(again, start, 0).finally(() => this.#restarts.delete(restart));
    this.#restarts.add(restart);
  }
}

/** The address of the tablet server of that index. */
export function serverAddress(index: number): string {
  return `tablet-server-${index}`;
}

function inThisThread(
  { env, settings, tabletServers = 1 }: DatabaseOptions,
  memoryLayers: MemoryLayerCache,
): StartServer {
  return (index, onEnd) =>
    TabletServer.start({
      env,
      memoryLayers,
      address: serverAddress(index),
      settings: tabletServerSettings(settings, tabletServers),
      onEnd,
    });
}
