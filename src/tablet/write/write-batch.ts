/**
 * Plain changes of rows on their way into one log record: they are logged, applied and acknowledged together. Each row
 * of a batch need only be atomic by itself; one record for all costs less.
 *
 * Bounded, so that no record makes an append of the log, or the slice that applies it, long.
 */
import { assert } from '../../base/index.ts';
import { isCellRun, type Mutations, type RowMutations, valueLengthAt } from '../../model/index.ts';
import { SharedLock } from './shared-locks.ts';

const MAX_MUTATIONS = 256;
const MAX_VALUE_BYTES = 256 * 1024;

export class WriteBatch {
  readonly lock = new SharedLock();
  readonly changes: RowMutations[] = [];
  /** Indexes of the changes in the call. */
  readonly indexes: number[] = [];
  #mutations = 0;
  #valueBytes = 0;

  get isFull(): boolean {
    return this.#mutations >= MAX_MUTATIONS || this.#valueBytes >= MAX_VALUE_BYTES;
  }

  /** The lock already holds the row. */
  add(index: number, change: RowMutations): this {
    assert(!this.isFull, 'a batch that is full is written before more is added');
    this.changes.push(change);
    this.indexes.push(index);
    this.#mutations += change.mutations.length;
    this.#valueBytes += valueBytes(change.mutations);
    return this;
  }
}

/** Counts the values of set-cells only; other mutations are small. */
function valueBytes(mutations: Mutations): number {
  let bytes = 0;
  if (isCellRun(mutations)) {
    for (let at = mutations.from; at < mutations.from + mutations.length; at++) bytes += valueLengthAt(mutations, at);
  } else {
    for (const mutation of mutations) if (mutation.kind === 'setCell') bytes += mutation.value.length;
  }
  return bytes;
}
