/**
 * The sending end of a call: counts what was written and not yet taken by the connection, and makes the writer wait
 * when that is too much, so that a slow reader holds back its own scan and no memory.
 *
 * Invariant: every pending byte is held in the call's reservation, and pending bytes stay below HIGH_BYTES plus one
 * message. Where the budget is short, the writer waits until all its messages are sent before it makes the next; where
 * it has no space for one, the message is refused with UNAVAILABLE, so that what answers take is bounded by the budget
 * however many calls there are.
 */
import { assert, type BigtableError, unavailable } from '../../base/index.ts';
import { type CallContext, Pace } from '../../env/index.ts';
import { deflate } from '../grpc/gzip.ts';
import { lengthOf, messagePrefix, PREFIX_BYTES } from '../grpc/message-framing.ts';
import { COPY_BYTES } from '../http2/corked-output.ts';
import type { Stream } from '../http2/stream.ts';
import type { RpcSink } from '../contract/rpc-server.ts';

const HIGH_BYTES = 1024 * 1024;
const LOW_BYTES = 256 * 1024;
/** Smaller messages do not get shorter. */
const WORTH_DEFLATING_BYTES = 256;
/** A reader that takes less, after some grace, is too slow while others wait for the memory of its answers. */
const READER_PACE = { graceMs: 2000, bytesPerSecond: 32 * 1024 };

/** Prefix of a message that is sent immediately. */
const COPIED_PREFIX = Buffer.alloc(PREFIX_BYTES);

/** The call whose answers these are. */
export interface SinkOwner {
  readonly stream: Stream;
  readonly context: CallContext;
  nowMs(): number;
  /** Something waits for the reader, which may be slow. */
  readsSlowly(): void;
}

interface Waiter {
  readonly belowBytes: number;
  readonly resolve: () => void;
  readonly reject: (error: BigtableError) => void;
}

export class CallSink implements RpcSink {
  readonly #owner: SinkOwner;
  readonly #stream: Stream;
  readonly #context: CallContext;
  readonly #compress: boolean;
  /** Bytes of all messages sent, with their prefixes. */
  sentBytes = 0;
  #pendingBytes = 0;
  /** Pending bytes covered by the reservation: all of them, except while one is sent. */
  #heldBytes = 0;
  /** Sizes of the pending messages, from `#first` on. */
  #sizes: number[] = [];
  #first = 0;
  /** Bytes sent of the first pending message. */
  #firstSentBytes = 0;
  #pace: Pace | undefined;
  #wait: Waiter | undefined;

  constructor(owner: SinkOwner, compress: boolean) {
    this.#owner = owner;
    this.#stream = owner.stream;
    this.#context = owner.context;
    this.#compress = compress;
  }

  get isDrained(): boolean {
    return this.#pendingBytes === 0;
  }

  /** True when the reader takes pending bytes more slowly than it may while others wait. */
  isTooSlow(nowMs: number): boolean {
    return this.#pendingBytes > 0 && this.#pace !== undefined && this.#pace.isTooSlow(nowMs);
  }

  send(message: Buffer | readonly Buffer[]): Promise<void> | undefined {
    const bytes = lengthOf(message);
    if (this.#compress && bytes >= WORTH_DEFLATING_BYTES) return this.#sendDeflated(message);
    return this.#send(message, bytes, false);
  }

  sendCopy(message: Buffer): Promise<void> | undefined {
    const goesNow = !this.#compress && !this.#context.interruption && message.length <= COPY_BYTES;
    if (goesNow && this.#stream.sendWhole(messagePrefix(message.length, false, COPIED_PREFIX), message))
      return this.#countSent(message.length);
    return this.send(Buffer.from(message));
  }

  /**
   * Sends the one answer of a call, which then needs nothing else of its reservation. False where there is no space for
   * it, and nothing of it was sent; a promise where it has to be deflated first.
   */
  answer(message: Buffer | readonly Buffer[]): boolean | Promise<boolean> {
    if (!this.#compress || lengthOf(message) < WORTH_DEFLATING_BYTES) return this.#answer(message, false);
    return this.#answerDeflated(message);
  }

  /** Counts bytes that went out. */
  sent(bytes: number): void {
    this.sentBytes += bytes;
    this.#pendingBytes -= bytes;
    assert(this.#pendingBytes >= 0, 'no more of an answer was sent than was pending');
    this.#firstSentBytes += bytes;
    for (
      let size = this.#sizes[this.#first];
      size !== undefined && this.#firstSentBytes >= size;
      size = this.#sizes[this.#first]
    ) {
      this.#firstSentBytes -= size;
      this.#first++;
    }
    if (this.#first === this.#sizes.length || this.#first > 64) {
      this.#sizes = this.#sizes.slice(this.#first);
      this.#first = 0;
    }
    this.#release(bytes);
    this.#pace?.moved(bytes, this.#owner.nowMs());
    if (this.#wait && this.#pendingBytes <= this.#wait.belowBytes) this.#takeWaiter()?.resolve();
  }

  /** Ends the call: pending bytes will not be sent. */
  stop(error: BigtableError): void {
    const wait = this.#takeWaiter();
    this.#keep(0);
    wait?.reject(error);
  }

  /** Ends the call after the message that was sent in part. Returns the bytes of it that are left. */
  stopAfterMessage(error: BigtableError): number {
    const wait = this.#takeWaiter();
    this.#keep(this.#firstSentBytes > 0 ? this.#sizes[this.#first]! - this.#firstSentBytes : 0);
    // a reader that does not even take the rest of it is cut off the next time
    this.#sizes = this.#pendingBytes > 0 ? [this.#pendingBytes] : [];
    this.#first = 0;
    this.#firstSentBytes = 0;
    wait?.reject(error);
    return this.#pendingBytes;
  }

  #countSent(messageBytes: number): undefined {
    this.sentBytes += messageBytes + PREFIX_BYTES;
  }

  async #sendDeflated(message: Buffer | readonly Buffer[]): Promise<void> {
    const deflated = await deflate(message);
    await this.#send(deflated, lengthOf(deflated), true);
  }

  #send(message: Buffer | readonly Buffer[], bytes: number, compressed: boolean): Promise<void> | undefined {
    const error = this.#context.interruption;
    if (error) return Promise.reject(error);
    if (this.#sendWhole(message, bytes, compressed)) return this.#countSent(bytes);
    this.#queue(messagePrefix(bytes, compressed), message, bytes + PREFIX_BYTES);
    // bytes that went out immediately were never held
    const left = this.#pendingBytes - this.#heldBytes;
    if (left === 0) return undefined;
    const { reservation } = this.#context;
    const outcome = reservation.tryHoldAnswer(left);
    const ended = this.#context.interruption;
    if (ended) {
      // space is made by ending calls that are too slow, and this was one: its messages are discarded, this one too
      if (outcome !== 'refused') reservation.shrink(left);
      return Promise.reject(ended);
    }
    if (outcome === 'refused') return this.#refuse(left, bytes + PREFIX_BYTES);
    this.#heldBytes += left;
    if (outcome === 'tight') return this.#until(0);
    return this.#pendingBytes >= HIGH_BYTES ? this.#until(LOW_BYTES) : undefined;
  }

  async #answerDeflated(message: Buffer | readonly Buffer[]): Promise<boolean> {
    return this.#answer(await deflate(message), true);
  }

  #answer(message: Buffer | readonly Buffer[], compressed: boolean): boolean {
    const { interruption, reservation } = this.#context;
    if (interruption) throw interruption;
    const messageBytes = lengthOf(message);
    if (this.#sendWhole(message, messageBytes, compressed)) {
      this.#countSent(messageBytes);
      return true;
    }
    const bytes = messageBytes + PREFIX_BYTES;
    const more = bytes - reservation.heldBytes;
    if (more > 0 && reservation.tryHoldAnswer(more) === 'refused') return false;
    if (more < 0) reservation.shrink(-more);
    this.#heldBytes = bytes;
    this.#queue(messagePrefix(messageBytes, compressed), message, bytes);
    return true;
  }

  /** True where the message is one buffer that could be sent immediately. */
  #sendWhole(message: Buffer | readonly Buffer[], bytes: number, compressed: boolean): boolean {
    if (!(message instanceof Uint8Array)) return false;
    return this.#stream.sendWhole(messagePrefix(bytes, compressed, COPIED_PREFIX), message);
  }

  #queue(prefix: Buffer, message: Buffer | readonly Buffer[], bytes: number): void {
    const stream = this.#stream;
    if (this.#pendingBytes === 0) this.#begin();
    stream.data(prefix);
    if (message instanceof Uint8Array) stream.data(message);
    else for (const part of message) stream.data(part);
    this.#pendingBytes += bytes;
    this.#sizes.push(bytes);
    stream.send();
  }

  /** The reader's pace is measured from here on. */
  #begin(): void {
    const nowMs = this.#owner.nowMs();
    if (this.#pace === undefined) this.#pace = new Pace(READER_PACE, nowMs);
    else this.#pace.restart(nowMs);
    this.#owner.readsSlowly();
  }

  /** Takes back the last message, or the rest of it, since there is no space for it. */
  #refuse(leftBytes: number, messageBytes: number): Promise<void> {
    // the reader cannot use a part of a message: the call ends within one that has begun
    this.#keep(this.#pendingBytes - leftBytes);
    if (leftBytes === messageBytes && this.#sizes.length > 0) this.#sizes.pop();
    return Promise.reject(
      unavailable(
        'no memory is left for the answers of this call: read faster, or continue from the last row that came',
      ),
    );
  }

  /** Discards all but the first of the pending bytes. */
  #keep(bytes: number): void {
    const discarded = this.#pendingBytes - bytes;
    assert(discarded >= 0, 'a call keeps no more of its answers than are pending');
    if (discarded === 0) return;
    this.#stream.keep(bytes);
    this.#pendingBytes = bytes;
    this.#release(this.#heldBytes - bytes);
    if (bytes > 0) return;
    this.#sizes = [];
    this.#first = 0;
    this.#firstSentBytes = 0;
  }

  /** Releases bytes that are not pending any more. */
  #release(bytes: number): void {
    const held = Math.min(bytes, this.#heldBytes);
    if (held <= 0) return;
    this.#heldBytes -= held;
    this.#context.reservation.shrink(held);
  }

  #until(belowBytes: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#wait = { belowBytes, resolve, reject };
    });
  }

  #takeWaiter(): Waiter | undefined {
    const wait = this.#wait;
    this.#wait = undefined;
    return wait;
  }
}
