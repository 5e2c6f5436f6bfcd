/**
 * Typed use of the transport: callers use `callServer`, `streamFrom` and `callMaster`; the other side answers by
 * handlers of the same types. TypeScript alone checks the messages: both sides are this program, in versions that
 * version.ts allows to talk.
 */
import { BigtableError, Code } from '../base/index.ts';
import type { CallHandler, RequestContext, Transport } from '../env/index.ts';
import type { MasterCalls, TabletServerCalls, TabletServerStreams } from './messages.ts';

type Calls<T> = { [M in keyof T]: { message: unknown; answer: unknown } };
type Streams<T> = { [M in keyof T]: { message: unknown; item: unknown } };

/** One function for each method. */
export type Handlers<T extends Calls<T>> = {
  readonly [M in keyof T]: (message: T[M]['message'], context: RequestContext) => Promise<T[M]['answer']>;
};

/** One function for each stream. */
export type StreamHandlers<T extends Streams<T>> = {
  readonly [M in keyof T]: (message: T[M]['message'], context: RequestContext) => AsyncIterable<T[M]['item']>;
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

/** A stream of a tablet server. */
export function streamFrom<M extends keyof TabletServerStreams>(
  transport: Transport,
  address: string,
  method: M,
  message: TabletServerStreams[M]['message'],
  context: RequestContext,
): AsyncIterable<TabletServerStreams[M]['item']> {
  return transport.stream(address, method, message, context) as AsyncIterable<TabletServerStreams[M]['item']>;
}

export function readTablet(
  transport: Transport,
  address: string,
  message: TabletServerStreams['read']['message'],
  context: RequestContext,
): AsyncIterable<TabletServerStreams['read']['item']> {
  return streamFrom(transport, address, 'read', message, context);
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
  streams: Partial<StreamHandlers<TabletServerStreams>> = {},
): CallHandler {
  const byMethod = new Map(Object.entries(handlers)) as Map<
    string,
    (message: unknown, context: RequestContext) => Promise<unknown>
  >;
  const byStream = new Map(Object.entries(streams)) as Map<
    string,
    (message: unknown, context: RequestContext) => AsyncIterable<unknown>
  >;
  return {
    call(method, message, context) {
      const handler = byMethod.get(method);
      return handler ? handler(message, context) : Promise.reject(unknownMethod(method));
    },
    stream(method, message, context) {
      const handler = byStream.get(method);
      if (!handler) throw unknownMethod(method);
      return handler(message, context);
    },
  };
}

function unknownMethod(method: string): BigtableError {
  return new BigtableError(Code.UNIMPLEMENTED, `no internal call is named ${method}`);
}
