/**
 * The tablet servers as the master sees them (paper section 5.2): the directory of their files, their answers, and the
 * fencing of the dead. What it knows of one that does not answer, or is dead, is kept until it answers or is recovered.
 *
 * Invariants: a server counts as dead only once its lock is free or its file is gone, and none of its tablets is given
 * away before its log is fenced. A server that was found dead is never given a tablet again: names do not come back.
 */
import { assert, BigtableError, toBigtableError, unavailable } from '../base/index.ts';
import { type Env, listFiles, type LockHandle, type RequestContext, sleep } from '../env/index.ts';
import type { MetadataKey } from '../metadata/index.ts';
import {
  decodePeerFile,
  isDeposed,
  isNotServing,
  logPathOf,
  type PeerFile,
  PROTOCOL,
  SERVERS_DIRECTORY,
  type TabletRef,
  type TabletServerCalls,
} from '../protocol/index.ts';
import { LiveServer } from './live-server.ts';
import { type Message, ServerCaller } from './server-caller.ts';
import { TabletFigures } from './tablet-figures.ts';

/** The interval of calls to a server that has not confirmed a change. */
const CONFIRM_AGAIN_MS = 1000;
/** A confirmation takes no longer: by then a server that is cut off has lost its lock. */
const CONFIRM_MS = 20_000;
/** The part of the caller's time that is left for the answer. */
const ANSWER_MS = 500;
/** The watch of the locks tells when one is lost; a scan asks again for what the watch may have missed. */
const LOCK_AGAIN_MS = 3000;

/** More tablets that are being given to a server weigh as this many each when one is chosen: loads take time. */
const GIVEN_WEIGHT = 16;

/** A server that holds its lock and does not answer. */
interface SilentServer {
  readonly peer: PeerFile;
  /** Undefined if it has never answered: its tablets are unknown. */
  readonly server: LiveServer | undefined;
}

type Peer = Pick<PeerFile, 'name' | 'address'>;
/** One that is to confirm a change. */
type Addressee = Pick<PeerFile, 'name'> & { readonly address: string | undefined };
/** The calls that a server answers once it has read a file of the lock service. */
type ConfirmingCall = 'schemaChanged' | 'doorFilesChanged';

export class Servers {
  readonly caller: ServerCaller;
  readonly figures = new TabletFigures();
  readonly #env: Env;
  readonly #lock: LockHandle;
  /** Called with the name of a server that a scan has found dead or gone. */
  readonly #onGone: (name: string) => void;
  readonly #live = new Map<string, LiveServer>();
  /**
   * Servers found dead, each with the fencing of its log. They are kept for as long as their logs exist, and until no
   * answer of theirs is on its way.
   */
  readonly #dead = new Map<string, Promise<void>>();
  /** Those whose files were removed. */
  readonly #removed = new Set<string>();
  /** Dead servers with tablets that are to be recovered. */
  readonly #buried = new Map<string, LiveServer>();
  /** The dead servers whose logs were deleted. */
  readonly #deletedLogs = new Set<string>();
  /** They are called again; their tablets wait. */
  readonly #silent = new Map<string, SilentServer>();
  /**
   * By name, others that hold their locks, as far as is known: their files were removed. The address is known of those
   * that rows name.
   */
  readonly #unannounced = new Map<string, string | undefined>();
  /** How often the watch may have missed changes, and that number when the locks of all servers were last read. */
  #watchGaps = 0;
  #locksReadAtGap = -1;
  /** Those that held their locks when that was read, after the last scan began, and did not answer it. */
  readonly #holding = new Set<string>();
  /** By name, when another session was last seen to have the lock, monotonic ms; until the lock changes. */
  readonly #heldAtMs = new Map<string, number>();
  /** By name, the requests of tablets, and the readings of locks, that are under way. */
  readonly #requests = new Map<string, Promise<BigtableError | undefined>>();
  readonly #readings = new Map<string, Promise<LockHandle | undefined>>();
  /** By name, commits under way that give it tablets. */
  readonly #giving = new Map<string, number>();
  #ended = false;

  /** `lock`: the master's. */
  constructor(env: Env, lock: LockHandle, onGone: (name: string) => void) {
    this.#env = env;
    this.#lock = lock;
    this.#onGone = onGone;
    this.caller = new ServerCaller(env, lock);
  }

  /** The master ends: no call is repeated. */
  end(): void {
    this.#ended = true;
    this.caller.end();
  }

  all(): LiveServer[] {
    return [...this.#live.values()];
  }

  get(name: string): LiveServer | undefined {
    return this.#live.get(name);
  }

  /** True when it holds its lock and does not answer. */
  isSilent(name: string): boolean {
    return this.#silent.has(name);
  }

  /**
   * A row names a server that is neither live nor dead. If it is silent, and dies, the tablet is one of those that it
   * had; if nothing else tells of it, changes wait for it.
   */
  isNamed(peer: Peer, ref: TabletRef): void {
    const silent = this.#silent.get(peer.name);
    if (silent !== undefined) silent.server?.serves(ref);
    else if (!this.#live.has(peer.name) && !this.#dead.has(peer.name)) this.#unannounced.set(peer.name, peer.address);
  }

  /** True when a server has the tablet, as far as is known. */
  have(key: MetadataKey): boolean {
    for (const { tablets } of this.#live.values()) if (tablets.has(key)) return true;
    for (const { server } of this.#silent.values()) if (server?.tablets.has(key)) return true;
    return false;
  }

  /** The live server with the fewest tablets, where those that are being given weigh more: loads go to all of them. */
  choose(): LiveServer {
    const weight = ({ tablets, given }: LiveServer): number => tablets.size + GIVEN_WEIGHT * given;
    let best: LiveServer | undefined;
    for (const server of this.#live.values()) if (best === undefined || weight(server) < weight(best)) best = server;
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

  /**
   * Reads the directory and requests the tablets of every server. Those whose lock is free are dead, and so are those
   * that have gone.
   */
  async scan(context: RequestContext): Promise<void> {
    const deleted = [...this.#deletedLogs];
    const known = [...this.#live.keys(), ...this.#silent.keys()];
    this.#holding.clear();
    const files = await listFiles(this.#env.lockService, SERVERS_DIRECTORY);
    await Promise.all(
      files.map(async ({ path, contents }) => {
        const peer = decodePeerFile(path, contents);
        const failure = this.#dead.has(peer.name)
          ? unavailable('it is dead')
          : await this.#requestTablets(peer, context);
        if (failure === undefined) return;
        if (!this.#isHeldLately(peer.name) && (await this.removeDead(peer.name))) this.#gone(peer.name);
        else this.#fallSilent(peer, failure);
      }),
    );
    const names = new Set(files.map(({ path }) => path.slice(SERVERS_DIRECTORY.length)));
    for (const name of known) if (!names.has(name)) this.#gone(name);
    this.figures.lookedAtAll();
    for (const name of deleted) this.#forget(name);
  }

  /** The log of the dead server was deleted before a scan that is over now. */
  #forget(name: string): void {
    // its log is there again, or a call of it is still to be answered: the next scan forgets it
    if (!this.#deletedLogs.has(name) || this.#requests.has(name)) return;
    assert(!this.#live.has(name), 'a server whose log was deleted is dead');
    this.#dead.delete(name);
    this.#removed.delete(name);
    this.#buried.delete(name);
    this.#deletedLogs.delete(name);
  }

  /** The server of that name has announced itself. True if it answers and was not known before. */
  async come(name: string, context: RequestContext): Promise<boolean> {
    if (this.#dead.has(name)) return false;
    const file = await this.#env.lockService.read(SERVERS_DIRECTORY + name);
    if (file === undefined) return false;
    const peer = decodePeerFile(file.path, file.contents);
    const isNew = !this.#live.has(name);
    const failure = await this.#requestTablets(peer, context);
    if (failure !== undefined) this.#fallSilent(peer, failure);
    return failure === undefined && isNew;
  }

  /** Leaves out the live servers that do not answer now: nothing shall be given to them. */
  async leaveOutSilent(context: RequestContext): Promise<void> {
    await Promise.all(
      this.all().map(async (server) => {
        const answer = await this.caller.status(server, context, { brief: true });
        if (!(answer instanceof BigtableError) || this.#live.get(server.name) !== server) return;
        this.#fallSilent({ name: server.name, address: server.address, protocol: PROTOCOL }, answer);
      }),
    );
  }

  /** Calls those that did not answer once more. True when any answers now. */
  async callSilent(context: RequestContext): Promise<boolean> {
    const failures = await Promise.all(
      [...this.#silent.values()].map(({ peer }) => this.#requestTablets(peer, context)),
    );
    return failures.includes(undefined);
  }

  /** Requests the tablets of a server. It is live if it answers; returns the reason why it does not. */
  #requestTablets(peer: PeerFile, context: RequestContext): Promise<BigtableError | undefined> {
    let request = this.#requests.get(peer.name);
    if (request === undefined) {
      request = this.#requestTabletsOnce(peer, context).finally(() => this.#requests.delete(peer.name));
      this.#requests.set(peer.name, request);
    }
    return request;
  }

  async #requestTabletsOnce(peer: PeerFile, context: RequestContext): Promise<BigtableError | undefined> {
    const { name } = peer;
    const server = this.#live.get(name) ?? this.#silent.get(name)?.server ?? new LiveServer(peer);
    server.requested();
    const answer = await this.caller.status(peer, context, { brief: false }).catch((thrown: unknown) => {
      server.notAnswered();
      throw thrown;
    });
    if (answer instanceof BigtableError) {
      server.notAnswered();
      return answer;
    }
    server.answered(answer.tablets);
    this.figures.answered(answer, this.#env.clock.monotonicMs());
    // one that was found dead meanwhile
    if (this.#dead.has(name)) return undefined;
    this.#live.set(name, server);
    this.#silent.delete(name);
    this.#unannounced.delete(name);
    return undefined;
  }

  #fallSilent(peer: PeerFile, { message }: BigtableError): void {
    const { name } = peer;
    if (this.#dead.has(name)) return;
    const known = this.#silent.get(name);
    this.#silent.set(name, { peer, server: this.#live.get(name) ?? known?.server });
    this.#live.delete(name);
    // logged once, until the server answers
    if (known === undefined)
      this.#env.logger.warn('a tablet server holds its lock and does not answer; it will be called again', {
        server: name,
        error: message,
      });
  }

  #gone(name: string): void {
    this.#bury(name);
    this.#onGone(name);
  }

  #bury(name: string): void {
    const server = this.#live.get(name) ?? this.#silent.get(name)?.server;
    this.#live.delete(name);
    this.#silent.delete(name);
    if (server !== undefined) this.#buried.set(name, server);
  }

  /** The tablets that a dead server had, as far as is known: once. Undefined if nothing is known. */
  exhume(name: string): readonly MetadataKey[] | undefined {
    assert(this.#dead.has(name), 'only a dead server is recovered');
    const server = this.#buried.get(name);
    this.#buried.delete(name);
    return server && [...server.tablets.keys()];
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
          answers.set(name, await this.caller.call(server, method, message, context));
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
   * Resolves when no server acts on what a file of the lock service said before: each that holds its lock has answered
   * a call that makes it read the file. UNAVAILABLE, naming a server, if one has not by the deadline. `what`: the thing
   * that was changed, in words.
   */
  async confirm<M extends ConfirmingCall>(
    what: string,
    method: M,
    message: Message<M>,
    context: RequestContext,
  ): Promise<void> {
    const { lockService, clock } = this.#env;
    const deadlineMs = Math.min(context.deadlineMs - ANSWER_MS, clock.monotonicMs() + CONFIRM_MS);
    const gaps = this.#watchGaps;
    const locks = gaps === this.#locksReadAtGap ? [] : await lockService.holders(SERVERS_DIRECTORY);
    // a server that announces itself later is given tablets with the version of their schema
    const files = await listFiles(lockService, SERVERS_DIRECTORY);
    const announced = new Set(files.map(({ path }) => path));
    for (const { path } of locks) if (!announced.has(path)) this.#holdsLock(path.slice(SERVERS_DIRECTORY.length));
    this.#locksReadAtGap = gaps;
    const peers = new Map<string, Addressee>();
    for (const [name, address] of this.#unannounced) peers.set(SERVERS_DIRECTORY + name, { name, address });
    for (const { path, contents } of files) peers.set(path, decodePeerFile(path, contents));
    // the file of a server may have been removed while it holds its lock
    for (const server of [...this.#live.values(), ...this.#buried.values()])
      if (!this.#dead.has(server.name)) peers.set(SERVERS_DIRECTORY + server.name, server);
    for (const { peer } of this.#silent.values()) peers.set(SERVERS_DIRECTORY + peer.name, peer);
    const until = { ...context, deadlineMs };
    const call = ({ name, address }: Addressee) => {
      if (address === undefined) throw unavailable('its file was removed, and nothing else tells its address');
      return this.caller.call({ name, address }, method, message, until);
    };
    await Promise.all([...peers.values()].map((peer) => this.#confirmAt(peer, what, call, until)));
  }

  /** The server is not announced: it is starting, or its file was removed. */
  #holdsLock(name: string): void {
    const isKnown = this.#live.has(name) || this.#silent.has(name) || this.#dead.has(name);
    if (!isKnown && !this.#unannounced.has(name)) this.#unannounced.set(name, undefined);
  }

  async #confirmAt(
    peer: Addressee,
    what: string,
    call: (peer: Addressee) => Promise<unknown>,
    { deadlineMs }: RequestContext,
  ): Promise<void> {
    const { clock, logger } = this.#env;
    for (let isFirst = true; ; isFirst = false) {
      try {
        await call(peer);
        return;
      } catch (thrown) {
        const error = toBigtableError(thrown);
        if (isDeposed(error)) throw error;
        if (!(await this.#mayHoldLock(peer.name))) {
          this.#unannounced.delete(peer.name);
          return;
        }
        if (isFirst) {
          const fields = { server: peer.name, changed: what, error: error.message };
          logger.warn('a tablet server has not confirmed a change; it will be called again', fields);
        }
        if (this.#ended || clock.monotonicMs() + CONFIRM_AGAIN_MS >= deadlineMs) {
          const message =
            `${what} was changed, but tablet server ${peer.name} at ${peer.address ?? 'an unknown address'} has not ` +
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

  /** The lock of the server has changed: what was read of it before does not count. */
  lockChanged(name: string): void {
    this.#holding.delete(name);
    this.#readings.delete(name);
    this.#heldAtMs.delete(name);
  }

  /** The watch has missed changes of locks: the next scan, and the next confirmation, ask for all of them. */
  watchMissed(): void {
    this.#heldAtMs.clear();
    this.#watchGaps++;
  }

  /** Scans that follow one another ask once for the lock of a server that does not answer. */
  #isHeldLately(name: string): boolean {
    const atMs = this.#heldAtMs.get(name);
    return atMs !== undefined && this.#env.clock.monotonicMs() - atMs < LOCK_AGAIN_MS;
  }

  /**
   * True when the server of that name is dead: no session holds its lock, or this master does. Then it writes no more,
   * its log is fenced, and it is given no tablet. A server that holds the lock is alive, announced or not.
   */
  async isDead(name: string): Promise<boolean> {
    let fencing = this.#dead.get(name);
    if (fencing === undefined) {
      if (this.#holding.has(name)) return false;
      const holder = await this.#readLock(name);
      if (holder !== undefined && holder.sessionId !== this.#lock.sessionId) return false;
      this.#bury(name);
      this.#unannounced.delete(name);
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
   * Returns the servers, of those whose logs were listed, that are dead and get no tablet by a commit under way. No row
   * will ever name them again. They are remembered until `logDeleted`.
   */
  async findDead(names: readonly string[]): Promise<Set<string>> {
    const dead = new Set<string>();
    for (const name of names) {
      // an append that came late has begun the log again
      this.#deletedLogs.delete(name);
      if (!(await this.isDead(name))) continue;
      assert(!this.#live.has(name), 'a dead server is not a live one');
      if (!this.#giving.has(name)) dead.add(name);
    }
    return dead;
  }

  /** The log of a server that `findDead` has returned was deleted, since no row listed it. */
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
        const commits = this.#giving.get(name);
        assert(commits !== undefined, 'the end of a commit is reported once');
        if (commits > 1) this.#giving.set(name, commits - 1);
        else this.#giving.delete(name);
      }
    };
  }

  /** The holder of the server's lock. Several callers share one reading, until the lock changes. */
  #readLock(name: string): Promise<LockHandle | undefined> {
    const under = this.#readings.get(name);
    if (under !== undefined) return under;
    const reading = this.#env.lockService.holder(SERVERS_DIRECTORY + name).then(
      (holder) => {
        if (this.#over(name, reading) && holder !== undefined && !this.#live.has(name)) this.#holding.add(name);
        return holder;
      },
      (thrown: unknown) => {
        this.#over(name, reading);
        throw thrown;
      },
    );
    this.#readings.set(name, reading);
    return reading;
  }

  /** False if the lock has changed since the reading began. */
  #over(name: string, reading: Promise<LockHandle | undefined>): boolean {
    return this.#readings.get(name) === reading && this.#readings.delete(name);
  }

  /**
   * Takes the lock of a server that has lost it, and deletes its file: it will end itself, if it still runs. The next
   * scan repeats what fails here; a lock that could not be released ends with this master. False if it has its lock.
   */
  async removeDead(name: string): Promise<boolean> {
    const { lockService } = this.#env;
    if (this.#removed.has(name)) return true;
    const path = SERVERS_DIRECTORY + name;
    const taken = await lockService.tryAcquire(path, this.#lock.sessionId);
    if (taken === undefined) {
      this.#heldAtMs.set(name, this.#env.clock.monotonicMs());
      return false;
    }
    this.#heldAtMs.delete(name);
    await lockService.remove(path, { lock: taken });
    await lockService.release(taken);
    this.#removed.add(name);
    return true;
  }
}
