/** The settings of a cluster, as options of its roles. */
import { resolve } from 'node:path';
import { isBucket, type RoleClusterOptions } from '../../boot/index.ts';
import { invalidArgument } from '../../base/index.ts';
import type { Logger, Metrics } from '../../env/index.ts';
import type { Terminal } from '../output/terminal.ts';
import type { ServerSettings } from '../settings/server-settings.ts';

interface Telemetry {
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** INVALID_ARGUMENT where the lock service or the store is missing. */
export function clusterOptions(
  settings: ServerSettings,
  { environment }: Pick<Terminal, 'environment'>,
  telemetry: Telemetry,
): RoleClusterOptions {
  const { readCacheDir, readCacheBytes } = settings;
  const { lock, lockUser, lockPasswordFile, lockCa, lockCert, lockKey } = settings;
  const { files, clusterAddress, clusterAdvertise, clusterSecretFile, clusterCa, clusterCert, clusterKey } = settings;
  if (lock === undefined || files === undefined) throw invalidArgument('a cluster needs a lock service and a store');
  return {
    lock,
    lockUser,
    lockPasswordFile,
    lockTls: { caFile: lockCa, certFile: lockCert, keyFile: lockKey },
    files,
    readCache: readCacheDir === undefined ? undefined : { directory: readCacheDir, budgetBytes: readCacheBytes },
    clusterAddress,
    clusterAdvertise,
    clusterSecretFile,
    clusterTls: { caFile: clusterCa, certFile: clusterCert, keyFile: clusterKey },
    environment,
    ...telemetry,
  };
}

/** The store in words. */
export function placeOf({ lock, files = '' }: ServerSettings): string {
  return `data in ${isBucket(files) ? files : resolve(files)}, locks in ${lock}`;
}

/** The shared directory; undefined for a bucket. */
export function directoryOf({ files }: ServerSettings): string | undefined {
  return files === undefined || isBucket(files) ? undefined : files;
}
