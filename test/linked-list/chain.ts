/**
 * What is known of one client's nodes, which it writes in generations of a fixed width, one generation after another: a
 * bit for each node, so that ten million nodes take little memory. A chain is that many lists side by side, since a
 * node refers to the one at its own place in an earlier generation.
 *
 * Invariant: `prev` of a node was acknowledged before that node was written, and is the same whenever it is asked for.
 * Therefore the outcome of a generation is final when the next one begins.
 */
import assert from 'node:assert/strict';

export class Bits {
  readonly #bytes: Uint8Array;

  constructor(size: number) {
    this.#bytes = new Uint8Array((size + 7) >> 3);
  }

  has(index: number): boolean {
    return (this.#bytes[index >> 3]! & (1 << (index & 7))) !== 0;
  }

  add(index: number): void {
    this.#bytes[index >> 3]! |= 1 << (index & 7);
  }
}

export class Chain {
  /** The number of nodes that it is to have. */
  readonly size: number;
  readonly #width: number;
  readonly #acknowledgedNodes: Bits;
  #begun = 0;
  #acknowledged = 0;

  constructor(size: number, width: number) {
    this.size = size;
    this.#width = width;
    this.#acknowledgedNodes = new Bits(size);
  }

  /** Nodes that were written or may have been: those below this index. */
  get begun(): number {
    return this.#begun;
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  get isComplete(): boolean {
    return this.#begun === this.size;
  }

  /** Begins the next generation; returns the indexes of its nodes. */
  begin(): readonly number[] {
    assert.ok(!this.isComplete, 'a complete chain has no further generation');
    const first = this.#begun;
    this.#begun = Math.min(first + this.#width, this.size);
    return Array.from({ length: this.#begun - first }, (_, i) => first + i);
  }

  /** Notes that a node of the last generation was acknowledged. */
  acknowledge(index: number): void {
    assert.ok(
      index < this.#begun && index >= this.#begun - this.#width,
      'the outcomes of earlier generations are final',
    );
    assert.ok(!this.isAcknowledged(index), 'a node is acknowledged once');
    this.#acknowledgedNodes.add(index);
    this.#acknowledged++;
  }

  isAcknowledged(index: number): boolean {
    return this.#acknowledgedNodes.has(index);
  }

  /** The node that it refers to: at its place, the last acknowledged one of the generations before; undefined: none. */
  prevOf(index: number): number | undefined {
    for (let i = index - this.#width; i >= 0; i -= this.#width) if (this.isAcknowledged(i)) return i;
    return undefined;
  }

  /** The acknowledged nodes that are in no set of `found`. */
  *missingIn(found: Bits): Generator<number> {
    for (let i = 0; i < this.#begun; i++) if (this.isAcknowledged(i) && !found.has(i)) yield i;
  }
}
