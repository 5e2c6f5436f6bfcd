/** The settings of a cluster, as options of its roles. */
import { resolve } from 'node:path';
import type { CertificateFiles, RoleClusterOptions } from '../../boot/index.ts';
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
    lockTls: filesOf(lockCa, lockCert, lockKey),
    files,
    readCache: readCacheDir === undefined ? undefined : { directory: readCacheDir, budgetBytes: readCacheBytes },
    clusterAddress,
    clusterAdvertise,
    clusterSecretFile,
    clusterTls: filesOf(clusterCa, clusterCert, clusterKey),
    environment,
    ...telemetry,
  };
}

function filesOf(
  caFile: string | undefined,
  certFile: string | undefined,
  keyFile: string | undefined,
): CertificateFiles | undefined {
  return caFile === undefined ? undefined : { caFile, certFile, keyFile };
}

/** The store in words. */
export function placeOf({ lock, files = '' }: ServerSettings): string {
  return `data in ${files.includes('://') ? files : resolve(files)}, locks in ${lock}`;
}

/** The shared directory; undefined for a bucket. */
export function directoryOf({ files }: ServerSettings): string | undefined {
  return files === undefined || files.includes('://') ? undefined : files;
}
