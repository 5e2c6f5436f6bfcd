/** Tablets that took a large share of their server's time (API: google.bigtable.admin.v2.HotTablet). */
import type { RowRange } from './row-set.ts';

export interface HotTablet {
  /** Unique; letters and digits. */
  readonly id: string;
  /** The full name of its table. */
  readonly table: string;
  /** Undefined where the caller may not know keys of the table. */
  readonly range: RowRange | undefined;
  /** The time that was measured, µs since 1970: a minute, or the last one and the one that is not over. */
  readonly startMicros: number;
  readonly endMicros: number;
  /** Above 0, at most 100: the share of its server's time that was spent on it. */
  readonly cpuPercent: number;
}

/** The highest of a tablet's measurements that begin in one such interval is listed, and no other. */
const INTERVAL_MICROS = 15 * 60e6;

/** The hottest, at most `limit`, the hottest first; each tablet once a quarter of an hour. */
export function hottest(all: Iterable<HotTablet>, limit: number): HotTablet[] {
  const byTablet = new Map<string, HotTablet>();
  for (const each of all) {
    const { table, range, startMicros } = each;
    const interval = Math.floor(startMicros / INTERVAL_MICROS);
    const key = JSON.stringify([table, range?.start, range?.end, interval]);
    const known = byTablet.get(key);
    if (known === undefined || compareHeat(each, known) < 0) byTablet.set(key, each);
  }
  return [...byTablet.values()].sort(compareHeat).slice(0, limit);
}

/** Negative where `a` comes first: the hotter. No two are equal. */
export function compareHeat(a: Pick<HotTablet, 'cpuPercent' | 'id'>, b: Pick<HotTablet, 'cpuPercent' | 'id'>): number {
  return b.cpuPercent - a.cpuPercent || (a.id < b.id ? -1 : 1);
}
