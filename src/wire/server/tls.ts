/**
 * TLS on sockets that a server has accepted: certificates from memory, HTTP/2 by ALPN only, and new certificates
 * without a restart.
 */
import type { Socket } from 'node:net';
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';

export interface TlsOptions {
  /** PEM. */
  readonly key: string | Buffer;
  readonly cert: string | Buffer;
  /** PEM: the authorities of the clients' certificates. */
  readonly ca?: string | Buffer;
  /** Clients need a certificate that `ca` has signed. Default: false. */
  readonly requestCert?: boolean;
  /** The oldest version of TLS that is accepted. Default: 1.2. */
  readonly minVersion?: '1.2' | '1.3' | undefined;
}

type OnSecure = (socket: TLSSocket) => void;
/** `why`: for an operator to read. */
type OnHandshakeFailed = (address: string, why: string) => void;

/**
 * Makes the handshakes. The caller limits their time: it ends the socket that takes too long.
 *
 * Invariant: a handshake that fails destroys its socket.
 */
export class TlsHandshakes {
  /** Never listens: sockets are passed to it. */
  readonly #server: Server;
  /**
   * Handshakes in progress, by the two ends of their connections: a TLSSocket does not say which socket it was made of.
   */
  readonly #pending = new Map<string, OnSecure>();

  readonly #onFailed: OnHandshakeFailed;

  constructor(options: TlsOptions, onFailed: OnHandshakeFailed) {
    this.#onFailed = onFailed;
    const requestCert = options.requestCert ?? false;
    this.#server = createServer({
      ...certificates(options),
      ALPNProtocols: ['h2'],
      requestCert,
      rejectUnauthorized: requestCert,
    });
    this.#server.on('secureConnection', (socket) => this.#end(socket));
    // Node leaves the socket to us; it may be closed already
    this.#server.on('tlsClientError', (error, socket) => {
      const why = handshakeError(error);
      if (why !== undefined) this.#onFailed(socket.remoteAddress ?? '', why);
      socket.destroy();
    });
  }

  /** Calls `onSecure` once the handshake is done and the client speaks HTTP/2; otherwise destroys the socket. */
  begin(socket: Socket, onSecure: OnSecure): void {
    const ends = endsOf(socket);
    this.#pending.set(ends, onSecure);
    socket.once('close', () => {
      if (this.#pending.get(ends) === onSecure) this.#pending.delete(ends);
    });
    this.#server.emit('connection', socket);
  }

  /**
   * Sets the certificates of later handshakes. Throws the error of node:tls for invalid ones, and then keeps the old
   * ones.
   */
  reload(options: TlsOptions): void {
    this.#server.setSecureContext(certificates(options));
  }

  #end(socket: TLSSocket): void {
    const ends = endsOf(socket);
    const onSecure = this.#pending.get(ends);
    this.#pending.delete(ends);
    if (onSecure && socket.alpnProtocol === 'h2') return onSecure(socket);
    this.#onFailed(socket.remoteAddress ?? '', 'the client does not offer HTTP/2 (ALPN h2)');
    socket.on('error', () => {});
    socket.destroy();
  }
}

/**
 * The reason of a handshake that failed; undefined where the client closed the connection. OpenSSL has these two codes
 * for plain text.
 */
function handshakeError(error: Error & { readonly code?: unknown; readonly reason?: unknown }): string | undefined {
  if (error.code === 'ERR_SSL_HTTP_REQUEST' || error.code === 'ERR_SSL_WRONG_VERSION_NUMBER')
    return 'the client speaks plain text, and this port TLS';
  return typeof error.reason === 'string' ? `the TLS handshake failed: ${error.reason}` : undefined;
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

function certificates({ key, cert, ca, minVersion = '1.2' }: TlsOptions): SecureContextOptions {
  return { key, cert, minVersion: `TLSv${minVersion}`, ...(ca !== undefined && { ca }) };
}
