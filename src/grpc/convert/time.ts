/** Instants of the wall clock as google.protobuf.Timestamp. */
import { create } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';

/** `micros`: since 1970. */
export function timestampOf(micros: number): Timestamp {
  const seconds = Math.floor(micros / 1e6);
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos: Math.floor(micros - seconds * 1e6) * 1000 });
}

/** Since 1970; 0 where there is none. */
export function microsOf({ seconds = 0n, nanos = 0 }: Partial<Timestamp> = {}): number {
  return Number(seconds) * 1e6 + Math.floor(nanos / 1000);
}
