/** Flags of an entry in a block (docs/formats/sstable.md, "Block"). They reach the disk: never renumber. */

export const SAME_ROW = 1;
export const SAME_COLUMN = 2;
export const TIMESTAMP_MASK = 12;
export const TIMESTAMP_ZERO = 0;
export const TIMESTAMP_SAME = 4;
export const TIMESTAMP_DELTA = 8;
export const TIMESTAMP_FULL = 12;
export const HAS_KIND = 16;
export const RESTART = 32;
/** All that are defined. */
export const KNOWN_FLAGS = 63;
