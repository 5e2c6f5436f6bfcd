/**
 * The numbers of the commit log's format, shared by encoder and decoder. Format: docs/formats/commit-log.md. Never
 * renumber.
 */

export const APPEND_VERSION = 1;

/** Upper bound of an append's header: a byte, six varints and an optional field of one more. */
export const MAX_APPEND_HEADER_BYTES = 64;

/** The fields of an append before its records. */
export interface AppendHeader {
  /** Position of the append before it, plus 1; 0 in the first of the log. */
  readonly previous: number;
  readonly count: number;
  /** Sequence number of the first record; the others follow one by one. */
  readonly firstSequence: number;
  /** Appends below this position may have been trimmed; any other missing append was lost. */
  readonly lowWater: number;
  /**
   * No replay needs appends below this position, though they are kept. Undefined: only those that may have been trimmed
   * are not needed.
   */
  readonly replayFrom?: number | undefined;
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

/** Optional fields of an append. A reader skips any that it does not know. */
export const AppendField = { replayFrom: 2 } as const;

/**
 * Optional fields of a record. A reader skips an unknown field with an even number and refuses the log for an odd one.
 */
export const RecordField = { token: 2 } as const;
