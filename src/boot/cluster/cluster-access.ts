/** What a process needs to speak to a cluster: its lock service, and how its processes know one another. */
import { invalidArgument } from '../../base/index.ts';
import type { Logger } from '../../env/index.ts';
import { type ClusterSecret, type NetworkTls, readClusterSecret } from '../../network/index.ts';
import {
  environmentVariables,
  type EtcdOptions,
  parseEtcdAddress,
  systemClock,
  systemRandom,
} from '../../platform/index.ts';
import { readInput, warnOfOthers } from '../open/input-files.ts';

/** Paths of PEM files. None given: no TLS. */
export interface CertificateFiles {
  /** The authorities of the other side's certificate. */
  readonly caFile?: string | undefined;
  /** The own certificate and its key: both, or neither. */
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

export interface ClusterAccess {
  /** The lock service: etcd://HOST:PORT,HOST:PORT/PREFIX. */
  readonly lock: string;
  /** The user of etcd, and the file of the password. Default: none. */
  readonly lockUser?: string | undefined;
  readonly lockPasswordFile?: string | undefined;
  /** TLS to etcd. Default: none, plain text. */
  readonly lockTls?: CertificateFiles | undefined;
  /** The file of the secret that all processes share. Default: EDUBBA_CLUSTER_SECRET of the environment. */
  readonly clusterSecretFile?: string | undefined;
  /** TLS between the processes, with certificates on both sides. Default: plain text. */
  readonly clusterTls?: CertificateFiles | undefined;
  /** Default: that of the process. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  readonly logger: Logger;
}

export interface OpenAccess {
  readonly etcd: EtcdOptions;
  readonly secret: ClusterSecret | undefined;
  readonly tls: NetworkTls | undefined;
}

/** Reads the files. INVALID_ARGUMENT for wrong addresses, secrets and certificates. */
export async function readAccess(options: ClusterAccess): Promise<OpenAccess> {
  await warnOfFiles(options);
  const etcd = await etcdOptions(options);
  const secret = await readClusterSecret(options.clusterSecretFile, options.environment ?? environmentVariables());
  const tls = isGiven(options.clusterTls) ? await mutualTls(options.clusterTls) : undefined;
  if (secret === undefined && tls === undefined)
    throw invalidArgument(
      'calls between processes need a cluster secret, or TLS with certificates: give the file of the secret, or EDUBBA_CLUSTER_SECRET',
    );
  return { etcd, secret, tls };
}

/** Warns of secrets that other users of the machine can read. */
async function warnOfFiles(options: ClusterAccess): Promise<void> {
  const { clusterSecretFile, lockPasswordFile, clusterTls, lockTls, logger } = options;
  const secrets = [
    [clusterSecretFile, 'the cluster’s secret'],
    [lockPasswordFile, 'the password of etcd'],
    [clusterTls?.keyFile, 'the key for the cluster’s processes'],
    [lockTls?.keyFile, 'the key for etcd'],
  ] as const;
  for (const [file, what] of secrets) await warnOfOthers(file, what, 'secret', logger);
}

async function etcdOptions(options: ClusterAccess): Promise<EtcdOptions> {
  const { lock, lockUser, lockPasswordFile, lockTls, logger } = options;
  if ((lockUser === undefined) !== (lockPasswordFile === undefined))
    throw invalidArgument('a user of etcd needs both a name and the file of the password');
  return {
    address: parseEtcdAddress(lock),
    clock: systemClock,
    random: systemRandom,
    logger,
    ...(lockUser !== undefined &&
      lockPasswordFile !== undefined && {
        user: lockUser,
        password: (await readText(lockPasswordFile)).replace(/\r?\n$/, ''),
      }),
    ...(isGiven(lockTls) && { tls: await certificates(lockTls) }),
  };
}

async function certificates({ caFile, certFile, keyFile }: CertificateFiles): Promise<{
  ca?: string;
  cert?: string;
  key?: string;
}> {
  if ((certFile === undefined) !== (keyFile === undefined))
    throw invalidArgument('a certificate needs both its key and itself');
  return {
    ...(caFile !== undefined && { ca: await readText(caFile) }),
    ...(certFile !== undefined && { cert: await readText(certFile) }),
    ...(keyFile !== undefined && { key: await readText(keyFile) }),
  };
}

/** Both sides of a connection between processes have certificates of one authority. */
async function mutualTls(files: CertificateFiles): Promise<NetworkTls> {
  const { ca, cert, key } = await certificates(files);
  if (ca === undefined || cert === undefined || key === undefined)
    throw invalidArgument('TLS between the processes of a cluster needs an authority, a certificate and its key');
  return { server: { key, cert, ca, requestCert: true }, client: { ca, cert, key } };
}

const readText = async (path: string): Promise<string> => String(await readInput(path));

function isGiven(files: CertificateFiles | undefined): files is CertificateFiles {
  return files !== undefined && Object.values(files).some((file) => file !== undefined);
}
