/** Hot tablets (API: google.bigtable.admin.v2.BigtableInstanceAdmin). */
import { invalidArgument } from '../base/index.ts';
import type { RequestContext } from '../env/index.ts';
import type { HotTablet } from '../model/index.ts';

/** Microseconds since 1970. */
export interface TimeSpan {
  readonly startMicros: number;
  readonly endMicros: number;
}

export interface HotTabletService {
  /**
   * Tablets of the tables of a cluster that were hot for a minute that began in the span, the hottest first, of each
   * the highest of a quarter of an hour: at most MAX_HOT_TABLETS. `cluster`: its full name. NOT_FOUND where there is
   * none; INVALID_ARGUMENT for a span that the API does not allow.
   */
  listHotTablets(context: RequestContext, cluster: string, span: TimeSpan): Promise<readonly HotTablet[]>;
}

export const MAX_HOT_TABLETS = 1000;

const MINUTE_MICROS = 60e6;
const HOUR_MICROS = 60 * MINUTE_MICROS;
const MAX_SPAN_MICROS = 48 * HOUR_MICROS;
const MAX_AGE_MICROS = 14 * 24 * HOUR_MICROS;
/** Callers have clocks of their own. */
const TOLERANCE_MICROS = MINUTE_MICROS;

/** The span of a call that names none. */
export function lastDay(nowMicros: number): TimeSpan {
  return { startMicros: nowMicros - 24 * HOUR_MICROS, endMicros: nowMicros };
}

export function checkTimeSpan({ startMicros, endMicros }: TimeSpan, nowMicros: number): void {
  if (startMicros >= endMicros) throw invalidArgument('start_time must be before end_time', { field: 'start_time' });
  if (endMicros - startMicros > MAX_SPAN_MICROS)
    throw invalidArgument('start_time and end_time must not be more than 48 hours apart', { field: 'start_time' });
  if (startMicros < nowMicros - MAX_AGE_MICROS - TOLERANCE_MICROS)
    throw invalidArgument('start_time must not be more than 14 days ago', { field: 'start_time' });
  if (endMicros > nowMicros + TOLERANCE_MICROS)
    throw invalidArgument('end_time must not be in the future', { field: 'end_time' });
}
