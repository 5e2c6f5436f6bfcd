/**
 * The transport in process: a call is a call of the handler, messages are passed as they are and belong to the receiver.
 *
 * Invariant: a call whose context has neither deadline nor signal costs one promise more than the handler's own, and no timer. One
 * that has fails the moment its time is over or its caller gives up; the handler learns it from the same context.
 */
import { BigtableError, Code, toBigtableError } from '../base/index.ts';
import type { Clock, Timer } from './clock.ts';
import { checkContext, type RequestContext } from './context.ts';
import type { CallHandler, Transport } from './transport.ts';

export class LocalTransport implements Transport {
  readonly #clock: Clock;
  readonly #handlers = new Map<string, CallHandler>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async serve(address: string, handler: CallHandler): Promise<() => Promise<void>> {
    if (this.#handlers.has(address)) throw new BigtableError(Code.ALREADY_EXISTS, `address ${JSON.stringify(address)} is served already`);
    this.#handlers.set(address, handler);
    return async () => {
      if (this.#handlers.get(address) === handler) this.#handlers.delete(address);
    };
  }

  call(address: string, method: string, message: unknown, context: RequestContext): Promise<unknown> {
    const handler = this.#handlers.get(address);
    if (!handler) return Promise.reject(nobodyServes(address));
    try {
      if (isEndless(context)) return handler.call(method, message, context).catch(rethrow);
      checkContext(context, this.#clock);
      return this.#interruptible(handler.call(method, message, context), context);
    } catch (thrown) {
      return Promise.reject(toBigtableError(thrown));
    }
  }

  stream(address: string, method: string, message: unknown, context: RequestContext): AsyncIterable<unknown> {
    return {
      [Symbol.asyncIterator]: () => {
        const handler = this.#handlers.get(address);
        if (!handler) return failing(nobodyServes(address));
        try {
          checkContext(context, this.#clock);
          const answers = handler.stream(method, message, context)[Symbol.asyncIterator]();
          return isEndless(context) ? converting(answers) : new InterruptibleStream(answers, context, this.#clock);
        } catch (thrown) {
          return failing(toBigtableError(thrown));
        }
      },
    };
  }

  #interruptible(answer: Promise<unknown>, context: RequestContext): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const stop = onInterrupt(context, this.#clock, reject);
      answer.then(
        (value) => {
          stop();
          resolve(value);
        },
        (thrown: unknown) => {
          stop();
          reject(toBigtableError(thrown));
        },
      );
    });
  }
}

/** A handler's stream that ends with an error the moment its context does, even while an answer is awaited. */
class InterruptibleStream implements AsyncIterator<unknown, undefined> {
  readonly #answers: AsyncIterator<unknown>;
  readonly #stopWaiting: () => void;
  #rejectPending: ((error: BigtableError) => void) | undefined;
  /** Why the stream was interrupted, until the consumer was told. */
  #interruption: BigtableError | undefined;
  #ended = false;

  constructor(answers: AsyncIterator<unknown>, context: RequestContext, clock: Clock) {
    this.#answers = answers;
    this.#stopWaiting = onInterrupt(context, clock, (error) => this.#interrupt(error));
  }

  next(): Promise<IteratorResult<unknown, undefined>> {
    if (this.#interruption) {
      const error = this.#interruption;
      this.#interruption = undefined;
      return Promise.reject(error);
    }
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => {
      this.#rejectPending = reject;
      this.#answers.next().then(
        (result) => {
          this.#rejectPending = undefined;
          if (result.done) this.#end();
          resolve(result);
        },
        (thrown: unknown) => {
          this.#rejectPending = undefined;
          this.#end();
          reject(toBigtableError(thrown));
        },
      );
    });
  }

  async return(): Promise<IteratorResult<unknown, undefined>> {
    if (!this.#ended) {
      this.#end();
      await this.#answers.return?.().catch(rethrow);
    }
    return { done: true, value: undefined };
  }

  #interrupt(error: BigtableError): void {
    if (this.#ended) return;
    this.#end();
    if (this.#rejectPending) this.#rejectPending(error);
    else this.#interruption = error;
    // what the handler's clean-up throws has nobody left who waits for it
    void this.#answers.return?.().catch(() => {});
  }

  #end(): void {
    this.#ended = true;
    this.#stopWaiting();
  }
}

/** Calls back once when the deadline passes or the signal aborts; answers how to stop waiting. */
function onInterrupt(context: RequestContext, clock: Clock, interrupt: (error: BigtableError) => void): () => void {
  const { deadlineMs, signal } = context;
  let timer: Timer | undefined;
  const stop = (): void => {
    timer?.cancel();
    signal?.removeEventListener('abort', onAbort);
  };
  const onAbort = (): void => {
    stop();
    interrupt(new BigtableError(Code.CANCELLED, 'the caller gave the call up'));
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  if (deadlineMs !== Number.POSITIVE_INFINITY) {
    timer = clock.timer(deadlineMs - clock.monotonicMs(), () => {
      stop();
      interrupt(new BigtableError(Code.DEADLINE_EXCEEDED, 'the deadline of the call is over'));
    });
  }
  return stop;
}

function isEndless(context: RequestContext): boolean {
  return context.deadlineMs === Number.POSITIVE_INFINITY && context.signal === undefined;
}

function rethrow(thrown: unknown): never {
  throw toBigtableError(thrown);
}

function converting(answers: AsyncIterator<unknown>): AsyncIterator<unknown> {
  return {
    next: () => answers.next().catch(rethrow),
    return: async () => (await answers.return?.().catch(rethrow)) ?? { done: true, value: undefined },
  };
}

function failing(error: BigtableError): AsyncIterator<unknown> {
  let told = false;
  return {
    next: () => {
      if (told) return Promise.resolve({ done: true, value: undefined });
      told = true;
      return Promise.reject(error);
    },
  };
}

function nobodyServes(address: string): BigtableError {
  // the call went nowhere, so whoever looks for the right address may send it again
  return new BigtableError(Code.UNAVAILABLE, `nobody serves address ${JSON.stringify(address)}`, { details: { notReached: true } });
}
