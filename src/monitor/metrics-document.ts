/** docs/METRICS.md, made from the table of metrics. */
import { METRICS, type MetricDefinition, PROCESS_METRICS } from './metric-table.ts';

const HEAD = `# Metrics

<!-- Made by \`node --import tsx scripts/metrics.mjs --write\` from src/monitor/metric-table.ts. Do not edit. -->

\`edubba serve\` serves its metrics for [Prometheus](https://prometheus.io/) at \`/metrics\`, on a
port of its own.
\`--metrics-address HOST:PORT\` sets it, \`--metrics-address off\` turns it off.
The default is 127.0.0.1 and the port of \`--address\` plus 1000: 9086 for the usual 8086.
Above 65535 it is a free port, which the server prints.
If the default port is taken, the server runs without metrics and prints a warning.
The port has three pages:

| path | response |
|---|---|
| \`/metrics\` | the metrics below, in the text format of Prometheus. A response is cached for a second |
| \`/healthz\` | 200 while the process answers |
| \`/readyz\` | 200 while the server serves. 503 with the reason while it starts or stops, while the disk is full, while memtables cannot be written to files, and while tablets cannot be served |

The port does not authenticate its callers.
The metrics name no table, row or principal.
An address that other machines can reach must be set explicitly; the server then warns.

If tablet servers have threads of their own (\`--tablet-servers\`), each figure is the sum over all
threads.
A counter begins at 0 when the process starts.

Errors in the last minute, and the 99th percentile of reads:

    sum by (method) (rate(edubba_calls_total{code!="OK"}[1m]))
    histogram_quantile(0.99, sum by (le) (rate(edubba_call_duration_seconds_bucket{method="google.bigtable.v2.Bigtable/ReadRows"}[5m])))
`;

/** The page in Markdown. */
export function metricsDocument(): string {
  const parts = Object.entries(METRICS).map(([subject, metrics]) => `## ${subject}\n\n${table(metrics)}`);
  const process = `## The process and Node\n\nBy prom-client. \`nodejs_*\` are those of the main thread.\n\n${table(PROCESS_METRICS)}`;
  return `${[HEAD, ...parts, process].join('\n')}`;
}

function table(
  metrics: readonly (Pick<MetricDefinition, 'name' | 'type' | 'help'> & Partial<MetricDefinition>)[],
): string {
  const rows = metrics.map(({ name, type, help, labels = [], series = [] }) => {
    const names = [...new Set([...labels, ...series.flatMap((each) => Object.keys(each.labels ?? {}))])];
    return `| \`${name}\` | ${type} | ${names.map((label) => `\`${label}\``).join(', ')} | ${help} |\n`;
  });
  return `| metric | type | labels | meaning |\n|---|---|---|---|\n${rows.join('')}`;
}
