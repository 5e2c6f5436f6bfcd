/**
 * The numbers of the commit log's format, shared by encoder and decoder. Format: docs/formats/commit-log.md. Never renumber.
 */

export const APPEND_VERSION = 1;

/** Most bytes of an append before its records: a byte, and five varints. */
export const MAX_APPEND_HEADER_BYTES = 64;

/** What an append tells of itself, before its records. */
export interface AppendHeader {
  /** Position of the append before it, plus 1; 0 in the first of the log. */
  readonly previous: number;
  readonly count: number;
  /** Sequence number of the first record; the others follow one by one. */
  readonly firstSequence: number;
  /** Appends below this position may have been trimmed; whatever else is missing was lost. */
  readonly lowWater: number;
}

export const RecordKind = { rows: 1, dropRows: 2 } as const;

export const MutationKind = {
  setCell: 1,
  addIntegerToCell: 2,
  addBytesToCell: 3,
  mergeToCell: 4,
  deleteFromColumn: 5,
  deleteFromFamily: 6,
  deleteFromRow: 7,
} as const;

/** Which ends a deleted range of timestamps has. */
export const RangeFlag = { start: 1, end: 2 } as const;

/** Optional fields of a record. A reader that does not know one skips it where its number is even, and refuses the log where it is odd. */
export const RecordField = { token: 2 } as const;
