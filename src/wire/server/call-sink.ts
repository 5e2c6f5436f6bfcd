/**
 * The sending end of a call: counts what was written and not yet taken by the connection, and makes the writer wait when that is too
 * much, so that a slow reader holds back its own scan and no memory.
 *
 * Invariant: pending bytes stay below HIGH_BYTES plus one message. They are held in the call's reservation as far as the budget
 * has room; where it has none, the writer waits until all its messages are sent before it makes the next, so that a
 * spent budget slows streams down to one message each and never stops them.
 */
import type { BigtableError } from '../../base/index.ts';
import type { Reservation } from '../../env/index.ts';
import { deflate } from '../grpc/gzip.ts';
import { messagePrefix, PREFIX_BYTES } from '../grpc/message-framing.ts';
import type { Stream } from '../http2/stream.ts';
import type { RpcSink } from '../rpc-server.ts';

const HIGH_BYTES = 1024 * 1024;
const LOW_BYTES = 256 * 1024;
/** Smaller messages do not get shorter. */
const WORTH_DEFLATING_BYTES = 256;

export interface CallSinkOptions {
  readonly stream: Stream;
  readonly reservation: Reservation;
  /** Why the call is over, if it is. */
  readonly over: () => BigtableError | undefined;
  readonly compress: boolean;
}

interface Waiter {
  readonly belowBytes: number;
  readonly resolve: () => void;
  readonly reject: (error: BigtableError) => void;
}

export class CallSink implements RpcSink {
  readonly #options: CallSinkOptions;
  #pendingBytes = 0;
  /** Of the pending bytes, those that the reservation holds. */
  #heldBytes = 0;
  #wait: Waiter | undefined;

  constructor(options: CallSinkOptions) {
    this.#options = options;
  }

  get isDrained(): boolean {
    return this.#pendingBytes === 0;
  }

  send(message: Buffer | readonly Buffer[]): Promise<void> | undefined {
    const parts = Array.isArray(message) ? (message as readonly Buffer[]) : [message as Buffer];
    let bytes = 0;
    for (const part of parts) bytes += part.length;
    if (this.#options.compress && bytes >= WORTH_DEFLATING_BYTES) return this.#sendDeflated(parts, bytes);
    return this.#send(parts, bytes, false);
  }

  /** So many bytes went out. */
  sent(bytes: number): void {
    this.#pendingBytes -= bytes;
    const freed = Math.min(bytes, this.#heldBytes);
    this.#heldBytes -= freed;
    if (freed > 0) this.#options.reservation.shrink(freed);
    if (this.#wait && this.#pendingBytes <= this.#wait.belowBytes) this.#end()?.resolve();
  }

  /** The call is over: what is pending will not be sent. */
  stop(error: BigtableError): void {
    const wait = this.#end();
    this.sent(this.#pendingBytes);
    wait?.reject(error);
  }

  async #sendDeflated(parts: readonly Buffer[], bytes: number): Promise<void> {
    const deflated = await deflate(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, bytes));
    await this.#send([deflated], deflated.length, true);
  }

  #send(parts: readonly Buffer[], bytes: number, compressed: boolean): Promise<void> | undefined {
    const { stream, reservation, over } = this.#options;
    const error = over();
    if (error) return Promise.reject(error);
    const all = bytes + PREFIX_BYTES;
    stream.data(messagePrefix(bytes, compressed));
    for (const part of parts) stream.data(part);
    this.#pendingBytes += all;
    stream.send();
    // what went out at once was never held
    const left = Math.min(all, this.#pendingBytes);
    if (left === 0) return undefined;
    const held = reservation.tryGrow(left);
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
