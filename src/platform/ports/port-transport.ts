/**
 * The transport of a process with several threads: what is served in this thread is called straight, what another
 * serves over the port to it.
 *
 * Invariant: calls inside one thread cost what they cost without any other.
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
   * From now on calls to `address` go to the thread of the peer, until the function returned is called or another
   * peer takes the address.
   */
  route(address: string, peer: PortPeer): () => void {
    this.#routes.set(address, peer);
    return () => {
      if (this.#routes.get(address) === peer) this.#routes.delete(address);
    };
  }

  /**
   * What answers the calls that come from another thread: only what is served in this one, so that no call goes round.
   */
  readonly handlerOf = (address: string): CallHandler => this.#local.handlerOf(address);
}
