/**
 * For tests: processes that listen on loopback sockets, each reached through a proxy that can break its connections or
 * go silent.
 */
import assert from 'node:assert/strict';
import { connect, createServer, type Socket } from 'node:net';
import { deserialize, serialize } from 'node:v8';
import { testEnv } from '../../test/raw-server.ts';
import { ManualClock, type Transport } from '../env/index.ts';
import type { CallCodec, MessageForm } from '../protocol/index.ts';
import { ClusterSecret } from './cluster-secret.ts';
import { type NetworkOptions, NetworkTransport } from './network-transport.ts';

export const CLUSTER = 'cluster-1';
export const SECRET = ClusterSecret.parse('0123456789abcdef0123456789abcdef', 'the test');

/** Time stands still unless a test advances it; turns of the event loop are real ones, since sockets need them. */
export class SocketClock extends ManualClock {
  override yield(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
}

const THROWING = ['bigtable', 'corruption', 'type-error', 'text'];

/** Any cloneable data: byte arrays that are the whole value stay what they were. */
const FORM: MessageForm = {
  isLong: false,
  encode: (value) => serialize(value),
  encodeParts: (value) => serialize(value),
  decode: (bytes) => {
    const value: unknown = deserialize(bytes);
    return Buffer.isBuffer(value) ? Uint8Array.from(value) : value;
  },
  encodeInSteps: () => assert.fail(),
  decodeInSteps: () => assert.fail(),
};

/** For the methods of the contract's tests. */
export const PLAIN_CODEC: CallCodec = {
  calls: ['m', 'n', 'echo', ...THROWING],
  streams: ['m', 'count', ...THROWING],
  messageOf: () => FORM,
  answerOf: () => FORM,
};

export interface Proxy {
  readonly port: number;
  /** What clients have sent, by connection. */
  readonly sent: readonly Buffer[][];
  breakConnections(): void;
  /** Passes nothing on any more, and closes nothing. */
  goSilent(): void;
  close(): Promise<void>;
}

/** A port that passes connections on to that of `target`. */
export async function proxyTo(target: () => number): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const sent: Buffer[][] = [];
  let silent = false;
  const add = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port: target() });
    const bytes: Buffer[] = [];
    sent.push(bytes);
    for (const [from, to] of [[near, far] as const, [far, near] as const]) {
      add(from);
      from.on('data', (chunk: Buffer) => {
        if (silent) return;
        if (from === near) bytes.push(chunk);
        to.write(chunk);
      });
      from.on('close', () => silent || to.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    sent,
    breakConnections: () => {
      for (const socket of sockets) socket.destroy();
    },
    goSilent: () => {
      silent = true;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

export interface Process {
  readonly transport: NetworkTransport;
  readonly clock: SocketClock;
  readonly proxy: Proxy;
  readonly infos: readonly string[];
  /** Connections that its port has taken in. */
  readonly connections: () => number;
  /** HOST:PORT/NAME, through the proxy. */
  addressOf(name: string): string;
  close(): Promise<void>;
}

export async function startProcess(name: string, more: Partial<NetworkOptions> = {}): Promise<Process> {
  const clock = new SocketClock();
  const env = testEnv(64 * 1024 * 1024, clock);
  const transport = new NetworkTransport({
    env,
    codec: PLAIN_CODEC,
    identity: { name, cluster: CLUSTER, role: 'server' },
    secret: SECRET,
    ...more,
  });
  const port = await transport.listen('127.0.0.1', 0);
  const proxy = await proxyTo(() => port);
  return {
    transport,
    clock,
    proxy,
    infos: env.infos,
    connections: () => env.metrics.counter('wire.acceptedConnections').value,
    addressOf: (handler) => `127.0.0.1:${proxy.port}/${handler}`,
    close: async () => {
      await proxy.close();
      const closed = transport.close(0);
      clock.advance(1);
      await closed;
    },
  };
}

/** The transport of `from`, for handlers that `to` serves under plain names. */
export function across(from: Process, to: Process): Transport {
  return {
    serve: (name, handler) => to.transport.serve(to.addressOf(name), handler),
    call: (name, ...rest) => from.transport.call(to.addressOf(name), ...rest),
    stream: (name, method, ...rest) => from.transport.stream(to.addressOf(name), method, ...rest),
  };
}
