/**
 * Column keys by (family, qualifier), so that the cells of a million rows with the same few columns share one string
 * each. A small direct-mapped table: a miss makes the key and replaces the old content of the slot.
 */
import type { ByteString } from '../base/index.ts';
import type { ColumnKey } from '../model/index.ts';

const SLOTS = 256;

interface Slot {
  readonly family: string;
  readonly qualifier: ByteString;
  readonly key: ColumnKey;
}

export class ColumnNames {
  readonly #slots: (Slot | undefined)[] = new Array<Slot | undefined>(SLOTS).fill(undefined);
  /** Heap bytes of all keys made so far. */
  madeBytes = 0;

  key(family: string, qualifier: ByteString): ColumnKey {
    const index = slotOf(family, qualifier);
    const slot = this.#slots[index];
    if (slot !== undefined && slot.qualifier === qualifier && slot.family === family) return slot.key;
    const key = flatColumnKey(family, qualifier);
    this.madeBytes += key.length + 24;
    this.#slots[index] = { family, qualifier, key };
    return key;
  }
}

/**
 * columnKey(family, qualifier) as a flat string. V8 keeps the result of a template or + as a pair of its parts, which
 * is larger and slower to compare.
 */
function flatColumnKey(family: string, qualifier: ByteString): ColumnKey {
  return [family, qualifier].join('\0');
}

/** A cheap hash of lengths and a few bytes: columns of one table mostly differ in their last bytes. */
function slotOf(family: string, qualifier: ByteString): number {
  const last = qualifier.length - 1;
  let hash = family.length * 5 + family.charCodeAt(0) * 3 + qualifier.length * 31;
  if (last >= 0) hash += qualifier.charCodeAt(last) + qualifier.charCodeAt(last >> 1) * 7;
  if (last >= 1) hash += qualifier.charCodeAt(last - 1) * 17;
  return hash & (SLOTS - 1);
}
