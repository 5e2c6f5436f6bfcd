/**
 * The lock service as seen by another thread: calls over the transport to the LockServiceHandler that was made for this
 * thread, and the leases in shared memory.
 *
 * Invariants: watches begin before any later call is answered (calls keep their order); `leaseHolds` reads shared
 * memory alone. A lease has no end of its own: it holds until the handler removes its number.
 */
import {
  type ByteBudget,
  type Guard,
  type LockEvent,
  type LockHandle,
  type LockService,
  requestContext,
  type SmallFile,
  type Transport,
} from '../../env/index.ts';
import { type LockCalls, MAX_LEASES } from './lock-service-handler.ts';

export interface LockServiceClientOptions {
  readonly transport: Transport;
  /** The handler's address. */
  readonly address: string;
  /** The shared memory that the handler was made with. */
  readonly leases: Int32Array;
  readonly budget: ByteBudget;
}

export class LockServiceClient implements LockService {
  readonly #options: LockServiceClientOptions;
  readonly #numbers = new Map<string, number>();

  constructor(options: LockServiceClientOptions) {
    this.#options = options;
  }

  async openSession(): Promise<string> {
    const { sessionId, number } = await this.#call('openSession');
    this.#numbers.set(sessionId, number);
    return sessionId;
  }

  async closeSession(sessionId: string): Promise<void> {
    await this.#call('closeSession', sessionId);
    this.#numbers.delete(sessionId);
  }

  leaseHolds(sessionId: string): boolean {
    const number = this.#numbers.get(sessionId);
    return number !== undefined && Atomics.load(this.#options.leases, number % MAX_LEASES) === number;
  }

  read(path: string): Promise<SmallFile | undefined> {
    return this.#call('read', path);
  }

  list(prefix: string, after?: string): Promise<SmallFile[]> {
    return this.#call('list', prefix, after);
  }

  write(path: string, contents: Uint8Array, options: Guard & { readonly sessionId?: string } = {}): Promise<number> {
    return this.#call('write', path, contents, options);
  }

  remove(path: string, guard: Guard = {}): Promise<boolean> {
    return this.#call('remove', path, guard);
  }

  lastRemoval(path: string): Promise<number> {
    return this.#call('lastRemoval', path);
  }

  tryAcquire(path: string, sessionId: string): Promise<LockHandle | undefined> {
    return this.#call('tryAcquire', path, sessionId);
  }

  async release(lock: LockHandle): Promise<void> {
    await this.#call('release', lock);
  }

  holder(path: string): Promise<LockHandle | undefined> {
    return this.#call('holder', path);
  }

  holders(prefix: string): Promise<LockHandle[]> {
    return this.#call('holders', prefix);
  }

  watch(prefix: string, listener: (event: LockEvent) => void): () => void {
    const { transport, address } = this.#options;
    const events = transport.stream(address, 'watch', prefix, this.#context())[Symbol.asyncIterator]() as AsyncIterator<
      readonly LockEvent[]
    >;
    let stopped = false;
    // pulled now, so that the watch begins before the next call
    let next = events.next();
    const follow = async (): Promise<void> => {
      for (;;) {
        const batch = await next.catch(() => undefined);
        if (stopped) return;
        // the other thread has ended, and this one ends with it
        if (batch === undefined || batch.done) return listener({ kind: 'ended' });
        for (const event of batch.value) if (!stopped) listener(event);
        next = events.next();
      }
    };
    void follow();
    return () => {
      stopped = true;
      events.return?.().catch(() => {});
    };
  }

  #call<M extends keyof LockCalls>(method: M, ...args: Parameters<LockCalls[M]>): ReturnType<LockCalls[M]> {
    const { transport, address } = this.#options;
    return transport.call(address, method, args, this.#context()) as ReturnType<LockCalls[M]>;
  }

  #context() {
    return requestContext({ budget: this.#options.budget, principal: 'lock-service' });
  }
}
