/**
 * A server: the Cloud Bigtable API on an address, over a service. On loopback callers need no credentials unless the
 * options say so. An address that other machines can reach needs TLS and authentication, or `insecurePublic`.
 */
import { guardOf, type GuardOptions } from '../access/index.ts';
import { invalidArgument } from '../base/index.ts';
import { AcceptTurns, type AcceptTurnsOptions, connectionLimit } from '../boot/index.ts';
import type { Logger } from '../env/index.ts';
import { registerCloudApi, type RequestDecoder, wireStatus } from '../grpc/index.ts';
import { CallLog, type CallLogOptions } from '../monitor/index.ts';
import type { RawCallPasser, Service } from '../service/index.ts';
import {
  type Address,
  addressText,
  type ApiEnv,
  type EndedCall,
  isLoopback,
  parseAddress,
  type WireLimits,
  WireServer,
} from '../wire/index.ts';
import { type AccessOptions, openAccessControl } from './access-control.ts';
import { processGauges } from './process-gauges.ts';
import { readTlsFiles, type TlsFiles, watchTlsFiles } from './tls-files.ts';
import { warnOfFiles } from './warn-of-files.ts';

/** Calls in progress get this long to end when the server stops. */
const GRACE_MS = 5000;
const DEFAULT_MAX_CONNECTIONS = 20_000;
const DEFAULT_MAX_CONNECTIONS_PER_ADDRESS = 2000;
/**
 * The generated codec is loaded this long after the start, unless a call has needed it before
 * (docs/decisions/0039-generated-codec.md).
 */
const LOAD_CODEC_AFTER_MS = 1000;

export interface ServerOptions {
  readonly service: Service;
  /** Passes calls for rows of other servers on as bytes. Default: `service` answers all. */
  readonly passer?: RawCallPasser;
  /** Decodes requests; may be shared with the door for calls that were passed on. Default: one of its own. */
  readonly decoder?: RequestDecoder;
  readonly env: ApiEnv;
  /** HOST:PORT, [IPV6]:PORT; port 0 chooses a free one. */
  readonly address: string;
  /** Descriptor of a socket of the process that listens on the address already. Default: the server listens itself. */
  readonly listenerFd?: 0;
  /**
   * Number of servers of this process that take connections from that socket and share its limits evenly. Default: 1.
   */
  readonly sharers?: number;
  /** The numbers of connections of those servers, by which they balance them, and the place of this one. */
  readonly connections?: Pick<AcceptTurnsOptions, 'counts' | 'index'>;
  /** Serves all who can reach the machine, without TLS or without authentication. Default: false. */
  readonly insecurePublic?: boolean;
  /** Serves TLS only. Default: plain text. */
  readonly tls?: TlsFiles | undefined;
  /** Authentication of callers. Default: by certificates where `tls` requests them; otherwise not at all. */
  readonly access?: AccessOptions;
  /**
   * Most open connections, at least 1. Above it a new one replaces one that has no calls, or is refused. Default:
   * 20,000. Never more than the limit of descriptors leaves next to the database.
   */
  readonly maxConnections?: number | undefined;
  /**
   * Connections from one IPv4 address or one IPv6 network of 64 bits, at least 1. Connections of this machine are not
   * counted. Default: 2000.
   */
  readonly maxConnectionsPerAddress?: number;
  /** A connection that is silent for this long is sent a PING, ms. Default: 60,000. */
  readonly keepAliveMs?: number;
  /** A connection that does not answer a PING within this is closed, ms. Default: 20,000. */
  readonly keepAliveTimeoutMs?: number;
  /** A connection without calls ends after this, ms. Default: one hour. */
  readonly maxIdleMs?: number;
  /** Number of compactions that the database runs concurrently: they need descriptors too. Default: 1. */
  readonly compactionsAtOnce?: number;
  /** Rights of callers. Default: without owners; reads of families that the caller may not read are refused. */
  readonly rights?: Pick<GuardOptions, 'owners' | 'unreadableFamilies'>;
  /** Logging of calls. Default: neither slow calls nor an access log. */
  readonly callLog?: Pick<CallLogOptions, 'accessLog' | 'slowMs'>;
  /** Time for calls in progress to end when the server stops, ms. Default: 5000. */
  readonly graceMs?: number;
}

export interface RunningServer {
  /** HOST:PORT with the real port. */
  readonly address: string;
  /**
   * Answers health checks with NOT_SERVING, takes no new calls, lets those in progress end within the grace, then
   * cancels the rest.
   */
  close(): Promise<void>;
}

/**
 * Fails with INVALID_ARGUMENT for an invalid address, or a public one without TLS and authentication; ALREADY_EXISTS
 * where it is in use.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { service, env, tls, access = {} } = options;
  const limits = limitsOf(options, env.logger);
  const { host, port } = checkedAddress(options);
  const certificates = tls && (await readTlsFiles(tls));
  // threads that share the port share the files too, and the main thread has warned of them
  if (options.listenerFd === undefined) await warnOfFiles(options, env.logger);
  const accessControl = await openAccessControl(access, tls?.clientCaFile !== undefined, env);
  const stops = [accessControl.close, processGauges(env)];
  try {
    const callLog = new CallLog({ ...env, accessLog: false, slowMs: 0, ...options.callLog });
    const onCall = callLog.isOn ? (call: EndedCall) => callLog.ended(call) : undefined;
    let turns: AcceptTurns | undefined;
    const server = new WireServer({
      env,
      statusOf: wireStatus,
      tls: certificates,
      authenticate: accessControl.authenticate,
      limits,
      onCall,
      onConnections: (connections) => turns?.changed(connections),
    });
    for (const followed of [service.appProfiles, service.authorizedViews, service.policySource]) {
      await followed?.start();
      stops.push(() => followed?.stop());
    }
    const guard = guardOf({ ...options.rights, ...env, service });
    const passer = options.passer && guard ? guard.passerOf(options.passer) : options.passer;
    const api = registerCloudApi(server, guard ?? service, env, passer, options.decoder);
    const { listenerFd, connections } = options;
    if (listenerFd !== undefined) await server.listenOn(listenerFd);
    if (listenerFd !== undefined && connections !== undefined) {
      const setListening = (isOn: boolean): void => server.setAccepting(listenerFd, isOn);
      turns = new AcceptTurns({ ...connections, setListening });
      stops.push(() => {
        turns?.close();
        turns = undefined;
      });
    }
    const bound = listenerFd !== undefined ? port : await server.listen(host, port);
    const loading = env.clock.timer(
      LOAD_CODEC_AFTER_MS,
      () =>
        void api.load().catch((error: unknown) => {
          env.logger.error('the generated codec could not be loaded', {
            message: error instanceof Error ? error.message : String(error),
          });
        }),
    );
    stops.push(() => loading.cancel());
    if (tls) stops.push(watchTlsFiles(tls, env, (renewed) => server.reloadTls(renewed)));
    let closing: Promise<void> | undefined;
    const close = async (): Promise<void> => {
      for (const stop of stops) stop();
      api.health.stop();
      await server.close(options.graceMs ?? GRACE_MS);
    };
    return {
      address: addressText(host, bound),
      close: () => (closing ??= close()),
    };
  } catch (error) {
    for (const stop of stops) stop();
    throw error;
  }
}

type ConnectionOptions = Pick<
  ServerOptions,
  | 'maxConnections'
  | 'maxConnectionsPerAddress'
  | 'keepAliveMs'
  | 'keepAliveTimeoutMs'
  | 'maxIdleMs'
  | 'compactionsAtOnce'
  | 'sharers'
>;

/** A server's share of the limits of the process. */
function limitsOf(options: ConnectionOptions, logger: Logger): Partial<WireLimits> {
  const {
    sharers = 1,
    maxConnectionsPerAddress = DEFAULT_MAX_CONNECTIONS_PER_ADDRESS,
    keepAliveMs,
    keepAliveTimeoutMs,
    maxIdleMs,
  } = options;
  for (const [name, value] of Object.entries({
    maxConnectionsPerAddress,
    keepAliveMs,
    keepAliveTimeoutMs,
    maxIdleMs,
  })) {
    if (value !== undefined && !isPositive(value))
      throw invalidArgument(`invalid ${name} ${value}: expected a whole number above 0`);
  }
  return {
    maxConnections: Math.max(1, Math.floor(checkedConnections(options, sharers, logger) / sharers)),
    maxConnectionsPerAddress: Math.ceil(maxConnectionsPerAddress / sharers),
    ...(keepAliveMs !== undefined && { keepAliveMs }),
    ...(keepAliveTimeoutMs !== undefined && { keepAliveTimeoutMs }),
    ...(maxIdleMs !== undefined && { maxIdleMs }),
  };
}

/**
 * Most open connections of the process. INVALID_ARGUMENT for an invalid number, RESOURCE_EXHAUSTED where there are too
 * few descriptors for any.
 */
export function checkedConnections(
  { maxConnections, compactionsAtOnce }: ConnectionOptions,
  tabletServers: number,
  logger: Logger,
): number {
  const wanted = maxConnections ?? DEFAULT_MAX_CONNECTIONS;
  if (!isPositive(wanted)) throw invalidArgument(`invalid maxConnections ${wanted}: expected a whole number above 0`);
  const possible = connectionLimit(tabletServers, compactionsAtOnce);
  if (maxConnections !== undefined && maxConnections > possible) {
    logger.warn('the limit of open files (ulimit -n) allows fewer connections', { wanted, possible });
  }
  return Math.min(wanted, possible);
}

function isPositive(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0;
}

/**
 * The address to listen on. Fails with INVALID_ARGUMENT for an invalid one, or one that other machines can reach
 * without TLS and authentication.
 */
export function checkedAddress({
  address,
  insecurePublic = false,
  tls,
  access,
}: Pick<ServerOptions, 'address' | 'insecurePublic' | 'tls' | 'access'>): Address {
  const parsed = parseAddress(address);
  if (!parsed)
    throw invalidArgument(
      `invalid address ${JSON.stringify(address)}: expected HOST:PORT, with a port from 0 to 65535`,
    );
  if (isLoopback(parsed.host) || insecurePublic) return parsed;
  const isGuarded = access?.tokensFile !== undefined || access?.jwt !== undefined || tls?.clientCaFile !== undefined;
  const lacks = [
    ...(tls ? [] : ['TLS (--tls-key and --tls-cert)']),
    ...(isGuarded ? [] : ['authentication (--tokens, --jwt-issuer or --tls-client-ca)']),
  ];
  if (lacks.length === 0) return parsed;
  throw invalidArgument(
    `${address} can be reached from other machines and needs ${lacks.join(' and ')}; or use 127.0.0.1, or --insecure-public to serve all callers without them`,
  );
}
