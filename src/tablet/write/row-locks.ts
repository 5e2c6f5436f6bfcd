/**
 * Locks of rows inside one tablet. Plain writes take shared locks (their order is the order of the log).
 * Read-modify-write, check-and-mutate and METADATA commits lock a row exclusively from their read to the end of their
 * log append, so that no write comes between. Dropping a row range locks the whole tablet.
 *
 * Hot path: plain writes are by far the most. They look into a map that is mostly empty and count (shared-locks.ts); a
 * batch of rows has one lock. Only a row that is locked exclusively, or waited for, has a state of its own.
 *
 * Invariants: waiters are served in the order of their calls, so none starves. A row has a state exactly while it is
 * locked exclusively or waited for; the state then counts the shared locks of the row.
 */
import { assert, type ByteString } from '../../base/index.ts';
import { SharedLock, SharedLocks } from './shared-locks.ts';

interface Waiter {
  /** Undefined: waits for the exclusive lock. */
  readonly lock: SharedLock | undefined;
  readonly wake: () => void;
}

interface RowState {
  sharers: number;
  isExclusive: boolean;
  readonly waiters: Waiter[];
}

export class RowLocks {
  readonly #shared = new SharedLocks();
  readonly #rows = new Map<ByteString, RowState>();
  /** Rows that are locked exclusively. */
  #exclusiveCount = 0;
  #isTabletLocked = false;
  /** Calls that wait while the whole tablet is locked, or is about to be. */
  readonly #gate: (() => void)[] = [];
  #tabletWaiters: (() => void)[] = [];

  /** Adds the row to the lock if that needs no wait, else returns false. A lock may hold a row several times. */
  tryLockShared(row: ByteString, lock: SharedLock): boolean {
    if (this.#isTabletLocked || (this.#rows.size > 0 && this.#rows.has(row))) return false;
    this.#shared.add(row, lock);
    return true;
  }

  /** Locks one row, after waiting for it. */
  async lockShared(row: ByteString): Promise<SharedLock> {
    const lock = new SharedLock();
    while (this.#isTabletLocked) await this.#tabletUnlocked();
    if (this.tryLockShared(row, lock)) return lock;
    const state = this.#rows.get(row);
    assert(state !== undefined, 'a call waits for a row that is locked or waited for');
    await new Promise<void>((wake) => state.waiters.push({ lock, wake }));
    return lock;
  }

  /** Unlocks all rows of the lock. */
  unlockShared(lock: SharedLock): void {
    this.#shared.remove(lock);
    if (this.#rows.size > 0) for (const row of lock.rows) this.#unlockedShared(row);
    this.#unlocked();
  }

  /** Returns undefined if the lock was taken immediately, which is the common case. */
  lockExclusive(row: ByteString): Promise<void> | undefined {
    if (this.#isTabletLocked) return this.#tabletUnlocked().then(() => this.lockExclusive(row));
    const state = this.#rows.get(row);
    if (state !== undefined) return new Promise((wake) => state.waiters.push({ lock: undefined, wake }));
    const sharers = this.#shared.count(row);
    if (sharers > 0)
      return new Promise((wake) =>
        this.#rows.set(row, { sharers, isExclusive: false, waiters: [{ lock: undefined, wake }] }),
      );
    this.#rows.set(row, { sharers: 0, isExclusive: true, waiters: [] });
    this.#exclusiveCount++;
    return undefined;
  }

  unlockExclusive(row: ByteString): void {
    const state = this.#rows.get(row);
    assert(state?.isExclusive, 'a row is unlocked that is not locked');
    state.isExclusive = false;
    this.#exclusiveCount--;
    assert(this.#exclusiveCount >= 0 && state.sharers === 0, 'a row that is locked exclusively is not shared');
    this.#wakeRow(row, state);
    this.#unlocked();
  }

  /** Locks the whole tablet: waits until no row is locked. */
  async lockTablet(): Promise<void> {
    while (this.#isTabletLocked) await new Promise<void>((resolve) => this.#tabletWaiters.push(resolve));
    this.#isTabletLocked = true;
    while (this.#isHeld) await new Promise<void>((resolve) => this.#tabletWaiters.push(resolve));
  }

  unlockTablet(): void {
    assert(this.#isTabletLocked, 'a tablet is unlocked that is not locked');
    assert(!this.#isHeld, 'no row is locked while the whole tablet is');
    this.#isTabletLocked = false;
    for (const wake of this.#gate.splice(0)) wake();
    this.#wakeTabletWaiters();
  }

  /** True when a row is locked. Calls that wait for a row are served before the whole tablet is locked. */
  get #isHeld(): boolean {
    return this.#exclusiveCount > 0 || this.#shared.size > 0;
  }

  #tabletUnlocked(): Promise<void> {
    return new Promise((resolve) => this.#gate.push(resolve));
  }

  #unlockedShared(row: ByteString): void {
    const state = this.#rows.get(row);
    if (state === undefined) return;
    state.sharers--;
    assert(state.sharers >= 0 && !state.isExclusive, 'a shared row is unlocked by those that share it');
    this.#wakeRow(row, state);
  }

  #wakeRow(row: ByteString, state: RowState): void {
    const { waiters } = state;
    for (let first = waiters[0]; first && !state.isExclusive; first = waiters[0]) {
      if (first.lock === undefined && state.sharers > 0) return;
      waiters.shift();
      if (first.lock === undefined) {
        state.isExclusive = true;
        this.#exclusiveCount++;
      } else {
        state.sharers++;
        this.#shared.add(row, first.lock);
      }
      first.wake();
    }
    assert(state.isExclusive || state.sharers > 0 || waiters.length === 0, 'a row that is free is waited for by none');
    if (!state.isExclusive && waiters.length === 0) this.#rows.delete(row);
  }

  #unlocked(): void {
    if (!this.#isHeld) this.#wakeTabletWaiters();
  }

  #wakeTabletWaiters(): void {
    const waiting = this.#tabletWaiters;
    this.#tabletWaiters = [];
    for (const wake of waiting) wake();
  }
}
