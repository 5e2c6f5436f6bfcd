/**
 * The tablet server of a process: incarnations one after another, and a client library over which the process is a
 * front door for rows of all servers.
 *
 * Invariant: an incarnation that ends itself is followed by a new one, until the role is closed.
 */
import { toBigtableError } from '../../base/index.ts';
import { Client } from '../../client/index.ts';
import { type Env, sleep } from '../../env/index.ts';
import { rawCallHandler, RequestDecoder } from '../../grpc/index.ts';
import { LIMITS } from '../../model/index.ts';
import type { RawCallPasser, Service } from '../../service/index.ts';
import { TabletServer } from '../../tabletserver/index.ts';
import { type DatabaseSettings, tabletServerSettings } from '../settings/settings.ts';

/**
 * Delay between the end of an incarnation, or a start that failed, and the next start. It doubles while starts fail:
 * each leaves a dead server, whose log the master has to fence.
 */
const RESTART_MS = 500;
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
  readonly #closing = new AbortController();
  #server: TabletServer | undefined;
  #restarting: Promise<void> | undefined;

  private constructor(options: TabletServerRoleOptions, client: Client) {
    const { env, address } = options;
    this.#options = options;
    this.#client = client;
    this.service = client;
    this.passer = client.callPasser(address);
    this.decoder = new RequestDecoder(env.clock);
  }

  /** Resolves when the server takes tablets. Fails if its first incarnation cannot start. */
  static async start(options: TabletServerRoleOptions): Promise<TabletServerRole> {
    const { env, settings } = options;
    const client = await Client.open({ env, limits: LIMITS[settings.limits] });
    const role = new TabletServerRole(options, client);
    try {
      await role.#start();
    } catch (error) {
      client.close();
      throw error;
    }
    return role;
  }

  async #start(): Promise<void> {
    const { env, address, settings } = this.#options;
    this.#server = await TabletServer.start({
      env,
      address,
      settings: tabletServerSettings(settings, 1),
      comparesClocks: true,
      rawCalls: rawCallHandler(this.#client.rowsOf(address), env, this.decoder),
      onEnd: () => {
        this.#server = undefined;
        this.#restarting = this.#restart();
      },
    });
  }

  /** Again and again while that fails. */
  async #restart(): Promise<void> {
    const { clock, logger } = this.#options.env;
    const { signal } = this.#closing;
    for (let delayMs = RESTART_MS; ; delayMs = Math.min(2 * delayMs, MAX_RESTART_MS)) {
      await sleep(clock, delayMs, signal).catch(() => {});
      if (signal.aborted) return;
      try {
        return await this.#start();
      } catch (error) {
        logger.error('a tablet server could not start and will be tried again', {
          error: toBigtableError(error).message,
        });
      }
    }
  }

  /** Gives the tablets up, which are served elsewhere then. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#restarting;
    await this.#server?.close();
    this.#client.close();
  }
}
