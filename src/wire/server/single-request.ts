/**
 * The one message of a unary or server-streaming call: taken in as its reservation allows, then handed on.
 *
 * Invariant: no more than a stream's first window is taken in before the budget has granted the whole message; until then its bytes keep
 * their place in the connection's window too, so that what a connection holds without a reservation is bounded.
 */
import { BigtableError, Code } from '../../base/index.ts';
import type { Reservation } from '../../env/index.ts';
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

export interface InputOptions {
  readonly stream: Stream;
  readonly reservation: Reservation;
  readonly maxMessageBytes: number;
  /** Whether the caller said that its messages may be gzip files. */
  readonly gzip: boolean;
  /** Of the call; asked for only where something waits. */
  readonly signal: () => AbortSignal;
  readonly fail: (error: unknown) => void;
}

export class SingleRequest implements RequestInput {
  readonly #options: InputOptions;
  readonly #onRequest: (request: Buffer) => void;
  #reader: MessageReader | undefined;
  #message: Buffer | undefined;
  #isCompressed = false;
  /** The message's length is known. */
  #hasLength = false;
  #isGranted = false;
  #hasEnded = false;

  constructor(options: InputOptions, onRequest: (request: Buffer) => void) {
    this.#options = options;
    this.#onRequest = onRequest;
  }

  data(payload: Buffer): void {
    if (!this.#reader && this.#takeWhole(payload)) return;
    this.#reader ??= new MessageReader({
      maxMessageBytes: this.#options.maxMessageBytes,
      onLength: (bytes) => this.#onLength(bytes),
      onMessage: (bytes, compressed) => {
        this.#message = bytes;
        this.#isCompressed = compressed;
      },
    });
    this.#reader.push(payload);
    if (this.#isGranted) this.#options.stream.credit(payload.length);
  }

  /** The common case without a reader: a frame that is just the message. */
  #takeWhole(payload: Buffer): boolean {
    if (this.#hasLength || payload.length < PREFIX_BYTES || payload.length > WHOLE_BYTES) return false;
    const length = payload.length - PREFIX_BYTES;
    if (payload.readUInt32BE(1) !== length || (payload[0] as number) > 1 || length > this.#options.maxMessageBytes) return false;
    this.#onLength(length);
    this.#message = keepable(payload.subarray(PREFIX_BYTES));
    this.#isCompressed = payload[0] === 1;
    return true;
  }

  end(): void {
    this.#hasEnded = true;
    if (!this.#message) {
      const what = this.#reader?.isInside ? 'the request ends within its message' : 'the request has no message';
      return this.#options.fail(new BigtableError(Code.INTERNAL, what));
    }
    this.#handOn();
  }

  stop(): void {}

  #onLength(bytes: number): void {
    if (this.#hasLength) throw new BigtableError(Code.INTERNAL, 'the call takes one message and got more');
    this.#hasLength = true;
    const { reservation, signal, fail } = this.#options;
    if (reservation.tryGrow(bytes)) return this.#granted(bytes);
    reservation.grow(bytes, signal()).then(() => {
      this.#granted(bytes);
      this.#handOn();
    }, fail);
  }

  #granted(bytes: number): void {
    const { stream } = this.#options;
    this.#isGranted = true;
    stream.credit(stream.uncreditedBytes);
    const more = PREFIX_BYTES + bytes + SLACK_BYTES - stream.receivedBytes - stream.receiveWindow.leftBytes;
    if (more > 0) stream.growWindow(more, true);
  }

  #handOn(): void {
    if (!this.#hasEnded || !this.#isGranted || !this.#message) return;
    const message = this.#message;
    this.#message = undefined;
    if (!this.#isCompressed) return this.#onRequest(message);
    inflated(message, this.#options).then(this.#onRequest, this.#options.fail);
  }
}

/** A gzip message's content, reserved beside it. */
export async function inflated(message: Buffer, options: Pick<InputOptions, 'reservation' | 'maxMessageBytes' | 'gzip'>): Promise<Buffer> {
  const { reservation, maxMessageBytes, gzip } = options;
  if (!gzip) throw new BigtableError(Code.INTERNAL, 'a compressed message in a call whose grpc-encoding is not gzip');
  const bytes = claimedBytes(message);
  if (bytes > maxMessageBytes) throw new BigtableError(Code.RESOURCE_EXHAUSTED, `a message of ${bytes} bytes; the limit is ${maxMessageBytes}`);
  if (!reservation.tryGrow(bytes)) throw new BigtableError(Code.RESOURCE_EXHAUSTED, `a message of ${bytes} bytes, compressed to ${message.length}, has no room beside the other requests`);
  return inflate(message, bytes);
}
