/**
 * The lock service in memory: what `:memory:` databases, unit tests and the simulator run on. With `leases` its
 * sessions are kept alive over a link that a test can cut: then the lease lapses for its owner, and some time later
 * the service ends the session.
 */
import { assert } from '../../base/index.ts';
import { Lease } from '../calls/lease.ts';
import type { Clock, Timer } from '../seams/clock.ts';
import { InProcessLockService } from './in-process-lock-service.ts';

export interface MemoryLeases {
  readonly clock: Clock;
  /** The service ends a session that was not kept alive for this long. */
  readonly leaseMs: number;
}

/** Keep-alives are sent this many times in the length of a lease. */
const KEEP_ALIVES = 3;

interface LeasedSession {
  readonly lease: Lease;
  isCut: boolean;
  expiry: Timer | undefined;
  keepAlive: Timer | undefined;
}

export class MemoryLockService extends InProcessLockService {
  readonly #leases: MemoryLeases | undefined;
  readonly #leased = new Map<string, LeasedSession>();
  #missesChanges = false;

  /** Without `leases` sessions live until they are ended. */
  constructor(leases?: MemoryLeases) {
    super();
    this.#leases = leases;
  }

  override async openSession(): Promise<string> {
    if (this.#leases === undefined) return super.openSession();
    const { clock, leaseMs } = this.#leases;
    const lease = new Lease(clock, leaseMs);
    const session: LeasedSession = { lease, isCut: false, expiry: undefined, keepAlive: undefined };
    const sessionId = await super.openSession();
    this.#leased.set(sessionId, session);
    this.#keepAlive(sessionId);
    return sessionId;
  }

  override leaseHolds(sessionId: string): boolean {
    return super.leaseHolds(sessionId) && this.#leased.get(sessionId)?.lease.holds() !== false;
  }

  /** Cuts the session's owner off from the service, or lets it reach the service again. */
  cut(sessionId: string, isCut: boolean): void {
    const session = this.#leased.get(sessionId);
    assert(session !== undefined, 'a session with a lease that lives is cut');
    session.isCut = isCut;
    if (!isCut) this.#keepAlive(sessionId);
  }

  /** Acts as if the lease had expired: the locks are lost, the ephemeral files deleted, the watchers notified. */
  expireSession(sessionId: string): Promise<void> {
    return this.endSession(sessionId, 'expired');
  }

  /** Watchers miss all changes from now on. The returned function ends this and reports the gap. */
  missChanges(): () => void {
    this.#missesChanges = true;
    return () => {
      this.#missesChanges = false;
      this.reportToAll({ kind: 'gap' });
    };
  }

  protected override reports(): boolean {
    return !this.#missesChanges;
  }

  protected override endSession(sessionId: string, how: 'closed' | 'expired'): Promise<void> {
    const session = this.#leased.get(sessionId);
    this.#leased.delete(sessionId);
    session?.expiry?.cancel();
    session?.keepAlive?.cancel();
    return super.endSession(sessionId, how);
  }

  #keepAlive(sessionId: string): void {
    const session = this.#leased.get(sessionId);
    if (session === undefined || this.#leases === undefined) return;
    const { clock, leaseMs } = this.#leases;
    session.keepAlive?.cancel();
    session.keepAlive = clock.timer(leaseMs / KEEP_ALIVES, () => this.#keepAlive(sessionId));
    if (session.isCut) return;
    session.lease.renewed(session.lease.now());
    session.expiry?.cancel();
    session.expiry = clock.timer(leaseMs, () => void this.expireSession(sessionId));
  }
}
