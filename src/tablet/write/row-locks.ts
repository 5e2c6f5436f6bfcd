/**
 * Locks of rows inside one tablet. Plain writes share a row (their order is the log's); read-modify-write, check-and-mutate and
 * METADATA commits hold it alone from their read to the end of their log append, so that no write slips between; dropping
 * a row range holds the whole tablet.
 *
 * Plain writes are by far the most: theirs costs a look at a table that is mostly empty and a count (shared-rows.ts), and a batch of them
 * has one share of all its rows. Only a row that somebody holds alone, or waits to, has a state of its own.
 *
 * Invariants: who waits is served first come, first served, so nobody starves. A row has a state exactly while it is held alone or waited for; the state
 * then counts the shares of the row.
 */
import { assert, type ByteString } from '../../base/index.ts';
import { RowShare, SharedRows } from './shared-rows.ts';

interface Waiter {
  /** Undefined: wants to be alone. */
  readonly share: RowShare | undefined;
  readonly wake: () => void;
}

interface RowState {
  sharers: number;
  alone: boolean;
  readonly waiters: Waiter[];
}

export class RowLocks {
  readonly #shared = new SharedRows();
  readonly #rows = new Map<ByteString, RowState>();
  /** Rows that are held alone. */
  #aloneCount = 0;
  #closedForAll = false;
  /** Waiting while the whole tablet is held, or is about to be. */
  readonly #gate: (() => void)[] = [];
  #allWaiters: (() => void)[] = [];

  /** Adds the row to the share where that needs no waiting, else answers false. A share may hold a row several times. */
  tryShare(row: ByteString, share: RowShare): boolean {
    if (this.#closedForAll || (this.#rows.size > 0 && this.#rows.has(row))) return false;
    this.#shared.add(row, share);
    return true;
  }

  /** A share of one row, after waiting for it. */
  async enterShared(row: ByteString): Promise<RowShare> {
    const share = new RowShare();
    while (this.#closedForAll) await this.#opened();
    if (this.tryShare(row, share)) return share;
    const state = this.#rows.get(row);
    assert(state !== undefined, 'only a row that somebody holds alone, or waits for, is waited for');
    await new Promise<void>((wake) => state.waiters.push({ share, wake }));
    return share;
  }

  /** Gives back all rows of the share. */
  leaveShared(share: RowShare): void {
    this.#shared.remove(share);
    if (this.#rows.size > 0) for (const row of share.rows) this.#leftShared(row);
    this.#left();
  }

  /** Undefined where the lock was taken at once, which is the common case. */
  enterAlone(row: ByteString): Promise<void> | undefined {
    if (this.#closedForAll) return this.#opened().then(() => this.enterAlone(row));
    const state = this.#rows.get(row);
    if (state !== undefined) return new Promise((wake) => state.waiters.push({ share: undefined, wake }));
    const sharers = this.#shared.count(row);
    if (sharers > 0)
      return new Promise((wake) =>
        this.#rows.set(row, { sharers, alone: false, waiters: [{ share: undefined, wake }] }),
      );
    this.#rows.set(row, { sharers: 0, alone: true, waiters: [] });
    this.#aloneCount++;
    return undefined;
  }

  leaveAlone(row: ByteString): void {
    const state = this.#rows.get(row);
    assert(state?.alone, 'a row lock is given back that is not held');
    state.alone = false;
    this.#aloneCount--;
    assert(this.#aloneCount >= 0 && state.sharers === 0, 'a row that is held alone has no sharers');
    this.#wakeRow(row, state);
    this.#left();
  }

  /** The whole tablet alone: waits until no row is held. */
  async enterAll(): Promise<void> {
    while (this.#closedForAll) await new Promise<void>((resolve) => this.#allWaiters.push(resolve));
    this.#closedForAll = true;
    while (this.#isHeld) await new Promise<void>((resolve) => this.#allWaiters.push(resolve));
  }

  leaveAll(): void {
    assert(this.#closedForAll, 'a tablet lock is given back that is not held');
    assert(!this.#isHeld, 'no row is locked while the whole tablet is');
    this.#closedForAll = false;
    for (const wake of this.#gate.splice(0)) wake();
    this.#wakeAllWaiters();
  }

  /** Whether any row is held, or about to be: who waits for a row is served before the whole tablet is given to anybody. */
  get #isHeld(): boolean {
    return this.#aloneCount > 0 || this.#shared.size > 0;
  }

  #opened(): Promise<void> {
    return new Promise((resolve) => this.#gate.push(resolve));
  }

  #leftShared(row: ByteString): void {
    const state = this.#rows.get(row);
    if (state === undefined) return;
    state.sharers--;
    assert(state.sharers >= 0 && !state.alone, 'a shared row is given back by those who share it');
    this.#wakeRow(row, state);
  }

  #wakeRow(row: ByteString, state: RowState): void {
    const { waiters } = state;
    for (let first = waiters[0]; first && !state.alone; first = waiters[0]) {
      if (first.share === undefined && state.sharers > 0) return;
      waiters.shift();
      if (first.share === undefined) {
        state.alone = true;
        this.#aloneCount++;
      } else {
        state.sharers++;
        this.#shared.add(row, first.share);
      }
      first.wake();
    }
    assert(state.alone || state.sharers > 0 || waiters.length === 0, 'a row that is free is waited for by none');
    if (!state.alone && waiters.length === 0) this.#rows.delete(row);
  }

  #left(): void {
    if (!this.#isHeld) this.#wakeAllWaiters();
  }

  #wakeAllWaiters(): void {
    const waiting = this.#allWaiters;
    this.#allWaiters = [];
    for (const wake of waiting) wake();
  }
}
