/**
 * A connection to the monitoring port: reads one request, answers it, and only then reads the next.
 *
 * Invariants: a connection causes work for one request a turn of the event loop, however many it sends together, so
 * that it cannot stall the server; it holds one head and the bytes that came with it; every wait for the client has a
 * limit.
 */
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../env/index.ts';
import { parseHead, type RequestHead } from './request-head.ts';

const MAX_HEAD_BYTES = 8 * 1024;
/** The head of a request must have come within this. */
const HEAD_MS = 5000;
/** It must be answered within this, and the answer then taken within this. */
const ANSWER_MS = 10_000;
/** A connection may be idle for this long between two requests: pages are requested every minute at least. */
const KEEP_ALIVE_MS = 65_000;

const HEAD_END = '\r\n\r\n';
const [CR, LF] = [13, 10];
const TEXT = 'text/plain; charset=utf-8';
const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  400: 'Bad Request',
  404: 'Not Found',
  405: 'Method Not Allowed',
  413: 'Content Too Large',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

export interface ProbeAnswer {
  readonly status: number;
  readonly text: string;
  readonly type?: string;
  /** The connection ends with it, whatever else has come. */
  readonly isLast?: boolean;
}

export interface ProbeConnectionOptions {
  readonly clock: Pick<Clock, 'timer' | 'yield' | 'nowMicros'>;
  /** Undefined: the connection ends without an answer. */
  readonly answer: (head: RequestHead) => Promise<ProbeAnswer | undefined>;
}

export class ProbeConnection {
  readonly #socket: Socket;
  readonly #options: ProbeConnectionOptions;
  /** Bytes that came and are not read yet. */
  #unread: Buffer = Buffer.alloc(0);
  /** Idle: no whole request has come. Asked: its answer is made. Answered: the client has not taken it. */
  #stage: 'idle' | 'asked' | 'answered' = 'idle';
  /** The client sends no more. */
  #isAtEnd = false;
  #limit: Timer | undefined;
  /** The limit is that of a head. */
  #isHeadLimited = false;

  /** `socket`: allows half-open. */
  constructor(socket: Socket, options: ProbeConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on('error', () => {});
    socket.once('close', () => this.#limit?.cancel());
    socket.on('data', (bytes: Buffer) => {
      this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
      this.#next();
    });
    socket.on('end', () => {
      this.#isAtEnd = true;
      this.#next();
    });
    this.#limitHead();
  }

  get stage(): 'idle' | 'asked' | 'answered' {
    return this.#stage;
  }

  end(): void {
    this.#socket.destroy();
  }

  #next(): void {
    if (this.#stage !== 'idle' || this.#socket.destroyed) return;
    let from = 0;
    while (this.#unread[from] === CR || this.#unread[from] === LF) from++;
    this.#unread = this.#unread.subarray(from);
    const length = this.#unread.indexOf(HEAD_END);
    if (length > MAX_HEAD_BYTES || (length < 0 && this.#unread.length > MAX_HEAD_BYTES)) {
      this.#send({
        status: 431,
        text: `the head of the request is too long: the limit is ${MAX_HEAD_BYTES} bytes\n`,
        isLast: true,
      });
    } else if (length >= 0) {
      const head = parseHead(this.#unread.latin1Slice(0, length));
      this.#unread = this.#unread.subarray(length + HEAD_END.length);
      if (head === undefined) this.#send({ status: 400, text: 'invalid request\n', isLast: true });
      else this.#ask(head);
    } else if (this.#isAtEnd) {
      this.#socket.end(() => this.end());
    } else {
      if (this.#unread.length > 0 && !this.#isHeadLimited) this.#limitHead();
      this.#socket.resume();
    }
  }

  #ask(head: RequestHead): void {
    this.#stage = 'asked';
    this.#socket.pause();
    this.#limitTo(ANSWER_MS);
    this.#options.answer(head).then(
      (answer) => {
        if (answer === undefined) this.end();
        else this.#send(answer, head);
      },
      () => this.#send({ status: 500, text: 'the figures could not be read\n', isLast: true }, head),
    );
  }

  #send({ status, text, type = TEXT, isLast = false }: ProbeAnswer, head?: RequestHead): void {
    if (this.#socket.destroyed) return;
    this.#stage = 'answered';
    this.#socket.pause();
    this.#limitTo(ANSWER_MS);
    const ends = isLast || head?.isLast !== false;
    const lines = [
      `HTTP/1.1 ${status} ${REASONS[status] ?? ''}`,
      // biome-ignore lint/style/noRestrictedGlobals: the time is given, no clock is read
      `Date: ${new Date(this.#options.clock.nowMicros() / 1000).toUTCString()}`,
      `Content-Type: ${type}`,
      `Content-Length: ${Buffer.byteLength(text)}`,
      'Cache-Control: no-store',
      'X-Content-Type-Options: nosniff',
      ...(status === 405 ? ['Allow: GET, HEAD'] : []),
      ...(ends ? ['Connection: close'] : ['Connection: keep-alive', `Keep-Alive: timeout=${KEEP_ALIVE_MS / 1000}`]),
    ];
    const bytes = `${lines.join('\r\n')}${HEAD_END}${head?.method === 'HEAD' ? '' : text}`;
    if (ends) this.#socket.end(bytes, () => this.end());
    else this.#socket.write(bytes, () => void this.#onTaken());
  }

  async #onTaken(): Promise<void> {
    // other connections get their turn, however many requests have come together
    await this.#options.clock.yield();
    if (this.#socket.destroyed) return;
    this.#stage = 'idle';
    this.#limitTo(KEEP_ALIVE_MS);
    this.#next();
  }

  #limitHead(): void {
    this.#limitTo(HEAD_MS);
    this.#isHeadLimited = true;
  }

  #limitTo(durationMs: number): void {
    this.#limit?.cancel();
    this.#isHeadLimited = false;
    this.#limit = this.#options.clock.timer(durationMs, () => this.end());
  }
}
