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
import type { SimProcess } from './process.ts';
import type { ScheduledEvent, Scheduler } from './scheduler.ts';

/** A session that was not kept alive for this long is over. */
export const SESSION_MS = 10_000;
const KEEP_ALIVE_MS = 2000;
/** A call that is not answered fails after this long. */
const TIMEOUT_MS = 2000;

/** How calls fare now. A run's faults change it. */
export interface LockServiceHealth {
  minDelayMs: number;
  maxDelayMs: number;
  /** The share of calls that fail without effect. */
  failedShare: number;
  /** The share of calls that take effect and then fail. */
  unansweredShare: number;
  /** Watches report this much later. */
  watchLagMs: number;
}

interface Session {
  readonly owner: SimProcess;
  expiry: ScheduledEvent | undefined;
}

export class SimLockService {
  readonly service = new MemoryLockService();
  readonly health: LockServiceHealth = {
    minDelayMs: 0.5,
    maxDelayMs: 5,
    failedShare: 0,
    unansweredShare: 0,
    watchLagMs: 5,
  };
  readonly counts = { calls: 0, failed: 0, unanswered: 0, expired: 0, unreachable: 0 };
  /** Machines that cannot reach it. */
  readonly #cut = new Set<string>();
  readonly #onJoined = new Set<{ readonly machine: string; readonly notify: () => void }>();
  readonly #scheduler: Scheduler;
  readonly #draw;
  readonly #sessions = new Map<string, Session>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
    this.#draw = scheduler.fork('lock service');
  }

  /** The lock service as the process reaches it. */
  clientOf(process: SimProcess): LockService {
    return new LockClient(this, process);
  }

  call<T>(process: SimProcess, name: string, act: () => Promise<T>): Promise<T> {
    const { health, counts } = this;
    counts.calls++;
    const isFailed = this.#draw.float() < health.failedShare;
    const isUnanswered = this.#draw.float() < health.unansweredShare;
    const answersMs = this.#delayMs();
    return new Promise((resolve, reject) => {
      const fail = (delayMs: number, why: string): void =>
        process.later(delayMs, `lock service failed ${name}`, () => reject(unavailable(`lock service: ${why}`)));
      this.#scheduler.after(this.#delayMs(), undefined, `lock service ${name} of ${process.name}`, () => {
        if (this.isCut(process.machine)) {
          counts.unreachable++;
          return fail(TIMEOUT_MS, 'not reached');
        }
        if (isFailed) {
          counts.failed++;
          return fail(answersMs, 'no leader');
        }
        act().then(
          (result) => {
            if (isUnanswered || this.isCut(process.machine)) {
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
    else if (this.#cut.delete(machine))
      for (const joined of [...this.#onJoined]) if (joined.machine === machine) joined.notify();
  }

  /** Calls `notify` when the machine reaches the service again; returns a function that stops it. */
  onJoined(machine: string, notify: () => void): () => void {
    const joined = { machine, notify };
    this.#onJoined.add(joined);
    return () => this.#onJoined.delete(joined);
  }

  opened(sessionId: string, owner: SimProcess): void {
    this.#sessions.set(sessionId, { owner, expiry: undefined });
    this.keptAlive(sessionId);
  }

  /** Renews the session. False: it is over. */
  keptAlive(sessionId: string): boolean {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) return false;
    session.expiry?.cancel();
    session.expiry = this.#scheduler.after(SESSION_MS, undefined, `expiry of ${sessionId}`, () => {
      this.counts.expired++;
      this.#sessions.delete(sessionId);
      void this.service.expireSession(sessionId);
    });
    return true;
  }

  async closed(sessionId: string): Promise<void> {
    this.#sessions.get(sessionId)?.expiry?.cancel();
    this.#sessions.delete(sessionId);
    await this.service.closeSession(sessionId);
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
      this.#locks.opened(id, this.#process);
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
    return this.#call(`list ${prefix}`, () => this.#locks.service.list(prefix, after));
  }

  write(path: string, contents: Uint8Array, options?: Guard & { readonly sessionId?: string }): Promise<number> {
    const copy = Uint8Array.from(contents);
    return this.#call(`write ${path}`, () => this.#locks.service.write(path, copy, options));
  }

  remove(path: string, guard?: Guard): Promise<boolean> {
    return this.#call(`remove ${path}`, () => this.#locks.service.remove(path, guard));
  }

  tryAcquire(path: string, sessionId: string): Promise<LockHandle | undefined> {
    return this.#call(`tryAcquire ${path}`, () => this.#locks.service.tryAcquire(path, sessionId));
  }

  release(lock: LockHandle): Promise<void> {
    return this.#call(`release ${lock.path}`, () => this.#locks.service.release(lock));
  }

  holder(path: string): Promise<LockHandle | undefined> {
    return this.#call(`holder ${path}`, () => this.#locks.service.holder(path));
  }

  watch(prefix: string, listener: (event: LockEvent) => void): () => void {
    const { machine } = this.#process;
    const underWay: LockEvent[] = [];
    let isStopped = false;
    let misses = false;
    const report = (event: LockEvent): void => {
      // no event overtakes another one: each arrival takes the first
      underWay.push(event);
      this.#process.later(this.#locks.lagMs(), `watch ${prefix}`, () => {
        const first = underWay.shift()!;
        if (!isStopped) listener(first);
      });
    };
    const catchUp = (): void => {
      if (misses) report({ kind: 'gap' });
      misses = false;
    };
    const stopWatch = this.#locks.service.watch(prefix, (event) => {
      // a machine that cannot reach the service misses what happens meanwhile
      if (this.#locks.isCut(machine)) misses = true;
      else report(event);
    });
    const stopJoin = this.#locks.onJoined(machine, catchUp);
    const stop = (): void => {
      isStopped = true;
      stopWatch();
      stopJoin();
    };
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
          if (isAlive) lease.renewed(sent);
          else this.#leases.delete(sessionId);
        },
        () => {},
      );
      this.#keepAlive(sessionId, lease);
    });
  }
}
