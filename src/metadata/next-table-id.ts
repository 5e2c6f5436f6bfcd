/**
 * The file of the lock service with the id of the next table: a number that only grows, so that no id is used twice.
 */
import { assert, CorruptionError } from '../base/index.ts';
import { encodeDocument, PlainObject } from './plain-json.ts';

export const NEXT_TABLE_ID_PATH = 'next-table-id';
/** The ids below it are METADATA's and reserved. */
export const FIRST_TABLE_ID = 0x10;
export const LAST_TABLE_ID = 0xffff_ffff;

/** `next`: at most one above LAST_TABLE_ID, when all ids were used. */
export function encodeNextTableId(next: number): Buffer {
  assert(
    next >= FIRST_TABLE_ID && next <= LAST_TABLE_ID + 1,
    "the next table id is above those of the system's tables",
  );
  return encodeDocument({ next });
}

/** CorruptionError for a number that cannot be the id of a user's table. */
export function decodeNextTableId(bytes: Uint8Array): number {
  const next = PlainObject.parse(NEXT_TABLE_ID_PATH, bytes).count('next');
  if (next < FIRST_TABLE_ID || next > LAST_TABLE_ID + 1)
    throw new CorruptionError(
      NEXT_TABLE_ID_PATH,
      0,
      `next is ${next}, expected ${FIRST_TABLE_ID} to ${LAST_TABLE_ID + 1}`,
    );
  return next;
}
