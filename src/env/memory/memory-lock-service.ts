/**
 * The lock service in memory: what `:memory:` databases, unit tests and the simulator run on. Leases do not expire by
 * themselves: a test ends a session, or moves the deadline that its owner sees.
 */
import { InProcessLockService } from './in-process-lock-service.ts';

export class MemoryLockService extends InProcessLockService {
  readonly #deadlines = new Map<string, number>();

  override leaseDeadlineMs(sessionId: string): number {
    return Math.min(super.leaseDeadlineMs(sessionId), this.#deadlines.get(sessionId) ?? Number.POSITIVE_INFINITY);
  }

  /** Sets the result of `leaseDeadlineMs`, ms on the monotonic clock. The session itself continues. */
  setLeaseDeadlineMs(sessionId: string, deadlineMs: number): void {
    this.#deadlines.set(sessionId, deadlineMs);
  }

  /** Acts as if the lease had expired: the locks are lost, the ephemeral files deleted, the watchers notified. */
  expireSession(sessionId: string): Promise<void> {
    this.#deadlines.delete(sessionId);
    return this.endSession(sessionId, 'expired');
  }
}
