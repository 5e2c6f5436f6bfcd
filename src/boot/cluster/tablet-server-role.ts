/**
 * The tablet server of a process: incarnations one after another, and a client library over which the process is a
 * front door for rows of all servers.
 *
 * Invariant: an incarnation that ends itself is followed by a new one, until the role is closed.
 */
import { Client } from '../../client/index.ts';
import type { Env } from '../../env/index.ts';
import { rawCallHandler, RequestDecoder } from '../../grpc/index.ts';
import { LIMITS } from '../../model/index.ts';
import { MemoryLayerCache } from '../../resources/index.ts';
import type { RawCallPasser, Service } from '../../service/index.ts';
import { TabletServer } from '../../tabletserver/index.ts';
import { startAgain } from '../open/start-again.ts';
import { type DatabaseSettings, tabletServerSettings } from '../settings/settings.ts';

const MAX_RESTART_MS = 30_000;

export interface RoleOptions {
  readonly env: Env;
  /** At which other processes reach it. */
  readonly address: string;
}

export interface TabletServerRoleOptions extends RoleOptions {
  readonly settings: DatabaseSettings;
}

export class TabletServerRole {
  /** The rows of all servers, and their tables. */
  readonly service: Service;
  /** Passes calls for rows of other servers on as bytes. */
  readonly passer: RawCallPasser;
  /** Decodes the requests of clients, and those that were passed on. */
  readonly decoder: RequestDecoder;
  readonly #options: TabletServerRoleOptions;
  readonly #client: Client;
  readonly #memoryLayers: MemoryLayerCache;
  readonly #closing = new AbortController();
  #server: TabletServer | undefined;
  /** The last incarnation under whose lock the door has read what it follows. */
  #doorReadUnder: TabletServer | undefined;
  #restarting: Promise<void> | undefined;

  private constructor(options: TabletServerRoleOptions, client: Client, memoryLayers: MemoryLayerCache) {
    const { env, address } = options;
    this.#options = options;
    this.#client = client;
    this.#memoryLayers = memoryLayers;
    this.service = client;
    this.passer = client.callPasser(address);
    this.decoder = new RequestDecoder(env.clock);
  }

  /** Resolves when the server takes tablets. Fails if its first incarnation cannot start. */
  static async start(options: TabletServerRoleOptions): Promise<TabletServerRole> {
    const { env, settings } = options;
    let role: TabletServerRole | undefined;
    const isDoorCurrent = (): boolean => (role === undefined ? false : role.#isDoorCurrent());
    const memoryLayers = new MemoryLayerCache(env);
    let client: Client | undefined;
    try {
      await memoryLayers.start();
      client = await Client.open({ env, limits: LIMITS[settings.limits], isDoorCurrent, memoryLayers });
      role = new TabletServerRole(options, client, memoryLayers);
      await role.#start();
      return role;
    } catch (error) {
      client?.close();
      memoryLayers.stop();
      throw error;
    }
  }

  /** A change of what the door follows waits for servers that hold their locks, and for no others. */
  #isDoorCurrent(): boolean {
    return this.#server?.leaseHeld() === true && this.#server === this.#doorReadUnder;
  }

  async #start(): Promise<void> {
    const { env, address, settings } = this.#options;
    const server = await TabletServer.start({
      env,
      address,
      memoryLayers: this.#memoryLayers,
      settings: tabletServerSettings(settings, 1),
      comparesClocks: true,
      rawCalls: rawCallHandler(this.#client.rowsOf(address), env, this.decoder),
      onDoorFiles: (paths) => this.#client.doorFilesChanged(paths),
      onEnd: () => {
        this.#server = undefined;
        const again = { env, what: 'a tablet server', signal: this.#closing.signal, mostMs: MAX_RESTART_MS };
        this.#restarting = startAgain(again, () => this.#start());
      },
    });
    this.#server = server;
    // what was changed while no incarnation had its lock
    const reading = { env, what: 'the front door', signal: this.#closing.signal, mostMs: MAX_RESTART_MS };
    const read = async (): Promise<void> => {
      if (this.#server !== server) return;
      await this.#client.readDoorFilesAgain();
      this.#doorReadUnder = server;
    };
    await startAgain(reading, read, 0);
  }

  /** Gives the tablets up, which are served elsewhere then. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#restarting;
    await this.#server?.close();
    this.#client.close();
    this.#memoryLayers.stop();
  }
}
