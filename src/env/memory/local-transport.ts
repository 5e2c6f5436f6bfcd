/**
 * The transport in process: a call is a call of the handler, messages are passed as they are and belong to the
 * receiver.
 *
 * Invariant: a call whose context has neither deadline nor signal costs one promise more than the handler's own, and no
 * timer. A call with one of them fails the moment its time is over or its caller cancels (a CallContext is interrupted
 * by the wire that made it); the handler learns it from the same context. A stream whose answers are ready costs no
 * promise.
 */
import { BigtableError, Code, toBigtableError } from '../../base/index.ts';
import type { Clock } from '../seams/clock.ts';
import { callRefused, errorForCaller, notReached } from '../calls/call-errors.ts';
import { CallContext, checkContext, type Interruptible, type RequestContext } from '../calls/context.ts';
import { ContextWait, isEndless } from '../calls/context-wait.ts';
import { PullStream, pullStreamOf } from '../calls/pull-stream.ts';
import type { CallHandler, Transport } from '../calls/transport.ts';

export class LocalTransport implements Transport {
  readonly #clock: Clock;
  readonly #handlers = new Map<string, CallHandler>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async serve(address: string, handler: CallHandler): Promise<() => Promise<void>> {
    if (this.#handlers.has(address))
      throw new BigtableError(Code.ALREADY_EXISTS, `address ${JSON.stringify(address)} is served already`);
    this.#handlers.set(address, handler);
    return async () => {
      if (this.#handlers.get(address) === handler) this.#handlers.delete(address);
    };
  }

  /**
   * The handler that serves the address, for code that brings calls from elsewhere and owns their contexts. UNAVAILABLE
   * where nothing serves it.
   */
  handlerOf(address: string): CallHandler {
    const handler = this.#handlers.get(address);
    if (!handler) throw callRefused(noServerAt(address));
    return handler;
  }

  call(address: string, method: string, message: unknown, context: RequestContext): Promise<unknown> {
    const handler = this.#handlers.get(address);
    if (!handler) return Promise.reject(notReached(noServerAt(address)));
    try {
      if (isEndless(context)) return handler.call(method, message, context).catch(rethrow);
      checkContext(context, this.#clock);
      // its maker notifies the caller, immediately, that the call is over
      if (context instanceof CallContext) return handler.call(method, message, context).catch(rethrow);
      const answer = handler.call(method, message, context);
      return new Promise((resolve, reject) => {
        const pending = new PendingCall(context, this.#clock, resolve, reject);
        answer.then(
          (value) => pending.answered(value),
          (thrown: unknown) => pending.interrupt(errorForCaller(toBigtableError(thrown))),
        );
      });
    } catch (thrown) {
      return Promise.reject(errorForCaller(toBigtableError(thrown)));
    }
  }

  stream(address: string, method: string, message: unknown, context: RequestContext): PullStream<unknown> {
    return new LocalStream(this, this.#clock, address, method, message, context);
  }
}

/** A call that waits for its answer, or for its interruption. */
class PendingCall implements Interruptible {
  readonly #wait: ContextWait;
  readonly #resolve: (value: unknown) => void;
  readonly #reject: (error: BigtableError) => void;

  constructor(
    context: RequestContext,
    clock: Clock,
    resolve: (value: unknown) => void,
    reject: (error: BigtableError) => void,
  ) {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#wait = new ContextWait(context, clock, this);
  }

  answered(value: unknown): void {
    this.#wait.stop();
    this.#resolve(value);
  }

  interrupt(error: BigtableError): void {
    this.#wait.stop();
    this.#reject(error);
  }
}

/**
 * A handler's stream that ends with an error the moment its context does, even while an answer is awaited. The handler
 * is called by the first pull; between two pulls the context is not watched: it is checked when the next one comes.
 */
class LocalStream extends PullStream<unknown> implements Interruptible {
  readonly #context: RequestContext;
  readonly #clock: Clock;
  readonly #transport: LocalTransport;
  readonly #address: string;
  readonly #method: string;
  readonly #message: unknown;
  #begun = false;
  #answers: PullStream<unknown> | undefined;
  #wait: ContextWait | undefined;
  #reject: ((error: BigtableError) => void) | undefined;

  constructor(
    transport: LocalTransport,
    clock: Clock,
    address: string,
    method: string,
    message: unknown,
    context: RequestContext,
  ) {
    super();
    this.#transport = transport;
    this.#clock = clock;
    this.#address = address;
    this.#method = method;
    this.#message = message;
    this.#context = context;
  }

  pull(): unknown {
    if (this.#begun && this.#answers === undefined) return undefined;
    try {
      checkContext(this.#context, this.#clock);
      if (!this.#begun) {
        this.#begun = true;
        this.#answers = pullStreamOf(
          this.#transport.handlerOf(this.#address).stream(this.#method, this.#message, this.#context),
        );
      }
      const answer = this.#answers!.pull();
      if (answer instanceof Promise) return this.#await(answer);
      if (answer === undefined) this.#answers = undefined;
      return answer;
    } catch (thrown) {
      this.#fail();
      throw errorForCaller(toBigtableError(thrown));
    }
  }

  end(): void | Promise<void> {
    const answers = this.#answers;
    this.#begun = true;
    this.#answers = undefined;
    this.#wait?.stop();
    return answers?.end();
  }

  interrupt(error: BigtableError): void {
    this.#fail();
    this.#reject?.(error);
  }

  #await(answer: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      const wait = isEndless(this.#context) ? undefined : new ContextWait(this.#context, this.#clock, this);
      this.#wait = wait;
      answer.then(
        (value) => {
          wait?.stop();
          if (value === undefined) this.#answers = undefined;
          resolve(value);
        },
        (thrown: unknown) => this.interrupt(errorForCaller(toBigtableError(thrown))),
      );
    });
  }

  /** Ends the stream. Errors of the handler's clean-up are ignored: no caller waits for them. */
  #fail(): void {
    const ending = this.end();
    if (ending instanceof Promise) ending.catch(() => {});
  }
}

function rethrow(thrown: unknown): never {
  throw errorForCaller(toBigtableError(thrown));
}

function noServerAt(address: string): string {
  return `no server at address ${JSON.stringify(address)}`;
}
