/**
 * Decides which item of a cache is evicted, so that a scan does not replace what is used again and again. A new item
 * enters on probation. At its turn it is evicted, unless it was used since: then it moves to the main part, where it
 * stays as long as it is used between two turns.
 *
 * A use marks the item and moves nothing, so a hit touches no other item's memory. Evictions do the work.
 *
 * Invariants: an item is in at most one of the two queues; `bytes` is the sum of its items' bytes.
 */
import { assert } from '../../base/index.ts';

/** Probation's part of the budget; it may take more while there is space. */
const PROBATION_SHARE = 0.2;
/** Turns that an item survives without a use, at most. */
const MAX_USES = 3;

/** An item in the queues; these fields belong to them. */
export class Queued {
  bytes: number;
  uses = 0;
  isMain = false;
  newer: this | undefined;
  older: this | undefined;

  constructor(bytes: number) {
    this.bytes = bytes;
  }

  used(): void {
    if (this.uses < MAX_USES) this.uses++;
  }
}

/** First in, first out. */
class Queue<Item extends Queued> {
  bytes = 0;
  oldest: Item | undefined;
  #newest: Item | undefined;

  add(item: Item): void {
    assert(item.newer === undefined && item.older === undefined, 'an item is in one queue');
    item.older = this.#newest;
    if (this.#newest) this.#newest.newer = item;
    else this.oldest = item;
    this.#newest = item;
    this.bytes += item.bytes;
  }

  remove(item: Item): void {
    assert(item.older !== undefined || item === this.oldest, 'the item is in this queue');
    if (item.newer) item.newer.older = item.older;
    else this.#newest = item.older;
    if (item.older) item.older.newer = item.newer;
    else this.oldest = item.newer;
    item.newer = undefined;
    item.older = undefined;
    this.bytes -= item.bytes;
    assert(this.bytes >= 0, 'a queue counts the bytes of its items');
  }

  /** Walks the queue, oldest first, and recounts its bytes. */
  assertConsistent(isMain: boolean, visit: (item: Item) => void): void {
    let bytes = 0;
    let older: Item | undefined;
    for (let item = this.oldest; item !== undefined; older = item, item = item.newer) {
      assert(item.older === older, 'neighbours in a queue know each other');
      assert(item.isMain === isMain, 'an item knows its queue');
      bytes += item.bytes;
      visit(item);
    }
    assert(this.#newest === older, 'the walk ends at the newest item');
    assert(this.bytes === bytes, 'a queue counts the bytes of its items');
  }
}

export class EvictionQueues<Item extends Queued> {
  readonly #probationBytes: number;
  readonly #probation = new Queue<Item>();
  readonly #main = new Queue<Item>();
  readonly #onPromoted: (item: Item) => void;

  /** `onPromoted` is called with each item that has moved to the main part. */
  constructor(limitBytes: number, onPromoted: (item: Item) => void = () => {}) {
    this.#probationBytes = limitBytes * PROBATION_SHARE;
    this.#onPromoted = onPromoted;
  }

  get bytes(): number {
    return this.#probation.bytes + this.#main.bytes;
  }

  add(item: Item): void {
    assert(!item.isMain, 'a new item begins on probation');
    this.#probation.add(item);
  }

  remove(item: Item): void {
    this.#queueOf(item).remove(item);
  }

  resize(item: Item, bytes: number): void {
    this.#queueOf(item).bytes += bytes - item.bytes;
    item.bytes = bytes;
  }

  /** Removes and returns the item to evict. There must be one. */
  evict(): Item {
    for (;;) {
      const fresh = this.#probation.oldest;
      const old = this.#main.oldest;
      if (fresh && (!old || this.#probation.bytes > this.#probationBytes)) {
        this.#probation.remove(fresh);
        if (fresh.uses === 0) return fresh;
        fresh.uses = 0;
        fresh.isMain = true;
        this.#main.add(fresh);
        this.#onPromoted(fresh);
      } else {
        assert(old, 'queues that are empty hold no bytes');
        this.#main.remove(old);
        if (old.uses === 0) return old;
        old.uses--;
        this.#main.add(old);
      }
    }
  }

  /** Walks both queues and calls `visit` with each item. */
  assertConsistent(visit: (item: Item) => void): void {
    this.#probation.assertConsistent(false, visit);
    this.#main.assertConsistent(true, visit);
  }

  #queueOf(item: Item): Queue<Item> {
    return item.isMain ? this.#main : this.#probation;
  }
}
