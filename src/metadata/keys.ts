/**
 * Row keys of METADATA (paper section 5.1: table id + end row), and the parts of METADATA that have a fixed place.
 * Format: docs/formats/metadata.md.
 *
 *   key = table id (8 hexadecimal digits), 0x00, end row      a tablet that ends at `end row`, exclusive
 *   key = table id, 0x01                                      the table's last tablet
 *
 * Invariant: keys of a table order as its tablets do, so the tablet of row r is the first key above `id 0x00 r`.
 * METADATA's own table has the smallest id: the rows of its tablets sort first, and the root tablet holds them.
 */
import { assert, type ByteString, CorruptionError, quote, successor } from '../base/index.ts';
import type { RowRange } from '../model/index.ts';

export const METADATA_TABLE_ID = '00000000';

const ID_CHARS = 8;
const ID = /^[0-9a-f]{8}$/;

export type MetadataKey = ByteString;

/** The key of the tablet of `tableId` that ends at `end`. */
export function metadataKey(tableId: string, end: ByteString | undefined): MetadataKey {
  assert(ID.test(tableId), `table id ${quote(tableId)} is not of eight hexadecimal digits`);
  return end === undefined ? `${tableId}\x01` : `${tableId}\0${end}`;
}

/** The tablet that holds `row` is the first with a key ABOVE this. */
export function lookupKey(tableId: string, row: ByteString): MetadataKey {
  assert(tableId.length === ID_CHARS, 'a row of METADATA is sought by a table id');
  return `${tableId}\0${row}`;
}

export function parseMetadataKey(key: MetadataKey): { readonly tableId: string; readonly end: ByteString | undefined } {
  const tableId = key.slice(0, ID_CHARS);
  const mark = key[ID_CHARS];
  if (!ID.test(tableId) || (mark !== '\0' && !(mark === '\x01' && key.length === ID_CHARS + 1))) {
    throw new CorruptionError('METADATA', 0, `${quote(key)} is not a key of METADATA`);
  }
  return { tableId, end: mark === '\0' ? key.slice(ID_CHARS + 1) : undefined };
}

/** True for the keys of METADATA's own tablets. */
export function isMetadataTablet(key: MetadataKey): boolean {
  return key.startsWith(METADATA_TABLE_ID);
}

/**
 * Where METADATA is split so that `key` is the last row below (docs/decisions/0065-splits-of-metadata.md). A tablet
 * whose row is above it begins at or after the end of the tablet of `key`, so the rows of its parts are above it too.
 */
export function boundaryAfter(key: MetadataKey): ByteString {
  assert(!isMetadataTablet(key), "METADATA is split between the rows of users' tablets");
  return successor(key);
}

/** The key after which METADATA is split there: the inverse of `boundaryAfter`. */
export function keyBeforeBoundary(boundary: ByteString): MetadataKey {
  assert(boundary.endsWith('\0'), 'METADATA is split directly after the key of a row');
  const key = boundary.slice(0, -1);
  const { tableId } = parseMetadataKey(key);
  assert(tableId !== METADATA_TABLE_ID, "METADATA is split between the rows of users' tablets");
  return key;
}

/**
 * True if METADATA may not be split there: the boundary lies between the row of that tablet and a row that its split
 * would add, so one commit could not change both.
 */
export function dividesTablet(boundary: ByteString, tableId: string, { start, end }: RowRange): boolean {
  return successor(lookupKey(tableId, start)) < boundary && boundary <= metadataKey(tableId, end);
}

/** All keys of the table's tablets. */
export function keysOfTable(tableId: string): RowRange {
  assert(ID.test(tableId), `table id ${quote(tableId)} is not of eight hexadecimal digits`);
  return { start: `${tableId}\0`, end: `${tableId}\x02` };
}

/** The rows of METADATA's tablets, which the root tablet holds. It is never split. */
export const ROOT_RANGE: RowRange = Object.freeze({ start: '', end: keysOfTable(METADATA_TABLE_ID).end });

/** The rest of METADATA: the rows of all users' tablets. */
export const USER_RANGE: RowRange = Object.freeze({ start: ROOT_RANGE.end!, end: undefined });

/** The key of the root tablet itself. No tablet holds that row: it is the file `root` of the lock service. */
export const ROOT_KEY: MetadataKey = metadataKey(METADATA_TABLE_ID, ROOT_RANGE.end);
