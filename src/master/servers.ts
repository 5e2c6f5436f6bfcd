/**
 * The tablet servers as the master sees them (paper section 5.2): the directory of their files, who answers, and the burial of the dead.
 *
 * Invariant: a server counts as dead only once its lock is free or its file is gone, and none of its tablets is given away before its log is fenced.
 */
import { BigtableError, toBigtableError, unavailable } from '../base/index.ts';
import type { Env, LockHandle, RequestContext } from '../env/index.ts';
import type { MetadataKey } from '../metadata/index.ts';
import { callServer, checkProtocol, decodePeerFile, logPathOf, type PeerFile, SERVERS_DIRECTORY, type TabletServerCalls } from '../protocol/index.ts';

export interface LiveServer {
  readonly name: string;
  readonly address: string;
  /** What it serves, or was given since it was asked. */
  readonly tablets: Map<MetadataKey, number>;
  /** How large what it served was when it was asked. */
  readonly sizes: ReadonlyMap<MetadataKey, number>;
}

export class Servers {
  readonly #env: Env;
  readonly #lock: LockHandle;
  #live = new Map<string, LiveServer>();
  /** Names whose logs are fenced. */
  readonly #fenced = new Set<string>();

  /** `lock`: the master's. */
  constructor(env: Env, lock: LockHandle) {
    this.#env = env;
    this.#lock = lock;
  }

  all(): LiveServer[] {
    return [...this.#live.values()];
  }

  get(name: string): LiveServer | undefined {
    return this.#live.get(name);
  }

  /** The live server with the fewest tablets. */
  choose(): LiveServer {
    let best: LiveServer | undefined;
    for (const server of this.#live.values()) if (best === undefined || server.tablets.size < best.tablets.size) best = server;
    if (best === undefined) throw unavailable('no tablet server is alive');
    return best;
  }

  /** Reads the directory, asks every server for its lock and its tablets, and buries those whose lock is free. */
  async scan(context: RequestContext): Promise<void> {
    const live = new Map<string, LiveServer>();
    for (const file of await this.#env.lockService.list(SERVERS_DIRECTORY)) {
      const peer = decodePeerFile(file.path, file.contents);
      const server = await this.#ask(peer, context);
      if (server) live.set(peer.name, server);
      else if (!(await this.#bury(peer.name))) this.#env.logger.warn('a tablet server holds its lock and does not answer', { server: peer.name });
    }
    this.#live = live;
  }

  /** Calls every live server; who fails is told to the log, and left out. */
  async callAll<M extends keyof TabletServerCalls>(
    method: M,
    message: TabletServerCalls[M]['message'],
    context: RequestContext,
  ): Promise<Map<string, TabletServerCalls[M]['answer']>> {
    const answers = new Map<string, TabletServerCalls[M]['answer']>();
    await Promise.all(
      this.all().map(async ({ name, address }) => {
        try {
          answers.set(name, await callServer(this.#env.transport, address, method, message, context));
        } catch (thrown) {
          this.#env.logger.warn('a tablet server failed a call', { server: name, method, error: toBigtableError(thrown).message });
        }
      }),
    );
    return answers;
  }

  /** Whether somebody holds the lock of that name: then it is alive, announced or not. */
  async isLocked(name: string): Promise<boolean> {
    return (await this.#env.lockService.holder(SERVERS_DIRECTORY + name)) !== undefined;
  }

  /** Makes sure that the dead server writes nothing any more. */
  async fence(name: string): Promise<void> {
    if (this.#fenced.has(name)) return;
    await this.#env.fileSystem.fence(logPathOf(name));
    this.#fenced.add(name);
  }

  async #ask(peer: PeerFile, context: RequestContext): Promise<LiveServer | undefined> {
    try {
      checkProtocol(`tablet server ${peer.name}`, peer.protocol);
      const status = await callServer(this.#env.transport, peer.address, 'status', {}, context);
      if (status.name !== peer.name || !status.locked) return undefined;
      return {
        name: peer.name,
        address: peer.address,
        tablets: new Map(status.tablets.map(({ key, epoch }) => [key, epoch])),
        sizes: new Map(status.tablets.map(({ key, sizeBytes }) => [key, sizeBytes])),
      };
    } catch (thrown) {
      if (!(thrown instanceof BigtableError)) throw thrown;
      this.#env.logger.warn('a tablet server does not answer', { server: peer.name, error: thrown.message });
      return undefined;
    }
  }

  /** Takes the lock of a server that has lost it, and deletes its file: it will kill itself, if it is still there. */
  async #bury(name: string): Promise<boolean> {
    const { lockService } = this.#env;
    const path = SERVERS_DIRECTORY + name;
    const taken = await lockService.tryAcquire(path, this.#lock.sessionId);
    if (taken === undefined) return false;
    await lockService.remove(path, { lock: taken });
    await lockService.release(taken);
    return true;
  }
}
