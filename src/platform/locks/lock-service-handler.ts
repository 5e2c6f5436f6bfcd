/**
 * The lock service of a process, for its other threads: answers the calls of lock-service-client.ts for one thread, in
 * the thread of the service itself.
 *
 * A session opened here holds as long as its number is in the memory that both threads share: the other thread reads it
 * there, in any tick, and neither side's busy event loop makes a lease look lost, or held.
 *
 * Invariant: the number is removed from shared memory before the session ends, unless the service lets it expire by
 * itself, which one in a process does not do.
 */
import { assert, BigtableError, Code } from '../../base/index.ts';
import { type CallHandler, type LockEvent, type LockService, PullStream } from '../../env/index.ts';

/** Sessions that a thread may have open together. Session number n is at index n modulo this. */
export const MAX_LEASES = 1024;

/** Memory for the leases of one thread. */
export function sharedLeases(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(MAX_LEASES * Int32Array.BYTES_PER_ELEMENT));
}

export interface OpenedSession {
  readonly sessionId: string;
  readonly number: number;
}

/** The calls of a thread; each message is its list of arguments. */
export interface LockCalls
  extends Pick<
    LockService,
    'read' | 'list' | 'write' | 'remove' | 'lastRemoval' | 'tryAcquire' | 'release' | 'holder' | 'holders'
  > {
  openSession(): Promise<OpenedSession>;
  closeSession(sessionId: string): Promise<void>;
}

export class LockServiceHandler implements CallHandler {
  readonly #service: LockService;
  readonly #leases: Int32Array;
  readonly #numbers = new Map<string, number>();
  readonly #calls: LockCalls;
  readonly #stopWatching: () => void;
  #lastNumber = 0;
  #closed = false;

  constructor(service: LockService, leases: Int32Array) {
    this.#service = service;
    this.#leases = leases;
    this.#stopWatching = service.watch('', (event) => {
      if (event.kind === 'session-expired') this.#revoke(event.sessionId);
    });
    this.#calls = {
      openSession: () => this.#openSession(),
      closeSession: (sessionId) => this.#closeSession(sessionId),
      read: (path) => service.read(path),
      list: (prefix, after) => service.list(prefix, after),
      write: (path, contents, options) => service.write(path, contents, options),
      remove: (path, guard) => service.remove(path, guard),
      lastRemoval: (path) => service.lastRemoval(path),
      tryAcquire: (path, sessionId) => service.tryAcquire(path, sessionId),
      release: (lock) => service.release(lock),
      holder: (path) => service.holder(path),
      holders: (prefix) => service.holders(prefix),
    };
  }

  call(method: string, message: unknown): Promise<unknown> {
    const call: ((...args: never) => Promise<unknown>) | undefined = this.#calls[method as keyof LockCalls];
    assert(call, `the lock service has no call ${method}`);
    return call(...(message as never));
  }

  /** Later events under the prefix in the message; events of one turn come as one item. */
  stream(_method: string, message: unknown): PullStream<readonly LockEvent[]> {
    return new EventStream(this.#service, message as string);
  }

  /** Ends the sessions of a thread that has ended, or is believed dead. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stopWatching();
    for (const sessionId of [...this.#numbers.keys()]) await this.#closeSession(sessionId);
  }

  async #openSession(): Promise<OpenedSession> {
    const number = ++this.#lastNumber;
    const sessionId = await this.#service.openSession();
    if (this.#closed || Atomics.load(this.#leases, number % MAX_LEASES) !== 0) {
      await this.#service.closeSession(sessionId);
      throw new BigtableError(
        Code.RESOURCE_EXHAUSTED,
        `a thread has at most ${MAX_LEASES} sessions, and none after its end`,
      );
    }
    this.#numbers.set(sessionId, number);
    Atomics.store(this.#leases, number % MAX_LEASES, number);
    return { sessionId, number };
  }

  async #closeSession(sessionId: string): Promise<void> {
    this.#revoke(sessionId);
    await this.#service.closeSession(sessionId);
  }

  #revoke(sessionId: string): void {
    const number = this.#numbers.get(sessionId);
    if (number === undefined) return;
    this.#numbers.delete(sessionId);
    Atomics.store(this.#leases, number % MAX_LEASES, 0);
  }
}

class EventStream extends PullStream<readonly LockEvent[]> {
  readonly #stop: () => void;
  #events: LockEvent[] = [];
  #wake: (() => void) | undefined;
  #ended = false;

  constructor(service: LockService, prefix: string) {
    super();
    this.#stop = service.watch(prefix, (event) => {
      this.#events.push(event);
      this.#wake?.();
    });
  }

  pull(): readonly LockEvent[] | undefined | Promise<readonly LockEvent[] | undefined> {
    if (this.#ended || this.#events.length > 0) return this.#take();
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve(this.#take());
      };
    });
  }

  end(): void {
    this.#ended = true;
    this.#stop();
    this.#wake?.();
  }

  #take(): readonly LockEvent[] | undefined {
    if (this.#ended) return undefined;
    const events = this.#events;
    this.#events = [];
    return events;
  }
}
