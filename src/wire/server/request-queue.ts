/**
 * The messages of a bidi call, for its handler to read one after another.
 *
 * Invariant: messages are taken out of the arrived bytes only as the handler requests them; other bytes keep their part
 * of the stream's window and of the connection's, and are held as arriving. The message that the handler works on is
 * reserved until it requests the next.
 */
import { BigtableError, Code } from '../../base/index.ts';
import { keepable, MessageReader, PREFIX_BYTES } from '../grpc/message-framing.ts';
import {
  arrivingBytes,
  holdArriving,
  type InputOwner,
  inflated,
  type RequestInput,
  SLACK_BYTES,
} from './single-request.ts';

interface Message {
  readonly bytes: Buffer;
  readonly compressed: boolean;
}

export class RequestQueue implements RequestInput, AsyncIterableIterator<Buffer> {
  readonly #owner: InputOwner;
  readonly #reader: MessageReader;
  /** Bytes that were not parsed yet. */
  #payloads: Buffer[] = [];
  #messages: Message[] = [];
  /** Lengths whose reservation is still to come. */
  #owedBytes = 0;
  /** Bytes of the reservation, and of the stream's window, that the present message has. */
  #presentBytes = 0;
  #takenBytes = 0;
  /** Bytes by which the stream's window was opened ahead of what was taken. */
  #aheadBytes = 0;
  #hasEnded = false;
  #isClosed = false;
  #error: BigtableError | undefined;
  #wake: (() => void) | undefined;

  constructor(owner: InputOwner) {
    this.#owner = owner;
    this.#reader = new MessageReader({
      maxMessageBytes: owner.maxMessageBytes,
      onLength: (bytes) => {
        this.#owedBytes += bytes;
      },
      onMessage: (bytes, compressed) => this.#messages.push({ bytes, compressed }),
    });
  }

  data(payload: Buffer): void {
    if (this.#isClosed) return this.#owner.stream.credit(payload.length);
    this.#owner.arrivesSlowly();
    if (!this.#owner.isUncounted) holdArriving(this.#owner, payload.length);
    this.#payloads.push(keepable(payload));
    this.#wakeUp();
  }

  end(): void {
    this.#hasEnded = true;
    this.#wakeUp();
  }

  stop(error: BigtableError): void {
    this.#error ??= error;
    // the handler may continue for a while: bytes that it will never read are released now
    this.#payloads = [];
    this.#owner.context.reservation.arrived();
    this.#wakeUp();
  }

  get isWaiting(): boolean {
    return this.#wake === undefined;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Buffer>> {
    const { context } = this.#owner;
    const { reservation } = context;
    reservation.shrink(this.#presentBytes);
    this.#presentBytes = 0;
    for (;;) {
      if (this.#error) throw this.#error;
      if (this.#owedBytes > 0) {
        const bytes = this.#owedBytes;
        this.#owedBytes = 0;
        if (!this.#owner.isUncounted && !reservation.tryAdmit(bytes)) await reservation.grow(bytes, context.signal);
        this.#owner.onAdmitted(bytes);
        this.#creditTaken();
        if (this.#reader.isInside) this.#openWindow(bytes);
        continue;
      }
      const message = this.#messages.shift();
      if (message) return { done: false, value: await this.#open(message) };
      const payload = this.#payloads.shift();
      if (payload) {
        this.#takenBytes += payload.length;
        reservation.arrived(arrivingBytes(payload.length));
        this.#reader.push(payload);
        if (this.#owedBytes === 0) this.#creditTaken();
        continue;
      }
      if (this.#isClosed || this.#hasEnded) break;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#reader.isInside) throw new BigtableError(Code.INTERNAL, 'the requests end within a message');
    this.#isClosed = true;
    return { done: true, value: undefined };
  }

  /** The handler reads no further. */
  async return(): Promise<IteratorResult<Buffer>> {
    this.#isClosed = true;
    this.#payloads = [];
    this.#messages = [];
    this.#owner.context.reservation.arrived();
    this.#owner.stream.credit(this.#owner.stream.uncreditedBytes);
    return { done: true, value: undefined };
  }

  async #open(message: Message): Promise<Buffer> {
    this.#presentBytes = message.bytes.length;
    if (!message.compressed) return message.bytes;
    const before = this.#owner.context.reservation.heldBytes;
    const bytes = await inflated(message.bytes, this.#owner);
    this.#presentBytes += this.#owner.context.reservation.heldBytes - before;
    return bytes;
  }

  /** Lets the rest of a message come in that is granted and not yet whole. */
  #openWindow(messageBytes: number): void {
    const { stream } = this.#owner;
    const more = PREFIX_BYTES + messageBytes + SLACK_BYTES - stream.receiveWindow.leftBytes;
    if (more <= 0) return;
    this.#aheadBytes += more;
    stream.growWindow(more, true);
  }

  /** Opens the windows for as many bytes as were taken. */
  #creditTaken(): void {
    const { stream } = this.#owner;
    const paid = Math.min(this.#aheadBytes, this.#takenBytes);
    this.#aheadBytes -= paid;
    stream.credit(this.#takenBytes);
    stream.growWindow(this.#takenBytes - paid);
    this.#takenBytes = 0;
  }

  #wakeUp(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
