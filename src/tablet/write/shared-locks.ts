/**
 * The rows that plain writes under way lock. Nearly nobody ever asks for them, so that adding a row is a count in a small table and a place in its
 * share's list: no object a row, and nothing that outlives the write. Who wants a row alone is told how many share it; where the count says that some
 * may, all shares are looked through.
 *
 * Invariant: a count is the number of held rows whose keys fall to it.
 */
import { assert, type ByteString, checksInvariants } from '../../base/index.ts';

const FIRST_COUNTS = 64;
/** Above this the counts grow no more: they are exact enough. */
const MAX_COUNTS = 16_384;

/** What one write holds: rows, one several times where it changes it several times. */
export class SharedLock {
  readonly rows: ByteString[] = [];
  /** Its place among the shares; -1 = none yet, or no more. */
  index = -1;
}

export class SharedLocks {
  readonly #held: SharedLock[] = [];
  #counts = new Uint32Array(FIRST_COUNTS);
  #size = 0;

  /** Rows held, all together. */
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
    assert(this.#held[lock.index] === lock, 'a share of rows is given back that is not held');
    const last = this.#held.pop();
    if (last !== undefined && last !== lock) {
      this.#held[lock.index] = last;
      last.index = lock.index;
    }
    lock.index = -1;
    this.#size -= lock.rows.length;
    assert(this.#size >= 0, 'no more rows are given back than were shared');
    for (const row of lock.rows) this.#count(row, -1);
    if (checksInvariants) this.#assertCounts();
  }

  /** How many times the row is held. */
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
    assert(count >= 0, 'a row is counted when it is shared');
    this.#counts[slot] = count;
  }

  #assertCounts(): void {
    let held = 0;
    for (const [index, lock] of this.#held.entries()) {
      assert(lock.index === index, 'a share knows its place');
      held += lock.rows.length;
    }
    assert(held === this.#size, 'the rows held are those of all shares');
    assert(this.#size > 0 || this.#counts.every((count) => count === 0), 'rows that are not held are not counted');
  }

  /** By a cheap mixture of the length and the last bytes, in which keys mostly differ. */
  #slot(row: ByteString): number {
    const { length } = row;
    let hash = length;
    for (let i = Math.max(0, length - 6); i < length; i++) hash = Math.imul(hash, 31) + row.charCodeAt(i);
    return hash & (this.#counts.length - 1);
  }
}
