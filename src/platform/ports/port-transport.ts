/**
 * The transport of a process with several threads: a handler of this thread is called directly, one of another thread
 * over the port to it.
 *
 * Invariant: other threads add no cost to calls inside one thread.
 */
import type { CallHandler, LocalTransport, RequestContext, Transport } from '../../env/index.ts';
import type { PortPeer } from './port-peer.ts';

export class PortTransport implements Transport {
  readonly #local: LocalTransport;
  readonly #routes = new Map<string, PortPeer>();

  constructor(local: LocalTransport) {
    this.#local = local;
  }

  serve(address: string, handler: CallHandler): Promise<() => Promise<void>> {
    return this.#local.serve(address, handler);
  }

  call(address: string, method: string, message: unknown, context: RequestContext): Promise<unknown> {
    return (this.#routes.get(address) ?? this.#local).call(address, method, message, context);
  }

  stream(address: string, method: string, message: unknown, context: RequestContext): AsyncIterable<unknown> {
    return (this.#routes.get(address) ?? this.#local).stream(address, method, message, context);
  }

  /**
   * Routes calls to `address` to the thread of the peer, until the returned function is called or another peer takes
   * the address.
   */
  route(address: string, peer: PortPeer): () => void {
    this.#routes.set(address, peer);
    return () => {
      if (this.#routes.get(address) === peer) this.#routes.delete(address);
    };
  }

  /**
   * The handler for calls that come from another thread: only one that is served in this thread, so that no call is
   * passed around.
   */
  readonly handlerOf = (address: string): CallHandler => this.#local.handlerOf(address);
}
