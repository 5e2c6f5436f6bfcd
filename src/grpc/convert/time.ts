/** Instants of the wall clock as google.protobuf.Timestamp, and back. */
import { create } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { type BigtableError, invalidArgument } from '../../base/index.ts';

/** `micros`: since 1970. */
export function timestampOf(micros: number): Timestamp {
  const seconds = Math.floor(micros / 1e6);
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos: Math.floor(micros - seconds * 1e6) * 1000 });
}

/** Microseconds since 1970. INVALID_ARGUMENT for a time that no Timestamp may have. */
export function microsOf(time: Timestamp | undefined, field: string): number | undefined {
  if (time === undefined) return undefined;
  const { seconds, nanos } = time;
  // from the year 1 to 9999, as protobuf says; none before 1970 is of use
  if (seconds < 0n || seconds > 253_402_300_799n || nanos < 0 || nanos > 999_999_999) throw wrongTime(field);
  return Number(seconds) * 1e6 + Math.floor(nanos / 1000);
}

function wrongTime(field: string): BigtableError {
  return invalidArgument(`${field} must be a time from 1970 to 9999`, { field });
}
