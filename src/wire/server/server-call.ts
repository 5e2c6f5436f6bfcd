/**
 * One gRPC call on the server: its request's way in, its handler, its answer's way out, and the ways in which it may
 * end earlier: cancelled by the caller, out of time, malformed, too large.
 *
 * Invariant: the caller gets one status, the first; the handler's signal aborts when no caller waits for it any more;
 * the reservation is released, and the deadline cleared, once the handler has ended and the answer is sent or lost.
 */
import { asBuffer, assert, BigtableError, Code, toBigtableError } from '../../base/index.ts';
import {
  callCancelled,
  CallContext,
  CallNotes,
  deadlineExceeded,
  type Owner,
  Pace,
  type Reservation,
} from '../../env/index.ts';
import {
  ANSWER_HEADERS,
  GZIP_ANSWER_HEADERS,
  OK_TRAILERS,
  statusTrailers,
  withHeaders,
} from '../grpc/answer-blocks.ts';
import { lengthOf } from '../grpc/message-framing.ts';
import { parseTimeout } from '../grpc/timeout.ts';
import type { RequestHeaders } from '../http2/header-rules.ts';
import type { Stream, StreamOwner } from '../http2/stream.ts';
import {
  type ApiEnv,
  type EndedCall,
  type RpcCall,
  type RpcMethod,
  type RpcStatus,
  TINY_REQUEST_BYTES,
} from '../contract/rpc-server.ts';
import type { CallLedger, MethodLedger } from './call-ledger.ts';
import { CallSink, type SinkOwner } from './call-sink.ts';
import type { DeadlineEntry, Deadlines } from './deadlines.ts';
import { RequestQueue } from './request-queue.ts';
import { type InputOwner, type RequestInput, SingleRequest } from './single-request.ts';
import type { SlowCall, SlowCalls } from './slow-calls.ts';

/** A request that comes in more slowly, after some grace, is too slow while others wait for its memory; */
const REQUEST_PACE = { graceMs: 2000, bytesPerSecond: 64 * 1024 };
/** and so is one that would take longer than this. */
const MAX_REQUEST_SECONDS = 60;

export interface CallServer {
  readonly env: ApiEnv;
  readonly deadlines: Deadlines;
  readonly slowCalls: SlowCalls;
  readonly ledger: CallLedger;
  readonly maxRequestBytes: number;
  /** A request that holds a reservation and of which nothing has come for this long fails. */
  readonly stallMs: number;
  readonly statusOf: (thrown: unknown) => RpcStatus;
}

/** The part of the request's headers that a call needs. */
export type CallRequest = Pick<RequestHeaders, 'path' | 'list' | 'positions'>;

export class ServerCall implements StreamOwner, RpcCall, EndedCall, DeadlineEntry, InputOwner, SinkOwner, SlowCall {
  readonly path: string;
  readonly context: CallContext;
  readonly peer: string;
  /** The status for the caller, once there is one. */
  code: Code = Code.OK;
  durationMs = 0;
  readonly startMs: number;
  readonly #ledger: MethodLedger;
  #hasEnded = false;
  readonly #server: CallServer;
  readonly stream: Stream;
  readonly gzip: boolean;
  readonly #method: RpcMethod | undefined;
  /** Undefined once the call is refused, so that it keeps nothing in memory. */
  #request: CallRequest | undefined;
  readonly #input: RequestInput;
  #sink: CallSink | undefined;
  /** Trailers of the handler: name, value, name, value … */
  #trailers: string[] | undefined;
  #isRunning = false;
  #headersAreSent = false;
  /** The answer's end has been passed to the stream, or can no longer be. */
  #isAnswered = false;
  /** Bytes of the request at the last check that it still comes; undefined without checks. */
  #watchedBytes: number | undefined;
  /** Pace of a request that comes in several pieces. */
  #requestPace: Pace | undefined;
  /** Index among the calls that may be slow. */
  listIndex = -1;
  // as an entry of the deadlines
  dueMs = Number.POSITIVE_INFINITY;
  slot: DeadlineEntry | undefined = undefined;
  before: DeadlineEntry | undefined = undefined;
  after: DeadlineEntry | undefined = undefined;

  /** `caller`: its principal, or why the call is refused. `peer`: the address it came from. */
  constructor(
    server: CallServer,
    stream: Stream,
    request: CallRequest,
    method: RpcMethod | undefined,
    caller: string | BigtableError,
    owner?: Owner,
    peer = '',
  ) {
    const { path } = request;
    this.peer = peer;
    this.startMs = server.env.clock.monotonicMs();
    this.#ledger = server.ledger.begin(path, method !== undefined);
    stream.owner = this;
    this.path = path;
    this.#server = server;
    this.stream = stream;
    this.#method = method;
    this.#request = request;
    const encoding = this.header('grpc-encoding');
    this.gzip = encoding === 'gzip';
    let fault: unknown;
    let deadlineMs = Number.POSITIVE_INFINITY;
    try {
      if (typeof caller !== 'string') throw caller;
      if (!method) throw new BigtableError(Code.UNIMPLEMENTED, `unknown method ${path}`);
      if (encoding !== undefined && !this.gzip) checkEncoding(encoding);
      const timeout = this.header('grpc-timeout');
      if (timeout !== undefined) deadlineMs = this.startMs + parseTimeout(timeout);
    } catch (error) {
      fault = error;
    }
    const notes = server.ledger.onCall && new CallNotes();
    this.context = new CallContext({
      budget: server.env.requestBudget,
      owner,
      deadlineMs,
      principal: typeof caller === 'string' ? caller : '',
      trace: this.header('traceparent') ?? '',
      notes,
    });
    if (!fault) server.deadlines.set(this, deadlineMs);
    if (method?.kind === 'bidi') {
      const queue = new RequestQueue(this);
      this.#input = queue;
      if (!fault) this.#serve(method, queue);
    } else {
      this.#input = new SingleRequest(this);
    }
    if (fault) {
      this.#request = undefined;
      this.fail(fault);
    } else if (this.isUncounted && !stream.remoteEnded) this.#watchRequest();
  }

  get maxMessageBytes(): number {
    const { maxRequestBytes } = this.#server;
    return Math.min(this.#method?.maxRequestBytes ?? maxRequestBytes, maxRequestBytes);
  }

  get isUncounted(): boolean {
    return (this.#method?.maxRequestBytes ?? Number.POSITIVE_INFINITY) <= TINY_REQUEST_BYTES;
  }

  get receivedBytes(): number {
    return this.stream.receivedBytes;
  }

  get sentBytes(): number {
    return this.#sink?.sentBytes ?? 0;
  }

  get reservation(): Reservation {
    return this.context.reservation;
  }

  nowMs(): number {
    return this.#server.env.clock.monotonicMs();
  }

  header(name: string): string | undefined {
    return this.#request?.positions.value(this.#request.list, name);
  }

  addTrailer(name: string, value: string): void {
    (this.#trailers ??= []).push(name, value);
  }

  // callbacks of the stream

  onData(payload: Buffer): void {
    if (this.#isAnswered) return this.stream.credit(payload.length);
    this.#requestPace?.moved(payload.length, this.nowMs());
    try {
      this.#input.data(payload);
    } catch (error) {
      return this.fail(error);
    }
    if (this.#watchedBytes === undefined && !this.stream.remoteEnded && this.context.reservation.heldBytes > 0)
      this.#watchRequest();
  }

  onEnd(): void {
    if (this.#isAnswered) return;
    if (this.#watchedBytes !== undefined) this.#server.deadlines.set(this, this.context.deadlineMs);
    this.#input.end();
  }

  onReset(): void {
    if (!this.#isAnswered) this.code = Code.CANCELLED;
    this.#isAnswered = true;
    this.#stopWork(callCancelled());
    this.#endIfDone();
  }

  onSent(bytes: number): void {
    this.#sink?.sent(bytes);
    if (this.#isAnswered) this.#endIfDone();
  }

  onDue(nowMs: number): void {
    if (nowMs >= this.context.deadlineMs) return this.#runOut(deadlineExceeded());
    if (this.#isAnswered || this.stream.remoteEnded) return this.#server.deadlines.set(this, this.context.deadlineMs);
    // while the request waits for us its caller may not send more
    if (this.#input.isWaiting || this.stream.receivedBytes > (this.#watchedBytes ?? 0)) return this.#watchRequest();
    this.#runOut(new BigtableError(Code.CANCELLED, `nothing of the request has come for ${this.#server.stallMs} ms`));
  }

  // from request to answer

  onRequest(request: Buffer): void {
    const method = this.#method;
    if (this.#isAnswered || method === undefined || method.kind === 'bidi') return;
    if (method.kind === 'stream') return this.#serve(method, request);
    this.#begin();
    let work: Promise<Uint8Array | readonly Buffer[]>;
    try {
      work = method.handle(this, request);
    } catch (error) {
      return this.#failed(error);
    }
    work.then(
      (answer) => this.#answer(method, answer),
      (error: unknown) => this.#failed(error),
    );
  }

  arrivesSlowly(): void {
    if (this.#requestPace) return;
    this.#requestPace = new Pace(REQUEST_PACE, this.nowMs());
    this.#server.slowCalls.add(this);
  }

  onAdmitted(bytes: number): void {
    this.#requestPace?.restart(this.nowMs(), Math.max(REQUEST_PACE.bytesPerSecond, bytes / MAX_REQUEST_SECONDS));
    if (this.#watchedBytes !== undefined && !this.stream.remoteEnded && !this.#isAnswered) this.#watchRequest();
  }

  makeSpace(): boolean {
    return this.#server.slowCalls.makeSpace(this.reservation.owner);
  }

  readsSlowly(): void {
    this.#server.slowCalls.add(this);
  }

  isTooSlow(nowMs: number): boolean {
    if (this.#sink?.isTooSlow(nowMs)) return true;
    return (
      !this.stream.remoteEnded &&
      !this.#isAnswered &&
      !this.#input.isWaiting &&
      (this.#requestPace?.isTooSlow(nowMs) ?? false)
    );
  }

  endEarly(error: BigtableError): void {
    const left = this.#sink?.stopAfterMessage(error) ?? 0;
    if (left === 0) return this.#runOut(error);
    // the message that the reader has begun is left to it, and then the status
    this.#isAnswered = true;
    this.code = error.code;
    this.stream.end(statusTrailers(this.#server.statusOf(error), !this.#headersAreSent));
    this.#input.stop(error);
    this.context.interrupt(error);
  }

  /** The handler's work begins. */
  #begin(): void {
    assert(!this.#isRunning && !this.#hasEnded, 'a call is handled once');
    this.#isRunning = true;
    const { notes } = this.context;
    if (notes !== undefined) notes.queuedMs = this.nowMs() - this.startMs;
  }

  #serve(method: Exclude<RpcMethod, { kind: 'unary' }>, request: Buffer | RequestQueue): void {
    const sink = this.#openSink(method);
    this.#begin();
    let work: Promise<void> | undefined;
    try {
      work =
        method.kind === 'bidi'
          ? method.handle(this, request as RequestQueue, sink)
          : method.handle(this, request as Buffer, sink);
    } catch (error) {
      return this.#failed(error);
    }
    if (work === undefined) return this.#finish();
    work.then(
      () => this.#finish(),
      (error: unknown) => this.#failed(error),
    );
  }

  /** Sends the headers immediately: the client may wait for them. */
  #openSink(method: RpcMethod): CallSink {
    const block = this.gzip ? GZIP_ANSWER_HEADERS : ANSWER_HEADERS;
    this.stream.headers(method.headers ? withHeaders(block, method.headers(this)) : block);
    this.#headersAreSent = true;
    this.#sink = new CallSink(this, this.gzip);
    return this.#sink;
  }

  #answer(method: RpcMethod, answer: Uint8Array | readonly Buffer[]): void {
    if (this.#isAnswered) return this.#finish();
    try {
      const message = answer instanceof Uint8Array ? asBuffer(answer) : answer;
      const isSent = this.#openSink(method).answer(message);
      if (!(isSent instanceof Promise)) return this.#answered(isSent, message);
      isSent.then((sent) => this.#answered(sent, message)).catch((error: unknown) => this.#failed(error));
    } catch (error) {
      this.#failed(error);
    }
  }

  #answered(isSent: boolean, message: Buffer | readonly Buffer[]): void {
    if (isSent) return this.#finish();
    this.#failed(
      new BigtableError(
        Code.RESOURCE_EXHAUSTED,
        `an answer of ${lengthOf(message)} bytes exceeds the memory that other requests and their answers leave`,
      ),
    );
  }

  #finish(): void {
    this.#isRunning = false;
    if (!this.#isAnswered) {
      this.#isAnswered = true;
      this.stream.end(this.#trailers ? withHeaders(OK_TRAILERS, this.#trailers) : OK_TRAILERS);
    }
    this.#endIfDone();
  }

  /** The handler failed. Faults of ours are logged; those of the caller only go to the caller. */
  #failed(thrown: unknown): void {
    this.#isRunning = false;
    const error = toBigtableError(thrown);
    if (
      !this.context.interruption &&
      (error.code === Code.INTERNAL || error.code === Code.DATA_LOSS || error.code === Code.UNKNOWN)
    ) {
      const cause = error.cause instanceof Error ? error.cause : error;
      this.#server.env.logger.error('a call failed', {
        path: this.path,
        message: error.message,
        stack: cause.stack ?? '',
      });
    }
    this.fail(error);
  }

  // early ends

  /** Sends the status, after what was sent already. */
  fail(thrown: unknown): void {
    if (!this.#isAnswered) {
      this.#isAnswered = true;
      this.code = toBigtableError(thrown).code;
      const trailers = statusTrailers(this.#server.statusOf(thrown), !this.#headersAreSent);
      this.stream.end(this.#trailers ? withHeaders(trailers, this.#trailers) : trailers);
      if (this.#isRunning) this.#stopWork(toBigtableError(thrown));
    }
    this.#endIfDone();
  }

  /** Discards what has not been sent: it would be too late. */
  #runOut(error: BigtableError): void {
    this.stream.discard();
    this.code = error.code;
    if (this.#isAnswered) this.stream.end(statusTrailers(this.#server.statusOf(error), !this.#headersAreSent));
    this.#stopWork(error);
    this.fail(error);
  }

  /** Ends the handler's work, as far as it listens. */
  #stopWork(error: BigtableError): void {
    this.#server.deadlines.clear(this);
    this.#sink?.stop(error);
    this.#input.stop(error);
    this.context.interrupt(error);
  }

  #endIfDone(): void {
    if (this.#isRunning || (this.#sink && !this.#sink.isDrained) || this.#hasEnded) return;
    this.#hasEnded = true;
    this.#server.deadlines.clear(this);
    this.#server.slowCalls.remove(this);
    this.context.reservation.release();
    this.stream.done();
    this.durationMs = this.nowMs() - this.startMs;
    this.#ledger.end(this.code, this.durationMs);
    this.#server.ledger.onCall?.(this);
  }

  // watching the request

  /** Checks later that the request still comes. */
  #watchRequest(): void {
    const { deadlines, env, stallMs } = this.#server;
    this.#watchedBytes = this.stream.receivedBytes;
    deadlines.set(this, Math.min(this.context.deadlineMs, env.clock.monotonicMs() + stallMs));
  }
}

function checkEncoding(encoding: string): void {
  if (encoding !== 'identity')
    throw new BigtableError(
      Code.UNIMPLEMENTED,
      `unknown grpc-encoding ${JSON.stringify(encoding.slice(0, 32))}: expected identity or gzip`,
    );
}
