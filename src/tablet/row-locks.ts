/**
 * Locks of rows inside one tablet. Plain writes share a row (their order is the log's); read-modify-write, check-and-mutate and
 * METADATA commits hold it alone from their read to the end of their log append, so that no write slips between; dropping
 * a row range holds the whole tablet.
 *
 * Invariant: who waits is served first come, first served, so nobody starves. `enter…` answers undefined when the lock was taken at once,
 * which is the common case and costs one look into a map.
 */
import { assert, type ByteString } from '../base/index.ts';

interface Waiter {
  readonly alone: boolean;
  readonly wake: () => void;
}

interface RowState {
  sharers: number;
  alone: boolean;
  /** Made when somebody waits, which is rare. */
  waiters: Waiter[] | undefined;
}

function hasWaiters({ waiters }: RowState): boolean {
  return waiters !== undefined && waiters.length > 0;
}

export class RowLocks {
  readonly #rows = new Map<ByteString, RowState>();
  /** Holds of rows, all together. */
  #holds = 0;
  #closedForAll = false;
  /** Waiting while the whole tablet is held, or is about to be. */
  readonly #gate: (() => void)[] = [];
  #allWaiters: (() => void)[] = [];

  enterShared(row: ByteString): Promise<void> | undefined {
    return this.#enter(row, false);
  }

  /** Takes a share where that needs no waiting, else answers false. */
  tryShared(row: ByteString): boolean {
    if (this.#closedForAll) return false;
    const state = this.#rows.get(row);
    if (state === undefined) {
      this.#rows.set(row, { sharers: 1, alone: false, waiters: undefined });
    } else {
      if (state.alone || hasWaiters(state)) return false;
      state.sharers++;
    }
    this.#holds++;
    return true;
  }

  enterAlone(row: ByteString): Promise<void> | undefined {
    return this.#enter(row, true);
  }

  leaveShared(row: ByteString): void {
    const state = this.#rows.get(row);
    assert(state !== undefined && state.sharers > 0, 'a shared row lock is given back that is not held');
    state.sharers--;
    this.#left(row, state);
  }

  leaveAlone(row: ByteString): void {
    const state = this.#rows.get(row);
    assert(state?.alone, 'a row lock is given back that is not held');
    state.alone = false;
    this.#left(row, state);
  }

  /** The whole tablet alone: waits until no row is held. */
  async enterAll(): Promise<void> {
    while (this.#closedForAll) await new Promise<void>((resolve) => this.#allWaiters.push(resolve));
    this.#closedForAll = true;
    while (this.#holds > 0) await new Promise<void>((resolve) => this.#allWaiters.push(resolve));
  }

  leaveAll(): void {
    assert(this.#closedForAll, 'a tablet lock is given back that is not held');
    this.#closedForAll = false;
    for (const wake of this.#gate.splice(0)) wake();
    this.#wakeAllWaiters();
  }

  #enter(row: ByteString, alone: boolean): Promise<void> | undefined {
    if (this.#closedForAll) return this.#enterThroughGate(row, alone);
    if (!alone && this.tryShared(row)) return undefined;
    const state = this.#rows.get(row);
    this.#holds++;
    if (state === undefined) {
      this.#rows.set(row, { sharers: 0, alone, waiters: undefined });
      return undefined;
    }
    return new Promise((resolve) => (state.waiters ??= []).push({ alone, wake: resolve }));
  }

  async #enterThroughGate(row: ByteString, alone: boolean): Promise<void> {
    await new Promise<void>((resolve) => this.#gate.push(resolve));
    await this.#enter(row, alone);
  }

  #left(row: ByteString, state: RowState): void {
    this.#holds--;
    if (!state.alone && state.sharers === 0 && !hasWaiters(state)) this.#rows.delete(row);
    else this.#wakeRow(state);
    if (this.#holds === 0) this.#wakeAllWaiters();
  }

  #wakeRow(state: RowState): void {
    const { waiters = [] } = state;
    for (let first = waiters[0]; first && !state.alone; first = waiters[0]) {
      if (first.alone && state.sharers > 0) return;
      waiters.shift();
      if (first.alone) state.alone = true;
      else state.sharers++;
      first.wake();
    }
  }

  #wakeAllWaiters(): void {
    const waiting = this.#allWaiters;
    this.#allWaiters = [];
    for (const wake of waiting) wake();
  }
}
