/**
 * Refuses plain HTTP/2 requests, which this server does not serve: each is read to its end, up to MAX_BYTES, and
 * answered with what the server expects.
 */
import { httpHeaders } from '../grpc/answer-blocks.ts';
import type { RequestHeaders } from '../http2/header-rules.ts';
import type { Stream, StreamOwner } from '../http2/stream.ts';

const BODY = Buffer.from('This is a gRPC server: requests are POSTs with the content-type application/grpc.\n');
const MAX_BYTES = 64 * 1024;

export class HttpRefusal implements StreamOwner {
  readonly #stream: Stream;
  readonly #status: number;
  #bytes = 0;
  #isAnswered = false;

  constructor(stream: Stream, request: RequestHeaders) {
    stream.owner = this;
    this.#stream = stream;
    this.#status = request.method === 'POST' ? 415 : 405;
  }

  onData(payload: Buffer): void {
    this.#stream.credit(payload.length);
    this.#bytes += payload.length;
    if (this.#bytes > MAX_BYTES) this.onEnd();
  }

  onEnd(): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#stream.headers(httpHeaders(this.#status, BODY.length));
    this.#stream.data(BODY);
    this.#stream.end();
    this.#stream.done();
  }

  onReset(): void {
    this.#stream.done();
  }

  onSent(): void {}
}
