/**
 * RpcServer on our own HTTP/2: listens, admits connections within limits, and looks after them: those that never begin, that have gone, or
 * that are no longer used end here.
 */
import { createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { type Server as TlsServer, TLSSocket } from 'node:tls';
import { BigtableError, Code, toBigtableError } from '../../base/index.ts';
import type { Timer } from '../../env/index.ts';
import { Connection } from '../http2/connection.ts';
import { Http2Error } from '../http2/frames.ts';
import type { RequestHeaders } from '../http2/header-rules.ts';
import { DEFAULT_LIMITS, type Http2Limits } from '../http2/limits.ts';
import type { Stream } from '../http2/stream.ts';
import type { Admit, ApiEnv, RpcApplicant, RpcMethod, RpcServer, RpcStatus } from '../rpc-server.ts';
import { Deadlines } from './deadlines.ts';
import { HttpRefusal } from './http-refusal.ts';
import { type CallHost, ServerCall } from './server-call.ts';
import { createTlsServer, reloadTls, type TlsOptions } from './tls.ts';
import { WaitingCall } from './waiting-call.ts';

export interface WireLimits extends Http2Limits {
  readonly maxRequestBytes: number;
  readonly maxConnections: number;
  /** Of one address; this machine's own programs are not counted. */
  readonly maxConnectionsPerAddress: number;
  /** From the connection to HTTP/2's first bytes. */
  readonly handshakeMs: number;
  /** A connection that is silent for so long is asked whether it is there, */
  readonly keepAliveMs: number;
  /** and ends when it does not answer within this. */
  readonly keepAliveTimeoutMs: number;
  /** A connection without calls ends after this; clients connect anew. */
  readonly maxIdleMs: number;
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
  keepAliveMs: 60_000,
  keepAliveTimeoutMs: 20_000,
  maxIdleMs: 3_600_000,
  stallMs: 60_000,
};

export interface WireServerOptions {
  readonly env: ApiEnv;
  /** What a call that failed tells its caller. */
  readonly statusOf: (thrown: unknown) => RpcStatus;
  readonly tls?: TlsOptions | undefined;
  /** Default: everybody, as 'anonymous'. */
  readonly admit?: Admit;
  readonly limits?: Partial<WireLimits>;
}

/** What the server knows of a connection beside the connection itself. */
interface Admitted {
  readonly connection: Connection;
  readonly address: string;
  readonly openedMs: number;
  heardMs: number;
  usedMs: number;
  pingedMs: number;
  diedMs: number;
}

/** How often connections are looked after, at least; and how long a client may take to close one that was ended. */
const LOOK_MS = 1000;
const LINGER_MS = 2000;
/** Connections that wait to be taken. */
const BACKLOG = 1024;

const ANONYMOUS = 'anonymous';

export class WireServer implements RpcServer {
  readonly #options: WireServerOptions;
  readonly #limits: WireLimits;
  readonly #methods = new Map<string, RpcMethod>();
  readonly #connections = new Set<Admitted>();
  readonly #addresses = new Map<string, number>();
  readonly #deadlines: Deadlines;
  readonly #host: CallHost;
  #server: Server | TlsServer | undefined;
  #looking: Timer | undefined;
  #onEmpty: (() => void) | undefined;

  constructor(options: WireServerOptions) {
    const { env, statusOf } = options;
    this.#options = options;
    this.#limits = { ...DEFAULT_WIRE_LIMITS, ...options.limits };
    this.#deadlines = new Deadlines(env.clock);
    const { maxRequestBytes, stallMs } = this.#limits;
    this.#host = { env, statusOf, deadlines: this.#deadlines, maxRequestBytes, stallMs };
  }

  register(path: string, method: RpcMethod): void {
    this.#methods.set(path, method);
  }

  listen(host: string, port: number): Promise<number> {
    return this.#listen({ host, port, backlog: BACKLOG }, host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`);
  }

  /** Takes connections from a socket that listens already and is not this server's own: `close` leaves it open. POSIX alone. */
  async listenOn(fd: 0): Promise<void> {
    await this.#listen({ fd, backlog: BACKLOG }, `descriptor ${fd}`);
  }

  #listen(options: ListenOptions & { readonly fd?: number }, target: string): Promise<number> {
    const { tls } = this.#options;
    const onSocket = (socket: Socket): void => this.#admit(socket);
    const server = tls ? createTlsServer(tls, onSocket) : createServer({ noDelay: true }, onSocket);
    server.maxConnections = this.#limits.maxConnections;
    return new Promise((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'EADDRINUSE') reject(new BigtableError(Code.ALREADY_EXISTS, `${target} is already in use`, { cause: error }));
        else reject(new BigtableError(Code.UNAVAILABLE, `cannot listen on ${target}: ${error.message}`, { cause: error }));
      });
      server.listen(options, () => {
        this.#server = server;
        server.on('error', (error) => this.#options.env.logger.error('cannot take connections', { message: error.message }));
        this.#look();
        const address = server.address();
        resolve(address !== null && typeof address === 'object' ? address.port : 0);
      });
    });
  }

  /** New certificates for connections from now on; only where the server was made with some. */
  reloadTls(options: TlsOptions): void {
    reloadTls(this.#server as TlsServer, options);
  }

  async close(graceMs: number): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    const emptied = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    const grace = this.#options.env.clock.timer(graceMs, () => this.#destroyAll());
    for (const { connection } of [...this.#connections]) connection.drain('the server stops');
    if (this.#connections.size > 0) await emptied;
    grace.cancel();
    await closed;
    this.#looking?.cancel();
    this.#deadlines.close();
  }

  #admit(socket: Socket): void {
    const { env } = this.#options;
    const address = socket.remoteAddress ?? '';
    const count = this.#addresses.get(address) ?? 0;
    if (this.#server === undefined || (count >= this.#limits.maxConnectionsPerAddress && !isOwnMachine(address))) {
      socket.destroy();
      return;
    }
    this.#addresses.set(address, count + 1);
    const nowMs = env.clock.monotonicMs();
    const certificate = certificateOf(socket);
    const connection = new Connection({
      socket,
      clock: env.clock,
      limits: this.#limits,
      onRequest: (stream, request) => this.#onRequest(stream, request, certificate),
      onClosed: () => this.#forget(admitted),
      onFailed: (thrown) => {
        if (thrown instanceof Http2Error) env.logger.info('a connection was ended', { address, message: thrown.message });
        else env.logger.error('a connection failed', { address, message: String(thrown), stack: thrown instanceof Error ? (thrown.stack ?? '') : '' });
      },
    });
    const admitted: Admitted = { connection, address, openedMs: nowMs, heardMs: nowMs, usedMs: nowMs, pingedMs: nowMs, diedMs: Number.POSITIVE_INFINITY };
    this.#connections.add(admitted);
  }

  #onRequest(stream: Stream, request: RequestHeaders, certificate: string | undefined): void {
    const { method, path, contentType = '', list, places } = request;
    if (method !== 'POST' || !contentType.startsWith('application/grpc')) return void new HttpRefusal(stream, request);
    const caller = this.#callerOf({ path, header: (name) => places.value(list, name), certificate });
    const begin = (known: string | BigtableError): ServerCall => new ServerCall(this.#host, stream, request, this.#methods.get(path), known);
    if (caller instanceof Promise) new WaitingCall(stream, caller, begin);
    else begin(caller);
  }

  #callerOf(applicant: RpcApplicant): string | BigtableError | Promise<string> {
    try {
      return this.#options.admit?.(applicant) ?? ANONYMOUS;
    } catch (error) {
      return toBigtableError(error);
    }
  }

  #forget(admitted: Admitted): void {
    if (!this.#connections.delete(admitted)) return;
    const count = (this.#addresses.get(admitted.address) ?? 1) - 1;
    if (count > 0) this.#addresses.set(admitted.address, count);
    else this.#addresses.delete(admitted.address);
    if (this.#connections.size === 0) this.#onEmpty?.();
  }

  #destroyAll(): void {
    for (const { connection } of [...this.#connections]) connection.destroy();
  }

  #look(): void {
    const { clock } = this.#options.env;
    const nowMs = clock.monotonicMs();
    for (const admitted of [...this.#connections]) this.#lookAt(admitted, nowMs);
    this.#looking = clock.timer(LOOK_MS, () => this.#look());
  }

  #lookAt(admitted: Admitted, nowMs: number): void {
    const { connection } = admitted;
    const { handshakeMs, keepAliveMs, keepAliveTimeoutMs, maxIdleMs } = this.#limits;
    if (connection.isDead) {
      admitted.diedMs = Math.min(admitted.diedMs, nowMs);
      if (nowMs - admitted.diedMs >= LINGER_MS) connection.destroy();
      return;
    }
    if (!connection.isOpen) {
      if (nowMs - admitted.openedMs >= handshakeMs) connection.destroy();
      return;
    }
    if (connection.wasHeard) {
      connection.wasHeard = false;
      admitted.heardMs = nowMs;
    }
    if (!connection.isIdle) admitted.usedMs = nowMs;
    if (nowMs - admitted.usedMs >= maxIdleMs) return connection.drain('the connection was not used');
    if (connection.pingIsOut) {
      if (nowMs - admitted.pingedMs >= keepAliveTimeoutMs && nowMs - admitted.heardMs >= keepAliveTimeoutMs) connection.destroy();
    } else if (nowMs - admitted.heardMs >= keepAliveMs) {
      admitted.pingedMs = nowMs;
      connection.ping();
    }
  }
}

/** Only where an authority of ours has signed it. */
function certificateOf(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  return socket.getPeerX509Certificate()?.subject.split('\n').join(',');
}

function isOwnMachine(address: string): boolean {
  return address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.');
}
