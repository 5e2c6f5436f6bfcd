/** TLS on sockets that a server has accepted: certificates from memory, HTTP/2 by ALPN and nothing else, and new certificates without a restart. */
import type { Socket } from 'node:net';
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';

export interface TlsOptions {
  /** PEM. */
  readonly key: string | Buffer;
  readonly cert: string | Buffer;
  /** PEM: who may sign the clients' certificates. */
  readonly ca?: string | Buffer;
  /** Clients must show a certificate that `ca` has signed. Default: false. */
  readonly requestCert?: boolean;
  /** The oldest version of TLS that is spoken. Default: 1.2. */
  readonly minVersion?: '1.2' | '1.3' | undefined;
}

type OnSecure = (socket: TLSSocket) => void;

/**
 * Makes the handshakes. How long one may take is the matter of whoever accepted the socket, and ends it.
 *
 * Invariant: a handshake that fails destroys its socket.
 */
export class TlsHandshakes {
  /** Never listens: it is handed the sockets. */
  readonly #server: Server;
  /** Handshakes under way, by the two ends of their connections: node:tls does not tell which socket a TLSSocket was made of. */
  readonly #pending = new Map<string, OnSecure>();

  constructor(options: TlsOptions) {
    const requestCert = options.requestCert ?? false;
    this.#server = createServer({
      ...certificates(options),
      ALPNProtocols: ['h2'],
      requestCert,
      rejectUnauthorized: requestCert,
    });
    this.#server.on('secureConnection', (socket) => this.#end(socket));
    // what goes wrong in a handshake is the client's matter; Node leaves the socket to us
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy());
  }

  /** Calls `onSecure` once the handshake is done and the client speaks HTTP/2; destroys the socket where it does not come to that. */
  begin(socket: Socket, onSecure: OnSecure): void {
    const ends = endsOf(socket);
    this.#pending.set(ends, onSecure);
    socket.once('close', () => {
      if (this.#pending.get(ends) === onSecure) this.#pending.delete(ends);
    });
    this.#server.emit('connection', socket);
  }

  /** For handshakes from now on. Throws what node:tls throws at certificates that are none, and then keeps the old ones. */
  reload(options: TlsOptions): void {
    this.#server.setSecureContext(certificates(options));
  }

  #end(socket: TLSSocket): void {
    const ends = endsOf(socket);
    const onSecure = this.#pending.get(ends);
    this.#pending.delete(ends);
    // a client without ALPN speaks something else
    if (onSecure && socket.alpnProtocol === 'h2') return onSecure(socket);
    socket.on('error', () => {});
    socket.destroy();
  }
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

function certificates({ key, cert, ca, minVersion = '1.2' }: TlsOptions): SecureContextOptions {
  return { key, cert, minVersion: `TLSv${minVersion}`, ...(ca !== undefined && { ca }) };
}
