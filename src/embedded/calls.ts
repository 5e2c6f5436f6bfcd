/**
 * How the library calls the service: a context for each call, its bytes given back at the end, and nothing after close.
 */
import { BigtableError, Code } from '../base/index.ts';
import type { ProcessHold } from '../boot/index.ts';
import { type ByteBudget, type RequestContext, requestContext } from '../env/index.ts';
import type { Service } from '../service/index.ts';

export interface Call {
  readonly service: Service;
  readonly context: RequestContext;
}

export class Calls {
  readonly #service: Service;
  readonly #budget: ByteBudget;
  readonly #hold: ProcessHold | undefined;
  #closed = false;

  /** `hold`: keeps the process alive while a call is awaited, where nothing else does. */
  constructor(service: Service, budget: ByteBudget, hold?: ProcessHold) {
    this.#service = service;
    this.#budget = budget;
    this.#hold = hold;
  }

  close(): void {
    this.#closed = true;
  }

  run<T>(call: (service: Service, context: RequestContext) => Promise<T>): Promise<T> {
    return this.awaited(this.#run(call));
  }

  /** The promise as it is: a caller awaits it. */
  awaited<T>(work: Promise<T>): Promise<T> {
    return this.#hold?.while(work) ?? work;
  }

  async #run<T>(call: (service: Service, context: RequestContext) => Promise<T>): Promise<T> {
    const context = this.#context();
    try {
      return await call(this.#service, context);
    } finally {
      context.reservation.release();
    }
  }

  /** A call that goes on; whoever makes it releases its context's reservation at its end. */
  begin(signal?: AbortSignal): Call {
    return { service: this.#service, context: this.#context(signal) };
  }

  #context(signal?: AbortSignal): RequestContext {
    if (this.#closed) throw new BigtableError(Code.FAILED_PRECONDITION, 'the database is closed');
    return requestContext({ budget: this.#budget, principal: 'embedded', signal });
  }
}
