/**
 * The third seam: calls between client library, tablet servers and masters. In process in an embedded database and a
 * server, gRPC in a cluster. Messages are plain cloneable data (typed by the room `protocol`); the context travels next
 * to the message, and an adapter over a network encodes it.
 */
import type { RequestContext } from './context.ts';

export interface CallHandler {
  /** Answers one call; the caller receives an error thrown here as BigtableError. */
  call(method: string, message: unknown, context: RequestContext): Promise<unknown>;
  /** Answers with a stream. The consumer's `return()` or an abort ends it. */
  stream(method: string, message: unknown, context: RequestContext): AsyncIterable<unknown>;
}

export interface Transport {
  /**
   * Answers calls to `address` by `handler` until the returned function is called. ALREADY_EXISTS where another handler
   * serves the address.
   */
  serve(address: string, handler: CallHandler): Promise<() => Promise<void>>;
  /** UNAVAILABLE where nothing serves the address. */
  call(address: string, method: string, message: unknown, context: RequestContext): Promise<unknown>;
  stream(address: string, method: string, message: unknown, context: RequestContext): AsyncIterable<unknown>;
}
