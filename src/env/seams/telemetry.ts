/**
 * Logger and metrics: the reports of a running database. Both are handed in; the defaults write nothing and only count.
 *
 * A metric here is a name and numbers. Its meaning, its unit and its public name are defined by the table of the room
 * `monitor`.
 */

import type { Random } from './clock.ts';

/** From the least to the most urgent. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type LogFields = Readonly<Record<string, string | number | boolean>>;

/**
 * `debug`: what happens in normal work, for a person who searches a cause. `info`: changes of state, and faults of
 * clients. `warn`: a person should check it. `error`: something has failed.
 */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /**
   * Writes a line of the access log: one a call. Written at every level, and dropped first when lines are made faster
   * than they are read.
   */
  access(fields: LogFields): void;
}

export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {}, access() {} };

/** One of the counters, for hot paths: the code that counts adds to `value` itself. */
export interface Counter {
  value: number;
}

/** The number of values below each bound. Hot path: an observation is a search over few bounds and two additions. */
export class Histogram {
  /** Upper bounds, ascending; a value belongs to the first that is not below it. */
  readonly bounds: readonly number[];
  /** One for each bound, and one for what is above the last. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    let at = 0;
    while (at < bounds.length && value > bounds[at]!) at++;
    counts[at]!++;
    this.sum += value;
  }
}

/** Bounds for durations in milliseconds: from a tenth of a millisecond to a minute. */
export const DURATION_BOUNDS_MS: readonly number[] = Object.freeze([
  0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000,
]);

/** All metrics of a process or a thread, as plain data. Names may have labels after them: see `labelled`. */
export interface MetricsReport {
  readonly counters: Readonly<Record<string, number>>;
  readonly gauges: Readonly<Record<string, number>>;
  readonly histograms: Readonly<Record<string, HistogramReport>>;
}

export interface HistogramReport {
  readonly bounds: readonly number[];
  /** One for each bound, and one for what is above the last. */
  readonly counts: readonly number[];
  readonly sum: number;
}

/**
 * The name of a metric's part: the values of labels follow the metric's name. They come from small fixed sets, never
 * from callers.
 */
export function labelled(name: string, ...values: readonly string[]): string {
  return [name, ...values].join('|');
}

/**
 * Named counters, gauges and histograms. Names are dotted nouns, units last: `sstable.blocksRead`, `log.appendedBytes`.
 */
export class Metrics {
  readonly #counters = new Map<string, Counter>();
  readonly #gauges = new Map<string, Set<() => number>>();
  readonly #histograms = new Map<string, Histogram>();
  #name: string | undefined;

  /** A unique name of these counters, drawn on the first call. */
  name(random: Pick<Random, 'uniqueName'>): string {
    return (this.#name ??= random.uniqueName());
  }

  add(name: string, amount = 1): void {
    this.counter(name).value += amount;
  }

  get(name: string): number {
    return this.#counters.get(name)?.value ?? 0;
  }

  counter(name: string): Counter {
    let counter = this.#counters.get(name);
    if (!counter) this.#counters.set(name, (counter = { value: 0 }));
    return counter;
  }

  /**
   * Calls `read` when a report is requested, until the returned function is called. Gauges of one name are added up.
   */
  gauge(name: string, read: () => number): () => void {
    const readers = this.#gauges.get(name) ?? new Set();
    this.#gauges.set(name, readers.add(read));
    return () => void readers.delete(read);
  }

  /** Several gauges that begin and end together. */
  gauges(reads: Readonly<Record<string, () => number>>): () => void {
    const stops = Object.entries(reads).map(([name, read]) => this.gauge(name, read));
    return () => {
      for (const stop of stops) stop();
    };
  }

  histogram(name: string, bounds: readonly number[] = DURATION_BOUNDS_MS): Histogram {
    let histogram = this.#histograms.get(name);
    if (!histogram) this.#histograms.set(name, (histogram = new Histogram(bounds)));
    return histogram;
  }

  /** All counters that have counted something, by name. */
  snapshot(): Record<string, number> {
    const counted = [...this.#counters].filter(([, { value }]) => value !== 0);
    return Object.fromEntries(
      counted.map(([name, { value }]): [string, number] => [name, value]).sort(([a], [b]) => (a < b ? -1 : 1)),
    );
  }

  report(): MetricsReport {
    const gauges = [...this.#gauges].filter(([, readers]) => readers.size > 0);
    return {
      counters: this.snapshot(),
      gauges: Object.fromEntries(
        gauges.map(([name, readers]) => [name, [...readers].reduce((sum, read) => sum + read(), 0)]),
      ),
      histograms: Object.fromEntries(
        [...this.#histograms].map(([name, { bounds, counts, sum }]) => [name, { bounds, counts: [...counts], sum }]),
      ),
    };
  }
}

/** The sum of the reports, name by name. */
export function sumOfReports(reports: readonly MetricsReport[]): MetricsReport {
  const [counters, gauges]: [Record<string, number>, Record<string, number>] = [{}, {}];
  const histograms: Record<string, HistogramReport> = {};
  for (const report of reports) {
    for (const [name, value] of Object.entries(report.counters)) counters[name] = (counters[name] ?? 0) + value;
    for (const [name, value] of Object.entries(report.gauges)) gauges[name] = (gauges[name] ?? 0) + value;
    for (const [name, histogram] of Object.entries(report.histograms)) {
      const before = histograms[name];
      histograms[name] = before
        ? {
            bounds: before.bounds,
            counts: before.counts.map((count, i) => count + (histogram.counts[i] ?? 0)),
            sum: before.sum + histogram.sum,
          }
        : histogram;
    }
  }
  return { counters, gauges, histograms };
}
