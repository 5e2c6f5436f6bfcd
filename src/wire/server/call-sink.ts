/**
 * The sending end of a call: counts what was written and not yet taken by the connection, and makes the writer wait when that is too
 * much, so that a slow reader holds back its own scan and no memory.
 *
 * Invariant: pending bytes stay below HIGH_BYTES plus one message. They are held in the call's reservation as far as the budget
 * has room; where it has none, the writer waits until all its messages are sent before it makes the next, so that a
 * spent budget slows streams down to one message each and never stops them.
 */
import type { BigtableError } from '../../base/index.ts';
import type { CallContext } from '../../env/index.ts';
import { deflate } from '../grpc/gzip.ts';
import { messagePrefix, PREFIX_BYTES } from '../grpc/message-framing.ts';
import { COPY_BYTES } from '../http2/corked-output.ts';
import type { Stream } from '../http2/stream.ts';
import type { RpcSink } from '../rpc-server.ts';

const HIGH_BYTES = 1024 * 1024;
const LOW_BYTES = 256 * 1024;
/** Smaller messages do not get shorter. */
const WORTH_DEFLATING_BYTES = 256;

/** Of a message that goes out at once. */
const COPIED_PREFIX = Buffer.alloc(PREFIX_BYTES);

interface Waiter {
  readonly belowBytes: number;
  readonly resolve: () => void;
  readonly reject: (error: BigtableError) => void;
}

export class CallSink implements RpcSink {
  readonly #stream: Stream;
  readonly #context: CallContext;
  readonly #compress: boolean;
  #pendingBytes = 0;
  /** Of the pending bytes, those that the reservation holds. */
  #heldBytes = 0;
  #wait: Waiter | undefined;

  constructor(stream: Stream, context: CallContext, compress: boolean) {
    this.#stream = stream;
    this.#context = context;
    this.#compress = compress;
  }

  get isDrained(): boolean {
    return this.#pendingBytes === 0;
  }

  send(message: Buffer | readonly Buffer[]): Promise<void> | undefined {
    const parts = Array.isArray(message) ? (message as readonly Buffer[]) : undefined;
    let bytes = 0;
    if (parts) for (const part of parts) bytes += part.length;
    else bytes = (message as Buffer).length;
    if (this.#compress && bytes >= WORTH_DEFLATING_BYTES) return this.#sendDeflated(parts ? Buffer.concat(parts, bytes) : (message as Buffer));
    return this.#send(message, bytes, false);
  }

  sendCopy(message: Buffer): Promise<void> | undefined {
    const goesNow = !this.#compress && !this.#context.interruption && message.length <= COPY_BYTES;
    if (goesNow && this.#stream.sendWhole(messagePrefix(message.length, false, COPIED_PREFIX), message)) return undefined;
    return this.send(Buffer.from(message));
  }

  /** So many bytes went out. */
  sent(bytes: number): void {
    this.#pendingBytes -= bytes;
    const freed = Math.min(bytes, this.#heldBytes);
    this.#heldBytes -= freed;
    if (freed > 0) this.#context.reservation.shrink(freed);
    if (this.#wait && this.#pendingBytes <= this.#wait.belowBytes) this.#end()?.resolve();
  }

  /** The call is over: what is pending will not be sent. */
  stop(error: BigtableError): void {
    const wait = this.#end();
    this.sent(this.#pendingBytes);
    wait?.reject(error);
  }

  async #sendDeflated(message: Buffer): Promise<void> {
    const deflated = await deflate(message);
    await this.#send(deflated, deflated.length, true);
  }

  #send(message: Buffer | readonly Buffer[], bytes: number, compressed: boolean): Promise<void> | undefined {
    const error = this.#context.interruption;
    if (error) return Promise.reject(error);
    if (!Array.isArray(message) && this.#stream.sendWhole(messagePrefix(bytes, compressed, COPIED_PREFIX), message as Buffer)) return undefined;
    return this.#queue(messagePrefix(bytes, compressed), message, bytes + PREFIX_BYTES);
  }

  #queue(prefix: Buffer, message: Buffer | readonly Buffer[], bytes: number): Promise<void> | undefined {
    const stream = this.#stream;
    stream.data(prefix);
    if (Array.isArray(message)) for (const part of message as readonly Buffer[]) stream.data(part);
    else stream.data(message as Buffer);
    this.#pendingBytes += bytes;
    stream.send();
    // what went out at once was never held
    const left = Math.min(bytes, this.#pendingBytes);
    if (left === 0) return undefined;
    const held = this.#context.reservation.tryGrow(left);
    if (held) this.#heldBytes += left;
    if (!held) return this.#until(0);
    return this.#pendingBytes >= HIGH_BYTES ? this.#until(LOW_BYTES) : undefined;
  }

  #until(belowBytes: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#wait = { belowBytes, resolve, reject };
    });
  }

  #end(): Waiter | undefined {
    const wait = this.#wait;
    this.#wait = undefined;
    return wait;
  }
}
