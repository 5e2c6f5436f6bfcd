/** TLS for a listening server: certificates from memory, HTTP/2 by ALPN and nothing else, and new certificates without a restart. */
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';

export interface TlsOptions {
  /** PEM. */
  readonly key: string | Buffer;
  readonly cert: string | Buffer;
  /** PEM: who may sign the clients' certificates. */
  readonly ca?: string | Buffer;
  /** Clients must show a certificate that `ca` has signed. Default: false. */
  readonly requestCert?: boolean;
}

/** A handshake takes at most so long. */
const HANDSHAKE_MS = 10_000;

export function createTlsServer(options: TlsOptions, onSocket: (socket: TLSSocket) => void): Server {
  const requestCert = options.requestCert ?? false;
  const server = createServer(
    { ...certificates(options), ALPNProtocols: ['h2'], requestCert, rejectUnauthorized: requestCert, handshakeTimeout: HANDSHAKE_MS, noDelay: true },
    (socket) => {
      // a client without ALPN speaks something else
      if (socket.alpnProtocol === 'h2') onSocket(socket);
      else socket.destroy();
    },
  );
  // what goes wrong in a handshake is the client's matter
  server.on('tlsClientError', () => {});
  return server;
}

/** For handshakes from now on. Throws what node:tls throws at certificates that are none, and then keeps the old ones. */
export function reloadTls(server: Server, options: TlsOptions): void {
  server.setSecureContext(certificates(options));
}

function certificates({ key, cert, ca }: TlsOptions): SecureContextOptions {
  return { key, cert, minVersion: 'TLSv1.2', ...(ca !== undefined && { ca }) };
}
