/**
 * The page of metrics: the counts of all threads, added up, in Prometheus' text format (by prom-client).
 *
 * Invariants: the page is made at most once in CACHE_MS, however often it is requested, and never twice concurrently. A
 * source that does not answer in time counts with its last report, so that no counter goes back because a thread is
 * busy.
 */
import type { Metric, Registry } from 'prom-client';
import { type Clock, type MetricsReport, sleep, sumOfReports } from '../env/index.ts';
import { METRICS, type MetricDefinition, type MetricSeries, PROCESS_METRICS } from './metric-table.ts';

/** A page is reused for this long. */
const CACHE_MS = 1000;
/** Time for a source to report. */
const SOURCE_TIMEOUT_MS = 2000;

/** The sources of the figures. Each is read for every page. */
export type MetricsSources = Readonly<Record<string, () => MetricsReport | Promise<MetricsReport>>>;

interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly metricName?: string;
}

const EMPTY_REPORT: MetricsReport = { counters: {}, gauges: {}, histograms: {} };

export class MetricsPage {
  readonly #sources: MetricsSources;
  readonly #clock: Clock;
  readonly #last = new Map<string, MetricsReport>();
  #client: typeof import('prom-client') | undefined;
  #registry: Registry | undefined;
  #report: MetricsReport = EMPTY_REPORT;
  #making: Promise<string> | undefined;
  #madeMs = Number.NEGATIVE_INFINITY;

  constructor(sources: MetricsSources, clock: Clock) {
    this.#sources = sources;
    this.#clock = clock;
  }

  /** Loads prom-client, which takes a while. Nothing is measured yet. */
  async load(): Promise<void> {
    this.#client ??= (await import('prom-client')).default;
  }

  text(): Promise<string> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#making !== undefined && nowMs - this.#madeMs < CACHE_MS) return this.#making;
    this.#madeMs = nowMs;
    const making = this.#make();
    this.#making = making;
    making.then(
      // the page's age counts from its completion
      () => void (this.#madeMs = this.#clock.monotonicMs()),
      () => void (this.#making = undefined),
    );
    return making;
  }

  async #make(): Promise<string> {
    await this.load();
    this.#registry ??= registryOver(this.#client!, () => this.#report);
    const reports = await Promise.all(Object.entries(this.#sources).map(([name, read]) => this.#read(name, read)));
    this.#report = sumOfReports(reports);
    return this.#registry.metrics();
  }

  async #read(name: string, read: () => MetricsReport | Promise<MetricsReport>): Promise<MetricsReport> {
    const late = new AbortController();
    try {
      const report = await Promise.race([
        read(),
        sleep(this.#clock, SOURCE_TIMEOUT_MS, late.signal).then(
          () => undefined,
          () => undefined,
        ),
      ]);
      if (report !== undefined) this.#last.set(name, report);
    } catch {
      // the source may have ended: its last report counts
    } finally {
      late.abort();
    }
    return this.#last.get(name) ?? EMPTY_REPORT;
  }
}

/**
 * Begins to measure. Node's reports of every pause of its garbage collector cost a share of all CPU time under load, so
 * this waits for the first request of the page: a server whose page is never read does not pay for it.
 */
function registryOver(client: typeof import('prom-client'), report: () => MetricsReport): Registry {
  const registry = new client.Registry();
  for (const definition of Object.values(METRICS).flat()) registry.registerMetric(reportedMetric(definition, report));
  // its delays of the event loop are left out, since ours cover all threads and add up: so it measures rarely
  client.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 1000 });
  // the lists of all handles and requests are left out too: they would cost most where connections are many
  const published = new Set([...Object.values(METRICS).flat(), ...PROCESS_METRICS].map(({ name }) => name));
  for (const { name } of registry.getMetricsAsArray()) if (!published.has(name)) registry.removeSingleMetric(name);
  return registry;
}

/** A metric with only the members that the registry uses. */
function reportedMetric(definition: MetricDefinition, report: () => MetricsReport): Metric {
  const { name, type, help } = definition;
  const get = async (): Promise<object> => ({
    name,
    type,
    help,
    aggregator: 'sum',
    values: samplesOf(definition, report()),
  });
  return { name, type, help, get } as unknown as Metric;
}

function samplesOf(definition: MetricDefinition, report: MetricsReport): Sample[] {
  const { type, series } = definition;
  if (type === 'histogram') return series.flatMap((each) => histogramSamples(definition, each, report.histograms));
  const values = { ...report.gauges, ...report.counters };
  return series.flatMap((each) => {
    const found = matching(definition, each, values).map(
      ([labels, value]): Sample => ({ labels, value: value * (definition.factor ?? 1) }),
    );
    // a count without events is zero, unless its labels are not known before the first event
    return found.length > 0 || definition.labels !== undefined || (type === 'gauge' && !(each.source in values))
      ? found
      : [{ labels: each.labels ?? {}, value: 0 }];
  });
}

function histogramSamples(
  definition: MetricDefinition,
  series: MetricSeries,
  histograms: MetricsReport['histograms'],
): Sample[] {
  const { name, factor = 1 } = definition;
  return matching(definition, series, histograms).flatMap(([labels, { bounds, counts, sum }]) => {
    let count = 0;
    const buckets = counts.map((each, i): Sample => {
      count += each;
      const bound = bounds[i];
      return {
        metricName: `${name}_bucket`,
        labels: { ...labels, le: bound === undefined ? '+Inf' : rounded(bound * factor) },
        value: count,
      };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum * factor },
      { metricName: `${name}_count`, labels, value: count },
    ];
  });
}

/** The values that are counted under the source's name, with their labels. */
function matching<V>(
  { labels = [] }: MetricDefinition,
  { source, labels: fixed = {} }: MetricSeries,
  values: Readonly<Record<string, V>>,
): [Record<string, string>, V][] {
  const found: [Record<string, string>, V][] = [];
  for (const [name, value] of Object.entries(values)) {
    if (name !== source && !(labels.length > 0 && name.startsWith(`${source}|`))) continue;
    const labelValues = name.split('|').slice(1);
    found.push([{ ...fixed, ...Object.fromEntries(labels.map((label, i) => [label, labelValues[i] ?? ''])) }, value]);
  }
  return found;
}

/** A millisecond's bound in seconds, without the last digits that a multiplication leaves. */
function rounded(value: number): number {
  return Number(value.toPrecision(12));
}
