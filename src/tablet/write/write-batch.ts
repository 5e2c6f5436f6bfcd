/**
 * Plain changes of rows on their way into one record of the log: they are logged, applied and acknowledged together. Each row of a batch need only be
 * atomic by itself; that all of them change in one instant is more than was promised, and costs less.
 *
 * Bounded, so that no record makes the log's append, or the step that applies it, a long one.
 */
import { assert } from '../../base/index.ts';
import { isCellRun, type Mutations, type RowMutations, valueLengthAt } from '../../model/index.ts';
import { SharedLock } from './shared-locks.ts';

const MAX_MUTATIONS = 256;
const MAX_VALUE_BYTES = 256 * 1024;

export class WriteBatch {
  readonly lock = new SharedLock();
  readonly changes: RowMutations[] = [];
  /** The changes' indexes in the call. */
  readonly indexes: number[] = [];
  #mutations = 0;
  #valueBytes = 0;

  get isFull(): boolean {
    return this.#mutations >= MAX_MUTATIONS || this.#valueBytes >= MAX_VALUE_BYTES;
  }

  /** The row has joined the lock. */
  add(index: number, change: RowMutations): this {
    assert(!this.isFull, 'a batch that is full is written before more is added');
    this.changes.push(change);
    this.indexes.push(index);
    this.#mutations += change.mutations.length;
    this.#valueBytes += valueBytes(change.mutations);
    return this;
  }
}

/** Counts values of set-cells alone; other mutations are small. */
function valueBytes(mutations: Mutations): number {
  let bytes = 0;
  if (isCellRun(mutations)) {
    for (let at = mutations.from; at < mutations.from + mutations.length; at++) bytes += valueLengthAt(mutations, at);
  } else {
    for (const mutation of mutations) if (mutation.kind === 'setCell') bytes += mutation.value.length;
  }
  return bytes;
}
