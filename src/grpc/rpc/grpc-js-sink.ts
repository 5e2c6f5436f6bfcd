/**
 * The sending end of a grpc-js stream: counts what was written and not yet taken by the connection, and makes the writer wait
 * when that is too much, so that a slow reader holds back its own scan and no memory.
 *
 * Invariant: pending bytes stay below HIGH_BYTES plus one message. They are held in the call's reservation as far as the budget
 * has room; where it has none, the writer waits until all its messages are sent before it makes the next, so that a
 * spent budget slows streams down to one message each and never stops them.
 */
import type { ServerDuplexStream, ServerWritableStream } from '@grpc/grpc-js';
import { BigtableError, Code } from '../../base/index.ts';
import type { Clock, RequestContext, Timer } from '../../env/index.ts';
import type { RpcSink } from './rpc-server.ts';

const HIGH_BYTES = 1024 * 1024;
const LOW_BYTES = 256 * 1024;

type Out = ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>;

export class GrpcJsSink implements RpcSink {
  readonly #out: Out;
  readonly #context: RequestContext;
  readonly #clock: Clock;
  #pendingBytes = 0;
  #wait: { readonly belowBytes: number; readonly wake: () => void } | undefined;

  constructor(out: Out, context: RequestContext, clock: Clock) {
    this.#out = out;
    this.#context = context;
    this.#clock = clock;
  }

  send(message: Buffer): Promise<void> | undefined {
    const over = this.#over();
    if (over) return Promise.reject(over);
    const held = this.#context.reservation.tryGrow(message.length);
    this.#pendingBytes += message.length;
    this.#out.write(message, () => {
      this.#pendingBytes -= message.length;
      if (held) this.#context.reservation.shrink(message.length);
      if (this.#wait && this.#pendingBytes <= this.#wait.belowBytes) this.#wait.wake();
    });
    if (!held) return this.#until(0);
    return this.#pendingBytes >= HIGH_BYTES ? this.#until(LOW_BYTES) : undefined;
  }

  /** Resolves when the connection has taken everything. */
  async drained(): Promise<void> {
    if (this.#pendingBytes > 0) await this.#until(0);
  }

  #over(): BigtableError | undefined {
    const { signal, deadlineMs } = this.#context;
    if (signal?.aborted) return signal.reason as BigtableError;
    if (this.#clock.monotonicMs() >= deadlineMs) return new BigtableError(Code.DEADLINE_EXCEEDED, 'the deadline of the call is over');
    return undefined;
  }

  #until(belowBytes: number): Promise<void> {
    const { signal, deadlineMs } = this.#context;
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined;
      const end = (error?: BigtableError): void => {
        this.#wait = undefined;
        timer?.cancel();
        signal?.removeEventListener('abort', onAbort);
        if (error) reject(error);
        else resolve();
      };
      const onAbort = (): void => end(signal?.reason as BigtableError);
      this.#wait = { belowBytes, wake: () => end() };
      signal?.addEventListener('abort', onAbort, { once: true });
      if (deadlineMs !== Number.POSITIVE_INFINITY) {
        timer = this.#clock.timer(Math.max(0, deadlineMs - this.#clock.monotonicMs()), () => end(new BigtableError(Code.DEADLINE_EXCEEDED, 'the deadline of the call is over')));
      }
    });
  }
}
