/**
 * The connections of a process to its peers: one for each host and port, made by the first call, kept, and replaced
 * when it is lost (WireClient).
 *
 * Invariant: at most `max` are kept. The one that was not used for the longest is drained for another one.
 */
interface Closable {
  /** Takes no new calls, and ends with those under way. */
  close(): void;
}

export class PeerClients<C extends Closable> {
  readonly #make: (address: string) => C;
  readonly #max: number;
  /** In the order of their last use. */
  readonly #clients = new Map<string, C>();

  constructor(max: number, make: (address: string) => C) {
    this.#max = max;
    this.#make = make;
  }

  get size(): number {
    return this.#clients.size;
  }

  of(address: string): C {
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

  clear(): readonly C[] {
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    return clients;
  }
}
