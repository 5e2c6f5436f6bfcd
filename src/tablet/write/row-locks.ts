/**
 * Locks of rows inside one tablet. Plain writes take shared locks until they are applied (their order is the order of
 * the log). Transactions lock a row exclusively from their read until their record has its place in the log; the row is
 * then hot until the record is applied. A plain write to a row with a state of its own takes its turn as a transaction
 * does. Dropping a row range locks the whole tablet.
 *
 * Hot path: plain writes are by far the most. They look into a map that is mostly empty and count (shared-locks.ts); a
 * batch of rows has one lock. Only a row that is locked exclusively, waited for, or hot has a state of its own.
 *
 * Invariants: waiters are served in the order of their calls, so none starves. A row has a state exactly while it is
 * locked exclusively, waited for, or hot; the state counts the shared locks of the row, which were taken before it.
 */
import { assert, type ByteString } from '../../base/index.ts';
import { type SharedLock, SharedLocks } from './shared-locks.ts';

interface RowState {
  sharers: number;
  isExclusive: boolean;
  /** Transactions whose records have their place in the log and are not applied yet: while there are any, it is hot. */
  transactions: number;
  /** Calls that wait for the exclusive lock. */
  readonly waiters: (() => void)[];
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

  /** Unlocks all rows of the lock. */
  unlockShared(lock: SharedLock): void {
    this.#shared.remove(lock);
    if (this.#rows.size > 0) for (const row of lock.rows) this.#unlockedShared(row);
    this.#unlocked();
  }

  /** Returns undefined if the lock was taken immediately, which is the common case. */
  lockExclusive(row: ByteString): Promise<void> | undefined {
    if (this.#isTabletLocked) return this.#tabletUnlocked().then(() => this.lockExclusive(row));
    let state = this.#rows.get(row);
    if (state === undefined) {
      state = { sharers: this.#shared.count(row), isExclusive: false, transactions: 0, waiters: [] };
      this.#rows.set(row, state);
    }
    const { waiters } = state;
    if (state.isExclusive || state.sharers > 0 || waiters.length > 0) return new Promise((wake) => waiters.push(wake));
    state.isExclusive = true;
    this.#exclusiveCount++;
    return undefined;
  }

  unlockExclusive(row: ByteString): void {
    const state = this.#rows.get(row);
    assert(state?.isExclusive, 'a row is unlocked when it is locked');
    state.isExclusive = false;
    this.#exclusiveCount--;
    assert(this.#exclusiveCount >= 0 && state.sharers === 0, 'a row that is locked exclusively is not shared');
    this.#wakeRow(row, state);
    this.#unlocked();
  }

  /** The record of the transaction that holds the row has its place in the log. The row is hot until `applied`. */
  logged(row: ByteString): void {
    const state = this.#rows.get(row);
    assert(state?.isExclusive, 'a transaction logs its change of a row that it holds');
    state.transactions++;
  }

  /** The record of a transaction on the row is applied, or has failed. */
  applied(row: ByteString): void {
    const state = this.#rows.get(row);
    assert(state !== undefined && state.transactions > 0, 'a row is hot until its transactions are applied');
    state.transactions--;
    this.#deleteUnused(row, state);
  }

  /** Locks the whole tablet: waits until no row is locked. */
  async lockTablet(): Promise<void> {
    while (this.#isTabletLocked) await new Promise<void>((resolve) => this.#tabletWaiters.push(resolve));
    this.#isTabletLocked = true;
    while (this.#isHeld) await new Promise<void>((resolve) => this.#tabletWaiters.push(resolve));
  }

  unlockTablet(): void {
    assert(this.#isTabletLocked, 'a tablet is unlocked when it is locked');
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
    if (state.sharers > 0) return;
    const wake = state.waiters.shift();
    if (wake === undefined) return this.#deleteUnused(row, state);
    state.isExclusive = true;
    this.#exclusiveCount++;
    wake();
  }

  #deleteUnused(row: ByteString, { sharers, isExclusive, transactions, waiters }: RowState): void {
    assert(isExclusive || sharers > 0 || waiters.length === 0, 'a row that is free is waited for by none');
    if (!isExclusive && transactions === 0 && waiters.length === 0) this.#rows.delete(row);
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
