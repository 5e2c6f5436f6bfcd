/**
 * The rows that plain writes in progress have locked. Hot path: adding a row increments a count in a small table and
 * extends a list, without an object for each row. A call that wants a row exclusively reads its count of locks; only
 * if the count allows for any are all locks searched.
 *
 * Invariant: a count is the number of locked rows whose keys hash to it.
 */
import { assert, type ByteString, checksInvariants } from '../../base/index.ts';

const FIRST_COUNTS = 64;
/** The counts grow no further: they are exact enough. */
const MAX_COUNTS = 16_384;

/** The rows of one write; a row that it changes several times is in it several times. */
export class SharedLock {
  readonly rows: ByteString[] = [];
  /** Its index among the locks; -1 before the first row and after the release. */
  index = -1;
}

export class SharedLocks {
  readonly #held: SharedLock[] = [];
  #counts = new Uint32Array(FIRST_COUNTS);
  #size = 0;

  /** Number of locked rows. */
  get size(): number {
    return this.#size;
  }

  add(row: ByteString, lock: SharedLock): void {
    if (lock.index < 0) lock.index = this.#held.push(lock) - 1;
    lock.rows.push(row);
    this.#size++;
    if (this.#size > this.#counts.length && this.#counts.length < MAX_COUNTS) this.#grow();
    else this.#count(row, 1);
  }

  remove(lock: SharedLock): void {
    assert(this.#held[lock.index] === lock, 'a lock is released when it is held');
    const last = this.#held.pop();
    if (last !== undefined && last !== lock) {
      this.#held[lock.index] = last;
      last.index = lock.index;
    }
    lock.index = -1;
    this.#size -= lock.rows.length;
    assert(this.#size >= 0, 'no more rows are unlocked than were locked');
    for (const row of lock.rows) this.#count(row, -1);
    if (checksInvariants) this.#assertCounts();
  }

  /** The number of times that the row is locked. */
  count(row: ByteString): number {
    if (this.#counts[this.#slot(row)] === 0) return 0;
    let count = 0;
    for (const { rows } of this.#held) for (const held of rows) if (held === row) count++;
    return count;
  }

  #grow(): void {
    this.#counts = new Uint32Array(this.#counts.length * 4);
    for (const { rows } of this.#held) for (const row of rows) this.#count(row, 1);
  }

  #count(row: ByteString, change: 1 | -1): void {
    const slot = this.#slot(row);
    const count = this.#counts[slot]! + change;
    assert(count >= 0, 'a row is counted when it is locked');
    this.#counts[slot] = count;
  }

  #assertCounts(): void {
    let held = 0;
    for (const [index, lock] of this.#held.entries()) {
      assert(lock.index === index, 'a lock knows its index');
      held += lock.rows.length;
    }
    assert(held === this.#size, 'the locked rows are those of all locks');
    assert(this.#size > 0 || this.#counts.every((count) => count === 0), 'rows that are not locked are not counted');
  }

  /** A cheap hash of the length and the last bytes, in which keys mostly differ. */
  #slot(row: ByteString): number {
    const { length } = row;
    let hash = length;
    for (let i = Math.max(0, length - 6); i < length; i++) hash = Math.imul(hash, 31) + row.charCodeAt(i);
    return hash & (this.#counts.length - 1);
  }
}
