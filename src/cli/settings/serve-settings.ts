/**
 * Everything that can be set about `edubba serve`, as one table: its flags, environment variables, keys of the settings file, help and docs/SETTINGS.md come
 * from here. A new setting is one entry, and is read as a member of ServeSettings.
 *
 * Invariant: no setting is a secret itself; secrets are in files that settings name.
 */
import { DATABASE_SETTINGS, serverCacheBytes, type Setting, type SettingsOf } from '../../boot/index.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const PLACE = {
  dir: {
    kind: 'path',
    placeholder: 'directory',
    default: './edubba-data',
    group: 'Address and data',
    doc: 'The directory of the database. It is made where there is none; no other process may have it open.',
  },
  address: {
    kind: 'address',
    placeholder: 'host:port',
    default: '127.0.0.1:8086',
    group: 'Address and data',
    doc: 'Where the server listens. Port 0 chooses a free one. An address that other machines can reach needs TLS and authentication, or `insecure-public`.',
  },
  tabletServers: {
    kind: 'count',
    least: 1,
    most: 64,
    default: 1,
    group: 'Address and data',
    brief: 'tablet servers, each in a thread of its own where there are several',
    doc: 'Tablet servers. Several run in a thread each, and so use several cores; they share the sizes of memory and log evenly.',
  },
} as const satisfies Record<string, Setting>;

const CONNECTIONS = {
  maxConnections: {
    kind: 'count',
    least: 1,
    default: 20_000,
    group: 'Connections',
    doc: 'How many connections are served at once. At the limit a new one takes the place of one that has no calls. The limit of open files (`ulimit -n`) may allow fewer.',
  },
  maxConnectionsPerAddress: {
    kind: 'count',
    least: 1,
    default: 2000,
    group: 'Connections',
    doc:
      'How many connections one IPv4 address, or one IPv6 network of 64 bits, may have at once. Those of this machine are not counted. ' +
      'Raise it where many clients come through one proxy or address translator.',
  },
  keepAliveMs: {
    kind: 'duration',
    least: 1000,
    most: DAY_MS,
    default: MINUTE_MS,
    group: 'Connections',
    doc: 'A connection that is silent for this long is asked whether its client is still there. Set it below the idle limit of any load balancer in between.',
  },
  keepAliveTimeoutMs: {
    kind: 'duration',
    least: 1000,
    most: HOUR_MS,
    default: 20_000,
    group: 'Connections',
    doc: 'A connection ends when its client does not answer that question within this time.',
  },
  maxIdleMs: {
    kind: 'duration',
    least: 1000,
    most: 365 * DAY_MS,
    default: HOUR_MS,
    group: 'Connections',
    doc: 'A connection without calls ends after this; its client connects anew.',
  },
  stopGraceMs: {
    kind: 'duration',
    least: 0,
    most: HOUR_MS,
    default: 5000,
    group: 'Connections',
    doc: 'Calls under way get this long to end after SIGTERM or SIGINT. A supervisor should wait longer than this before it kills the server.',
  },
} as const satisfies Record<string, Setting>;

const SECURITY = {
  tlsKey: {
    kind: 'path',
    placeholder: 'file',
    group: 'TLS',
    doc: 'The key of the server’s certificate (PEM). With it and `tls-cert` the server speaks TLS alone.',
  },
  tlsCert: {
    kind: 'path',
    placeholder: 'file',
    group: 'TLS',
    doc: 'The server’s certificate (PEM), followed by intermediate ones.',
  },
  tlsClientCa: {
    kind: 'path',
    placeholder: 'file',
    group: 'TLS',
    doc: 'Only clients with a certificate that one of these authorities (PEM) has signed are served. Needs TLS.',
  },
  tlsMinVersion: {
    kind: 'choice',
    choices: ['1.2', '1.3'],
    default: '1.2',
    placeholder: 'version',
    group: 'TLS',
    doc: 'The oldest version of TLS that is spoken. Every client of recent years speaks 1.3.',
  },
  tokens: {
    kind: 'path',
    placeholder: 'file',
    group: 'Authentication',
    doc: 'Only calls with a bearer token of this file are served. `edubba token add` makes the file.',
  },
  jwtIssuer: {
    kind: 'text',
    placeholder: 'issuer',
    group: 'Authentication',
    doc: 'Only calls with a bearer token (JWT) of this issuer are served. `jwt-audience` and `jwt-jwks` are needed, too.',
  },
  jwtAudience: {
    kind: 'text',
    placeholder: 'audience',
    group: 'Authentication',
    doc: 'The audience that such a token must name.',
  },
  jwtJwks: {
    kind: 'path',
    placeholder: 'file or url',
    group: 'Authentication',
    doc: 'The issuer’s keys: a file or an https URL (the `jwks_uri` of an OpenID provider).',
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
    without: '127.0.0.1 and the port of `address` plus 1000, where that is free',
    group: 'Metrics and logs',
    doc: 'Where `/metrics`, `/healthz` and `/readyz` are served (see [METRICS.md](METRICS.md)). `off` serves them nowhere.',
    brief: 'where /metrics, /healthz and /readyz are served; off = nowhere',
  },
  logLevel: {
    kind: 'choice',
    choices: ['debug', 'info', 'warn', 'error'],
    default: 'warn',
    group: 'Metrics and logs',
    doc: 'Lines less urgent than this are not logged. The log goes to standard error.',
  },
  logFormat: {
    kind: 'choice',
    choices: ['text', 'json'],
    default: 'text',
    group: 'Metrics and logs',
    doc: 'Log lines for people, or as one JSON object each.',
  },
  accessLog: {
    kind: 'boolean',
    default: false,
    group: 'Metrics and logs',
    doc: 'Logs every call, with its caller, its outcome and its duration. Lines are dropped, and counted, where they are read too slowly.',
  },
  slowMs: {
    kind: 'duration',
    least: 0,
    most: HOUR_MS,
    default: 1000,
    group: 'Metrics and logs',
    doc: 'A call that takes longer is logged with what it asked for and what it cost; 0 logs none.',
  },
} as const satisfies Record<string, Setting>;

export const SERVE_SETTINGS = {
  ...PLACE,
  ...DATABASE_SETTINGS,
  blockCacheBytes: {
    ...DATABASE_SETTINGS.blockCacheBytes,
    default: { compute: () => serverCacheBytes(), says: 'an eighth of the memory, 64 MiB to 4 GiB' },
  },
  ...CONNECTIONS,
  ...SECURITY,
  ...MONITORING,
} as const satisfies Record<string, Setting>;

export type ServeSettings = SettingsOf<typeof SERVE_SETTINGS>;
export type SettingName = keyof ServeSettings;

/** In the order of the help and of the page. */
export const SETTING_NAMES = Object.keys(SERVE_SETTINGS) as SettingName[];

/** The setting as a key of the settings file; a flag with -- before it. */
export function keyOf(name: SettingName): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export function flagOf(name: SettingName): string {
  return `--${keyOf(name)}`;
}

export function variableOf(name: SettingName): string {
  return `EDUBBA_${keyOf(name).replaceAll('-', '_').toUpperCase()}`;
}

/** Settings by the headings of their groups, in order. */
export function settingGroups(): ReadonlyMap<string, readonly SettingName[]> {
  const groups = new Map<string, SettingName[]>();
  for (const name of SETTING_NAMES) {
    const { group } = SERVE_SETTINGS[name];
    groups.set(group, [...(groups.get(group) ?? []), name]);
  }
  return groups;
}
