/**
 * A stream of a connection, seen from the server: what is to be sent waits here for the windows; what arrives goes to
 * the stream's owner.
 *
 * Invariant: bytes leave in the order of `data`, the trailers after all of them. A stream is over when both sides have
 * ended, or one has reset it; from then on it takes nothing and calls its owner no more.
 */
import { assert } from '../../base/index.ts';
import type { ErrorCode } from './frames.ts';
import { type ReceiveWindow, SendWindow } from './flow-window.ts';

/** The answerer of a request. Throws nothing but an Http2Error of the stream. */
export interface StreamOwner {
  /** The bytes take space in the connection's window until `stream.credit` returns it. */
  onData(payload: Buffer): void;
  /** The request is whole. */
  onEnd(): void;
  /** The stream has ended early: reset by the peer or for its errors, or the connection is lost. */
  onReset(): void;
  /** Bytes of `data` went to the socket. */
  onSent(bytes: number): void;
}

/** The part of a connection that its streams use. */
export interface StreamConnection {
  sendHeaders(stream: Stream, block: Buffer, endStream: boolean): void;
  /** The stream has something to send that it had not before. */
  ready(stream: Stream): void;
  /** Sends a message immediately and whole; false where it cannot, and nothing of it was sent. */
  sendWhole(stream: Stream, prefix: Buffer, message: Buffer): boolean;
  reset(stream: Stream, code: ErrorCode): void;
  /** Returns to the peer what a stream's bytes took of the connection's window. */
  credit(bytes: number): void;
  growWindow(stream: Stream, bytes: number, immediately: boolean): void;
  /** Both sides have ended, or the owner's work has. */
  ended(stream: Stream): void;
}

const NO_TRAILERS = Buffer.alloc(0);

export class Stream {
  readonly id: number;
  readonly #connection: StreamConnection;
  owner: StreamOwner | undefined;
  readonly sendWindow: SendWindow;
  readonly receiveWindow: ReceiveWindow;
  /** The length that the request announced, and the bytes that came. */
  readonly contentLength: number | undefined;
  receivedBytes = 0;
  /** Received bytes not yet returned to the connection's window. */
  uncreditedBytes = 0;
  remoteEnded = false;
  /** Our last frame has been written. */
  localEnded = false;
  isReset = false;
  /** True once the owner's work has ended: until then it counts. */
  ownerDone = false;
  /** The connection's list of those that have something to send. */
  isListed = false;
  nextReady: Stream | undefined;
  /** Made when something must wait. */
  #queue: Buffer[] | undefined;
  #first = 0;
  #firstAt = 0;
  queuedBytes = 0;
  #trailers: Buffer | undefined;

  constructor(
    id: number,
    connection: StreamConnection,
    sendWindowBytes: number,
    receiveWindow: ReceiveWindow,
    contentLength?: number | undefined,
  ) {
    this.id = id;
    this.#connection = connection;
    this.sendWindow = new SendWindow(sendWindowBytes);
    this.receiveWindow = receiveWindow;
    this.contentLength = contentLength;
  }

  get hasEnded(): boolean {
    return this.isReset || (this.remoteEnded && this.localEnded);
  }

  /** True when its own window lets something out now. */
  get canSend(): boolean {
    return this.queuedBytes > 0 ? this.sendWindow.bytes > 0 : this.#trailers !== undefined;
  }

  /** Sends the answer's headers. */
  headers(block: Buffer): void {
    if (!this.isReset) this.#connection.sendHeaders(this, block, false);
  }

  /** Bytes of the answer; they belong to the stream from now on. */
  data(bytes: Buffer): void {
    if (this.isReset || bytes.length === 0) return;
    (this.#queue ??= []).push(bytes);
    this.queuedBytes += bytes.length;
  }

  /**
   * A message that needs not be queued; false where it must be. `prefix` is copied, the message belongs to the stream
   * if it was sent.
   */
  sendWhole(prefix: Buffer, message: Buffer): boolean {
    return !this.isReset && this.#connection.sendWhole(this, prefix, message);
  }

  /** Sends on what the windows allow. To be called after `data`. */
  send(): void {
    if (!this.isReset && this.queuedBytes > 0) this.#connection.ready(this);
  }

  /** The end of the answer, after all of `data`; without trailers where there are none. */
  end(trailers: Buffer = NO_TRAILERS): void {
    if (this.isReset) return;
    this.#trailers = trailers;
    this.#connection.ready(this);
  }

  /** Discards what is queued. Returns its bytes. */
  discard(): number {
    const dropped = this.queuedBytes;
    this.#queue = undefined;
    this.#first = 0;
    this.#firstAt = 0;
    this.queuedBytes = 0;
    return dropped;
  }

  /** Keeps the first of the queued bytes, and discards the rest. */
  keep(bytes: number): void {
    if (bytes <= 0) return void this.discard();
    const kept: Buffer[] = [];
    const left = Math.min(bytes, this.queuedBytes);
    if (left < this.queuedBytes) {
      this.take(left, (part) => kept.push(part));
      this.discard();
      for (const part of kept) this.data(part);
    }
  }

  reset(code: ErrorCode): void {
    if (!this.hasEnded) this.#connection.reset(this, code);
  }

  credit(bytes: number): void {
    const given = Math.min(bytes, this.uncreditedBytes);
    this.uncreditedBytes -= given;
    if (given > 0) this.#connection.credit(given);
  }

  /** Lets the peer send more of this request. `immediately`: it waits for just this. */
  growWindow(bytes: number, immediately = false): void {
    if (!this.hasEnded && !this.remoteEnded && bytes > 0) this.#connection.growWindow(this, bytes, immediately);
  }

  /** The owner's work has ended: nothing runs for this stream any more. */
  done(): void {
    if (this.ownerDone) return;
    this.ownerDone = true;
    this.#connection.ended(this);
  }

  /**
   * Takes exactly `bytes` from the queue, part by part. `onWhole`: called with what `data` got, once all of that is
   * taken.
   */
  take(bytes: number, write: (part: Buffer) => void, onWhole?: (data: Buffer) => void): void {
    assert(bytes > 0 && bytes <= this.queuedBytes, 'no more is taken of a stream than is queued');
    const queue = this.#queue!;
    this.queuedBytes -= bytes;
    for (let left = bytes; left > 0; ) {
      const part = queue[this.#first]!;
      const have = part.length - this.#firstAt;
      if (have > left) {
        write(part.subarray(this.#firstAt, this.#firstAt + left));
        this.#firstAt += left;
        break;
      }
      write(this.#firstAt === 0 ? part : part.subarray(this.#firstAt));
      onWhole?.(part);
      left -= have;
      this.#firstAt = 0;
      this.#first++;
    }
    if (this.queuedBytes === 0) {
      this.#queue = undefined;
      this.#first = 0;
    } else if (this.#first > 64) {
      queue.splice(0, this.#first);
      this.#first = 0;
    }
  }

  /** The trailers, when their turn has come. */
  takeTrailers(): Buffer | undefined {
    if (this.queuedBytes > 0) return undefined;
    const trailers = this.#trailers;
    this.#trailers = undefined;
    return trailers;
  }
}
