/**
 * Seams over a MessagePort: what crosses LockService, Transport and Workers is plain cloneable data, and these proxies
 * show it. Each contract is run directly and through them.
 *
 * `PortPeer` is symmetrical: either side calls the other's methods. A call's answer, its error and its cancellation are
 * messages; a stream is an iterator that the other side holds, which returns one item a call; a listener is a method of
 * the caller's side.
 */
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { BigtableError, Code, toBigtableError } from '../../src/base/index.ts';
import {
  ByteBudget,
  callCancelled,
  type CallHandler,
  fromPlainThrown,
  type LockEvent,
  type LockHandle,
  type LockService,
  type PlainThrown,
  type RequestContext,
  requestContext,
  type SmallFile,
  type Transport,
  toPlainThrown,
  type Workers,
} from '../../src/env/index.ts';

type Method = (args: readonly unknown[], signal: AbortSignal) => unknown;
type Methods = Readonly<Record<string, Method>>;

type PortMessage =
  | { readonly kind: 'call'; readonly id: number; readonly method: string; readonly args: readonly unknown[] }
  | { readonly kind: 'cancel'; readonly id: number }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown; readonly beside: unknown }
  | { readonly kind: 'error'; readonly id: number; readonly error: PlainThrown; readonly beside: unknown };

interface PendingCall {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: BigtableError) => void;
}

class PortPeer {
  readonly #port: MessagePort;
  readonly #methods: Methods;
  readonly #pending = new Map<number, PendingCall>();
  readonly #answering = new Map<number, AbortController>();
  readonly #streams = new Map<number, { readonly iterator: AsyncIterator<unknown>; readonly abort: AbortController }>();
  #lastId = 0;
  /** Sent beside every answer, and what to do with it: for what a caller must know without asking. */
  readonly #beside: () => unknown;
  readonly #onBeside: (beside: unknown) => void;

  constructor(
    port: MessagePort,
    methods: Methods,
    beside: () => unknown = () => undefined,
    onBeside: (beside: unknown) => void = () => {},
  ) {
    this.#port = port;
    this.#methods = {
      ...methods,
      'stream next': async ([id]) => {
        const result = await this.#streams.get(id as number)?.iterator.next();
        return { done: result?.done ?? true, value: result?.value };
      },
      'stream return': async ([id]) => {
        const stream = this.#streams.get(id as number);
        this.#streams.delete(id as number);
        stream?.abort.abort();
        await stream?.iterator.return?.();
      },
    };
    this.#beside = beside;
    this.#onBeside = onBeside;
    port.on('message', (message: PortMessage) => this.#receive(message));
  }

  /** Fails with CANCELLED when the signal aborts, and tells the other side. */
  async call(method: string, args: readonly unknown[], signal?: AbortSignal): Promise<unknown> {
    const id = ++this.#lastId;
    try {
      this.#send({ kind: 'call', id, method, args });
    } catch (thrown) {
      throw toBigtableError(thrown);
    }
    const onAbort = (): void => this.#send({ kind: 'cancel', id });
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      return await new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /** The stream that the other side's `method` opens with `openStream`. */
  async *stream(method: string, args: readonly unknown[], signal?: AbortSignal): AsyncGenerator<unknown> {
    const id = (await this.call(method, args, signal)) as number;
    const onAbort = (): void => void this.call('stream return', [id]);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      for (;;) {
        if (signal?.aborted) throw callCancelled();
        const { done, value } = (await this.call('stream next', [id], signal)) as IteratorResult<unknown>;
        if (done) return;
        yield value;
      }
    } finally {
      signal?.removeEventListener('abort', onAbort);
      await this.call('stream return', [id]);
    }
  }

  openStream(open: (signal: AbortSignal) => AsyncIterable<unknown>): number {
    const id = ++this.#lastId;
    const abort = new AbortController();
    this.#streams.set(id, { iterator: open(abort.signal)[Symbol.asyncIterator](), abort });
    return id;
  }

  close(): void {
    this.#port.close();
  }

  #send(message: PortMessage): void {
    this.#port.postMessage(message);
  }

  #receive(message: PortMessage): void {
    if (message.kind === 'call') return void this.#answer(message.id, message.method, message.args);
    if (message.kind === 'cancel') {
      this.#answering.get(message.id)?.abort();
      return;
    }
    this.#onBeside(message.beside);
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (message.kind === 'answer') pending?.resolve(message.value);
    else pending?.reject(fromPlainThrown(message.error));
  }

  async #answer(id: number, method: string, args: readonly unknown[]): Promise<void> {
    const abort = new AbortController();
    this.#answering.set(id, abort);
    try {
      const implementation = this.#methods[method];
      if (!implementation) throw new BigtableError(Code.UNIMPLEMENTED, `${method} does not cross the port`);
      const cancelled = new Promise<never>((_, reject) => {
        abort.signal.addEventListener('abort', () => reject(callCancelled()), { once: true });
      });
      const value = await Promise.race([cancelled, implementation(args, abort.signal)]);
      this.#send({ kind: 'answer', id, value, beside: this.#beside() });
    } catch (thrown) {
      // as it is: the port stands between a caller and its adapter, not between a handler and its caller
      const error = { ...toPlainThrown(thrown), details: toBigtableError(thrown).details };
      this.#send({ kind: 'error', id, error, beside: this.#beside() });
    } finally {
      this.#answering.delete(id);
    }
  }
}

export interface OverPort<T> {
  readonly proxy: T;
  readonly close: () => void;
}

export function workersOverPort(workers: Workers): OverPort<Workers> {
  const { port1, port2 } = new MessageChannel();
  const host = new PortPeer(port1, {
    run: ([task, argument]) => workers.run(task as string, argument),
    close: () => workers.close(),
  });
  const caller = new PortPeer(port2, {});
  return {
    proxy: {
      run: (task, argument) => caller.call('run', [task, argument]),
      close: () => caller.call('close', []) as Promise<void>,
    },
    close: () => host.close(),
  };
}

/** The leases of the sessions travel beside every answer and event, as another process's client would learn them. */
export function lockServiceOverPort(service: LockService): OverPort<LockService> {
  const { port1, port2 } = new MessageChannel();
  const sessions = new Set<string>();
  const leases = new Map<string, boolean>();
  const stops = new Map<number, () => void>();
  const listeners = new Map<number, (event: LockEvent) => void>();
  let lastWatch = 0;
  const host: PortPeer = new PortPeer(
    port1,
    {
      openSession: async () => {
        const sessionId = await service.openSession();
        sessions.add(sessionId);
        return sessionId;
      },
      closeSession: ([sessionId]) => service.closeSession(sessionId as string),
      read: ([path]) => service.read(path as string),
      list: ([prefix, after]) => service.list(prefix as string, after as string | undefined),
      write: ([path, contents, options]) => service.write(path as string, contents as Uint8Array, options as object),
      remove: ([path, guard]) => service.remove(path as string, guard as object),
      lastRemoval: ([path]) => service.lastRemoval(path as string),
      tryAcquire: ([path, sessionId]) => service.tryAcquire(path as string, sessionId as string),
      release: ([lock]) => service.release(lock as LockHandle),
      holder: ([path]) => service.holder(path as string),
      holders: ([prefix]) => service.holders(prefix as string),
      watch: ([prefix, id]) => {
        stops.set(
          id as number,
          service.watch(prefix as string, (event) => void host.call('event', [id, event])),
        );
      },
      unwatch: ([id]) => stops.get(id as number)?.(),
    },
    () => new Map([...sessions].map((sessionId) => [sessionId, service.leaseHolds(sessionId)])),
  );
  const caller = new PortPeer(
    port2,
    { event: ([id, event]) => listeners.get(id as number)?.(event as LockEvent) },
    undefined,
    (beside) => {
      for (const [sessionId, holds] of (beside as Map<string, boolean> | undefined) ?? []) leases.set(sessionId, holds);
    },
  );
  const proxy: LockService = {
    openSession: () => caller.call('openSession', []) as Promise<string>,
    closeSession: (sessionId) => caller.call('closeSession', [sessionId]) as Promise<void>,
    leaseHolds: (sessionId) => leases.get(sessionId) ?? false,
    read: (path) => caller.call('read', [path]) as Promise<SmallFile | undefined>,
    list: (prefix, after) => caller.call('list', [prefix, after]) as Promise<SmallFile[]>,
    write: (path, contents, options) => caller.call('write', [path, contents, options]) as Promise<number>,
    remove: (path, guard) => caller.call('remove', [path, guard]) as Promise<boolean>,
    lastRemoval: (path) => caller.call('lastRemoval', [path]) as Promise<number>,
    tryAcquire: (path, sessionId) => caller.call('tryAcquire', [path, sessionId]) as Promise<LockHandle | undefined>,
    release: (lock) => caller.call('release', [lock]) as Promise<void>,
    holder: (path) => caller.call('holder', [path]) as Promise<LockHandle | undefined>,
    holders: (prefix) => caller.call('holders', [prefix]) as Promise<LockHandle[]>,
    watch: (prefix, listener) => {
      const id = ++lastWatch;
      listeners.set(id, listener);
      void caller.call('watch', [prefix, id]);
      return () => {
        listeners.delete(id);
        void caller.call('unwatch', [id]);
      };
    },
  };
  return { proxy, close: () => host.close() };
}

type PlainContext = Omit<RequestContext, 'signal' | 'reservation'>;

function plainContext({ deadlineMs, principal, appProfile, priority, trace }: RequestContext): PlainContext {
  return { deadlineMs, principal, appProfile, priority, trace };
}

/**
 * Both ends of the transport's calls may lie behind the port: handlers served through the proxy are called back over
 * it.
 */
export function transportOverPort(transport: Transport): OverPort<Transport> {
  const { port1, port2 } = new MessageChannel();
  const budget = new ByteBudget(1 << 20);
  const contextOf = (plain: unknown, signal: AbortSignal): RequestContext =>
    requestContext({ ...(plain as PlainContext), budget, signal });
  const handlers = new Map<number, CallHandler>();
  const stops = new Map<number, () => Promise<void>>();
  let lastHandler = 0;

  const host: PortPeer = new PortPeer(port1, {
    serve: async ([address, id]) => {
      const handler: CallHandler = {
        call: (method, message, context) =>
          host.call('handle', [id, method, message, plainContext(context)], context.signal),
        stream: (method, message, context) =>
          host.stream('handle stream', [id, method, message, plainContext(context)], context.signal),
      };
      stops.set(id as number, await transport.serve(address as string, handler));
    },
    stop: ([id]) => stops.get(id as number)?.(),
    call: ([address, method, message, context], signal) =>
      transport.call(address as string, method as string, message, contextOf(context, signal)),
    stream: ([address, method, message, context]) =>
      host.openStream((signal) =>
        transport.stream(address as string, method as string, message, contextOf(context, signal)),
      ),
  });
  const handlerOf = (id: unknown): CallHandler => handlers.get(id as number) as CallHandler;
  const caller: PortPeer = new PortPeer(port2, {
    handle: ([id, method, message, context], signal) =>
      handlerOf(id).call(method as string, message, contextOf(context, signal)),
    'handle stream': ([id, method, message, context]) =>
      caller.openStream((signal) => handlerOf(id).stream(method as string, message, contextOf(context, signal))),
  });

  const proxy: Transport = {
    serve: async (address, handler) => {
      const id = ++lastHandler;
      handlers.set(id, handler);
      await caller.call('serve', [address, id]);
      return async () => {
        await caller.call('stop', [id]);
      };
    },
    call: (address, method, message, context) =>
      caller.call('call', [address, method, message, plainContext(context)], context.signal),
    stream: (address, method, message, context) =>
      caller.stream('stream', [address, method, message, plainContext(context)], context.signal),
  };
  return { proxy, close: () => host.close() };
}
