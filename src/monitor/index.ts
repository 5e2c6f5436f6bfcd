/**
 * monitor: a server's state for its operators. Metrics by the conventions of Prometheus, probes of its health, and log
 * lines of its work, its calls and its slow calls. Nothing here decides anything: all is read from the counts of `env`.
 */
export { CallLog, type CallLogOptions } from './call-log.ts';
export { LogWriter, type LogOutput } from './log-writer.ts';
export { metricsDocument } from './metrics-document.ts';
export { MetricsPage, type MetricsSources } from './metrics-page.ts';
export { MonitorServer, type MonitorServerOptions } from './monitor-server.ts';
export { Readiness } from './readiness.ts';
