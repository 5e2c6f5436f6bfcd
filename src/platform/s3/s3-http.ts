/**
 * One HTTP request and its answer, over connections that are kept.
 *
 * Invariant: a request that is not answered whole within its time fails with UNAVAILABLE; its outcome is unknown. No
 * answer takes more memory than its caller has allowed.
 */
import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { unavailable } from '../../base/index.ts';
import type { Clock } from '../../env/index.ts';

export interface HttpRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: readonly Uint8Array[];
  /** Most bytes of the answer's body. */
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** Connections to one endpoint; further requests wait for one. */
const MAX_CONNECTIONS = 128;

export class HttpEndpoint {
  readonly #url: URL;
  readonly #clock: Clock;
  readonly #agent: HttpAgent;

  constructor(url: URL, clock: Clock) {
    this.#url = url;
    this.#clock = clock;
    const options = { keepAlive: true, maxSockets: MAX_CONNECTIONS, scheduling: 'lifo' } as const;
    this.#agent = url.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options);
  }

  send({ method, path, headers, body, maxBytes, timeoutMs }: HttpRequest): Promise<HttpAnswer> {
    const { protocol, hostname, port, origin } = this.#url;
    return new Promise((resolve, reject) => {
      const start = protocol === 'https:' ? httpsRequest : httpRequest;
      const request = start({
        agent: this.#agent,
        hostname: hostname.replace(/^\[|\]$/g, ''),
        port,
        method,
        path,
        headers,
      });
      const timer = this.#clock.timer(timeoutMs, () => request.destroy(new Error(`no answer within ${timeoutMs} ms`)));
      const fail = (error: Error): void => {
        timer.cancel();
        request.destroy();
        reject(unavailable(`${method} ${origin}: ${error.message}`, error));
      };
      request.on('error', fail);
      request.on('response', (response) => {
        const parts: Buffer[] = [];
        let bytes = 0;
        response.on('data', (part: Buffer) => {
          bytes += part.length;
          if (bytes > maxBytes) fail(new Error(`the answer has more than ${maxBytes} bytes`));
          else parts.push(part);
        });
        response.on('error', fail);
        response.on('aborted', () => fail(new Error('the answer was cut short')));
        response.on('end', () => {
          timer.cancel();
          // one part is the common case of small answers
          const whole = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: whole });
        });
      });
      for (const part of body) if (part.length > 0) request.write(part);
      request.end();
    });
  }

  /** Ends all connections. */
  close(): void {
    this.#agent.destroy();
  }
}
