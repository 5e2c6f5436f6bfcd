/**
 * The connections of a process to its peers: one for each host and port, made by the first call, kept, and replaced
 * when it is lost (WireClient).
 *
 * Invariant: at most `max` are kept. The one that was not used for the longest is drained for another one.
 */
import type { WireClient } from '../wire/index.ts';

export class PeerClients {
  readonly #make: (address: string) => WireClient;
  readonly #max: number;
  /** In the order of their last use. */
  readonly #clients = new Map<string, WireClient>();

  constructor(max: number, make: (address: string) => WireClient) {
    this.#max = max;
    this.#make = make;
  }

  get size(): number {
    return this.#clients.size;
  }

  of(address: string): WireClient {
    const known = this.#clients.get(address);
    if (known !== undefined) {
      // most calls of a process go to few peers: the order is kept only where it decides
      if (this.#clients.size === this.#max) {
        this.#clients.delete(address);
        this.#clients.set(address, known);
      }
      return known;
    }
    if (this.#clients.size >= this.#max) {
      for (const [oldest, client] of this.#clients) {
        this.#clients.delete(oldest);
        client.close();
        break;
      }
    }
    const client = this.#make(address);
    this.#clients.set(address, client);
    return client;
  }

  clear(): readonly WireClient[] {
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    return clients;
  }
}
