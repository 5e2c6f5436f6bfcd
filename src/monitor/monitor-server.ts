/**
 * The port for monitoring a server: /metrics, /healthz and /readyz over HTTP/1.1, for programs that supervise servers.
 *
 * Invariant: clients of the port can make the server do and hold only a bounded amount: few connections, each with one
 * small request at a time, no bodies, a limited number of requests a second, a page that is made once a second.
 * Connections in excess replace idle ones, so that idle ones keep no client out.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { BigtableError, Code, invalidArgument } from '../base/index.ts';
import type { Clock } from '../env/index.ts';
import { addressText, isLoopback, parseAddress } from '../wire/index.ts';
import { type ProbeAnswer, ProbeConnection } from './probe-connection.ts';
import type { RequestHead } from './request-head.ts';

/** The descriptors of a process are shared out with them (src/boot/open/descriptors.ts). */
const MAX_CONNECTIONS = 8;
/** Requests in a second, all connections together. A connection that sends more is closed. */
const MAX_REQUESTS_PER_SECOND = 2000;

const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';
const INDEX =
  'Edubba\n\n/metrics   figures, for Prometheus\n/healthz   200 while the process answers\n/readyz    200 while the server serves, else 503 and why\n';

export interface MonitorServerOptions {
  readonly clock: Pick<Clock, 'monotonicMs' | 'nowMicros' | 'timer' | 'yield'>;
  /** HOST:PORT, [IPV6]:PORT; port 0 chooses a free one. */
  readonly address: string;
  readonly page: { text(): Promise<string> };
  /** Resolves with the reason why the server is not ready; undefined where it is. */
  readonly readiness: { obstacle(): Promise<string | undefined> };
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

  /**
   * INVALID_ARGUMENT for an invalid address; ALREADY_EXISTS where it is in use, UNAVAILABLE where it cannot be listened
   * on for another reason.
   */
  static async listen(options: MonitorServerOptions): Promise<MonitorServer> {
    const parsed = parseAddress(options.address);
    if (!parsed)
      throw invalidArgument(
        `invalid address for metrics ${JSON.stringify(options.address)}: expected HOST:PORT, with a port from 0 to 65535`,
      );
    const { host, port } = parsed;
    const handler = new Handler(options);
    const connections = new Connections();
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      connections.add(
        socket,
        () => new ProbeConnection(socket, { clock: options.clock, answer: (head) => handler.answer(head) }),
      );
    });
    const where = (bound: number): string => addressText(host, bound);
    return new Promise((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'EADDRINUSE')
          reject(new BigtableError(Code.ALREADY_EXISTS, `${where(port)} is already in use`, { cause: error }));
        else
          reject(
            new BigtableError(Code.UNAVAILABLE, `cannot listen on ${where(port)}: ${error.message}`, { cause: error }),
          );
      });
      server.listen({ host, port }, () => {
        // a failed accept concerns one connection
        server.on('error', () => {});
        const bound = server.address();
        resolve(
          new MonitorServer(
            server,
            connections,
            where(bound !== null && typeof bound === 'object' ? bound.port : port),
            !isLoopback(host),
          ),
        );
      });
    });
  }

  /** Ends all connections immediately. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#connections.endAll();
    });
  }
}

/** The open connections, oldest first. */
class Connections {
  readonly #all = new Set<ProbeConnection>();

  add(socket: Socket, begin: () => ProbeConnection): void {
    if (this.#all.size >= MAX_CONNECTIONS && !this.#endOne('idle') && !this.#endOne('answered')) {
      socket.on('error', () => {}).destroy();
      return;
    }
    const connection = begin();
    this.#all.add(connection);
    socket.once('close', () => this.#all.delete(connection));
  }

  endAll(): void {
    for (const connection of this.#all) connection.end();
  }

  /** A client that does not take its answer keeps no other out, either. */
  #endOne(stage: 'idle' | 'answered'): boolean {
    for (const connection of this.#all) {
      if (connection.stage !== stage) continue;
      this.#all.delete(connection);
      connection.end();
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

  async answer(head: RequestHead): Promise<ProbeAnswer | undefined> {
    return this.#isInTime() ? (refusalOf(head) ?? this.#respond(head)) : undefined;
  }

  #isInTime(): boolean {
    const second = Math.floor(this.#options.clock.monotonicMs() / 1000);
    if (second !== this.#second) [this.#second, this.#requests] = [second, 0];
    return ++this.#requests <= MAX_REQUESTS_PER_SECOND;
  }

  async #respond({ target }: RequestHead): Promise<ProbeAnswer> {
    const { page, readiness } = this.#options;
    switch (target.split('?', 1)[0]) {
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

function refusalOf({ method, hasBody }: RequestHead): ProbeAnswer | undefined {
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, text: 'GET and HEAD are answered\n', isLast: true };
  return hasBody ? { status: 413, text: 'a request with a body is not answered\n', isLast: true } : undefined;
}
