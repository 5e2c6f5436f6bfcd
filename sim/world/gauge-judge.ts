/**
 * A judge of what the roles report of themselves, as monitoring reads it (docs/METRICS.md): no gauge is below zero, the
 * block cache keeps within its limit, and long after the faults no role reports trouble.
 */
import type { Cluster } from './cluster.ts';
import type { Verdicts } from './verdicts.ts';

/** Each is zero while all is in order. */
const OF_TROUBLE = ['master.unservedTablets', 'memtables.flushFailing', 'memtables.refusing'];

interface Report {
  readonly process: string;
  readonly gauges: Readonly<Record<string, number>>;
}

/** The gauges of the roles that run. */
function* reportsOf({ masters, servers }: Cluster): Iterable<Report> {
  for (const { process, metrics } of [...masters, ...servers])
    if (process !== undefined && metrics !== undefined)
      yield { process: process.name, gauges: metrics.report().gauges };
}

export function judgeGauges(cluster: Cluster, verdicts: Verdicts): void {
  for (const { process, gauges } of reportsOf(cluster)) {
    for (const [name, value] of Object.entries(gauges))
      if (!(value >= 0)) verdicts.add('roles', `${process} reports that ${name} is ${value}`);
    const { 'blockCache.usedBytes': used = 0, 'blockCache.limitBytes': limit = 0 } = gauges;
    if (used > limit) verdicts.add('roles', `${process} reports ${used} bytes in a block cache of ${limit}`);
  }
}

/** What a role reports that is not in order; undefined: nothing. */
export function troubleOf(cluster: Cluster): string | undefined {
  for (const { process, gauges } of reportsOf(cluster))
    for (const name of OF_TROUBLE)
      if ((gauges[name] ?? 0) > 0) return `${process} reports that ${name} is ${gauges[name]}`;
  return undefined;
}
