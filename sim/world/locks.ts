/**
 * The simulated lock service. Each process reaches it by calls that take time, can fail, and can have an effect whose
 * answer is lost. A session lives as long as its process keeps it alive; the process itself believes in its lease for a
 * shorter time, by its own clock.
 */
import { unavailable } from '../../src/base/index.ts';
import {
  type Guard,
  Lease,
  type LockEvent,
  type LockHandle,
  type LockService,
  MemoryLockService,
  type SmallFile,
} from '../../src/env/index.ts';
import { MASTER_PATH } from '../../src/protocol/index.ts';
import type { SimProcess } from './process.ts';
import type { ScheduledEvent, Scheduler } from './scheduler.ts';

/** A session that was not kept alive for this long is over. */
export const SESSION_MS = 10_000;
const KEEP_ALIVE_MS = 2000;
/** A call that is not answered fails after this long. */
const TIMEOUT_MS = 2000;
const MAX_LATE_MS = 5000;
/** The share of pages of lists that end early. */
const SHORT_PAGES = 0.2;
/** The share of watches that do not outlive a change of the leader. */
const ENDED_SHARE = 0.02;

export const ROOT_PATH = 'root';
/** Changes of tables: their ids, schemas, and marks of deletions. */
const TABLE_CHANGE = /^(write|remove) (next-table-id$|schemas\/|deletions\/)/;
/** The share of runs whose watches lag by up to as much, so that caches are out of date for a while. */
const LAGGING_SHARE = 0.2;
const LAGGING_MS = 3000;

/** How calls fare now. A run's faults change it. */
export interface LockServiceHealth {
  minDelayMs: number;
  maxDelayMs: number;
  /** The share of calls that fail without effect. */
  failedShare: number;
  /** The share of calls that take effect and then fail. */
  unansweredShare: number;
  /** The share of calls that fail, and take effect up to MAX_LATE_MS later. */
  lateShare: number;
  /** True: no list is answered. */
  failsLists: boolean;
  /** Watches report this much later. */
  watchLagMs: number;
}

/** What happens to one call. */
export interface LockCallFate {
  /** It takes effect so much later. */
  readonly lateMs?: number;
  /** Called with its answer. True: that is lost. */
  readonly losesAnswer?: (answer: unknown) => boolean;
}

interface AwaitedLockCall {
  readonly prefix: string;
  readonly run: (name: string) => LockCallFate;
}

/** A watch of a process. */
interface Watch {
  readonly machine: string;
  /** What it has not reported yet is lost, and what comes until `catchUp`. */
  miss(): void;
  catchUp(): void;
  end(): void;
}

interface Session {
  readonly owner: SimProcess;
  /** As its owner sees it. */
  readonly lease: Lease;
  expiry: ScheduledEvent | undefined;
}

export class SimLockService {
  readonly service = new MemoryLockService();
  readonly health: LockServiceHealth = {
    minDelayMs: 0.5,
    maxDelayMs: 5,
    failedShare: 0,
    unansweredShare: 0,
    lateShare: 0,
    failsLists: false,
    watchLagMs: 5,
  };
  readonly counts = {
    calls: 0,
    failed: 0,
    unanswered: 0,
    late: 0,
    expired: 0,
    unreachable: 0,
    gaps: 0,
    endedWatches: 0,
  };
  /** Epochs in which a master had its lock. */
  readonly masterEpochs = new Set<number>();
  /** They will be back (`loseFile`). */
  readonly lostFiles = new Set<SmallFile>();
  /** Machines that cannot reach it. */
  readonly #cut = new Set<string>();
  readonly #watches = new Set<Watch>();
  readonly #awaited = new Set<AwaitedLockCall>();
  /** How late watches are at most while no fault makes them later. */
  readonly usualLagMs: number;
  #hasLeader = true;
  readonly #scheduler: Scheduler;
  readonly #draw;
  readonly #sessions = new Map<string, Session>();
  /** Called with each lasting file that is written, or removed (undefined), in the instant in which it is. */
  onChange: (path: string, contents: Uint8Array | undefined) => void = () => {};
  /** Called when a process learns that its session lives. */
  onKeptAlive: () => void = () => {};
  /** Called with a process that believes in its lease when its session is over. */
  onOutlasted: (process: SimProcess) => void = () => {};
  /** When the session of a process was over. */
  readonly #endedMs = new Map<SimProcess, number>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
    this.#draw = scheduler.fork('lock service');
    if (this.#draw.float() < LAGGING_SHARE) this.health.watchLagMs = LAGGING_MS;
    this.usualLagMs = this.health.watchLagMs;
  }

  /** The lock service as the process reaches it. */
  clientOf(process: SimProcess): LockService {
    return new LockClient(this, process);
  }

  call<T>(process: SimProcess, name: string, act: () => Promise<T>): Promise<T> {
    const { health, counts } = this;
    counts.calls++;
    process.acts('lock service');
    if (TABLE_CHANGE.test(name)) process.acts('table change');
    else if (name === `read ${ROOT_PATH}`) process.acts('root file');
    const isFailed = this.#draw.float() < health.failedShare || (health.failsLists && name.startsWith('list '));
    const fate = this.#fateOf(name);
    const isUnanswered = this.#draw.float() < health.unansweredShare;
    const isLate = health.lateShare > 0 && this.#draw.float() < health.lateShare;
    const answersMs = this.#delayMs();
    const heldMs = fate?.lateMs ?? 0;
    return new Promise((resolve, reject) => {
      const fail = (delayMs: number, why: string): void =>
        process.later(delayMs, `lock service failed ${name}`, () => reject(unavailable(`lock service: ${why}`)));
      this.#scheduler.after(this.#delayMs() + heldMs, undefined, `lock service ${name} of ${process.name}`, () => {
        if (this.isCut(process.machine)) {
          counts.unreachable++;
          return fail(TIMEOUT_MS, 'not reached');
        }
        if (isFailed || !this.#hasLeader) {
          counts.failed++;
          return fail(answersMs, 'no leader');
        }
        if (isLate) {
          counts.late++;
          // nobody waits for it
          this.#scheduler.after(this.#draw.float() * MAX_LATE_MS, undefined, `late ${name}`, () => {
            if (this.#hasLeader) act().catch(() => undefined);
          });
          return fail(TIMEOUT_MS, 'no answer');
        }
        act().then(
          (result) => {
            const isLost = fate?.losesAnswer?.(result);
            if (isLost || isUnanswered || this.isCut(process.machine) || !this.#hasLeader) {
              counts.unanswered++;
              return fail(TIMEOUT_MS, 'no answer');
            }
            process.later(answersMs, `lock service answered ${name}`, () => resolve(result));
          },
          (thrown: unknown) => process.later(answersMs, `lock service refused ${name}`, () => reject(thrown)),
        );
      });
    });
  }

  isCut(machine: string): boolean {
    return this.#cut.has(machine);
  }

  /** Cuts the machine off from the service, or lets it reach the service again. */
  cut(machine: string, isCut: boolean): void {
    if (isCut) this.#cut.add(machine);
    else if (this.#cut.delete(machine) && this.#hasLeader)
      for (const watch of [...this.#watches]) if (watch.machine === machine) watch.catchUp();
  }

  /**
   * The service is without a leader until the returned function is called. Calls fail, what watches would report is
   * lost, and no session expires: the new leader lets each live for the whole of its time.
   */
  loseLeader(): () => void {
    this.#hasLeader = false;
    for (const session of this.#sessions.values()) session.expiry?.cancel();
    for (const watch of this.#watches) watch.miss();
    return () => {
      this.#hasLeader = true;
      for (const sessionId of this.#sessions.keys()) this.keptAlive(sessionId);
      for (const watch of [...this.#watches])
        if (this.#draw.float() < ENDED_SHARE) watch.end();
        else if (!this.isCut(watch.machine)) watch.catchUp();
    };
  }

  /** `run` says, once, what happens to the next call whose name begins so. */
  changeNextCall(prefix: string, run: (name: string) => LockCallFate): void {
    this.#awaited.add({ prefix, run });
  }

  #fateOf(name: string): LockCallFate | undefined {
    let fate: LockCallFate | undefined;
    for (const awaited of [...this.#awaited])
      if (name.startsWith(awaited.prefix) && this.#awaited.delete(awaited)) fate = awaited.run(name);
    return fate;
  }

  /** All watches have a gap. */
  missAll(): void {
    for (const watch of [...this.#watches]) {
      watch.miss();
      if (this.#hasLeader && !this.isCut(watch.machine)) watch.catchUp();
    }
  }

  /** A file is gone for a while, as by an operator's mistake, and then as it was. Resolves when it is back. */
  async loseFile(path: string, lostMs: number): Promise<void> {
    const file = await this.service.read(path);
    if (file === undefined) return;
    await this.service.remove(path);
    this.lostFiles.add(file);
    await new Promise<void>((resolve) => this.#scheduler.after(lostMs, undefined, `end of lost ${path}`, resolve));
    this.lostFiles.delete(file);
    await this.service.write(path, file.contents, { version: 0 });
  }

  /** Adds a watch; returns a function that removes it. */
  watching(watch: Watch): () => void {
    this.#watches.add(watch);
    return () => this.#watches.delete(watch);
  }

  opened(sessionId: string, owner: SimProcess, lease: Lease): void {
    this.#sessions.set(sessionId, { owner, lease, expiry: undefined });
    this.keptAlive(sessionId);
  }

  /** Renews the session. False: it is over. */
  keptAlive(sessionId: string): boolean {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) return false;
    session.expiry?.cancel();
    if (this.#hasLeader)
      session.expiry = this.#scheduler.after(SESSION_MS, undefined, `expiry of ${sessionId}`, () => {
        this.counts.expired++;
        const { owner, lease } = session;
        if (!owner.isDead && lease.holds()) this.onOutlasted(owner);
        this.#ended(sessionId);
        void this.service.expireSession(sessionId);
      });
    return true;
  }

  async closed(sessionId: string): Promise<void> {
    this.#sessions.get(sessionId)?.expiry?.cancel();
    this.#ended(sessionId);
    await this.service.closeSession(sessionId);
  }

  /** How many of those files a page has: some have not all, but one at least. */
  pageSize(files: number): number {
    return this.#draw.float() < SHORT_PAGES ? Math.ceil(this.#draw.float() * files) : files;
  }

  /** When the session of the process was over; undefined while it lives. */
  endOfSessionMs(process: SimProcess): number | undefined {
    return this.#endedMs.get(process);
  }

  #ended(sessionId: string): void {
    const session = this.#sessions.get(sessionId);
    if (session !== undefined) this.#endedMs.set(session.owner, this.#scheduler.nowMs);
    this.#sessions.delete(sessionId);
  }

  lagMs(): number {
    return this.#draw.float() * this.health.watchLagMs;
  }

  #delayMs(): number {
    const { minDelayMs, maxDelayMs } = this.health;
    return minDelayMs + this.#draw.float() * (maxDelayMs - minDelayMs);
  }
}

class LockClient implements LockService {
  readonly #locks: SimLockService;
  readonly #process: SimProcess;
  readonly #leases = new Map<string, Lease>();

  constructor(locks: SimLockService, process: SimProcess) {
    this.#locks = locks;
    this.#process = process;
  }

  async openSession(): Promise<string> {
    const lease = new Lease(this.#process.clock, SESSION_MS);
    const sent = lease.now();
    const sessionId = await this.#call('openSession', async () => {
      const id = await this.#locks.service.openSession();
      this.#locks.opened(id, this.#process, lease);
      return id;
    });
    lease.renewed(sent);
    this.#leases.set(sessionId, lease);
    this.#keepAlive(sessionId, lease);
    return sessionId;
  }

  async closeSession(sessionId: string): Promise<void> {
    this.#leases.delete(sessionId);
    await this.#call('closeSession', () => this.#locks.closed(sessionId));
  }

  leaseHolds(sessionId: string): boolean {
    return this.#leases.get(sessionId)?.holds() ?? false;
  }

  read(path: string): Promise<SmallFile | undefined> {
    return this.#call(`read ${path}`, () => this.#locks.service.read(path));
  }

  list(prefix: string, after?: string): Promise<SmallFile[]> {
    return this.#call(`list ${prefix}`, async () => {
      const page = await this.#locks.service.list(prefix, after);
      return page.slice(0, this.#locks.pageSize(page.length));
    });
  }

  write(path: string, contents: Uint8Array, options?: Guard & { readonly sessionId?: string }): Promise<number> {
    const copy = Uint8Array.from(contents);
    return this.#call(`write ${path}`, async () => {
      const version = await this.#locks.service.write(path, copy, options);
      if (options?.sessionId === undefined) this.#locks.onChange(path, copy);
      return version;
    });
  }

  remove(path: string, guard?: Guard): Promise<boolean> {
    return this.#call(`remove ${path}`, async () => {
      const isRemoved = await this.#locks.service.remove(path, guard);
      if (isRemoved) this.#locks.onChange(path, undefined);
      return isRemoved;
    });
  }

  lastRemoval(path: string): Promise<number> {
    return this.#call(`lastRemoval ${path}`, () => this.#locks.service.lastRemoval(path));
  }

  tryAcquire(path: string, sessionId: string): Promise<LockHandle | undefined> {
    return this.#call(`tryAcquire ${path}`, async () => {
      const lock = await this.#locks.service.tryAcquire(path, sessionId);
      if (lock !== undefined && path === MASTER_PATH) this.#locks.masterEpochs.add(lock.epoch);
      return lock;
    });
  }

  release(lock: LockHandle): Promise<void> {
    return this.#call(`release ${lock.path}`, () => this.#locks.service.release(lock));
  }

  holder(path: string): Promise<LockHandle | undefined> {
    return this.#call(`holder ${path}`, () => this.#locks.service.holder(path));
  }

  holders(prefix: string): Promise<LockHandle[]> {
    return this.#call(`holders ${prefix}`, () => this.#locks.service.holders(prefix));
  }

  watch(prefix: string, listener: (event: LockEvent) => void): () => void {
    const { machine } = this.#process;
    let underWay: LockEvent[] = [];
    let isStopped = false;
    let misses = false;
    let hasBegun = false;
    const report = (event: LockEvent): void => {
      // no event overtakes another one: each arrival takes the first
      underWay.push(event);
      this.#process.later(this.#locks.lagMs(), `watch ${prefix}`, () => {
        const first = underWay.shift();
        if (first !== undefined && !isStopped) listener(first);
      });
    };
    const stopWatch = this.#locks.service.watch(prefix, (event) => {
      // a machine that cannot reach the service misses what happens meanwhile
      if (this.#locks.isCut(machine)) misses = true;
      else if (!misses || event.kind === 'established') {
        hasBegun ||= event.kind === 'established';
        report(event);
      }
    });
    const stop = (): void => {
      isStopped = true;
      stopWatch();
      stopWatching();
    };
    const stopWatching = this.#locks.watching({
      machine,
      miss: () => {
        // that the watch has begun is no change
        underWay = underWay.filter(({ kind }) => kind === 'established');
        misses = true;
      },
      catchUp: () => {
        if (!misses) return;
        misses = false;
        // a watch that a machine has asked for while it was cut off begins now
        if (hasBegun) this.#locks.counts.gaps++;
        report({ kind: hasBegun ? 'gap' : 'established' });
        hasBegun = true;
      },
      end: () => {
        this.#locks.counts.endedWatches++;
        report({ kind: 'ended' });
        stopWatch();
        stopWatching();
      },
    });
    this.#process.onDeath(stop);
    return stop;
  }

  #call<T>(name: string, act: () => Promise<T>): Promise<T> {
    return this.#locks.call(this.#process, name, act);
  }

  #keepAlive(sessionId: string, lease: Lease): void {
    this.#process.clock.timer(KEEP_ALIVE_MS, () => {
      if (!this.#leases.has(sessionId)) return;
      const sent = lease.now();
      this.#call('keepAlive', async () => this.#locks.keptAlive(sessionId)).then(
        (isAlive) => {
          if (!isAlive) return void this.#leases.delete(sessionId);
          lease.renewed(sent);
          this.#locks.onKeptAlive();
        },
        () => {},
      );
      this.#keepAlive(sessionId, lease);
    });
  }
}
