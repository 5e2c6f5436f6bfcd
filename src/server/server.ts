/**
 * A server: the Cloud Bigtable API on an address, over a service. It listens on loopback alone unless it is told otherwise, since
 * there is neither TLS nor authentication yet.
 */
import { createServer, isIP } from 'node:net';
import { BigtableError, Code, invalidArgument } from '../base/index.ts';
import { type ApiEnv, GrpcJsServer, registerCloudApi } from '../grpc/index.ts';
import type { Service } from '../service/index.ts';

/** Calls under way get this long to end when the server stops. */
const GRACE_MS = 5000;

export interface ServerOptions {
  readonly service: Service;
  readonly env: ApiEnv;
  /** HOST:PORT, [IPV6]:PORT; port 0 chooses a free one. */
  readonly address: string;
  /** Serves everybody who can reach the machine, unencrypted and without a question. Default: false. */
  readonly insecurePublic?: boolean;
  /** How long calls under way may take when the server stops, ms. Default: 5000. */
  readonly graceMs?: number;
}

export interface RunningServer {
  /** HOST:PORT with the real port. */
  readonly address: string;
  /** Tells health checks, takes no new calls, lets those under way end within the grace, cuts off the rest. */
  close(): Promise<void>;
}

/** Fails with INVALID_ARGUMENT for an address that is none or is public, ALREADY_EXISTS where it is in use. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { service, env } = options;
  const [host, port] = hostAndPort(options.address);
  if (!isLoopback(host) && options.insecurePublic !== true) {
    throw invalidArgument(`${options.address} can be reached from other machines, and there is no TLS or authentication yet: use 127.0.0.1, or say --insecure-public`);
  }
  await checkFree(host, port, options.address);
  const server = new GrpcJsServer(env);
  const health = registerCloudApi(server, service, env);
  const bound = await server.listen(host, port);
  let closing: Promise<void> | undefined;
  return {
    address: host.includes(':') ? `[${host}]:${bound}` : `${host}:${bound}`,
    close: () => {
      closing ??= (async () => {
        health.stop();
        await server.close(options.graceMs ?? GRACE_MS);
      })();
      return closing;
    },
  };
}

/** Listens for a moment, so that the commonest mistake gets a clear answer; grpc-js prints a line of its own to the terminal. */
function checkFree(host: string, port: number, address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') reject(new BigtableError(Code.ALREADY_EXISTS, `${address} is already in use`, { cause: error }));
      else reject(new BigtableError(Code.UNAVAILABLE, `cannot listen on ${address}: ${error.message}`, { cause: error }));
    });
    probe.listen(port, host, () => probe.close(() => resolve()));
  });
}

function hostAndPort(address: string): [string, number] {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(address);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65535) throw invalidArgument(`${JSON.stringify(address)} is no address: HOST:PORT, with a port from 0 to 65535`);
  return [host, port];
}

function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true;
  return isIP(host) === 4 && host.startsWith('127.');
}
