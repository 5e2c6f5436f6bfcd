/**
 * The timestamp of a SetCell where it is not a plain number: the server's time, and one that a client library made up.
 */
import type { Int64 } from '../../base/index.ts';

/** The timestamp that stands for the server's time. */
export const SERVER_TIME = -1;
/** Mutation.TimestampOrigin.CLIENT_AUTO_GENERATED. */
const CLIENT_AUTO_GENERATED = 2;
const MICROS_A_MILLI = 1000;

/**
 * True when the table's granularity decides whether the timestamp is truncated: a client library made it up, and it is
 * not a whole millisecond.
 */
export function isUntruncated(origin: number, timestamp: Int64): boolean {
  if (origin !== CLIENT_AUTO_GENERATED || timestamp === SERVER_TIME) return false;
  return typeof timestamp === 'number' ? timestamp % MICROS_A_MILLI !== 0 : timestamp % 1000n !== 0n;
}
