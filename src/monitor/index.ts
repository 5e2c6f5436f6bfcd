/**
 * monitor: how a server shows how it is. Metrics by the conventions of Prometheus, probes for its health, and log
 * lines: of its work, of its calls, of its slow calls. Nothing here decides anything: all is read from what `env`
 * counts.
 */
export { CallLog, type CallLogOptions } from './call-log.ts';
export { LogWriter, type LogOutput } from './log-writer.ts';
export { metricsDocument } from './metrics-document.ts';
export { MetricsPage, type MetricsSources } from './metrics-page.ts';
export { MonitorServer, type MonitorServerOptions } from './monitor-server.ts';
export { Readiness } from './readiness.ts';
