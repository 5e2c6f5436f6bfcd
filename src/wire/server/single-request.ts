/**
 * The one message of a unary or server-streaming call: received as its reservation allows, then passed on.
 *
 * A message is admitted when its first PROOF_BYTES, or all of it, have come: what a caller announces costs nothing by
 * itself. Before that its bytes are held as arriving, and return their part of the connection's window: requests that
 * wait hold up no others of their connection. From then on all of its length is reserved.
 *
 * Invariant: no more than a stream's first window is taken in before the budget has granted the whole message. While a
 * request waits it holds nothing but what has arrived of it.
 */
import { BigtableError, Code, unavailable, viewOf } from '../../base/index.ts';
import type { CallContext } from '../../env/index.ts';
import { claimedBytes, inflate } from '../grpc/gzip.ts';
import { keepable, MessageReader, PREFIX_BYTES } from '../grpc/message-framing.ts';
import type { Stream } from '../http2/stream.ts';

/** Frames are no larger than this. */
const WHOLE_BYTES = 16_384;
/** The part of a larger message that must have come before all of it is reserved. Below a stream's first window. */
const PROOF_BYTES = 64 * 1024;
/** Window in addition to the message: some clients do not even end their stream in an empty window. */
export const SLACK_BYTES = 1024;
/** A smaller frame costs us as much as one of this size. */
const MIN_FRAME_BYTES = 256;

/** The input of a call's messages. */
export interface RequestInput {
  data(payload: Buffer): void;
  end(): void;
  /** The call has ended: the rest is discarded. */
  stop(error: BigtableError): void;
  /** True while it waits for the budget, so that the caller is not the slow one. */
  readonly isWaiting: boolean;
}

/** The call whose messages come in. */
export interface InputOwner {
  readonly stream: Stream;
  readonly context: CallContext;
  readonly maxMessageBytes: number;
  /** Requests of this method are tiny: they are not counted and never wait. */
  readonly isUncounted: boolean;
  /** True where the caller announced messages in gzip. */
  readonly gzip: boolean;
  /** The request comes in several pieces, so it can be slow. */
  arrivesSlowly(): void;
  /** Ends another call that holds arriving bytes; false where there is none that should give way to this one. */
  makeSpace(): boolean;
  /** A message of `bytes` was admitted. */
  onAdmitted(bytes: number): void;
  /** The one message of a call that takes one. */
  onRequest(request: Buffer): void;
  fail(error: unknown): void;
}

export class SingleRequest implements RequestInput {
  readonly #owner: InputOwner;
  #reader: MessageReader | undefined;
  #message: Buffer | undefined;
  #isCompressed = false;
  /** Length of the message; -1 until it is known. */
  #lengthBytes = -1;
  #arrivedBytes = 0;
  #isAsked = false;
  #isGranted = false;
  #hasEnded = false;

  constructor(owner: InputOwner) {
    this.#owner = owner;
  }

  get isWaiting(): boolean {
    return this.#isAsked && !this.#isGranted;
  }

  data(payload: Buffer): void {
    if (!this.#reader && this.#takeWhole(payload)) return;
    this.#reader ??= this.#newReader();
    this.#reader.push(payload);
    this.#arrivedBytes += payload.length;
    if (this.#isGranted) return this.#owner.stream.credit(payload.length);
    if (this.#owner.isUncounted) return this.#credit();
    holdArriving(this.#owner, payload.length);
    this.#owner.stream.credit(payload.length);
    if (this.#lengthBytes >= 0 && this.#arrivedBytes >= PREFIX_BYTES + Math.min(this.#lengthBytes, PROOF_BYTES))
      this.#ask();
  }

  #newReader(): MessageReader {
    this.#owner.arrivesSlowly();
    return new MessageReader({
      maxMessageBytes: this.#owner.maxMessageBytes,
      onLength: (bytes) => this.#onLength(bytes),
      onMessage: (bytes, compressed) => {
        this.#message = bytes;
        this.#isCompressed = compressed;
      },
    });
  }

  /** The common case without a reader: a frame that is just the message. */
  #takeWhole(payload: Buffer): boolean {
    if (this.#lengthBytes >= 0 || payload.length < PREFIX_BYTES || payload.length > WHOLE_BYTES) return false;
    const length = payload.length - PREFIX_BYTES;
    if (payload.readUInt32BE(1) !== length || payload[0]! > 1 || length > this.#owner.maxMessageBytes) return false;
    this.#lengthBytes = length;
    this.#message = keepable(viewOf(payload, PREFIX_BYTES, payload.length));
    this.#isCompressed = payload[0] === 1;
    if (this.#owner.isUncounted) this.#credit();
    else if (this.#owner.context.reservation.tryAdmit(length)) this.#granted();
    else {
      holdArriving(this.#owner, payload.length);
      this.#owner.stream.credit(payload.length);
      this.#ask();
    }
    return true;
  }

  end(): void {
    this.#hasEnded = true;
    if (!this.#message) {
      const what = this.#reader?.isInside ? 'the request ends within its message' : 'the request has no message';
      return this.#owner.fail(new BigtableError(Code.INTERNAL, what));
    }
    this.#handOn();
  }

  stop(): void {}

  #onLength(bytes: number): void {
    if (this.#lengthBytes >= 0) throw new BigtableError(Code.INTERNAL, 'the call takes one message and got more');
    this.#lengthBytes = bytes;
  }

  /** An uncounted request needs no more than its part of the windows. */
  #credit(): void {
    this.#isAsked = true;
    this.#isGranted = true;
    this.#owner.stream.credit(this.#owner.stream.uncreditedBytes);
  }

  #ask(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    const { context } = this.#owner;
    if (context.reservation.tryAdmit(this.#lengthBytes)) return this.#granted();
    // a context makes its signal on first use: a call that is admitted immediately needs none
    context.reservation.grow(this.#lengthBytes, context.signal).then(
      () => {
        this.#granted();
        this.#handOn();
      },
      (error: unknown) => this.#owner.fail(error),
    );
  }

  #granted(): void {
    const { stream, context } = this.#owner;
    this.#isAsked = true;
    this.#isGranted = true;
    if (this.#arrivedBytes > 0) this.#owner.onAdmitted(this.#lengthBytes);
    context.reservation.arrived();
    stream.credit(stream.uncreditedBytes);
    const more = PREFIX_BYTES + this.#lengthBytes + SLACK_BYTES - stream.receivedBytes - stream.receiveWindow.leftBytes;
    if (more > 0) stream.growWindow(more, true);
  }

  #handOn(): void {
    if (!this.#hasEnded || !this.#isGranted || !this.#message) return;
    const message = this.#message;
    this.#message = undefined;
    if (!this.#isCompressed) return this.#owner.onRequest(message);
    inflated(message, this.#owner).then(
      (request) => this.#owner.onRequest(request),
      (error: unknown) => this.#owner.fail(error),
    );
  }
}

/**
 * Holds a frame's bytes, of a request that is not admitted. Throws UNAVAILABLE where no memory is left and no other
 * request should end for it.
 */
export function holdArriving(owner: Pick<InputOwner, 'context' | 'makeSpace'>, bytes: number): void {
  const { context } = owner;
  const held = arrivingBytes(bytes);
  while (!context.reservation.tryArrive(held)) {
    // it was itself one of the calls that are too slow, and finds no space however many others end
    if (context.interruption) throw context.interruption;
    if (!owner.makeSpace()) throw unavailable('no memory is left for requests that wait: try again');
  }
}

/** The size that a frame counts while its request is not admitted. */
export function arrivingBytes(frameBytes: number): number {
  return Math.max(frameBytes, MIN_FRAME_BYTES);
}

/** The content of a message in gzip, reserved in addition to it. */
export async function inflated(
  message: Buffer,
  owner: Pick<InputOwner, 'context' | 'maxMessageBytes' | 'gzip'>,
): Promise<Buffer> {
  const { context, maxMessageBytes, gzip } = owner;
  const { reservation } = context;
  if (!gzip) throw new BigtableError(Code.INTERNAL, 'a compressed message in a call whose grpc-encoding is not gzip');
  const bytes = claimedBytes(message);
  if (bytes > maxMessageBytes)
    throw new BigtableError(Code.RESOURCE_EXHAUSTED, `a message of ${bytes} bytes; the limit is ${maxMessageBytes}`);
  if (!reservation.tryGrow(bytes))
    throw new BigtableError(
      Code.RESOURCE_EXHAUSTED,
      `a message of ${bytes} bytes, compressed to ${message.length}, exceeds the memory that other requests leave`,
    );
  return inflate(message, bytes);
}
