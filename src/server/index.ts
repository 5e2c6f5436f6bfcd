/**
 * server: `edubba serve` as a library: a service behind the Cloud Bigtable API on an address. The package's door "edubba/server".
 */
export { type RunningServer, type ServerOptions, startServer } from './server.ts';
