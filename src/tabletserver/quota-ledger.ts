/**
 * What a table with a quota takes, as far as this server knows: the last count of all servers, and what this server has
 * admitted since that count began.
 *
 * Invariant: what is admitted here between two counts never exceeds what the first of them leaves of a quota.
 */
import { assert, ownOf } from '../base/index.ts';
import type { ByteTally, TableSchema } from '../model/index.ts';

/** Bytes by family. */
export class FamilyBytes implements ByteTally {
  readonly byFamily = new Map<string, number>();
  total = 0;

  add(family: string, bytes: number): void {
    assert(bytes >= 0, 'a family takes no less than nothing');
    if (bytes === 0) return;
    this.byFamily.set(family, this.of(family) + bytes);
    this.total += bytes;
  }

  of(family: string): number {
    return this.byFamily.get(family) ?? 0;
  }

  addAll({ byFamily }: FamilyBytes): void {
    for (const [family, bytes] of byFamily) this.add(family, bytes);
  }
}

/** The quota that a write would exceed. */
export interface Exceeded {
  /** Undefined: the table's. */
  readonly family: string | undefined;
  readonly quotaBytes: number;
  readonly usedBytes: number;
}

export class QuotaLedger {
  /** Undefined until there was a count. */
  #counted: FamilyBytes | undefined;
  /** Admitted since the last count began that is over, and since the last one that began. */
  #admitted = new FamilyBytes();
  #next = new FamilyBytes();

  /** False until there was a count. */
  get isKnown(): boolean {
    return this.#counted !== undefined;
  }

  /** A count begins: what is admitted from here on may not be in it. */
  countBegins(): void {
    this.#next = new FamilyBytes();
  }

  /** A count is over: that is what the families take. */
  counted(usage: FamilyBytes): void {
    assert(this.#counted === undefined || usage !== this.#counted, 'each count has a result of its own');
    this.#counted = usage;
    this.#admitted = new FamilyBytes();
    this.#admitted.addAll(this.#next);
  }

  /** Bytes of the family, or of all. */
  usedBytes(family?: string): number {
    const [counted, admitted] = [this.#counted, this.#admitted];
    if (family === undefined) return (counted?.total ?? 0) + admitted.total;
    return (counted?.of(family) ?? 0) + admitted.of(family);
  }

  /** Takes the bytes into account, or answers with the quota that they exceed. Nothing exceeds no quota. */
  admit({ quotaBytes, families }: TableSchema, added: FamilyBytes): Exceeded | undefined {
    if (added.total === 0) return undefined;
    for (const [family, bytes] of added.byFamily) {
      const exceeded = exceededBy(ownOf(families, family)?.quotaBytes, this.usedBytes(family), bytes);
      if (exceeded !== undefined) return { family, ...exceeded };
    }
    const exceeded = exceededBy(quotaBytes, this.usedBytes(), added.total);
    if (exceeded !== undefined) return { family: undefined, ...exceeded };
    this.#admitted.addAll(added);
    this.#next.addAll(added);
    assert(this.#next.total <= this.#admitted.total, 'a later count began after an earlier one');
    assert(quotaBytes === undefined || this.usedBytes() <= quotaBytes, 'no more is admitted than a quota leaves');
    return undefined;
  }
}

function exceededBy(
  quotaBytes: number | undefined,
  usedBytes: number,
  bytes: number,
): Omit<Exceeded, 'family'> | undefined {
  return quotaBytes === undefined || usedBytes + bytes <= quotaBytes ? undefined : { quotaBytes, usedBytes };
}
