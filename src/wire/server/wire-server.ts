/**
 * RpcServer on our own HTTP/2: listens, and makes a connection of each socket that `Sockets` takes in, and a call of
 * each request.
 */
import { createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { assert, BigtableError, Code, toBigtableError } from '../../base/index.ts';
import { Connection } from '../http2/connection.ts';
import { Http2Error } from '../http2/frames.ts';
import type { RequestHeaders } from '../http2/header-rules.ts';
import { DEFAULT_LIMITS, type Http2Limits } from '../http2/limits.ts';
import { ReadTurns } from '../http2/read-turns.ts';
import type { Stream } from '../http2/stream.ts';
import type {
  Authenticate,
  ApiEnv,
  OnCall,
  CallCredentials,
  RpcMethod,
  RpcServer,
  RpcStatus,
} from '../contract/rpc-server.ts';
import { CallLedger } from './call-ledger.ts';
import { Deadlines } from './deadlines.ts';
import { addressText } from '../contract/address.ts';
import { HttpRefusal } from './http-refusal.ts';
import { ConnectionOwners, PrincipalOwners } from './owners.ts';
import { RareWarning } from './rare-warning.ts';
import { type CallServer, ServerCall } from './server-call.ts';
import { SlowCalls } from './slow-calls.ts';
import { type AcceptedSocket, type SocketLimits, Sockets } from './sockets.ts';
import { TlsHandshakes, type TlsOptions } from './tls.ts';
import { WaitingCall } from './waiting-call.ts';

export interface WireLimits extends Http2Limits, SocketLimits {
  readonly maxRequestBytes: number;
  readonly stallMs: number;
}

/** A MutateRows of 100,000 small mutations or of two values of 100 MiB fits. */
const MAX_REQUEST_BYTES = 256 * 1024 * 1024;

const DEFAULT_WIRE_LIMITS: WireLimits = {
  ...DEFAULT_LIMITS,
  maxRequestBytes: MAX_REQUEST_BYTES,
  maxConnections: 20_000,
  maxConnectionsPerAddress: 2000,
  handshakeMs: 10_000,
  maxHandshakes: 20_000,
  keepAliveMs: 60_000,
  keepAliveTimeoutMs: 20_000,
  maxIdleMs: 3_600_000,
  maxCertificateAgeMs: 3_600_000,
  drainMs: 60_000,
  stallMs: 60_000,
};

export interface WireServerOptions {
  readonly env: ApiEnv;
  /** The status of a call that failed. */
  readonly statusOf: (thrown: unknown) => RpcStatus;
  readonly tls?: TlsOptions | undefined;
  /** Default: all callers are 'anonymous'. */
  readonly authenticate?: Authenticate;
  /**
   * Admits a connection before HTTP/2 begins on it, after TLS: reads and writes the socket, leaves unread what is not
   * its own, and resolves. A rejection ends the connection. Default: all are admitted.
   */
  readonly admit?: ((socket: Socket) => Promise<void>) | undefined;
  /** Called for each call that has ended. */
  readonly onCall?: OnCall | undefined;
  /** Called with the number of connections when it has changed. */
  readonly onConnections?: ((connections: number) => void) | undefined;
  readonly limits?: Partial<WireLimits>;
}

/** The origin of a request. */
interface Peer {
  readonly connection: Connection;
  readonly certificate: string | undefined;
  readonly owners: ConnectionOwners;
  readonly address: string;
}

/** Connections that wait to be accepted. */
const BACKLOG = 1024;
/**
 * Turns of the event loop before a server stops: in the first it takes the connections that the machine has accepted,
 * in the second it reads what their clients have sent. Many clients fail a call that came to a connection which is
 * reset.
 */
const TURNS_BEFORE_STOP = 2;

const ANONYMOUS = 'anonymous';
/** Callers that are not authenticated yet. */
const UNKNOWN = '';

export class WireServer implements RpcServer {
  readonly #options: WireServerOptions;
  readonly #limits: WireLimits;
  readonly #methods = new Map<string, RpcMethod>();
  readonly #deadlines: Deadlines;
  readonly #principals = new PrincipalOwners();
  readonly #callServer: CallServer;
  readonly #turns: ReadTurns;
  readonly #sockets: Sockets;
  readonly #handshakes: TlsHandshakes | undefined;
  readonly #failedAccepts: RareWarning;
  readonly #unregisterGauges: () => void;
  /** The authorities of the clients' certificates. */
  #authority: TlsOptions['ca'];
  #server: Server | undefined;
  #phase: 'new' | 'serving' | 'closed' = 'new';
  #isStopping = false;

  constructor(options: WireServerOptions) {
    const { env, statusOf, tls, onCall, onConnections } = options;
    this.#options = options;
    this.#limits = { ...DEFAULT_WIRE_LIMITS, ...options.limits };
    this.#deadlines = new Deadlines(env.clock);
    const { maxRequestBytes, stallMs } = this.#limits;
    this.#callServer = {
      env,
      statusOf,
      deadlines: this.#deadlines,
      slowCalls: new SlowCalls(env),
      ledger: new CallLedger(env.metrics, onCall),
      maxRequestBytes,
      stallMs,
    };
    this.#turns = new ReadTurns(env.clock);
    this.#sockets = new Sockets({ env, limits: this.#limits, onSize: onConnections });
    const onFailed = (address: string, message: string) =>
      env.logger.info('a connection was ended', { address, message });
    this.#handshakes = tls && new TlsHandshakes(tls, onFailed);
    this.#authority = tls?.ca;
    this.#failedAccepts = new RareWarning(env, 'cannot take connections');
    this.#unregisterGauges = env.metrics.gauges({
      'wire.connections': () => this.#sockets.size,
      'wire.maxConnections': () => this.#limits.maxConnections,
    });
  }

  register(path: string, method: RpcMethod): void {
    this.#methods.set(path, method);
  }

  listen(host: string, port: number): Promise<number> {
    return this.#listen({ host, port, backlog: BACKLOG }, addressText(host, port));
  }

  /**
   * Takes connections from a socket that listens already and is not this server's own: `close` leaves it open. POSIX
   * alone.
   */
  async listenOn(fd: 0): Promise<void> {
    await this.#listen({ fd, backlog: BACKLOG }, `descriptor ${fd}`);
  }

  /**
   * Takes no more connections from the descriptor of `listenOn`, or takes them again: other servers of the process
   * listen on it too. Those that were taken stay.
   */
  setAccepting(fd: 0, isOn: boolean): void {
    if (this.#phase !== 'serving' || isOn === (this.#server !== undefined)) return;
    this.#server?.close();
    this.#server = isOn ? this.#newServer() : undefined;
    if (this.#server === undefined) return;
    this.#onFailedAccepts(this.#server);
    this.#server.listen({ fd, backlog: BACKLOG });
  }

  /** Sockets that were accepted and have not ended, in whatever stage. */
  get connections(): number {
    return this.#sockets.size;
  }

  #listen(options: ListenOptions & { readonly fd?: number }, target: string): Promise<number> {
    assert(this.#phase === 'new', 'a server listens once');
    const server = this.#newServer();
    return new Promise((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'EADDRINUSE')
          reject(new BigtableError(Code.ALREADY_EXISTS, `${target} is already in use`, { cause: error }));
        else
          reject(new BigtableError(Code.UNAVAILABLE, `cannot listen on ${target}: ${error.message}`, { cause: error }));
      });
      server.listen(options, () => {
        this.#phase = 'serving';
        this.#server = server;
        this.#sockets.start();
        this.#onFailedAccepts(server);
        const address = server.address();
        resolve(address !== null && typeof address === 'object' ? address.port : 0);
      });
    });
  }

  #newServer(): Server {
    return createServer({ noDelay: true }, (socket) => this.#accept(socket));
  }

  /** The socket continues to listen: a failed accept, for want of descriptors for example, concerns one connection. */
  #onFailedAccepts(server: Server): void {
    server.on('error', (error) => this.#failedAccepts.add({ message: error.message }));
  }

  /**
   * Sets the certificates of later connections; only for a server that has TLS. Where the authorities of clients
   * change, connections that the old ones admitted are drained, so that clients without a certificate of the new ones
   * are out.
   */
  reloadTls(options: TlsOptions): void {
    this.#handshakes?.reload(options);
    const before = this.#authority;
    this.#authority = options.ca;
    if (String(before) !== String(options.ca)) this.#sockets.retireCertificates();
  }

  async close(graceMs: number): Promise<void> {
    if (this.#phase !== 'serving' || this.#isStopping) return;
    this.#isStopping = true;
    for (let turn = 0; turn < TURNS_BEFORE_STOP; turn++) await this.#options.env.clock.yield();
    this.#phase = 'closed';
    const server = this.#server;
    this.#server = undefined;
    const closed = server && new Promise<void>((resolve) => server.close(() => resolve()));
    await this.#sockets.close(graceMs);
    await closed;
    this.#deadlines.close();
    this.#callServer.slowCalls.close();
    this.#callServer.ledger.close();
    this.#unregisterGauges();
  }

  #accept(socket: Socket): void {
    const accepted = this.#sockets.accept(socket);
    if (!accepted) return;
    if (this.#handshakes) this.#handshakes.begin(socket, (secured) => this.#admit(accepted, secured));
    else this.#admit(accepted, socket);
  }

  #admit(accepted: AcceptedSocket, socket: Socket): void {
    const { admit, env } = this.#options;
    if (admit === undefined) return this.#begin(accepted, socket);
    admit(socket).then(
      () => {
        if (!socket.destroyed && this.#phase === 'serving') this.#begin(accepted, socket);
        else socket.destroy();
      },
      (error: unknown) => {
        env.metrics.add('wire.refusedConnections');
        env.logger.info('a connection was ended', {
          address: accepted.address,
          message: toBigtableError(error).message,
        });
        // the refusal that was written goes out first
        socket.destroySoon();
      },
    );
  }

  #begin(accepted: AcceptedSocket, socket: Socket): void {
    const { logger, clock } = this.#options.env;
    const { address } = accepted;
    const certificate = certificateOf(socket);
    const owners = new ConnectionOwners(this.#principals);
    const connection = new Connection({
      socket,
      clock,
      turns: this.#turns,
      limits: this.#limits,
      onRequest: (stream, request) => this.#onRequest(stream, request, { connection, certificate, owners, address }),
      // the socket's own end is what counts
      onClosed: () => {},
      onFailed: (thrown) => {
        if (thrown instanceof Http2Error) logger.info('a connection was ended', { address, message: thrown.message });
        else
          logger.error('a connection failed', {
            address,
            message: String(thrown),
            stack: thrown instanceof Error ? (thrown.stack ?? '') : '',
          });
      },
    });
    this.#sockets.begin(accepted, connection, certificate !== undefined);
  }

  #onRequest(stream: Stream, request: RequestHeaders, { connection, certificate, owners, address }: Peer): void {
    const { method, path, contentType = '', list, positions } = request;
    if (method !== 'POST' || !contentType.startsWith('application/grpc')) return void new HttpRefusal(stream, request);
    const caller = this.#callerOf({ path, header: (name) => positions.value(list, name), certificate });
    const begin = (principal: string | BigtableError): void => {
      const owner = typeof principal === 'string' ? owners.of(principal) : undefined;
      new ServerCall(this.#callServer, stream, request, this.#methods.get(path), principal, owner, address);
    };
    if (caller instanceof Promise)
      new WaitingCall({ server: this.#callServer, connection, stream, caller, owner: owners.of(UNKNOWN), begin });
    else begin(caller);
  }

  #callerOf(credentials: CallCredentials): string | BigtableError | Promise<string> {
    try {
      return this.#options.authenticate?.(credentials) ?? ANONYMOUS;
    } catch (error) {
      return toBigtableError(error);
    }
  }
}

/** The subject of the client's certificate, where an authority of ours has signed it. */
function certificateOf(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  return socket.getPeerX509Certificate()?.subject.split('\n').join(',');
}
