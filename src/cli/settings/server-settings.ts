/**
 * All settings of the programs that serve (`edubba serve`, and `edubba tabletserver` and `edubba master` of a cluster)
 * as one table, the source of their flags, environment variables, keys of the settings file, help and docs/SETTINGS.md.
 * A new setting is one entry, and a member of ServerSettings.
 *
 * Invariant: no setting is a secret. Secrets are in files that settings name.
 */
import {
  DATABASE_SETTINGS,
  serverCacheBytes,
  serverIndexBytes,
  type Setting,
  type SettingsOf,
} from '../../boot/index.ts';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const PLACE = {
  dir: {
    kind: 'path',
    placeholder: 'directory',
    default: './edubba-data',
    group: 'Address and data',
    doc: 'The directory of the database. It is created if it does not exist. No other process may have it open.',
  },
  address: {
    kind: 'address',
    placeholder: 'host:port',
    default: '127.0.0.1:8086',
    group: 'Address and data',
    doc: 'The address of the server. Port 0 chooses a free port. An address that other machines can reach needs TLS and authentication, or `insecure-public`.',
  },
  tabletServers: {
    kind: 'count',
    least: 1,
    most: 64,
    default: 1,
    group: 'Address and data',
    brief: 'number of tablet servers; several run in a thread each',
    doc: 'Number of tablet servers. Several run in a thread each, to use several cores. They share the sizes of memory and log evenly.',
  },
} as const satisfies Record<string, Setting>;

const CLUSTER = {
  lock: {
    kind: 'text',
    placeholder: 'etcd://…',
    group: 'Cluster',
    doc: 'The lock service: `etcd://HOST:PORT,HOST:PORT/PREFIX`, with some or all members. The prefix separates clusters that share an etcd.',
  },
  lockUser: {
    kind: 'text',
    placeholder: 'user',
    group: 'Cluster',
    doc: 'The user of etcd. Needs `lock-password-file`.',
  },
  lockPasswordFile: {
    kind: 'path',
    placeholder: 'file',
    group: 'Cluster',
    doc: 'The file of the user’s password.',
  },
  lockCa: {
    kind: 'path',
    placeholder: 'file',
    group: 'Cluster',
    doc: 'Speaks TLS to etcd, whose certificate one of these authorities has signed (PEM).',
  },
  lockCert: {
    kind: 'path',
    placeholder: 'file',
    group: 'Cluster',
    doc: 'The certificate for etcd (PEM), if it asks for one. Needs `lock-key` and `lock-ca`.',
  },
  lockKey: {
    kind: 'path',
    placeholder: 'file',
    group: 'Cluster',
    doc: 'The key of that certificate (PEM).',
  },
  files: {
    kind: 'path',
    placeholder: 'directory or s3://…',
    group: 'Cluster',
    brief: 'a directory that all machines share, or s3://BUCKET/PREFIX?endpoint=URL',
    doc: 'The store of logs and files: a directory that all machines share, or `s3://BUCKET/PREFIX?endpoint=URL&region=NAME`. Without an endpoint it is a bucket of AWS. Credentials are found as AWS’s own programs find them.',
  },
  readCacheDir: {
    kind: 'path',
    placeholder: 'directory',
    without: 'no cache',
    group: 'Cluster',
    doc: 'A directory on a disk of this machine, in which a tablet server keeps what it has read of the store. It needs one of its own, and may be emptied while the server is down.',
  },
  readCacheBytes: {
    kind: 'bytes',
    least: 16 * MIB,
    default: 10 * GIB,
    group: 'Cluster',
    doc: 'What the read cache takes of the disk at most.',
  },
  clusterAddress: {
    kind: 'address',
    default: '127.0.0.1:0',
    group: 'Cluster',
    doc: 'The address at which this process takes calls of the cluster’s other processes. Port 0 chooses a free port.',
  },
  clusterAdvertise: {
    kind: 'address',
    without: 'that of `cluster-address`',
    group: 'Cluster',
    brief: 'the address by which the cluster’s other processes reach this one',
    doc: 'The address by which the cluster’s other processes reach this one. Needed if `cluster-address` is one of all interfaces, or behind a translator of addresses. Port 0 is the port of `cluster-address`.',
  },
  clusterSecretFile: {
    kind: 'path',
    placeholder: 'file',
    without: 'the variable EDUBBA_CLUSTER_SECRET',
    group: 'Cluster',
    doc: 'The secret by which the cluster’s processes know one another: 32 bytes of text or more. `openssl rand -hex 32` makes one.',
  },
  clusterCa: {
    kind: 'path',
    placeholder: 'file',
    group: 'Cluster',
    doc: 'Encrypts the calls between the cluster’s processes, and takes only those with a certificate of one of these authorities (PEM). Needs `cluster-cert` and `cluster-key`.',
  },
  clusterCert: {
    kind: 'path',
    placeholder: 'file',
    group: 'Cluster',
    doc: 'The certificate of this process for the others (PEM): for clients and for servers, with the host of its address.',
  },
  clusterKey: {
    kind: 'path',
    placeholder: 'file',
    group: 'Cluster',
    doc: 'The key of that certificate (PEM).',
  },
} as const satisfies Record<string, Setting>;

const CONNECTIONS = {
  maxConnections: {
    kind: 'count',
    least: 1,
    default: 20_000,
    group: 'Connections',
    doc: 'The most concurrent connections. At the limit a new connection replaces one without calls. The limit of open files (`ulimit -n`) may allow fewer.',
  },
  maxConnectionsPerAddress: {
    kind: 'count',
    least: 1,
    default: 2000,
    group: 'Connections',
    doc:
      'The most concurrent connections of one IPv4 address, or of one IPv6 network of 64 bits. Connections from this machine are not counted. ' +
      'Raise it if many clients use one proxy or address translator.',
  },
  keepAliveMs: {
    kind: 'duration',
    least: 1000,
    most: DAY_MS,
    default: MINUTE_MS,
    group: 'Connections',
    doc: 'A connection without traffic for this time gets a ping. Set it below the idle limit of any load balancer in between.',
  },
  keepAliveTimeoutMs: {
    kind: 'duration',
    least: 1000,
    most: HOUR_MS,
    default: 20_000,
    group: 'Connections',
    doc: 'A connection is closed if its client does not answer the ping within this time.',
  },
  maxIdleMs: {
    kind: 'duration',
    least: 1000,
    most: 365 * DAY_MS,
    default: HOUR_MS,
    group: 'Connections',
    doc: 'A connection without calls is closed after this time; its client connects again.',
  },
  stopGraceMs: {
    kind: 'duration',
    least: 0,
    most: HOUR_MS,
    default: 5000,
    group: 'Connections',
    doc: 'Time for calls in flight to end after SIGTERM or SIGINT. A supervisor should wait longer before it kills the server.',
  },
} as const satisfies Record<string, Setting>;

const SECURITY = {
  tlsKey: {
    kind: 'path',
    placeholder: 'file',
    group: 'TLS',
    doc: 'The key of the server’s certificate (PEM). With it and `tls-cert` the server speaks only TLS.',
  },
  tlsCert: {
    kind: 'path',
    placeholder: 'file',
    group: 'TLS',
    doc: 'The server’s certificate (PEM), followed by intermediate certificates.',
  },
  tlsClientCa: {
    kind: 'path',
    placeholder: 'file',
    group: 'TLS',
    doc: 'Serves only clients with a certificate signed by one of these authorities (PEM). Needs TLS.',
  },
  tlsMinVersion: {
    kind: 'choice',
    choices: ['1.2', '1.3'],
    default: '1.2',
    placeholder: 'version',
    group: 'TLS',
    doc: 'The oldest accepted version of TLS. All recent clients support 1.3.',
  },
  tokens: {
    kind: 'path',
    placeholder: 'file',
    group: 'Authentication',
    doc: 'Serves only calls with a bearer token of this file. `edubba token add` creates the file.',
  },
  jwtIssuer: {
    kind: 'text',
    placeholder: 'issuer',
    group: 'Authentication',
    doc: 'Serves only calls with a bearer token (JWT) of this issuer. Needs `jwt-audience` and `jwt-jwks`.',
  },
  jwtAudience: {
    kind: 'text',
    placeholder: 'audience',
    group: 'Authentication',
    doc: 'The audience that these tokens must name.',
  },
  jwtJwks: {
    kind: 'path',
    placeholder: 'file or url',
    group: 'Authentication',
    doc: 'The issuer’s keys: a file or an https URL (the `jwks_uri` of an OpenID provider).',
  },
  owners: {
    kind: 'text',
    placeholder: 'member,…',
    group: 'Authentication',
    doc: 'Callers who may do everything, whatever policies say: `token:NAME`, `jwt:SUBJECT`, `cert:NAME`, `allUsers`. With owners, what has no policy is theirs alone; without, it is everyone’s (see [RIGHTS.md](RIGHTS.md)).',
    brief: 'callers who may do everything, whatever policies say',
  },
  unreadableFamilies: {
    kind: 'choice',
    choices: ['refuse', 'hide'],
    default: 'refuse',
    group: 'Authentication',
    brief: 'what a read does that needs families which the caller may not read',
    doc: 'A read that needs column families which its caller may not read is refused, or does not see their cells.',
  },
  insecurePublic: {
    kind: 'boolean',
    default: false,
    group: 'Authentication',
    doc: 'Allows an address that other machines can reach, without TLS or authentication.',
  },
} as const satisfies Record<string, Setting>;

const MONITORING = {
  metricsAddress: {
    kind: 'address',
    word: 'off',
    placeholder: 'host:port',
    without: '127.0.0.1 and the port of `address` plus 1000, if that is free',
    group: 'Metrics and logs',
    doc: 'The address of `/metrics`, `/healthz` and `/readyz` (see [METRICS.md](METRICS.md)). `off` turns them off.',
    brief: 'the address of /metrics, /healthz and /readyz, or off',
  },
  logLevel: {
    kind: 'choice',
    choices: ['debug', 'info', 'warn', 'error'],
    default: 'warn',
    group: 'Metrics and logs',
    doc: 'The least level of logged lines. The log goes to standard error.',
  },
  logFormat: {
    kind: 'choice',
    choices: ['text', 'json'],
    default: 'text',
    group: 'Metrics and logs',
    doc: 'Log lines for people, or one JSON object a line.',
  },
  accessLog: {
    kind: 'boolean',
    default: false,
    group: 'Metrics and logs',
    doc: 'Logs every call with its caller, outcome and duration. Lines are dropped and counted if they are read too slowly.',
  },
  slowMs: {
    kind: 'duration',
    least: 0,
    most: HOUR_MS,
    default: 1000,
    group: 'Metrics and logs',
    doc: 'Logs calls that take longer, with their request and cost; 0 logs none.',
  },
} as const satisfies Record<string, Setting>;

export const SERVER_SETTINGS = {
  ...PLACE,
  ...CLUSTER,
  ...DATABASE_SETTINGS,
  blockCacheBytes: {
    ...DATABASE_SETTINGS.blockCacheBytes,
    default: { compute: () => serverCacheBytes(), says: 'an eighth of the memory, 64 to 256 MiB' },
  },
  indexBytes: {
    ...DATABASE_SETTINGS.indexBytes,
    default: { compute: () => serverIndexBytes(), says: 'an eighth of the memory, 64 MiB to 1 GiB' },
  },
  keepDeletedMs: { ...DATABASE_SETTINGS.keepDeletedMs, default: 7 * DAY_MS },
  ...CONNECTIONS,
  ...SECURITY,
  ...MONITORING,
} as const satisfies Record<string, Setting>;

export type ServerSettings = SettingsOf<typeof SERVER_SETTINGS>;
export type SettingName = keyof ServerSettings;

/** In the order of help and page. */
export const SETTING_NAMES = Object.keys(SERVER_SETTINGS) as SettingName[];

/** The programs that have settings. */
export const SERVER_COMMANDS = ['serve', 'tabletserver', 'master'] as const;
export type ServerCommand = (typeof SERVER_COMMANDS)[number];

/** Settings of one database in one process. */
const OF_SERVE: readonly SettingName[] = ['dir', 'tabletServers'];
/** What the master alone decides. */
const NOT_OF_TABLET_SERVER: readonly SettingName[] = [...OF_SERVE, 'keepDeletedMs'];
const OF_CLUSTER = Object.keys(CLUSTER) as SettingName[];
const OF_MASTER: readonly SettingName[] = [
  ...OF_CLUSTER.filter((name) => !name.startsWith('readCache')),
  'requestBytes',
  'keepDeletedMs',
  'backupStore',
  'stopGraceMs',
  'metricsAddress',
  'logLevel',
  'logFormat',
];

/** True if the command has that setting. */
export function hasSetting(command: ServerCommand, name: SettingName): boolean {
  if (command === 'master') return OF_MASTER.includes(name);
  return !(command === 'serve' ? OF_CLUSTER : NOT_OF_TABLET_SERVER).includes(name);
}

/** A setting's key in the settings file, in kebab-case. */
export function keyOf(name: SettingName): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export function flagOf(name: SettingName): string {
  return `--${keyOf(name)}`;
}

export function variableOf(name: SettingName): string {
  return `EDUBBA_${keyOf(name).replaceAll('-', '_').toUpperCase()}`;
}

/** Settings by the headings of their groups, in order: those of the command, or all. */
export function settingGroups(command?: ServerCommand): ReadonlyMap<string, readonly SettingName[]> {
  const groups = new Map<string, SettingName[]>();
  for (const name of SETTING_NAMES) {
    if (command !== undefined && !hasSetting(command, name)) continue;
    const { group } = SERVER_SETTINGS[name];
    groups.set(group, [...(groups.get(group) ?? []), name]);
  }
  return groups;
}
