/**
 * The port on which a server tells how it is: /metrics, /healthz and /readyz over HTTP/1.1, for programs that look after servers.
 *
 * Invariant: whoever reaches the port can make the server do and hold only so much: few connections, small headers, no bodies, so many requests a second, a
 * page that is made once a second. Connections in excess take the place of idle ones, so that idle ones keep nobody out.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { BigtableError, Code, invalidArgument } from '../base/index.ts';
import type { Clock } from '../env/index.ts';
import { isLoopback, parseAddress } from '../wire/index.ts';

/** The descriptors of a process are shared out with them (src/boot/open/descriptors.ts). */
const MOST_CONNECTIONS = 8;
const MOST_HEADER_BYTES = 8 * 1024;
/** A request must have come within this, its headers within half of it. */
const REQUEST_MS = 10_000;
/** A connection on which nothing moves is ended after this; between two requests it may rest longer, since pages are asked for every minute at least. */
const SILENCE_MS = 10_000;
const KEEP_ALIVE_MS = 65_000;
/** Requests in a second, all connections together. Whoever asks beyond it loses the connection. */
const MOST_REQUESTS_A_SECOND = 2000;
/** Node looks for requests that are late this often. */
const LOOK_MS = 1000;

const TEXT = 'text/plain; charset=utf-8';
const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';
const INDEX = 'Edubba\n\n/metrics   figures, for Prometheus\n/healthz   200 while the process answers\n/readyz    200 while the server serves, else 503 and why\n';

export interface MonitorServerOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** HOST:PORT, [IPV6]:PORT; port 0 chooses a free one. */
  readonly address: string;
  readonly page: { text(): Promise<string> };
  /** Why the server is not ready; undefined where it is. */
  readonly readiness: { obstacle(): Promise<string | undefined> };
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly type?: string;
}

export class MonitorServer {
  /** HOST:PORT with the real port. */
  readonly address: string;
  /** Other machines can reach it. */
  readonly isPublic: boolean;
  readonly #server: Server;
  readonly #connections: Connections;

  private constructor(server: Server, connections: Connections, address: string, isPublic: boolean) {
    this.#server = server;
    this.#connections = connections;
    this.address = address;
    this.isPublic = isPublic;
  }

  /** INVALID_ARGUMENT for an address that is none; ALREADY_EXISTS where it is in use, UNAVAILABLE where it cannot be listened on for another reason. */
  static async listen(options: MonitorServerOptions): Promise<MonitorServer> {
    const parsed = parseAddress(options.address);
    if (!parsed) throw invalidArgument(`${JSON.stringify(options.address)} is no address for metrics: HOST:PORT, with a port from 0 to 65535`);
    const { host, port } = parsed;
    const connections = new Connections();
    const server = createServer({
      maxHeaderSize: MOST_HEADER_BYTES, headersTimeout: REQUEST_MS / 2, requestTimeout: REQUEST_MS, keepAliveTimeout: KEEP_ALIVE_MS, connectionsCheckingInterval: LOOK_MS, noDelay: true,
    });
    server.timeout = SILENCE_MS;
    const handler = new Handler(options);
    server.on('connection', (socket) => connections.add(socket));
    server.on('request', (request, response) => connections.during(request.socket, response, () => handler.handle(request, response)));
    server.on('clientError', (_error, socket) => socket.destroy());
    const where = (bound: number): string => (host.includes(':') ? `[${host}]:${bound}` : `${host}:${bound}`);
    return new Promise((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'EADDRINUSE') reject(new BigtableError(Code.ALREADY_EXISTS, `${where(port)} is already in use`, { cause: error }));
        else reject(new BigtableError(Code.UNAVAILABLE, `cannot listen on ${where(port)}: ${error.message}`, { cause: error }));
      });
      server.listen({ host, port }, () => {
        // an accept that fails is one connection's matter
        server.on('error', () => {});
        const bound = server.address();
        resolve(new MonitorServer(server, connections, where(bound !== null && typeof bound === 'object' ? bound.port : port), !isLoopback(host)));
      });
    });
  }

  /** Ends all connections at once. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#connections.endAll();
    });
  }
}

/** The open connections, oldest first, and whether each has a request under way. */
class Connections {
  readonly #all = new Map<Socket, number>();

  add(socket: Socket): void {
    socket.on('error', () => {});
    if (this.#all.size >= MOST_CONNECTIONS && !this.#endIdle()) {
      socket.destroy();
      return;
    }
    this.#all.set(socket, 0);
    socket.once('close', () => this.#all.delete(socket));
  }

  during(socket: Socket, response: ServerResponse, work: () => void): void {
    this.#count(socket, 1);
    response.once('close', () => this.#count(socket, -1));
    work();
  }

  endAll(): void {
    for (const socket of [...this.#all.keys()]) socket.destroy();
  }

  #count(socket: Socket, change: number): void {
    const before = this.#all.get(socket);
    if (before !== undefined) this.#all.set(socket, before + change);
  }

  #endIdle(): boolean {
    for (const [socket, requests] of this.#all) {
      if (requests > 0) continue;
      this.#all.delete(socket);
      socket.destroy();
      return true;
    }
    return false;
  }
}

class Handler {
  readonly #options: MonitorServerOptions;
  #second = 0;
  #requests = 0;

  constructor(options: MonitorServerOptions) {
    this.#options = options;
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    if (!this.#isInTime()) {
      request.socket.destroy();
      return;
    }
    const refusal = refusalOf(request);
    if (refusal !== undefined) return send(request, response, refusal, true);
    this.#answer(request).then(
      (answer) => send(request, response, answer, false),
      () => send(request, response, { status: 500, text: 'the figures could not be read\n' }, true),
    );
  }

  #isInTime(): boolean {
    const second = Math.floor(this.#options.clock.monotonicMs() / 1000);
    if (second !== this.#second) [this.#second, this.#requests] = [second, 0];
    return ++this.#requests <= MOST_REQUESTS_A_SECOND;
  }

  async #answer({ url = '' }: IncomingMessage): Promise<Answer> {
    const { page, readiness } = this.#options;
    const end = url.indexOf('?');
    switch (end < 0 ? url : url.slice(0, end)) {
      case '/metrics':
        return { status: 200, text: await page.text(), type: PROMETHEUS_TEXT };
      case '/healthz':
        return { status: 200, text: 'ok\n' };
      case '/readyz': {
        const obstacle = await readiness.obstacle();
        return obstacle === undefined ? { status: 200, text: 'ok\n' } : { status: 503, text: `${obstacle}\n` };
      }
      case '/':
        return { status: 200, text: INDEX };
      default:
        return { status: 404, text: 'not found: there are /metrics, /healthz and /readyz\n' };
    }
  }
}

function refusalOf({ method, headers }: IncomingMessage): Answer | undefined {
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, text: 'GET and HEAD are answered\n' };
  const hasBody = headers['transfer-encoding'] !== undefined || (headers['content-length'] !== undefined && headers['content-length'] !== '0');
  return hasBody ? { status: 413, text: 'a request with a body is not answered\n' } : undefined;
}

/** `isLast`: the connection ends with the answer, whatever else has come on it. */
function send({ method }: IncomingMessage, response: ServerResponse, { status, text, type = TEXT }: Answer, isLast: boolean): void {
  if (response.destroyed) return;
  const headers = { 'content-type': type, 'content-length': Buffer.byteLength(text), 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', ...(status === 405 ? { allow: 'GET, HEAD' } : {}) };
  if (isLast) response.shouldKeepAlive = false;
  response.writeHead(status, headers);
  response.end(method === 'HEAD' ? undefined : text);
}
