/**
 * The tablet servers as the master sees them (paper section 5.2): the directory of their files, their answers, and the
 * fencing of the dead.
 *
 * Invariants: a server counts as dead only once its lock is free or its file is gone, and none of its tablets is given
 * away before its log is fenced. A server that was found dead is never given a tablet again: names do not come back.
 */
import { assert, BigtableError, Code, toBigtableError, unavailable } from '../base/index.ts';
import { type Env, listFiles, type LockHandle, type RequestContext, sleep } from '../env/index.ts';
import type { MetadataKey } from '../metadata/index.ts';
import {
  callServer,
  checkProtocol,
  decodePeerFile,
  type FromMaster,
  isDeposed,
  isNotServing,
  logPathOf,
  type PeerFile,
  PROTOCOL,
  SERVERS_DIRECTORY,
  type TabletServerCalls,
} from '../protocol/index.ts';

/** A status is answered from memory. A server that takes longer counts as silent, and is called again. */
const STATUS_MS = 1000;
/** Deadline of all other calls. */
const CALL_MS = 5000;
/** The interval of calls to a server that has not confirmed the change of a schema. */
const CONFIRM_AGAIN_MS = 1000;
/** A confirmation takes no longer: by then a server that is cut off has lost its lock. */
const CONFIRM_MS = 20_000;
/** The part of the caller's time that is left for the answer. */
const ANSWER_MS = 500;

/** A tablet server by its incarnation. */
type ServerName = Pick<PeerFile, 'name' | 'address'>;
type Message<M extends keyof TabletServerCalls> = Omit<TabletServerCalls[M]['message'], keyof FromMaster>;

export interface LiveServer {
  readonly name: string;
  readonly address: string;
  /** The tablets that it serves, or was given since its last answer. */
  readonly tablets: Map<MetadataKey, number>;
  /** The sizes of its tablets at its last answer. */
  readonly sizes: ReadonlyMap<MetadataKey, number>;
}

export class Servers {
  readonly #env: Env;
  readonly #lock: LockHandle;
  #live = new Map<string, LiveServer>();
  /**
   * Servers found dead, each with the fencing of its log. They are kept for as long as their logs exist, and until no
   * answer of theirs is on its way.
   */
  readonly #dead = new Map<string, Promise<void>>();
  /** The dead servers whose logs were deleted. */
  readonly #deletedLogs = new Set<string>();
  /** They hold their locks and do not answer, so their tablets are unknown and wait. */
  readonly #silent = new Set<string>();
  /** By name, commits under way that give it tablets. */
  readonly #giving = new Map<string, number>();
  #ended = false;

  /** `lock`: the master's. */
  constructor(env: Env, lock: LockHandle) {
    this.#env = env;
    this.#lock = lock;
  }

  /** The master ends: no server is called again to confirm the change of a schema. */
  end(): void {
    this.#ended = true;
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
    for (const server of this.#live.values())
      if (best === undefined || server.tablets.size < best.tablets.size) best = server;
    if (best === undefined) throw unavailable('no tablet server is alive');
    return best;
  }

  /** True from when it was found dead until its log was deleted. */
  remembersDead(name: string): boolean {
    return this.#dead.has(name);
  }

  /** The number of dead servers that are kept. */
  get deadCount(): number {
    return this.#dead.size;
  }

  /** True when some server holds its lock and does not answer. */
  get anySilent(): boolean {
    return this.#silent.size > 0;
  }

  /**
   * Resolves if this master has its lock now, and surely still has it at the next instant. Required before a change
   * that removes or releases rows: a master that was replaced may know less than its successor.
   */
  async checkMastership(): Promise<void> {
    const { lockService } = this.#env;
    const holder = await lockService.holder(this.#lock.path);
    if (holder?.epoch !== this.#lock.epoch || !lockService.leaseHolds(this.#lock.sessionId))
      throw unavailable('this master may have lost its lock');
  }

  /** Reads the directory, requests the lock and the tablets of every server, and fences those whose lock is free. */
  async scan(context: RequestContext): Promise<void> {
    const live = new Map<string, LiveServer>();
    const deleted = [...this.#deletedLogs];
    const files = await listFiles(this.#env.lockService, SERVERS_DIRECTORY);
    await Promise.all(
      files.map(async ({ path, contents }) => {
        const peer = decodePeerFile(path, contents);
        const answer = await this.#requestStatus(peer, context);
        if (!(answer instanceof BigtableError)) live.set(peer.name, answer);
        else if (!(await this.removeDead(peer.name))) return this.#logSilence(peer.name, answer);
        this.#silent.delete(peer.name);
      }),
    );
    const names = new Set(files.map(({ path }) => path.slice(SERVERS_DIRECTORY.length)));
    for (const name of this.#silent) if (!names.has(name)) this.#silent.delete(name);
    // a server that answered and was found dead since then
    for (const name of this.#dead.keys()) live.delete(name);
    this.#live = live;
    for (const name of deleted) {
      assert(!live.has(name), 'a server whose log was deleted is dead');
      this.#dead.delete(name);
      this.#deletedLogs.delete(name);
    }
  }

  /** Leaves out the live servers that do not answer now: nothing shall be given to them. */
  async leaveOutSilent(context: RequestContext): Promise<void> {
    await Promise.all(
      this.all().map(async (server) => {
        const answer = await this.#requestStatus({ ...server, protocol: PROTOCOL }, context);
        if (!(answer instanceof BigtableError) || this.#live.get(server.name) !== server) return;
        this.#live.delete(server.name);
        this.#logSilence(server.name, answer);
      }),
    );
  }

  /** Calls those that did not answer once more. True when any answers now, or is gone: then a scan is due. */
  async callSilent(context: RequestContext): Promise<boolean> {
    const answered = await Promise.all(
      [...this.#silent].map(async (name) => {
        const file = await this.#env.lockService.read(SERVERS_DIRECTORY + name);
        if (file === undefined) return true;
        return !(
          (await this.#requestStatus(decodePeerFile(file.path, file.contents), context)) instanceof BigtableError
        );
      }),
    );
    return answered.includes(true);
  }

  /** Calls that incarnation of the server. DEADLINE_EXCEEDED if it does not answer in time. */
  call<M extends keyof TabletServerCalls>(
    { name, address }: ServerName,
    method: M,
    message: Message<M>,
    context: RequestContext,
    timeoutMs = CALL_MS,
  ): Promise<TabletServerCalls[M]['answer']> {
    const { transport, clock } = this.#env;
    const deadlineMs = Math.min(context.deadlineMs, clock.monotonicMs() + timeoutMs);
    const stamped = { ...message, to: name, masterEpoch: this.#lock.epoch };
    return callServer(transport, address, method, stamped, { ...context, deadlineMs });
  }

  /**
   * A call that may take minutes, and that joins its own work when it is repeated: called again for as long as the
   * server answers a status.
   */
  async callUntilDone<M extends 'load' | 'unload' | 'flush'>(
    server: ServerName,
    method: M,
    message: Message<M>,
    context: RequestContext,
  ): Promise<TabletServerCalls[M]['answer']> {
    for (;;) {
      try {
        return await this.call(server, method, message, context);
      } catch (thrown) {
        const error = toBigtableError(thrown);
        const isOver = context.deadlineMs <= this.#env.clock.monotonicMs();
        if (error.code !== Code.DEADLINE_EXCEEDED || isOver) throw error;
        if ((await this.#requestStatus({ ...server, protocol: PROTOCOL }, context)) instanceof BigtableError)
          throw error;
      }
    }
  }

  /** Calls every live server; a failure is logged, and its server left out. */
  async callAll<M extends keyof TabletServerCalls>(
    method: M,
    message: Message<M>,
    context: RequestContext,
  ): Promise<Map<string, TabletServerCalls[M]['answer']>> {
    const answers = new Map<string, TabletServerCalls[M]['answer']>();
    await Promise.all(
      this.all().map(async (server) => {
        const { name } = server;
        try {
          answers.set(name, await this.call(server, method, message, context));
        } catch (thrown) {
          const error = toBigtableError(thrown);
          if (isDeposed(error)) throw error;
          // a server that has ended is an event of its own
          if (!isNotServing(error))
            this.#env.logger.warn('a tablet server failed a call', { server: name, method, error: error.message });
        }
      }),
    );
    return answers;
  }

  /**
   * Resolves when no server acknowledges anything under an earlier schema of the table: each that holds its lock has
   * read the schema's file since the call. UNAVAILABLE, naming a server, if one has not by the deadline.
   */
  async confirmSchema(tableName: string, context: RequestContext): Promise<void> {
    const { lockService, clock } = this.#env;
    const deadlineMs = Math.min(context.deadlineMs - ANSWER_MS, clock.monotonicMs() + CONFIRM_MS);
    // a server that announces itself later is given tablets with the version of their schema
    const files = await listFiles(lockService, SERVERS_DIRECTORY);
    const peers = files.map(({ path, contents }) => decodePeerFile(path, contents));
    const until = { ...context, deadlineMs };
    await Promise.all(peers.map((peer) => this.#confirmSchemaAt(peer, tableName, until)));
  }

  async #confirmSchemaAt(peer: PeerFile, tableName: string, context: RequestContext): Promise<void> {
    const { clock, logger } = this.#env;
    for (let isFirst = true; ; isFirst = false) {
      try {
        await this.call(peer, 'schemaChanged', { tableName }, context);
        return;
      } catch (thrown) {
        const error = toBigtableError(thrown);
        if (isDeposed(error)) throw error;
        if (!(await this.#mayHoldLock(peer.name))) return;
        if (isFirst) {
          const fields = { server: peer.name, table: tableName, error: error.message };
          logger.warn('a tablet server has not confirmed the change of a schema; it will be called again', fields);
        }
        if (this.#ended || clock.monotonicMs() + CONFIRM_AGAIN_MS >= context.deadlineMs) {
          const message =
            `the schema of table ${tableName} was changed, but tablet server ${peer.name} at ${peer.address} has not ` +
            `confirmed it and may still use the earlier one (${error.message}): repeat the call`;
          throw unavailable(message, error);
        }
        await sleep(clock, CONFIRM_AGAIN_MS);
      }
    }
  }

  /** False if it surely acknowledges nothing any more. */
  async #mayHoldLock(name: string): Promise<boolean> {
    try {
      const holder = await this.#env.lockService.holder(SERVERS_DIRECTORY + name);
      return holder !== undefined && holder.sessionId !== this.#lock.sessionId;
    } catch {
      // the lock service will be called again
      return true;
    }
  }

  /**
   * True when the server of that name is dead: no session holds its lock, or this master does. Then it writes no more,
   * its log is fenced, and it is given no tablet. A server that holds the lock is alive, announced or not.
   */
  async isDead(name: string): Promise<boolean> {
    let fencing = this.#dead.get(name);
    if (fencing === undefined) {
      const holder = await this.#env.lockService.holder(SERVERS_DIRECTORY + name);
      if (holder !== undefined && holder.sessionId !== this.#lock.sessionId) return false;
      this.#live.delete(name);
      fencing = this.#dead.get(name) ?? this.#env.fileSystem.fence(logPathOf(name));
      this.#dead.set(name, fencing);
    }
    await fencing.catch((error: unknown) => {
      // the next caller fences it anew
      if (this.#dead.get(name) === fencing) this.#dead.delete(name);
      throw error;
    });
    return true;
  }

  /**
   * Returns the named servers that are dead and get no tablet by a commit under way. No row will ever name them again.
   */
  async findDead(names: readonly string[]): Promise<Set<string>> {
    const dead = new Set<string>();
    for (const name of names) {
      if (!(await this.isDead(name))) continue;
      assert(!this.#live.has(name), 'a dead server is not a live one');
      if (!this.#giving.has(name)) dead.add(name);
    }
    return dead;
  }

  /** The log of a dead server was deleted, since no row listed it. */
  logDeleted(name: string): void {
    assert(this.#dead.has(name), 'only the logs of dead servers are deleted');
    assert(!this.#giving.has(name), 'the log of a server stays while a commit under way gives tablets to it');
    this.#deletedLogs.add(name);
  }

  /** A commit begins that gives these servers tablets; the returned function is called when its outcome is known. */
  giving(names: readonly string[]): () => void {
    for (const name of names) {
      assert(!this.#dead.has(name), 'a dead server is given no tablet');
      this.#giving.set(name, (this.#giving.get(name) ?? 0) + 1);
    }
    return () => {
      for (const name of names) {
        const left = (this.#giving.get(name) ?? 0) - 1;
        assert(left >= 0, 'the end of a commit is reported once');
        if (left > 0) this.#giving.set(name, left);
        else this.#giving.delete(name);
      }
    };
  }

  /** Returns the reason why it does not answer, if it does not. */
  async #requestStatus(peer: PeerFile, context: RequestContext): Promise<LiveServer | BigtableError> {
    try {
      checkProtocol(`tablet server ${peer.name}`, peer.protocol);
      const status = await this.call(peer, 'status', {}, context, STATUS_MS);
      if (status.name !== peer.name) return unavailable(`another one, ${status.name}, answers at its address`);
      if (!status.locked) return unavailable('its lease may have lapsed');
      return {
        name: peer.name,
        address: peer.address,
        tablets: new Map(status.tablets.map(({ key, epoch }) => [key, epoch])),
        sizes: new Map(status.tablets.map(({ key, sizeBytes }) => [key, sizeBytes])),
      };
    } catch (thrown) {
      if (!(thrown instanceof BigtableError)) throw thrown;
      // a death is an event of its own
      if (context.signal?.aborted || isDeposed(thrown)) throw thrown;
      return thrown;
    }
  }

  /** Logged once, until the server answers. */
  #logSilence(server: string, { message }: BigtableError): void {
    if (this.#silent.has(server)) return;
    this.#silent.add(server);
    this.#env.logger.warn('a tablet server holds its lock and does not answer; it will be called again', {
      server,
      error: message,
    });
  }

  /**
   * Takes the lock of a server that has lost it, and deletes its file: it will end itself, if it still runs. The next
   * scan repeats what fails here; a lock that could not be released ends with this master. False if it has its lock.
   */
  async removeDead(name: string): Promise<boolean> {
    const { lockService } = this.#env;
    const path = SERVERS_DIRECTORY + name;
    const taken = await lockService.tryAcquire(path, this.#lock.sessionId);
    if (taken === undefined) return false;
    await lockService.remove(path, { lock: taken });
    await lockService.release(taken);
    return true;
  }
}
