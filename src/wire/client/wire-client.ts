/**
 * RpcClient on our own HTTP/2: one connection to one server, made by the first call, kept, and replaced when it is
 * lost.
 *
 * Invariant: a call waits only for a connection in progress or for capacity on one; while no server can be reached,
 * calls fail immediately, and attempts to connect are separated by growing pauses.
 */
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { BigtableError, Code, toBigtableError } from '../../base/index.ts';
import { type Clock, notReached, type Random, type RequestContext, type Timer } from '../../env/index.ts';
import { type Address, parseAddress } from '../contract/address.ts';
import { formatTimeout } from '../grpc/timeout.ts';
import type { RpcClient } from '../contract/rpc-client.ts';
import type { RpcStatus } from '../contract/rpc-server.ts';
import { Deadlines } from '../server/deadlines.ts';
import { AnswerQueue, SingleAnswer } from './answers.ts';
import { type CallOwner, ClientCall } from './client-call.ts';
import { ClientConnection } from './client-connection.ts';

export interface ClientTlsOptions {
  /** PEM: the authorities of the server's certificate. Default: those that Node trusts. */
  readonly ca?: string | Buffer;
  /** PEM: our own certificate, for servers that request one. */
  readonly key?: string | Buffer;
  readonly cert?: string | Buffer;
  /** The name in the server's certificate. Default: the address' host. */
  readonly serverName?: string;
}

export interface WireClientOptions {
  /** HOST:PORT; an IPv6 host in brackets. */
  readonly address: string;
  readonly clock: Clock;
  readonly random: Random;
  /** The error for a status that is not OK. */
  readonly errorOf: (status: RpcStatus) => BigtableError;
  /**
   * The error for a call that ended without a status: reset, lost, answered by what is no gRPC, or not sent because
   * this client was closed. Default: the error as gRPC has it.
   */
  readonly errorOfBreach?: (error: BigtableError) => BigtableError;
  /** Headers of every call; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: none. */
  readonly tls?: ClientTlsOptions;
  /** A larger message in an answer fails its call with RESOURCE_EXHAUSTED. Default: 512 MiB. */
  readonly maxMessageBytes?: number;
  /**
   * Prepares a connection before HTTP/2 begins on it, after TLS: reads and writes the socket, leaves unread what is not
   * its own, and resolves. Calls that wait for a connection fail as it rejects. Default: nothing to prepare.
   */
  readonly prepare?: (socket: Socket) => Promise<void>;
  /** Default: 20 s. */
  readonly connectMs?: number;
  /** The longest pause between attempts to connect. Default: 5 s. */
  readonly maxPauseMs?: number;
  /**
   * True: after an attempt to connect that had no answer in its time, calls fail as it did, without waiting, until an
   * attempt, which each of them makes, succeeds. Otherwise calls with less time than that would never learn that the
   * peer is gone. Default: false.
   */
  readonly failsFast?: boolean;
  /** A connection that takes a call and is silent for this long after it is sent a PING (default 60 s), */
  readonly keepAliveMs?: number;
  /** and closed when it does not answer within this (default 20 s). */
  readonly keepAliveTimeoutMs?: number;
  /**
   * A connection is closed also after this number of calls, one after another, were late, while nothing came: sooner
   * than by a PING, for calls with little time and servers that forbid many PINGs. Default: never.
   */
  readonly maxSilentCalls?: number;
}

const MAX_MESSAGE_BYTES = 512 * 1024 * 1024;
const CONNECT_MS = 20_000;
const KEEP_ALIVE_MS = 60_000;
const KEEP_ALIVE_TIMEOUT_MS = 20_000;
const NEVER = Number.POSITIVE_INFINITY;
/** Pauses between attempts to connect. */
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 5000;

export class WireClient implements RpcClient {
  readonly #options: WireClientOptions;
  readonly #owner: CallOwner;
  readonly #deadlines: Deadlines;
  readonly #headers: readonly string[];
  readonly #maxMessageBytes: number;
  /** Calls that wait for a connection, in order. */
  readonly #waiting = new Set<ClientCall>();
  /** The connection for new calls. */
  #connection: ClientConnection | undefined;
  readonly #connections = new Set<ClientConnection>();
  #connecting: Socket | undefined;
  #refusalTimer: Timer | undefined;
  #keepAliveMs: number;
  #failures = 0;
  #pausedUntilMs = 0;
  #lastError: BigtableError | undefined;
  /** An attempt to connect had no answer in its time, and none has succeeded since. */
  #isSilent = false;
  #isClosed = false;

  /** Nothing is sent before the first call. */
  constructor(options: WireClientOptions) {
    this.#options = options;
    this.#deadlines = new Deadlines(options.clock);
    this.#maxMessageBytes = options.maxMessageBytes ?? MAX_MESSAGE_BYTES;
    this.#keepAliveMs = options.keepAliveMs ?? KEEP_ALIVE_MS;
    this.#headers = [
      ':authority',
      options.address,
      'te',
      'trailers',
      'content-type',
      'application/grpc',
      'user-agent',
      'edubba',
      'grpc-accept-encoding',
      'identity,gzip',
      ...Object.entries(options.headers ?? {}).flat(),
    ];
    this.#owner = {
      deadlines: this.#deadlines,
      maxMessageBytes: this.#maxMessageBytes,
      errorOf: options.errorOf,
      errorOfBreach: options.errorOfBreach ?? ((error) => error),
      start: (call) => this.#start(call),
      onEnded: (call) => this.#waiting.delete(call),
    };
  }

  unary(path: string, request: Uint8Array, context: RequestContext, headers?: readonly string[]): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      new ClientCall(
        this.#owner,
        { path, request, headers },
        context,
        new SingleAnswer(this.#maxMessageBytes, resolve, reject),
      ).start();
    });
  }

  stream(
    path: string,
    request: Uint8Array,
    context: RequestContext,
    headers?: readonly string[],
    staysOpen?: boolean,
  ): AsyncIterable<Buffer> {
    return new AnswerQueue(
      this.#maxMessageBytes,
      (reader) => new ClientCall(this.#owner, { path, request, headers, staysOpen }, context, reader),
    );
  }

  /** Connections with calls, and that for new calls. */
  get connections(): number {
    return this.#connections.size;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#connecting?.destroy();
    this.#refusalTimer?.cancel();
    this.#failWaiting(this.#owner.errorOfBreach(closed()));
    for (const connection of [...this.#connections]) connection.drain('the client is closed');
    this.#closeDeadlines();
  }

  destroy(error: BigtableError): void {
    this.close();
    for (const connection of [...this.#connections]) connection.destroy(error);
  }

  #start(call: ClientCall): void {
    if (this.#isClosed) return call.fail(this.#owner.errorOfBreach(closed()));
    if (this.#connection?.hasCapacity && this.#waiting.size === 0) return this.#send(call, this.#connection);
    this.#waiting.add(call);
    this.#connect();
    this.#limitRefusal();
  }

  #send(call: ClientCall, connection: ClientConnection): void {
    const { tls, clock } = this.#options;
    const { deadlineMs, trace } = call.context;
    const headers = [':method', 'POST', ':scheme', tls ? 'https' : 'http', ':path', call.path, ...this.#headers];
    if (deadlineMs !== Number.POSITIVE_INFINITY) {
      const leftMs = deadlineMs - clock.monotonicMs();
      if (leftMs <= 0) return call.onDue();
      headers.push('grpc-timeout', formatTimeout(leftMs));
    }
    if (trace !== '') headers.push('traceparent', trace);
    if (call.headers) headers.push(...call.headers);
    call.sendOn(connection, headers);
  }

  /** Sends waiting calls, as far as there is capacity. */
  #pump(): void {
    for (const call of this.#waiting) {
      if (!this.#connection?.hasCapacity) break;
      this.#waiting.delete(call);
      this.#send(call, this.#connection);
    }
    if (this.#waiting.size > 0) this.#connect();
    this.#limitRefusal();
  }

  /** A server that takes no call for as long as a connection may take is not reached: no call may be for ever. */
  #limitRefusal(): void {
    const connection = this.#connection;
    if (this.#refusalTimer || this.#waiting.size === 0 || !connection?.takesNoCalls) return;
    const { clock, address, connectMs = CONNECT_MS } = this.#options;
    this.#refusalTimer = clock.timer(connectMs, () => {
      this.#refusalTimer = undefined;
      if (this.#connection !== connection || this.#waiting.size === 0 || !connection.takesNoCalls)
        return this.#limitRefusal();
      const error = notReached(cannotReach(address, `it took no call within ${connectMs} ms`));
      this.#failed(error);
      connection.destroy(error);
    });
  }

  #failWaiting(error: BigtableError): void {
    for (const call of [...this.#waiting]) call.fail(error);
  }

  // connections

  #connect(): void {
    if (this.#connection || this.#isClosed) return;
    if (!this.#connecting) this.#tryToConnect();
    if (this.#isSilent && this.#lastError && this.#options.failsFast) this.#failWaiting(this.#lastError);
  }

  #tryToConnect(): void {
    const { clock, address, connectMs = CONNECT_MS } = this.#options;
    if (this.#lastError && clock.monotonicMs() < this.#pausedUntilMs) return this.#failWaiting(this.#lastError);
    const target = parseAddress(address);
    if (!target)
      return this.#failWaiting(
        new BigtableError(Code.INVALID_ARGUMENT, `invalid address ${JSON.stringify(address)}: expected HOST:PORT`),
      );
    const socket = this.#openSocket(target);
    this.#connecting = socket;
    const timer = clock.timer(connectMs, () => {
      this.#isSilent = true;
      socket.destroy(new Error(`no connection within ${connectMs} ms`));
    });
    let message = cannotReach(address, 'it closed the connection');
    socket.once('error', (error) => {
      message = connectError(address, error);
    });
    let refusal: BigtableError | undefined;
    const onClose = (): void => {
      timer.cancel();
      this.#failed(refusal ?? notReached(message));
    };
    const start = (): void => {
      if (socket.destroyed) return;
      socket.off('close', onClose);
      this.#startHttp2(socket, timer);
    };
    socket.once('close', onClose);
    socket.once(this.#options.tls ? 'secureConnect' : 'connect', () => {
      if ('alpnProtocol' in socket && socket.alpnProtocol !== 'h2')
        return socket.destroy(new Error('it does not speak HTTP/2 (no ALPN h2)'));
      if (this.#options.prepare === undefined) return start();
      this.#options.prepare(socket).then(start, (thrown: unknown) => {
        // a connection that was lost meanwhile says better why
        if (!socket.destroyed) refusal = toBigtableError(thrown);
        socket.destroy();
      });
    });
  }

  #openSocket({ host, port }: Address): Socket {
    const { tls } = this.#options;
    if (!tls) return connectPlain({ host, port, noDelay: true });
    const { serverName = host, ...certificates } = tls;
    const socket = connectTls({
      host,
      port,
      ...certificates,
      ...(isName(serverName) && { servername: serverName }),
      ALPNProtocols: ['h2'],
      minVersion: 'TLSv1.2',
    });
    socket.setNoDelay(true);
    return socket;
  }

  #startHttp2(socket: Socket, timer: Timer): void {
    const { address, clock, keepAliveTimeoutMs = KEEP_ALIVE_TIMEOUT_MS, maxSilentCalls = NEVER } = this.#options;
    let wasReady = false;
    const connection = new ClientConnection({
      socket,
      address,
      clock,
      keepAliveMs: this.#keepAliveMs,
      keepAliveTimeoutMs,
      maxSilentCalls,
      onReady: () => {
        timer.cancel();
        wasReady = true;
        this.#connecting = undefined;
        this.#failures = 0;
        this.#lastError = undefined;
        this.#isSilent = false;
        if (this.#isClosed) return connection.drain('the client is closed');
        this.#connection = connection;
        this.#pump();
      },
      onCapacity: () => {
        if (connection === this.#connection && this.#waiting.size > 0) this.#pump();
      },
      onDraining: (why) => {
        if (why.includes('too_many_pings')) this.#keepAliveMs *= 2;
        this.#retire(connection);
      },
      onGone: (error) => {
        timer.cancel();
        this.#connections.delete(connection);
        this.#closeDeadlines();
        if (!wasReady) return this.#failed(notReached(error.message));
        this.#retire(connection);
      },
    });
    this.#connections.add(connection);
  }

  /** New calls need another connection. */
  #retire(connection: ClientConnection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    if (this.#waiting.size > 0) this.#connect();
  }

  #failed(error: BigtableError): void {
    const { clock, random, maxPauseMs = MAX_PAUSE_MS } = this.#options;
    this.#connecting = undefined;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, maxPauseMs);
    this.#failures++;
    this.#pausedUntilMs = clock.monotonicMs() + pauseMs * (0.5 + random.float());
    this.#lastError = error;
    this.#failWaiting(error);
  }

  #closeDeadlines(): void {
    if (this.#isClosed && this.#connections.size === 0) this.#deadlines.close();
  }
}

function cannotReach(address: string, why: string): string {
  return `cannot reach a server at ${address}: ${why}`;
}

/** The message for an error while connecting. OpenSSL has these two codes for an answer in plain text. */
function connectError(address: string, error: Error & { readonly code?: unknown; readonly reason?: unknown }): string {
  if (error.code === 'ERR_SSL_WRONG_VERSION_NUMBER' || error.code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG')
    return `the server at ${address} does not speak TLS: connect to it without TLS`;
  const why = typeof error.reason === 'string' ? `the TLS handshake failed: ${error.reason}` : error.message;
  return cannotReach(address, why);
}

/** SNI takes names and no addresses. */
function isName(host: string): boolean {
  return !host.includes(':') && !/^[\d.]+$/.test(host);
}

function closed(): BigtableError {
  return new BigtableError(Code.CANCELLED, 'the client is closed', { details: { notReached: true } });
}
