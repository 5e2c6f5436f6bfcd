/**
 * server: `edubba serve` as a library: a service behind the Cloud Bigtable API on an address. The package's entry
 * "edubba/server".
 */
export type { AccessOptions, JwtOptions } from './access-control.ts';
export { type RunningServer, type ServerOptions, startServer } from './server.ts';
export { startThreadedServer, type ThreadedServer, type ThreadedServerOptions } from './threaded-server.ts';
export type { TlsFiles } from './tls-files.ts';
export { type ClusterServer, type ClusterServerOptions, startClusterServer } from './cluster-server.ts';
