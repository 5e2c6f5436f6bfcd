/**
 * Decides which item of a cache is evicted, so that a scan does not replace what is used again and again. A new item
 * enters on probation. At its turn it is evicted, unless it was used since: then it moves to the main part, where it
 * stays as long as it is used between two turns. Visitors, which a scan brings in for the first time, are on a
 * probation of their own. Its bytes are bounded even while the cache has space, since a scan requests each item once.
 *
 * A use marks the item and moves nothing, so a hit touches no other item's memory. Evictions do the work.
 *
 * Invariants: an item is in at most one of the three queues; `bytes` is the sum of its items' bytes.
 */
import { assert } from '../../base/index.ts';

/** The part of the budget for both probations; the first may take more while there is space. */
const PROBATION_SHARE = 0.2;
/** The most bytes of visitors: a share of the budget, and this at least. */
const MAX_VISITOR_SHARE = 0.05;
const MIN_VISITOR_LIMIT_BYTES = 16 << 20;
/** Turns that an item survives without a use, at most. */
const MAX_USES = 3;

export const Part = { probation: 0, visitors: 1, main: 2 } as const;
export type Part = (typeof Part)[keyof typeof Part];

/** An item in the queues; these fields belong to them. */
export class Queued {
  bytes: number;
  uses = 0;
  part: Part = Part.probation;
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
  assertConsistent(part: Part, visit: (item: Item) => void): void {
    let bytes = 0;
    let older: Item | undefined;
    for (let item = this.oldest; item !== undefined; older = item, item = item.newer) {
      assert(item.older === older, 'neighbours in a queue know each other');
      assert(item.part === part, 'an item knows its queue');
      bytes += item.bytes;
      visit(item);
    }
    assert(this.#newest === older, 'the walk ends at the newest item');
    assert(this.bytes === bytes, 'a queue counts the bytes of its items');
  }
}

export class EvictionQueues<Item extends Queued> {
  /** The most bytes of visitors. */
  readonly visitorBytes: number;
  readonly #probationBytes: number;
  readonly #probation = new Queue<Item>();
  readonly #visitors = new Queue<Item>();
  readonly #main = new Queue<Item>();
  readonly #onPromoted: (item: Item) => void;

  /** `onPromoted` is called with each item that has moved to the main part. */
  constructor(
    limitBytes: number,
    onPromoted: (item: Item) => void = () => {},
    visitorBytes = Math.max(MIN_VISITOR_LIMIT_BYTES, limitBytes * MAX_VISITOR_SHARE),
  ) {
    this.#probationBytes = limitBytes * PROBATION_SHARE;
    this.visitorBytes = visitorBytes;
    this.#onPromoted = onPromoted;
  }

  get bytes(): number {
    return this.#probation.bytes + this.#visitors.bytes + this.#main.bytes;
  }

  add(item: Item, isVisitor = false): void {
    assert(item.part === Part.probation, 'a new item begins on probation');
    if (isVisitor) item.part = Part.visitors;
    this.#queueOf(item).add(item);
  }

  remove(item: Item): void {
    this.#queueOf(item).remove(item);
  }

  resize(item: Item, bytes: number): void {
    this.#queueOf(item).bytes += bytes - item.bytes;
    item.bytes = bytes;
  }

  /**
   * Removes and returns the visitor to evict before `bytes` of visitors are added; undefined if they fit, or if there
   * are no visitors.
   */
  evictVisitor(bytes: number): Item | undefined {
    while (this.#visitors.bytes + bytes > this.visitorBytes) {
      const visitor = this.#visitors.oldest;
      if (!visitor || !this.#promoteUsed(visitor)) return visitor;
    }
    return undefined;
  }

  /** Removes and returns the item to evict. There must be one. */
  evict(): Item {
    for (;;) {
      const probation = this.#visitors.bytes > this.#probation.bytes ? this.#visitors : this.#probation;
      const fresh = probation.oldest;
      const old = this.#main.oldest;
      if (fresh && (!old || this.#visitors.bytes + this.#probation.bytes > this.#probationBytes)) {
        if (!this.#promoteUsed(fresh)) return fresh;
      } else {
        assert(old, 'queues that are empty hold no bytes');
        this.#main.remove(old);
        if (old.uses === 0) return old;
        old.uses--;
        this.#main.add(old);
      }
    }
  }

  /** Walks the queues and calls `visit` with each item. */
  assertConsistent(visit: (item: Item) => void): void {
    for (const part of Object.values(Part)) this.#queue(part).assertConsistent(part, visit);
  }

  /** Removes an item from its probation; true if it moved to the main part, since it was used. */
  #promoteUsed(item: Item): boolean {
    assert(item.part !== Part.main, 'an item is promoted once');
    this.#queueOf(item).remove(item);
    if (item.uses === 0) return false;
    item.uses = 0;
    item.part = Part.main;
    this.#main.add(item);
    this.#onPromoted(item);
    return true;
  }

  #queueOf(item: Item): Queue<Item> {
    return this.#queue(item.part);
  }

  #queue(part: Part): Queue<Item> {
    if (part === Part.main) return this.#main;
    return part === Part.visitors ? this.#visitors : this.#probation;
  }
}
