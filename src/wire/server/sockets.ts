/**
 * The sockets of a server, each from its accept to its close, whatever stage it is in: TCP alone, a TLS handshake,
 * HTTP/2 that has not begun, or a connection with calls. They are counted, in all and by the peer's network; each has a
 * deadline for its next step; all end with the server.
 *
 * Invariants: a socket is in `#all`, and in the counts, from `accept` until it is destroyed or closed by itself. At the
 * limit a new socket replaces the idle connection that is needed least; connections with calls are never ended for
 * others. At the limit of handshakes it replaces the oldest one of the network that has most of them: so the silent
 * sockets of a stranger keep no client out.
 */
import type { Socket } from 'node:net';
import { assert } from '../../base/index.ts';
import type { Counter, Timer } from '../../env/index.ts';
import { isLoopback, networkOf } from '../contract/address.ts';
import type { Connection } from '../http2/connection.ts';
import type { ApiEnv } from '../contract/rpc-server.ts';
import { RareWarning } from './rare-warning.ts';

export interface SocketLimits {
  readonly maxConnections: number;
  /** Connections from one IPv4 address or one IPv6 network of 64 bits. Programs of this machine are not counted. */
  readonly maxConnectionsPerAddress: number;
  /** From the accept to the end of HTTP/2's handshake, TLS and all. */
  readonly handshakeMs: number;
  /** Sockets on which HTTP/2 may not begin yet: their TLS is not done, or they are not admitted. */
  readonly maxHandshakes: number;
  /** A connection that is silent for this long is sent a PING, */
  readonly keepAliveMs: number;
  /** and is closed when it does not answer within this. */
  readonly keepAliveTimeoutMs: number;
  /** A connection without calls ends after this; clients connect anew. */
  readonly maxIdleMs: number;
  /**
   * A connection whose client showed a certificate ends after this and up to a tenth more: the certificate is checked
   * at the next handshake.
   */
  readonly maxCertificateAgeMs: number;
  /** Time for the calls of a connection that is drained. */
  readonly drainMs: number;
}

export interface SocketsOptions {
  readonly env: Pick<ApiEnv, 'clock' | 'random' | 'logger' | 'metrics'>;
  readonly limits: SocketLimits;
  /** Called with the number of sockets when it has changed. */
  readonly onSize?: ((size: number) => void) | undefined;
}

/** A socket and its state. */
export interface AcceptedSocket {
  readonly socket: Socket;
  readonly address: string;
  readonly network: string;
  readonly openedMs: number;
  /** Set once HTTP/2 may begin. */
  connection: Connection | undefined;
  /** The client showed a certificate. */
  hasCertificate: boolean;
  /** The time at which it is drained, whatever it does. */
  retireMs: number;
  /** The time at which it is cut off. */
  cutOffMs: number;
  hadCalls: boolean;
  heardMs: number;
  usedMs: number;
  pingedMs: number;
}

/** What GOAWAY says where a server stops. */
const WHY = 'the server stops';
/** Period in which connections are checked for their deadlines. */
const REAP_MS = 1000;
/** Time for a client to close a connection that was ended. */
const LINGER_MS = 2000;
/** Idle connections that are found by one search, for the next sockets that need space. */
const IDLEST = 64;
/** The oldest handshakes, of which one is replaced. */
const OLDEST_HANDSHAKES = 256;

export class Sockets {
  readonly #env: SocketsOptions['env'];
  readonly #limits: SocketLimits;
  readonly #all = new Set<AcceptedSocket>();
  readonly #ofNetwork = new Map<string, number>();
  /** Sockets without a connection, the oldest first. */
  readonly #handshakes = new Set<AcceptedSocket>();
  readonly #refusals: RareWarning;
  readonly #replacements: RareWarning;
  /** Idle connections, those that are needed least at the end. */
  #idlest: AcceptedSocket[] = [];
  #reapTimer: Timer | undefined;
  #isClosing = false;
  readonly #accepted: Counter;
  #onEmpty: (() => void) | undefined;
  readonly #onSize: ((size: number) => void) | undefined;

  constructor({ env, limits, onSize }: SocketsOptions) {
    this.#env = env;
    this.#limits = limits;
    this.#onSize = onSize;
    this.#accepted = env.metrics.counter('wire.acceptedConnections');
    this.#refusals = new RareWarning(env, 'connections are refused');
    this.#replacements = new RareWarning(env, 'idle connections are ended in favour of new ones');
  }

  /** Checks connections for their deadlines, until `close`. */
  start(): void {
    this.#reapConnections();
  }

  get size(): number {
    return this.#all.size;
  }

  /**
   * Takes the socket in, or destroys it: refused clients see a connection that closes, and wait before they try again.
   */
  accept(socket: Socket): AcceptedSocket | undefined {
    socket.on('error', () => {});
    const address = socket.remoteAddress;
    if (this.#isClosing || address === undefined || !this.#admits(address)) {
      socket.destroy();
      return undefined;
    }
    const network = networkOf(address);
    const nowMs = this.#env.clock.monotonicMs();
    const accepted: AcceptedSocket = {
      socket,
      address,
      network,
      openedMs: nowMs,
      connection: undefined,
      hasCertificate: false,
      hadCalls: false,
      retireMs: Number.POSITIVE_INFINITY,
      cutOffMs: Number.POSITIVE_INFINITY,
      heardMs: nowMs,
      usedMs: nowMs,
      pingedMs: nowMs,
    };
    this.#all.add(accepted);
    this.#handshakes.add(accepted);
    this.#accepted.value++;
    this.#ofNetwork.set(network, (this.#ofNetwork.get(network) ?? 0) + 1);
    socket.once('close', () => this.#remove(accepted));
    this.#onSize?.(this.#all.size);
    return accepted;
  }

  /** HTTP/2 may begin on the socket. */
  begin(accepted: AcceptedSocket, connection: Connection, hasCertificate: boolean): void {
    assert(accepted.connection === undefined, 'a socket has one connection');
    accepted.connection = connection;
    this.#handshakes.delete(accepted);
    accepted.hasCertificate = hasCertificate;
    const ageMs = this.#limits.maxCertificateAgeMs * (1 + this.#env.random.float() / 10);
    if (hasCertificate) accepted.retireMs = accepted.openedMs + ageMs;
  }

  /** Ends the connections whose clients showed a certificate: they are to show it again. Calls get `drainMs`. */
  retireCertificates(): void {
    for (const accepted of [...this.#all]) {
      if (!accepted.hasCertificate) continue;
      // a client that is not admitted any more is not served until it knows that
      accepted.connection?.refuseNew('show your certificate again');
      this.#cutOffIn(accepted, this.#limits.drainMs);
    }
  }

  /**
   * Accepts no more sockets. Those that have not begun HTTP/2 end immediately: a call that comes to one is sent again
   * elsewhere, because GOAWAY names no stream. Connections end with their calls, and all after `graceMs`.
   */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    const emptied = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    for (const accepted of [...this.#all]) {
      const { connection } = accepted;
      if (connection?.hasBegun) connection.drain(WHY);
      else {
        connection?.dismiss(WHY);
        this.#end(accepted);
      }
    }
    const grace = this.#env.clock.timer(graceMs, () => {
      for (const accepted of [...this.#all]) this.#end(accepted);
    });
    if (this.#all.size > 0) await emptied;
    grace.cancel();
    this.#reapTimer?.cancel();
  }

  #admits(address: string): boolean {
    const { maxConnections, maxConnectionsPerAddress, maxHandshakes } = this.#limits;
    const isCrowded =
      !isLoopback(address) && (this.#ofNetwork.get(networkOf(address)) ?? 0) >= maxConnectionsPerAddress;
    if (!isCrowded && this.#handshakes.size >= maxHandshakes) this.#endHandshake();
    if (!isCrowded && (this.#all.size < maxConnections || this.#endIdlest())) return true;
    this.#env.metrics.add('wire.refusedConnections');
    this.#refusals.add(
      isCrowded ? { address, limitOfAddress: maxConnectionsPerAddress } : { address, limit: maxConnections },
    );
    return false;
  }

  /** The oldest one of the network that has most of the oldest ones. */
  #endHandshake(): void {
    const ofNetwork = new Map<string, { readonly oldest: AcceptedSocket; count: number }>();
    let most: { readonly oldest: AcceptedSocket; count: number } | undefined;
    let left = OLDEST_HANDSHAKES;
    for (const accepted of this.#handshakes) {
      if (left-- === 0) break;
      let one = ofNetwork.get(accepted.network);
      if (one === undefined) ofNetwork.set(accepted.network, (one = { oldest: accepted, count: 0 }));
      one.count++;
      if (most === undefined || one.count > most.count) most = one;
    }
    assert(most !== undefined, 'at the limit of handshakes there is one');
    this.#env.metrics.add('wire.refusedConnections');
    this.#refusals.add({ address: most.oldest.address, limitOfHandshakes: this.#limits.maxHandshakes });
    this.#end(most.oldest);
  }

  /** False where no connection is idle. */
  #endIdlest(): boolean {
    for (const found of [this.#idlest, this.#findIdlest()]) {
      this.#idlest = found;
      for (let last = found.pop(); last; last = found.pop()) {
        if (!this.#all.has(last) || !isIdle(last)) continue;
        last.connection?.dismiss('the server needs the connection for another client');
        this.#end(last);
        this.#env.metrics.add('wire.replacedConnections');
        this.#replacements.add({ limit: this.#limits.maxConnections });
        return true;
      }
    }
    return false;
  }

  /** Connections that never had a call are needed least, then those that had none for the longest. */
  #findIdlest(): AcceptedSocket[] {
    const idle = [...this.#all].filter(isIdle);
    for (const accepted of idle) noteUse(accepted, this.#env.clock.monotonicMs());
    return idle
      .sort((a, b) => Number(a.hadCalls) - Number(b.hadCalls) || a.usedMs - b.usedMs)
      .slice(0, IDLEST)
      .reverse();
  }

  #end(accepted: AcceptedSocket): void {
    accepted.connection?.destroy();
    accepted.socket.destroy();
    this.#remove(accepted);
  }

  #remove(accepted: AcceptedSocket): void {
    if (!this.#all.delete(accepted)) return;
    this.#handshakes.delete(accepted);
    const left = (this.#ofNetwork.get(accepted.network) ?? 0) - 1;
    assert(left >= 0, 'no more sockets were closed than accepted');
    if (left > 0) this.#ofNetwork.set(accepted.network, left);
    else this.#ofNetwork.delete(accepted.network);
    if (this.#all.size === 0) this.#onEmpty?.();
    this.#onSize?.(this.#all.size);
  }

  #drain(accepted: AcceptedSocket, why: string): void {
    accepted.connection?.drain(why);
    this.#cutOffIn(accepted, this.#limits.drainMs);
  }

  #cutOffIn(accepted: AcceptedSocket, delayMs: number): void {
    accepted.cutOffMs = Math.min(accepted.cutOffMs, this.#env.clock.monotonicMs() + delayMs);
  }

  #reapConnections(): void {
    const { clock } = this.#env;
    const nowMs = clock.monotonicMs();
    for (const accepted of [...this.#all]) this.#reap(accepted, nowMs);
    this.#refusals.flush();
    this.#replacements.flush();
    this.#reapTimer = clock.timer(REAP_MS, () => this.#reapConnections());
  }

  #reap(accepted: AcceptedSocket, nowMs: number): void {
    const { connection } = accepted;
    const { handshakeMs, maxIdleMs } = this.#limits;
    if (nowMs >= accepted.cutOffMs) return this.#end(accepted);
    if (connection?.hasEnded) return this.#cutOffIn(accepted, LINGER_MS);
    if (!connection?.hasBegun) {
      if (nowMs - accepted.openedMs < handshakeMs) return;
      this.#env.metrics.add('wire.lateHandshakes');
      return this.#end(accepted);
    }
    noteUse(accepted, nowMs);
    if (nowMs >= accepted.retireMs) this.#drain(accepted, 'show your certificate again');
    else if (nowMs - accepted.usedMs >= maxIdleMs) this.#drain(accepted, 'the connection was not used');
    else this.#keepAlive(accepted, connection, nowMs);
  }

  #keepAlive(accepted: AcceptedSocket, connection: Connection, nowMs: number): void {
    const { keepAliveMs, keepAliveTimeoutMs } = this.#limits;
    if (connection.wasHeard) {
      connection.wasHeard = false;
      accepted.heardMs = nowMs;
    }
    if (connection.pingIsOut) {
      if (nowMs - accepted.pingedMs >= keepAliveTimeoutMs && nowMs - accepted.heardMs >= keepAliveTimeoutMs)
        this.#end(accepted);
    } else if (nowMs - accepted.heardMs >= keepAliveMs) {
      accepted.pingedMs = nowMs;
      connection.ping();
    }
  }
}

function isIdle({ connection }: AcceptedSocket): boolean {
  return connection === undefined || connection.isIdle;
}

function noteUse(accepted: AcceptedSocket, nowMs: number): void {
  const { connection } = accepted;
  if (!connection || !(connection.wasUsed || !connection.isIdle)) return;
  connection.wasUsed = false;
  accepted.hadCalls = true;
  accepted.usedMs = nowMs;
}
