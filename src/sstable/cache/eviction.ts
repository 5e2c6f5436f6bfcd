/**
 * Which item of a cache makes way, so that a scan does not wipe what is used again and again. What is new enters on probation; when its turn
 * comes it is evicted, unless it was used meanwhile: then it moves to the main part. There it stays as long as it is used between two turns.
 *
 * A use is a mark on the item and moves nothing: a hit touches no other item's memory. Evictions do the work, a few steps each.
 *
 * Invariants: an item is in at most one of the two queues; `bytes` is the sum of its items' bytes.
 */
import { assert } from '../../base/index.ts';

/** Probation's part of the budget; it may take more while there is room. */
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
    item.newer = undefined;
    item.older = this.#newest;
    if (this.#newest) this.#newest.newer = item;
    else this.oldest = item;
    this.#newest = item;
    this.bytes += item.bytes;
  }

  remove(item: Item): void {
    if (item.newer) item.newer.older = item.older;
    else this.#newest = item.older;
    if (item.older) item.older.newer = item.newer;
    else this.oldest = item.newer;
    item.newer = undefined;
    item.older = undefined;
    this.bytes -= item.bytes;
  }
}

export class EvictionQueues<Item extends Queued> {
  readonly #probationBytes: number;
  readonly #probation = new Queue<Item>();
  readonly #main = new Queue<Item>();
  readonly #promoted: (item: Item) => void;

  /** `promoted` is told of each item that has come to the main part. */
  constructor(limitBytes: number, promoted: (item: Item) => void = () => {}) {
    this.#probationBytes = limitBytes * PROBATION_SHARE;
    this.#promoted = promoted;
  }

  get bytes(): number {
    return this.#probation.bytes + this.#main.bytes;
  }

  add(item: Item): void {
    this.#probation.add(item);
  }

  remove(item: Item): void {
    this.#queueOf(item).remove(item);
  }

  resize(item: Item, bytes: number): void {
    this.#queueOf(item).bytes += bytes - item.bytes;
    item.bytes = bytes;
  }

  /** Takes out the item that makes way. There must be one. */
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
        this.#promoted(fresh);
      } else {
        assert(old, 'queues that are empty hold no bytes');
        this.#main.remove(old);
        if (old.uses === 0) return old;
        old.uses--;
        this.#main.add(old);
      }
    }
  }

  #queueOf(item: Item): Queue<Item> {
    return item.isMain ? this.#main : this.#probation;
  }
}
