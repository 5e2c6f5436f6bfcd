/**
 * A server: the Cloud Bigtable API on an address, over a service. On loopback it asks nobody anything unless it is told to; an address that other
 * machines can reach it serves only with TLS and with callers who say who they are, or where it is told to do without.
 */
import { invalidArgument } from '../base/index.ts';
import { connectionLimit } from '../boot/index.ts';
import type { Logger } from '../env/index.ts';
import { registerCloudApi, wireStatus } from '../grpc/index.ts';
import { CallLog, type CallLogOptions } from '../monitor/index.ts';
import type { Service } from '../service/index.ts';
import {
  type Address,
  type ApiEnv,
  type EndedCall,
  isLoopback,
  parseAddress,
  type WireLimits,
  WireServer,
} from '../wire/index.ts';
import { type AccessOptions, openDoor } from './door.ts';
import { processGauges } from './process-gauges.ts';
import { readTlsFiles, type TlsFiles, watchTlsFiles } from './tls-files.ts';
import { warnOfFiles } from './warn-of-files.ts';

/** Calls under way get this long to end when the server stops. */
const GRACE_MS = 5000;
const DEFAULT_MAX_CONNECTIONS = 20_000;
const DEFAULT_MAX_CONNECTIONS_PER_ADDRESS = 2000;
/** The generated codec is loaded this long after the start, unless a call has needed it before (docs/decisions/0039-generated-codec.md). */
const LOAD_CODEC_AFTER_MS = 1000;

export interface ServerOptions {
  readonly service: Service;
  readonly env: ApiEnv;
  /** HOST:PORT, [IPV6]:PORT; port 0 chooses a free one. */
  readonly address: string;
  /** Takes connections from the socket that listens on the address already, at this descriptor, and belongs to the process. Default: listens itself. */
  readonly listenerFd?: 0;
  /** How many servers of this process take connections from that socket, and share its limits evenly. Default: 1. */
  readonly sharers?: number;
  /** Serves everybody who can reach the machine, without TLS or without a question. Default: false. */
  readonly insecurePublic?: boolean;
  /** Serves TLS alone. Default: plain text. */
  readonly tls?: TlsFiles | undefined;
  /** How callers say who they are. Default: by their certificates where `tls` asks for them; not at all otherwise. */
  readonly access?: AccessOptions;
  /**
   * Most connections at once, at least 1: a new one then takes the place of one that has no calls, or is refused. Default: 20,000. Never more than the
   * limit of descriptors leaves beside the database.
   */
  readonly maxConnections?: number | undefined;
  /** Connections from one IPv4 address or one IPv6 network of 64 bits, at least 1. Programs of this machine are not counted. Default: 2000. */
  readonly maxConnectionsPerAddress?: number;
  /** A connection that is silent for so long is asked whether it is there, ms. Default: 60,000. */
  readonly keepAliveMs?: number;
  /** It ends when it does not answer within this, ms. Default: 20,000. */
  readonly keepAliveTimeoutMs?: number;
  /** A connection without calls ends after this, ms. Default: one hour. */
  readonly maxIdleMs?: number;
  /** How many compactions the database beside it runs at once: they need descriptors too. Default: 1. */
  readonly compactionsAtOnce?: number;
  /** What is told of calls. Default: nothing of slow ones, and no access log. */
  readonly callLog?: Pick<CallLogOptions, 'accessLog' | 'slowMs'>;
  /** How long calls under way may take when the server stops, ms. Default: 5000. */
  readonly graceMs?: number;
}

export interface RunningServer {
  /** HOST:PORT with the real port. */
  readonly address: string;
  /** Tells health checks, takes no new calls, lets those under way end within the grace, cuts off the rest. */
  close(): Promise<void>;
}

/** Fails with INVALID_ARGUMENT for an address that is none or is public without guard, ALREADY_EXISTS where it is in use. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { service, env, tls, access = {} } = options;
  const limits = limitsOf(options, env.logger);
  const { host, port } = checkedAddress(options);
  const certificates = tls && (await readTlsFiles(tls));
  // where threads share the port they share the files too, and the main thread has warned of them
  if (options.listenerFd === undefined) await warnOfFiles(options, env.logger);
  const door = await openDoor(access, tls?.clientCaFile !== undefined, env);
  const stops = [door.close, processGauges(env)];
  try {
    const callLog = new CallLog({ ...env, accessLog: false, slowMs: 0, ...options.callLog });
    const onCall = callLog.isOn ? (call: EndedCall) => callLog.ended(call) : undefined;
    const server = new WireServer({ env, statusOf: wireStatus, tls: certificates, admit: door.admit, limits, onCall });
    const api = registerCloudApi(server, service, env);
    if (options.listenerFd !== undefined) await server.listenOn(options.listenerFd);
    const bound = options.listenerFd !== undefined ? port : await server.listen(host, port);
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
      address: host.includes(':') ? `[${host}]:${bound}` : `${host}:${bound}`,
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

/** A server's share of what the process may have. */
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
      throw invalidArgument(`${name} must be a whole number above 0, not ${value}`);
  }
  return {
    maxConnections: Math.max(1, Math.floor(checkedConnections(options, sharers, logger) / sharers)),
    maxConnectionsPerAddress: Math.ceil(maxConnectionsPerAddress / sharers),
    ...(keepAliveMs !== undefined && { keepAliveMs }),
    ...(keepAliveTimeoutMs !== undefined && { keepAliveTimeoutMs }),
    ...(maxIdleMs !== undefined && { maxIdleMs }),
  };
}

/** Most connections of the process at once. INVALID_ARGUMENT for a number that is none, RESOURCE_EXHAUSTED where there are too few descriptors for any. */
export function checkedConnections(
  { maxConnections, compactionsAtOnce }: ConnectionOptions,
  tabletServers: number,
  logger: Logger,
): number {
  const wanted = maxConnections ?? DEFAULT_MAX_CONNECTIONS;
  if (!isPositive(wanted)) throw invalidArgument(`maxConnections must be a whole number above 0, not ${wanted}`);
  const possible = connectionLimit(tabletServers, compactionsAtOnce);
  if (maxConnections !== undefined && maxConnections > possible) {
    logger.warn('the limit of open files (ulimit -n) allows fewer connections', { wanted, possible });
  }
  return Math.min(wanted, possible);
}

function isPositive(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0;
}

/** Where to listen. Fails with INVALID_ARGUMENT for an address that is none, or that other machines can reach and nothing guards. */
export function checkedAddress({
  address,
  insecurePublic = false,
  tls,
  access,
}: Pick<ServerOptions, 'address' | 'insecurePublic' | 'tls' | 'access'>): Address {
  const parsed = parseAddress(address);
  if (!parsed)
    throw invalidArgument(`${JSON.stringify(address)} is no address: HOST:PORT, with a port from 0 to 65535`);
  if (isLoopback(parsed.host) || insecurePublic) return parsed;
  const isGuarded = access?.tokensFile !== undefined || access?.jwt !== undefined || tls?.clientCaFile !== undefined;
  const lacks = [
    ...(tls ? [] : ['TLS (--tls-key and --tls-cert)']),
    ...(isGuarded ? [] : ['authentication (--tokens, --jwt-issuer or --tls-client-ca)']),
  ];
  if (lacks.length === 0) return parsed;
  throw invalidArgument(
    `${address} can be reached from other machines and needs ${lacks.join(' and ')}; or use 127.0.0.1, or say --insecure-public to serve everybody as it is`,
  );
}
