/**
 * The division of a budget of bytes, as pure arithmetic (docs/decisions/0024-budgets.md). Three parts are reserved: for
 * small requests, for the received bytes of requests that are not admitted yet, and for unread answers. The rest is
 * common: large requests use it, and the reserved parts borrow from it while no call waits for it.
 *
 * Invariants: the common part never exceeds its size, and a reserved part never borrows while a call waits for the
 * common part. So all uses together are at most the limit. One exception: a use that is alone in its part may be of any
 * size; otherwise one that is larger than the part would wait for ever.
 */
import { assert } from '../../base/index.ts';

export const Part = {
  /** Small requests, from admission to the end of the call. */
  small: 0,
  /** The received bytes of requests that are not admitted. */
  arriving: 1,
  /** Answers that are made and not sent, where the common part has no space for them. */
  unread: 2,
  /** Large requests, and answers that are made and not sent. */
  common: 3,
} as const;
export type Part = (typeof Part)[keyof typeof Part];

/** Shares of the reserved parts, as divisors of the limit. */
const SMALL_SHARE = 8;
const ARRIVING_SHARE = 8;
const UNREAD_SHARE = 16;
/** A request up to this size is small: one row, or a batch of some hundred small ones. */
const SMALL_BYTES = 64 * 1024;

export class BudgetParts {
  readonly limitBytes: number;
  /** Requests up to this size are small. */
  readonly smallBytes: number;
  /** Sizes of the parts; together they are the limit. */
  readonly #sizes: readonly number[];
  readonly #used = [0, 0, 0, 0];

  constructor(limitBytes: number) {
    const reserved = [SMALL_SHARE, ARRIVING_SHARE, UNREAD_SHARE].map((share) => Math.floor(limitBytes / share));
    this.limitBytes = limitBytes;
    this.#sizes = [...reserved, limitBytes - reserved.reduce((sum, bytes) => sum + bytes, 0)];
    this.smallBytes = Math.min(SMALL_BYTES, this.sizeOf(Part.small));
  }

  /** The part of a request of that size. */
  partOf(bytes: number): Part {
    return bytes <= this.smallBytes ? Part.small : Part.common;
  }

  sizeOf(part: Part): number {
    return this.#sizes[part]!;
  }

  usedOf(part: Part): number {
    return this.#used[part]!;
  }

  get usedBytes(): number {
    const [small, arriving, unread, common] = this.#used as [number, number, number, number];
    return small + arriving + unread + common;
  }

  /** Bytes used of the common part, those borrowed by reserved parts included. */
  get commonUsedBytes(): number {
    return (
      this.usedOf(Part.common) +
      this.#borrowed(Part.small) +
      this.#borrowed(Part.arriving) +
      this.#borrowed(Part.unread)
    );
  }

  /**
   * True when a part has space. `awaited`: a call waits for the common part. `ownBytes`: bytes of the part that the
   * caller uses already.
   */
  fits(part: Part, bytes: number, awaited: boolean, ownBytes = 0): boolean {
    const used = this.usedOf(part);
    const after = used + bytes;
    if (part !== Part.common && after <= this.sizeOf(part)) return true;
    const isAlone = part === Part.common ? this.commonUsedBytes === ownBytes : part !== Part.small && used === ownBytes;
    if (isAlone) return true;
    if (awaited && part !== Part.common) return false;
    const more = part === Part.common ? bytes : Math.max(0, after - this.sizeOf(part)) - this.#borrowed(part);
    return this.commonUsedBytes + more <= this.sizeOf(Part.common);
  }

  take(part: Part, bytes: number): void {
    this.#used[part]! += bytes;
  }

  release(part: Part, bytes: number): void {
    assert(bytes <= this.usedOf(part), 'a part of the budget releases no more than was taken of it');
    this.#used[part]! -= bytes;
  }

  #borrowed(part: Part): number {
    return Math.max(0, this.usedOf(part) - this.sizeOf(part));
  }
}
