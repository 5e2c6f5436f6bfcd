/**
 * Typed use of the transport: callers use `callServer`, `readTablet` and `callMaster`; the other side answers by
 * handlers of the same types. TypeScript alone checks the messages: both sides are this program, in versions that
 * version.ts allows to talk.
 */
import { BigtableError, Code } from '../base/index.ts';
import type { CallHandler, RequestContext, Transport } from '../env/index.ts';
import type { ReadBatch } from '../model/index.ts';
import type { MasterCalls, ReadMessage, TabletServerCalls } from './messages.ts';

type Calls<T> = { [M in keyof T]: { message: unknown; answer: unknown } };

/** One function for each method. */
export type Handlers<T extends Calls<T>> = {
  readonly [M in keyof T]: (message: T[M]['message'], context: RequestContext) => Promise<T[M]['answer']>;
};

export function callServer<M extends keyof TabletServerCalls>(
  transport: Transport,
  address: string,
  method: M,
  message: TabletServerCalls[M]['message'],
  context: RequestContext,
): Promise<TabletServerCalls[M]['answer']> {
  return transport.call(address, method, message, context) as Promise<TabletServerCalls[M]['answer']>;
}

export function readTablet(
  transport: Transport,
  address: string,
  message: ReadMessage,
  context: RequestContext,
): AsyncIterable<ReadBatch> {
  return transport.stream(address, 'read', message, context) as AsyncIterable<ReadBatch>;
}

export function callMaster<M extends keyof MasterCalls>(
  transport: Transport,
  address: string,
  method: M,
  message: MasterCalls[M]['message'],
  context: RequestContext,
): Promise<MasterCalls[M]['answer']> {
  return transport.call(address, method, message, context) as Promise<MasterCalls[M]['answer']>;
}

/** Handlers as the transport takes them. */
export function callHandler<T extends Calls<T>>(
  handlers: Partial<Handlers<T>>,
  read?: (message: ReadMessage, context: RequestContext) => AsyncIterable<ReadBatch>,
): CallHandler {
  const byMethod = new Map(Object.entries(handlers)) as Map<
    string,
    (message: unknown, context: RequestContext) => Promise<unknown>
  >;
  return {
    call(method, message, context) {
      const handler = byMethod.get(method);
      return handler ? handler(message, context) : Promise.reject(unknownMethod(method));
    },
    stream(method, message, context) {
      if (method !== 'read' || !read) throw unknownMethod(method);
      return read(message as ReadMessage, context);
    },
  };
}

function unknownMethod(method: string): BigtableError {
  return new BigtableError(Code.UNIMPLEMENTED, `no internal call is named ${method}`);
}
