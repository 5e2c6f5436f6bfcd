/**
 * One gRPC call on the client: from its start, over the connections that are tried, to its status.
 *
 * Invariant: `onDone` is called once, after the last `onMessage`; from then on nothing of the call is left in the
 * deadlines, in its context or on a connection. What a slow reader leaves unread is at most about two windows and one
 * message.
 */
import { asBuffer, BigtableError, Code, offAbort, onAbort, toBigtableError } from '../../base/index.ts';
import {
  callCancelled,
  CallContext,
  deadlineExceeded,
  type Interruptible,
  type RequestContext,
} from '../../env/index.ts';
import { MessageReader } from '../grpc/message-framing.ts';
import { type Headers, headerValue } from '../grpc/metadata.ts';
import { ErrorCode } from '../http2/frames.ts';
import type { Stream } from '../http2/stream.ts';
import type { RpcStatus } from '../contract/rpc-server.ts';
import type { DeadlineEntry, Deadlines } from '../server/deadlines.ts';
import { faultOfHeaders, statusOfTrailers } from './answer-status.ts';
import { type ClientConnection, type Exchange, STREAM_WINDOW_BYTES } from './client-connection.ts';

export interface CallOwner {
  readonly deadlines: Deadlines;
  readonly maxMessageBytes: number;
  /** The error for a status that is not OK. */
  readonly errorOf: (status: RpcStatus) => BigtableError;
  /** The error for a call that the server, or the connection to it, has ended without a status. */
  readonly errorOfBreach: (error: BigtableError) => BigtableError;
  /** Sends the call on a connection, when there is one with capacity. */
  start(call: ClientCall): void;
  /** The call is over: it waits for no connection any more. */
  onEnded(call: ClientCall): void;
}

/** What a call sends. */
interface CallParts {
  readonly path: string;
  readonly request: Uint8Array;
  readonly headers: readonly string[] | undefined;
  readonly staysOpen?: boolean | undefined;
}

/** The reader of the answer. */
export interface AnswerReader {
  /** `compressed`: by gzip. */
  onMessage(bytes: Buffer, compressed: boolean): void;
  /** Undefined: the status was OK. */
  onDone(error: BigtableError | undefined): void;
}

/** Attempts to send a call that no server has worked on. */
const MAX_ATTEMPTS = 3;

export class ClientCall implements Exchange, DeadlineEntry, Interruptible {
  readonly path: string;
  readonly message: Buffer;
  /** Those of this call alone: name, value, name, value … */
  readonly headers: readonly string[] | undefined;
  readonly context: RequestContext;
  readonly #staysOpen: boolean;
  readonly #owner: CallOwner;
  readonly #reader: AnswerReader;
  readonly #messages: MessageReader;
  #connection: ClientConnection | undefined;
  #stream: Stream | undefined;
  #attempts = 0;
  #hasEnded = false;
  #headersCame = false;
  #isGzip = false;
  /** Bytes of whole messages that the reader has not taken. */
  #unreadBytes = 0;
  /** Bytes that came, and for which the window was not opened again. */
  #ungrantedBytes = 0;
  readonly #onAbort = (): void => this.interrupt(callCancelled());
  // as an entry of the deadlines
  dueMs = Number.POSITIVE_INFINITY;
  slot: DeadlineEntry | undefined = undefined;
  before: DeadlineEntry | undefined = undefined;
  after: DeadlineEntry | undefined = undefined;

  constructor(
    owner: CallOwner,
    { path, request, headers, staysOpen = false }: CallParts,
    context: RequestContext,
    reader: AnswerReader,
  ) {
    this.path = path;
    this.message = asBuffer(request);
    this.headers = headers;
    this.context = context;
    this.#staysOpen = staysOpen;
    this.#owner = owner;
    this.#reader = reader;
    this.#messages = new MessageReader({
      maxMessageBytes: owner.maxMessageBytes,
      usesMessageBuffers: true,
      onMessage: (bytes, compressed) => this.#onMessage(bytes, compressed),
    });
  }

  start(): void {
    const { context } = this;
    if (context instanceof CallContext) {
      if (context.interruption) return this.#end(context.interruption);
      context.listen(this);
    } else {
      if (context.signal?.aborted) return this.#end(callCancelled());
      onAbort(context.signal, this.#onAbort);
    }
    this.#owner.deadlines.set(this, context.deadlineMs);
    this.#owner.start(this);
  }

  /** `headers` are the whole request's. */
  sendOn(connection: ClientConnection, headers: readonly string[]): void {
    this.#attempts++;
    this.#connection = connection;
    this.#stream = connection.open(this, headers, this.message, this.#staysOpen);
  }

  /** The reader is done with a message of `bytes`. */
  wasRead(bytes: number): void {
    this.#unreadBytes -= bytes;
    this.#grant();
  }

  /** Ends the call: no reader wants the rest of the answer. */
  cancel(): void {
    // an error is costly, and most readers end a call that has ended
    if (!this.#hasEnded) this.interrupt(callCancelled());
  }

  interrupt(error: BigtableError): void {
    if (this.#hasEnded) return;
    const stream = this.#stream;
    this.#end(error);
    stream?.reset(ErrorCode.CANCEL);
  }

  onDue(): void {
    const stream = this.#stream;
    this.interrupt(deadlineExceeded());
    if (stream) this.#connection?.wasLate(stream);
  }

  // callbacks of the connection

  onHeaders(headers: Headers, endStream: boolean): void {
    if (!this.#headersCame) {
      // an interim answer (1xx) comes before the real one
      if (!endStream && headerValue(headers, ':status')?.startsWith('1')) return;
      this.#headersCame = true;
      const status = endStream ? statusOfTrailers(headers) : undefined;
      if (status) return this.#finish(status);
      const fault = faultOfHeaders(headers);
      if (fault) return this.#breach(fault);
      if (!endStream) return this.#checkEncoding(headerValue(headers, 'grpc-encoding') ?? 'identity');
    }
    const status = statusOfTrailers(headers);
    if (!endStream || !status)
      return this.#breach(new BigtableError(Code.INTERNAL, 'the answer ended without a status'));
    this.#finish(status);
  }

  onData(bytes: Buffer): void {
    if (this.#hasEnded) return;
    if (!this.#headersCame) return this.#breach(new BigtableError(Code.INTERNAL, 'the answer began without headers'));
    try {
      this.#messages.push(bytes);
    } catch (error) {
      return this.#breach(toBigtableError(error));
    }
    this.#ungrantedBytes += bytes.length;
    this.#grant();
  }

  onEnd(): void {
    this.#breach(new BigtableError(Code.INTERNAL, 'the answer ended without a status'));
  }

  onLost(error: BigtableError, untouched: boolean): void {
    if (this.#hasEnded) return;
    this.#stream = undefined;
    if (untouched && this.#attempts < MAX_ATTEMPTS) this.#owner.start(this);
    // a server that ends a call whose time is over may be heard before the deadline fires here
    else if (error.code === Code.CANCELLED && this.#owner.deadlines.isReached(this.context.deadlineMs))
      this.#end(deadlineExceeded());
    else this.#end(this.#owner.errorOfBreach(error));
  }

  /** No connection could be made. */
  fail(error: BigtableError): void {
    this.#end(error);
  }

  #checkEncoding(encoding: string): void {
    this.#isGzip = encoding === 'gzip';
    if (!this.#isGzip && encoding !== 'identity')
      this.#breach(
        new BigtableError(Code.INTERNAL, `the answer is encoded as ${JSON.stringify(encoding)}, which was not offered`),
      );
  }

  #onMessage(bytes: Buffer, compressed: boolean): void {
    if (this.#hasEnded) return;
    if (compressed && !this.#isGzip)
      return this.#breach(new BigtableError(Code.INTERNAL, 'a compressed message in an answer without grpc-encoding'));
    this.#unreadBytes += bytes.length;
    this.#reader.onMessage(bytes, compressed);
  }

  /**
   * Lets the server continue to send, unless a window's worth of messages is unread. An incomplete message has no
   * reader to wait for.
   */
  #grant(): void {
    if (this.#unreadBytes >= STREAM_WINDOW_BYTES || this.#ungrantedBytes === 0) return;
    this.#stream?.growWindow(this.#ungrantedBytes);
    this.#ungrantedBytes = 0;
  }

  #finish(status: RpcStatus): void {
    if (status.code !== Code.OK) return this.#end(this.#owner.errorOf(status));
    if (this.#messages.isInside)
      return this.#breach(new BigtableError(Code.INTERNAL, 'the answer ended within a message'));
    this.#end(undefined);
  }

  #breach(error: BigtableError): void {
    this.interrupt(this.#owner.errorOfBreach(error));
  }

  #end(error: BigtableError | undefined): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const { context } = this;
    if (context instanceof CallContext) context.unlisten(this);
    else offAbort(context.signal, this.#onAbort);
    this.#owner.deadlines.clear(this);
    this.#owner.onEnded(this);
    this.#reader.onDone(error);
  }
}
