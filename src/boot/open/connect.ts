/** The service of a remote server, over its Cloud Bigtable API. */
import { asBuffer, invalidArgument } from '../../base/index.ts';
import { ByteBudget, type Env, Metrics } from '../../env/index.ts';
import { systemClock, systemRandom } from '../../platform/index.ts';
import type { Service } from '../../service/index.ts';
import { type ClientTlsOptions, isLoopback, parseAddress } from '../../wire/index.ts';
import { DEFAULT_SETTINGS } from '../settings/settings.ts';
import { readInput } from './input-files.ts';

type Pem = string | Uint8Array | undefined;

/** The authority, the client's own certificate and its key: each as PEM, or in a file. */
export interface ConnectTls {
  readonly ca?: Pem;
  readonly cert?: Pem;
  readonly key?: Pem;
  readonly caFile?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** The name in the server's certificate. Default: the address' host. */
  readonly serverName?: string | undefined;
}

export interface ConnectOptions {
  /**
   * TLS; the fields may be left out for a server whose certificate is of an authority that Node trusts. Default: plain
   * text.
   */
  readonly tls?: ConnectTls | undefined;
  /** A bearer token. It is never sent to another machine without TLS. */
  readonly token?: string | undefined;
}

export interface Connection {
  readonly service: Service;
  /** The part of the environment that a caller of the service needs: the rest is the server's. */
  readonly env: Pick<Env, 'clock' | 'metrics' | 'requestBudget'>;
  close(): Promise<void>;
}

/**
 * `address`: HOST:PORT. Nothing is sent before the first call. INVALID_ARGUMENT for an invalid address, or for files
 * that cannot be read.
 */
export async function connect(address: string, { tls, token }: ConnectOptions = {}): Promise<Connection> {
  const parsed = parseAddress(address);
  if (!parsed || parsed.port === 0)
    throw invalidArgument(`invalid address "${address}": expected HOST:PORT, for example 127.0.0.1:8086`);
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw invalidArgument('the bearer token is empty, or holds characters that no token has');
  if (token !== undefined && !tls && !isLoopback(parsed.host)) {
    throw invalidArgument(
      `the bearer token would go to ${address} in plain text: use TLS (on the command line --tls, or --tls-ca FILE)`,
    );
  }
  // only clients need the API here
  const { connectService } = await import('../../grpc/index.ts');
  const service = await connectService({
    address,
    clock: systemClock,
    random: systemRandom,
    token,
    tls: tls && (await certificatesOf(tls)),
  });
  return {
    service,
    env: { clock: systemClock, metrics: new Metrics(), requestBudget: new ByteBudget(DEFAULT_SETTINGS.requestBytes) },
    close: async () => service.close(),
  };
}

async function certificatesOf(tls: ConnectTls): Promise<ClientTlsOptions> {
  const [ca, key, cert] = await Promise.all([
    pemOf(tls.ca, tls.caFile, 'ca'),
    pemOf(tls.key, tls.keyFile, 'key'),
    pemOf(tls.cert, tls.certFile, 'cert'),
  ]);
  if ((key === undefined) !== (cert === undefined)) {
    throw invalidArgument(
      'a client certificate needs both its key and itself (on the command line --tls-key and --tls-cert)',
    );
  }
  const { serverName } = tls;
  return {
    ...(ca && { ca }),
    ...(key && { key }),
    ...(cert && { cert }),
    ...(serverName !== undefined && { serverName }),
  };
}

async function pemOf(pem: Pem, file: string | undefined, what: string): Promise<string | Buffer | undefined> {
  if (pem !== undefined && file !== undefined)
    throw invalidArgument(`give either ${what} or ${what}File for TLS, not both`);
  if (file !== undefined) return readInput(file);
  return pem instanceof Uint8Array ? asBuffer(pem) : pem;
}
