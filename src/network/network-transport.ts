/**
 * The transport between processes: internal calls over our HTTP/2, their messages in the form of a CallCodec, on
 * connections whose two ends have proven that they belong to the cluster (greeting.ts).
 *
 * Addresses are HOST:PORT/NAME: the port on which a process listens, and a name of the process's own for each handler
 * that it serves there. A handler of this process is called directly, its messages as they are.
 *
 * Invariants: no call begins on a connection that was not admitted. A call is sent at most once to a handler: it is
 * sent again only where the peer surely has not begun it. A peer that is gone fails its calls when the connection
 * breaks, and a peer that is silent after two pings' time; calls after that fail immediately, but for an attempt to
 * connect after each pause.
 */
import type { Socket } from 'node:net';
import { assert, BigtableError, Code, invalidArgument, toBigtableError, unavailable } from '../base/index.ts';
import {
  type CallHandler,
  callRefused,
  checkContext,
  type Clock,
  LocalTransport,
  notReached,
  Pacer,
  PullStream,
  pullStreamOf,
  type RequestContext,
  type Transport,
} from '../env/index.ts';
import {
  type CallCodec,
  decodeThrown,
  encodedCall,
  encodedHandler,
  encodedStream,
  encodeThrown,
} from '../protocol/index.ts';
import {
  type ApiEnv,
  type ClientTlsOptions,
  type RpcCall,
  type RpcMethod,
  type RpcSink,
  type RpcStatus,
  type TlsOptions,
  WireClient,
  type WireLimits,
  WireServer,
} from '../wire/index.ts';
import { ADDRESS, appProfileOf, headersOf, priorityOf, principalOf } from './call-headers.ts';
import type { ClusterSecret } from './cluster-secret.ts';
import { admitClient, greetServer, type Identity } from './greeting.ts';
import { PeerClients } from './peer-clients.ts';

export interface NetworkTls {
  /** This process's certificate, for those that call it. */
  readonly server: TlsOptions;
  /** How it calls others. */
  readonly client: ClientTlsOptions;
}

export interface NetworkOptions {
  /** The budget is for requests of peers and their answers alone: calls of clients wait in another one. */
  readonly env: ApiEnv;
  readonly codec: CallCodec;
  readonly identity: Identity;
  /** Undefined: peers are authenticated by their certificates. */
  readonly secret: ClusterSecret | undefined;
  /** Default: connections are not encrypted. */
  readonly tls?: NetworkTls | undefined;
  /** Limits of the port. */
  readonly limits?: Partial<WireLimits>;
  /** Processes to which connections are kept. Default: 4096. */
  readonly maxPeers?: number;
  /**
   * A connection with calls that is silent for this long is sent a PING, and is lost after as long again. Default: 2 s.
   */
  readonly keepAliveMs?: number;
  /** Default: 3 s. */
  readonly connectMs?: number;
}

const MAX_PEERS = 4096;
const KEEP_ALIVE_MS = 2000;
const CONNECT_MS = 3000;
/** The longest pause between attempts to connect. */
const MAX_PAUSE_MS = 1000;
const MAX_HANDSHAKES = 64;
/** Peers have proven who they are. A front door cancels as many calls as its clients do, on one connection. */
const UNLIMITED = { burst: Number.MAX_SAFE_INTEGER, perSecond: Number.MAX_SAFE_INTEGER };
const HANDSHAKE_MS = 5000;

const CALLS = '/edubba.internal.v1.Calls/';
const STREAMS = '/edubba.internal.v1.Streams/';
const ADDRESS_FORM = /^([^/]+)\/([\w.-]{1,100})$/;

export class NetworkTransport implements Transport {
  readonly #options: NetworkOptions;
  readonly #local: LocalTransport;
  /** The handlers of this process as peers reach them, by address. */
  readonly #served = new Map<string, CallHandler>();
  readonly #peers: PeerClients<WireClient>;
  #server: WireServer | undefined;
  #isClosed = false;

  /** INVALID_ARGUMENT where nothing would authenticate peers: neither a secret nor certificates of clients. */
  constructor(options: NetworkOptions) {
    const { env, secret, tls, maxPeers = MAX_PEERS } = options;
    if (secret === undefined && !tls?.server.requestCert)
      throw invalidArgument('calls between processes need a cluster secret, or TLS with certificates of clients');
    this.#options = options;
    this.#local = new LocalTransport(env.clock);
    this.#peers = new PeerClients(maxPeers, (address) => this.#connectTo(address));
  }

  /**
   * Takes calls on that port, and resolves with it (the one chosen where it is 0). ALREADY_EXISTS if it is in use,
   * UNAVAILABLE if the transport is closed meanwhile.
   */
  async listen(host: string, port: number): Promise<number> {
    assert(this.#server === undefined, 'a transport listens once');
    const { env, tls, codec, identity, secret, limits, keepAliveMs = KEEP_ALIVE_MS } = this.#options;
    const server = new WireServer({
      env,
      statusOf,
      authenticate: ({ header }) => principalOf(header),
      tls: tls && { ...tls.server, minVersion: '1.3' },
      admit: async (socket: Socket) => void (await admitClient(socket, identity, secret)),
      limits: {
        maxHandshakes: MAX_HANDSHAKES,
        handshakeMs: HANDSHAKE_MS,
        keepAliveMs: 5 * keepAliveMs,
        keepAliveTimeoutMs: 5 * keepAliveMs,
        resets: UNLIMITED,
        idleFrames: UNLIMITED,
        ...limits,
      },
    });
    for (const method of codec.calls) server.register(CALLS + method, this.#answering(method));
    for (const method of codec.streams) server.register(STREAMS + method, this.#streaming(method));
    const listening = await server.listen(host, port);
    if (this.#isClosed) {
      await server.close(0);
      throw unavailable('the transport was closed before it listened');
    }
    this.#server = server;
    return listening;
  }

  async serve(address: string, handler: CallHandler): Promise<() => Promise<void>> {
    partsOf(address);
    const stop = await this.#local.serve(address, handler);
    const encoded = encodedHandler(handler, this.#options.codec, this.#options.env.clock);
    this.#served.set(address, encoded);
    return async () => {
      if (this.#served.get(address) === encoded) this.#served.delete(address);
      await stop();
    };
  }

  async call(address: string, method: string, message: unknown, context: RequestContext): Promise<unknown> {
    if (this.#served.has(address)) return this.#local.call(address, method, message, context);
    const { codec, env } = this.#options;
    // a long message takes several turns to encode: meanwhile the connection may have been given up
    return encodedCall(codec, env.clock, method, message, (bytes) =>
      this.#peerOf(address).unary(CALLS + method, bytes, context, headersOf(address, context)),
    );
  }

  stream(address: string, method: string, message: unknown, context: RequestContext): PullStream<unknown> {
    if (this.#served.has(address)) return this.#local.stream(address, method, message, context);
    const { codec } = this.#options;
    const client = this.#peerOf(address);
    const items = encodedStream(codec, method, message, (bytes) =>
      client.stream(STREAMS + method, bytes, context, headersOf(address, context)),
    );
    return new CheckedStream(items, context, this.#options.env.clock);
  }

  /** Calls no peers any more and takes no calls; lets those under way end for `graceMs`, then cuts them off. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    const clients = this.#peers.clear();
    for (const client of clients) client.close();
    const calling = clients.filter(({ connections }) => connections > 0);
    const cutOff = (): void => {
      for (const client of calling)
        client.destroy(unavailable('the transport was closed before the call was answered'));
    };
    if (calling.length > 0) this.#options.env.clock.timer(graceMs, cutOff);
    await this.#server?.close(graceMs);
  }

  #peerOf(address: string): WireClient {
    const target = partsOf(address);
    if (this.#isClosed) throw notReached(`cannot reach a server at ${target}: the transport is closed`);
    return this.#peers.of(target);
  }

  #connectTo(address: string): WireClient {
    const { env, tls, identity, secret, keepAliveMs = KEEP_ALIVE_MS, connectMs = CONNECT_MS } = this.#options;
    return new WireClient({
      address,
      clock: env.clock,
      random: env.random,
      errorOf,
      errorOfBreach,
      ...(tls && { tls: tls.client }),
      prepare: async (socket: Socket) => void (await greetServer(socket, identity, secret)),
      connectMs,
      failsFast: true,
      maxPauseMs: MAX_PAUSE_MS,
      keepAliveMs,
      keepAliveTimeoutMs: keepAliveMs,
    });
  }

  #answering(method: string): RpcMethod {
    return {
      kind: 'unary',
      handle: async (call, request) => (await this.#handlerOf(call).call(method, request, contextOf(call))) as Buffer,
    };
  }

  #streaming(method: string): RpcMethod {
    return {
      kind: 'stream',
      handle: (call, request, sink) =>
        sendAll(
          call,
          pullStreamOf(this.#handlerOf(call).stream(method, request, contextOf(call))),
          sink,
          new Pacer(this.#options.env.clock),
        ),
    };
  }

  #handlerOf(call: RpcCall): CallHandler {
    const address = call.header(ADDRESS) ?? '';
    const handler = this.#served.get(address);
    if (handler === undefined) throw callRefused(`no server at address ${JSON.stringify(address)}`);
    return handler;
  }
}

/** The HOST:PORT of an address. INVALID_ARGUMENT for one of another form. */
function partsOf(address: string): string {
  const target = ADDRESS_FORM.exec(address)?.[1];
  if (target !== undefined) return target;
  throw invalidArgument(`invalid address ${JSON.stringify(address)}: expected HOST:PORT/NAME`);
}

function contextOf(call: RpcCall): RequestContext {
  const { context } = call;
  context.appProfile = appProfileOf((name) => call.header(name));
  context.priority = priorityOf((name) => call.header(name));
  return context;
}

/** Items that came before the context ended are not given after it. */
class CheckedStream extends PullStream<unknown> {
  readonly #items: PullStream<unknown>;
  readonly #context: RequestContext;
  readonly #clock: Clock;
  #hasEnded = false;

  constructor(items: PullStream<unknown>, context: RequestContext, clock: Clock) {
    super();
    this.#items = items;
    this.#context = context;
    this.#clock = clock;
  }

  pull(): unknown {
    if (this.#hasEnded) return undefined;
    try {
      checkContext(this.#context, this.#clock);
    } catch (error) {
      end(this);
      throw error;
    }
    const item = this.#items.pull();
    return item instanceof Promise ? item.catch((error: unknown) => this.#fail(error)) : item;
  }

  /** After an error there is nothing more. */
  #fail(error: unknown): never {
    this.#hasEnded = true;
    throw error;
  }

  end(): void | Promise<void> {
    this.#hasEnded = true;
    return this.#items.end();
  }
}

/** Sends the items as the caller takes them, and ends their stream when it goes. */
async function sendAll(call: RpcCall, items: PullStream<unknown>, sink: RpcSink, pacer: Pacer): Promise<void> {
  const onInterrupt = { interrupt: () => end(items) };
  call.context.listen(onInterrupt);
  try {
    for (;;) {
      const next = items.pull();
      const item = next instanceof Promise ? await next : next;
      if (item === undefined) return;
      const waiting = sink.send(item as Buffer | readonly Buffer[]);
      if (waiting !== undefined) await waiting;
      // small items that are ready would hold the event loop until the window is full
      if (pacer.due()) await pacer.pause();
    }
  } finally {
    call.context.unlisten(onInterrupt);
    end(items);
  }
}

/** Errors of a clean-up are ignored: no caller waits for them. */
function end(items: PullStream<unknown>): void {
  const ending = items.end();
  if (ending instanceof Promise) ending.catch(() => {});
}

function statusOf(thrown: unknown): RpcStatus {
  const { code, message } = toBigtableError(thrown);
  return { code, message: message.slice(0, 2000), details: encodeThrown(thrown) };
}

/**
 * Whatever a peer does instead of an answer, the outcome is unknown, unless the call surely did not reach it. Codes
 * that say more are a handler's alone: a caller takes INTERNAL for a bug, and CANCELLED for its own doing.
 */
function errorOfBreach(error: BigtableError): BigtableError {
  const { code, message, details } = error;
  if (code === Code.UNAVAILABLE || code === Code.RESOURCE_EXHAUSTED) return error;
  return new BigtableError(Code.UNAVAILABLE, message, { details, cause: error });
}

/** A handler's error has details. Without them it is the peer's wire that speaks, or what is none. */
function errorOf({ code, message, details }: RpcStatus): BigtableError {
  if (details !== undefined) return decodeThrown(details);
  const error = new BigtableError(code, message);
  const isVague = code === Code.INTERNAL || code === Code.CANCELLED || code === Code.UNKNOWN;
  return isVague ? errorOfBreach(error) : error;
}
