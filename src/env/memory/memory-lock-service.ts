/**
 * The lock service in memory: what `:memory:` databases, unit tests and the simulator run on. Leases do not lapse by
 * themselves: a test ends a session, or moves the deadline its owner sees.
 */
import { InProcessLockService } from './in-process-lock-service.ts';

export class MemoryLockService extends InProcessLockService {
  readonly #deadlines = new Map<string, number>();

  override leaseDeadlineMs(sessionId: string): number {
    return Math.min(super.leaseDeadlineMs(sessionId), this.#deadlines.get(sessionId) ?? Number.POSITIVE_INFINITY);
  }

  /** What `leaseDeadlineMs` answers from now on, ms on the monotonic clock. The session itself goes on. */
  setLeaseDeadlineMs(sessionId: string, deadlineMs: number): void {
    this.#deadlines.set(sessionId, deadlineMs);
  }

  /** As if the lease had lapsed: the locks are lost, the ephemeral files gone, the watchers told. */
  expireSession(sessionId: string): Promise<void> {
    this.#deadlines.delete(sessionId);
    return this.endSession(sessionId, 'expired');
  }
}
