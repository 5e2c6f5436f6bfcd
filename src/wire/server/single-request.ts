/**
 * The one message of a unary or server-streaming call: taken in as its reservation allows, then handed on.
 *
 * Invariant: no more than a stream's first window is taken in before the budget has granted the whole message; until then its bytes keep
 * their place in the connection's window too, so that what a connection holds without a reservation is bounded.
 */
import { BigtableError, Code, viewOf } from '../../base/index.ts';
import type { CallContext } from '../../env/index.ts';
import { claimedBytes, inflate } from '../grpc/gzip.ts';
import { keepable, MessageReader, PREFIX_BYTES } from '../grpc/message-framing.ts';
import type { Stream } from '../http2/stream.ts';

/** Frames are no larger than this. */
const WHOLE_BYTES = 16_384;
/** Beside the message: some clients do not even end their stream in a window of nothing. */
export const SLACK_BYTES = 1024;

/** How a call's messages come in. */
export interface RequestInput {
  data(payload: Buffer): void;
  end(): void;
  /** The call is over: nothing more is of use. */
  stop(error: BigtableError): void;
}

/** The call whose messages come in. */
export interface InputHost {
  readonly stream: Stream;
  readonly context: CallContext;
  readonly maxMessageBytes: number;
  /** Whether the caller said that its messages may be gzip files. */
  readonly gzip: boolean;
  /** The one message of a call that takes one. */
  onRequest(request: Buffer): void;
  fail(error: unknown): void;
}

export class SingleRequest implements RequestInput {
  readonly #host: InputHost;
  #reader: MessageReader | undefined;
  #message: Buffer | undefined;
  #isCompressed = false;
  /** The message's length is known. */
  #hasLength = false;
  #isGranted = false;
  #hasEnded = false;

  constructor(host: InputHost) {
    this.#host = host;
  }

  data(payload: Buffer): void {
    if (!this.#reader && this.#takeWhole(payload)) return;
    this.#reader ??= new MessageReader({
      maxMessageBytes: this.#host.maxMessageBytes,
      onLength: (bytes) => this.#onLength(bytes),
      onMessage: (bytes, compressed) => {
        this.#message = bytes;
        this.#isCompressed = compressed;
      },
    });
    this.#reader.push(payload);
    if (this.#isGranted) this.#host.stream.credit(payload.length);
  }

  /** The common case without a reader: a frame that is just the message. */
  #takeWhole(payload: Buffer): boolean {
    if (this.#hasLength || payload.length < PREFIX_BYTES || payload.length > WHOLE_BYTES) return false;
    const length = payload.length - PREFIX_BYTES;
    if (payload.readUInt32BE(1) !== length || (payload[0] as number) > 1 || length > this.#host.maxMessageBytes) return false;
    this.#onLength(length);
    this.#message = keepable(viewOf(payload, PREFIX_BYTES, payload.length));
    this.#isCompressed = payload[0] === 1;
    return true;
  }

  end(): void {
    this.#hasEnded = true;
    if (!this.#message) {
      const what = this.#reader?.isInside ? 'the request ends within its message' : 'the request has no message';
      return this.#host.fail(new BigtableError(Code.INTERNAL, what));
    }
    this.#handOn();
  }

  stop(): void {}

  #onLength(bytes: number): void {
    if (this.#hasLength) throw new BigtableError(Code.INTERNAL, 'the call takes one message and got more');
    this.#hasLength = true;
    const { reservation } = this.#host.context;
    if (reservation.tryGrow(bytes)) return this.#granted(bytes);
    reservation.grow(bytes, this.#host.context.signal).then(
      () => {
        this.#granted(bytes);
        this.#handOn();
      },
      (error: unknown) => this.#host.fail(error),
    );
  }

  #granted(bytes: number): void {
    const { stream } = this.#host;
    this.#isGranted = true;
    stream.credit(stream.uncreditedBytes);
    const more = PREFIX_BYTES + bytes + SLACK_BYTES - stream.receivedBytes - stream.receiveWindow.leftBytes;
    if (more > 0) stream.growWindow(more, true);
  }

  #handOn(): void {
    if (!this.#hasEnded || !this.#isGranted || !this.#message) return;
    const message = this.#message;
    this.#message = undefined;
    if (!this.#isCompressed) return this.#host.onRequest(message);
    inflated(message, this.#host).then(
      (request) => this.#host.onRequest(request),
      (error: unknown) => this.#host.fail(error),
    );
  }
}

/** A gzip message's content, reserved beside it. */
export async function inflated(message: Buffer, host: Pick<InputHost, 'context' | 'maxMessageBytes' | 'gzip'>): Promise<Buffer> {
  const { context, maxMessageBytes, gzip } = host;
  const { reservation } = context;
  if (!gzip) throw new BigtableError(Code.INTERNAL, 'a compressed message in a call whose grpc-encoding is not gzip');
  const bytes = claimedBytes(message);
  if (bytes > maxMessageBytes) throw new BigtableError(Code.RESOURCE_EXHAUSTED, `a message of ${bytes} bytes; the limit is ${maxMessageBytes}`);
  if (!reservation.tryGrow(bytes)) throw new BigtableError(Code.RESOURCE_EXHAUSTED, `a message of ${bytes} bytes, compressed to ${message.length}, has no room beside the other requests`);
  return inflate(message, bytes);
}
