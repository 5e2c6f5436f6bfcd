/**
 * `connect`: a database on a server of the Bigtable v2 API, with the same calls as `open` for a directory.
 *
 * Invariant: after `close` no part of the connection keeps the process alive.
 */
import { checkOptions, describeValue, invalidArgument, isObjectOfNames, type OptionTable } from '../base/index.ts';
import { type Connection, connect as connectTo, connectCluster, KeepAlive, type ServerAccess } from '../boot/index.ts';
import { silentLogger, sleep } from '../env/index.ts';
import { DEFAULT_INSTANCE, DEFAULT_PROJECT } from '../model/index.ts';
import type { Service } from '../service/index.ts';
import { type CallEnv, Calls } from './calls/calls.ts';
import { Database } from './database.ts';
import { textOf } from './values/input.ts';

export interface ConnectTlsOptions {
  /** The authorities of the server's certificate, PEM. Default: those that Node trusts. */
  readonly ca?: string | Uint8Array | undefined;
  /** Our own certificate and its key, PEM, for servers that require one. */
  readonly cert?: string | Uint8Array | undefined;
  readonly key?: string | Uint8Array | undefined;
  /** The same three, each in a file. */
  readonly caFile?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** The name in the server's certificate. Default: the address' host. */
  readonly serverName?: string | undefined;
}

/** How a program proves to a cluster that it may call its tablet servers directly. */
export interface ConnectClusterOptions {
  /** The file of the cluster's secret. Default: the secret in the variable EDUBBA_CLUSTER_SECRET. */
  readonly secretFile?: string | undefined;
  /** Files of PEM for the calls to the cluster's processes, if these have certificates. Default: plain text. */
  readonly caFile?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** The user of etcd, and the file of the password. Default: none. */
  readonly lockUser?: string | undefined;
  readonly lockPasswordFile?: string | undefined;
  /** Files of PEM for the calls to etcd. Default: plain text. */
  readonly lockCaFile?: string | undefined;
  readonly lockCertFile?: string | undefined;
  readonly lockKeyFile?: string | undefined;
}

export interface ConnectOptions {
  /** The project or instance of tables that are named by their id. Default: `local`. */
  readonly project?: string | undefined;
  /** The project or instance of tables that are named by their id. Default: `local`. */
  readonly instance?: string | undefined;
  /** `true`: TLS, with the authorities that Node trusts. Default: plain text. */
  readonly tls?: boolean | ConnectTlsOptions | undefined;
  /** A bearer token, sent with every call; to another machine only over TLS. */
  readonly token?: string | undefined;
  /** For `etcd://…` alone. */
  readonly cluster?: ConnectClusterOptions | undefined;
}

const OPTIONS = {
  project: 'free',
  instance: 'free',
  tls: 'free',
  token: 'free',
  cluster: 'free',
} satisfies OptionTable<ConnectOptions>;
const CLUSTER_OPTIONS = {
  secretFile: 'free',
  caFile: 'free',
  certFile: 'free',
  keyFile: 'free',
  lockUser: 'free',
  lockPasswordFile: 'free',
  lockCaFile: 'free',
  lockCertFile: 'free',
  lockKeyFile: 'free',
} satisfies OptionTable<ConnectClusterOptions>;
const TLS_OPTIONS = {
  ca: 'free',
  cert: 'free',
  key: 'free',
  caFile: 'free',
  certFile: 'free',
  keyFile: 'free',
  serverName: 'free',
} satisfies OptionTable<ConnectTlsOptions>;
/** The time that `close` waits for unanswered calls. */
const CLOSE_PATIENCE_MS = 5000;

/**
 * A database on a server of the Bigtable v2 API: Edubba's own, or Google's emulator. `address` is HOST:PORT, as in
 * BIGTABLE_EMULATOR_HOST. Nothing is sent before the first call; a lost server is UNAVAILABLE, and later calls
 * reconnect. INVALID_ARGUMENT for an invalid address or option, and for files that cannot be read.
 *
 * `address` may be the lock service of a cluster, too: etcd://HOST:PORT,HOST:PORT/PREFIX. Then each call goes directly
 * to the tablet server of its row, without a front door between. The program is a part of the cluster: it needs its
 * secret (or a certificate), and reaches all of its servers. FAILED_PRECONDITION where no cluster has started there;
 * fails as etcd does if it cannot be reached.
 */
export async function connect(address: string, options: ConnectOptions = {}): Promise<Database> {
  const where = textOf(address, 'the address of a server');
  checkOptions(options, OPTIONS, 'connect');
  const parent = `projects/${partOf(options.project, 'project', DEFAULT_PROJECT)}/instances/${partOf(options.instance, 'instance', DEFAULT_INSTANCE)}`;
  const token = options.token === undefined ? undefined : textOf(options.token, 'token');
  const keepAlive = new KeepAlive();
  const { service, env, close } = where.startsWith(CLUSTER_SCHEME)
    ? await keepAlive.while(toCluster(where, options))
    : await toServer(where, { tls: tlsOf(options.tls), token, cluster: options.cluster });
  // a call may wait for something else than a connection: the source of a load, a pause
  return overService(service, env, close, { where, parent, keepAlive });
}

const CLUSTER_SCHEME = 'etcd://';

async function toServer(
  address: string,
  { cluster, ...options }: ServerAccess & Pick<ConnectOptions, 'cluster'>,
): Promise<Connection> {
  if (cluster !== undefined) throw invalidArgument(`option cluster is for ${CLUSTER_SCHEME}…, not for a server`);
  return connectTo(address, options);
}

async function toCluster(address: string, { tls, token, cluster = {} }: ConnectOptions): Promise<Connection> {
  if (tls !== undefined || token !== undefined)
    throw invalidArgument(`options tls and token are for a server; for ${CLUSTER_SCHEME}… there is option cluster`);
  if (!isObjectOfNames(cluster))
    throw invalidArgument(`cluster must be an object of its options, not ${describeValue(cluster)}`);
  checkOptions(cluster, CLUSTER_OPTIONS, 'cluster');
  const { secretFile, caFile, certFile, keyFile, lockUser, lockPasswordFile } = cluster;
  const { lockCaFile, lockCertFile, lockKeyFile } = cluster;
  return connectCluster({
    lock: address,
    lockUser,
    lockPasswordFile,
    lockTls: { caFile: lockCaFile, certFile: lockCertFile, keyFile: lockKeyFile },
    clusterSecretFile: secretFile,
    clusterTls: { caFile, certFile, keyFile },
    logger: silentLogger,
  });
}

export interface ServiceOptions {
  /** The place of the service, for people. */
  readonly where?: string;
  /** The instance of tables that are named by their id. */
  readonly parent?: string;
  /** Keeps the process alive while a call is awaited. Default: the owner of the service does it. */
  readonly keepAlive?: KeepAlive;
}

/** A database over any service: one in this process, or one reached through a server. */
export function overService(
  service: Service,
  env: CallEnv,
  close: () => Promise<void>,
  options: ServiceOptions = {},
): Database {
  const { where = 'a service', parent, keepAlive } = options;
  const calls = new Calls(service, env, keepAlive, parent);
  const closing = async (): Promise<void> => {
    const patience = new AbortController();
    await Promise.race([calls.idle(), sleep(env.clock, CLOSE_PATIENCE_MS, patience.signal).catch(() => {})]);
    patience.abort();
    await close();
  };
  let closed: Promise<void> | undefined;
  return new Database(calls, { where, close: () => (closed ??= closing()) });
}

function partOf(given: string | undefined, what: string, fallback: string): string {
  const part = given === undefined ? fallback : textOf(given, what);
  if (part === '' || part.includes('/'))
    throw invalidArgument(`${what} must be an id without slashes, not ${JSON.stringify(part)}`);
  return part;
}

function tlsOf(tls: ConnectOptions['tls']): ConnectTlsOptions | undefined {
  if (tls === undefined || tls === false) return undefined;
  if (tls === true) return {};
  if (!isObjectOfNames(tls))
    throw invalidArgument(`tls must be true, false or an object of its options, not ${describeValue(tls)}`);
  checkOptions(tls, TLS_OPTIONS, 'tls');
  return tls;
}
