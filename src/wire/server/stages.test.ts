/**
 * Connections that stop half way, in every stage between the accept and the first call: each has a deadline, and none
 * outlives the server.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { before, describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { clockOf, ManualClock } from '../../env/index.ts';
import { systemClock } from '../../platform/index.ts';
import { testEnv, testStatus, until } from '../../../test/raw-server.ts';
import { CLIENT_PREFACE } from '../http2/frames.ts';
import { WireServer, type WireLimits } from './wire-server.ts';

const pem = (name: string): Buffer => readFileSync(`test/certificates/${name}`);
const CA = pem('ca.pem');
const TLS = { key: pem('server.key'), cert: pem('server.pem'), ca: CA, requestCert: true };
const CLIENT = { ca: CA, key: pem('client.key'), cert: pem('client.pem'), ALPNProtocols: ['h2'] };
const COUNT = 40;

/** The first bytes that a TLS client sends. */
let clientHello: Buffer;

before(async () => {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const client = connectTls({ port: (listener.address() as AddressInfo).port, host: '127.0.0.1', ...CLIENT }).on(
    'error',
    () => {},
  );
  const [socket] = (await once(listener, 'connection')) as [Socket];
  [clientHello] = (await once(socket, 'data')) as [Buffer];
  client.destroy();
  socket.destroy();
  listener.close();
});

async function plain(port: number, bytes: Buffer): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  await once(socket, 'connect');
  if (bytes.length > 0) socket.write(bytes);
  return socket;
}

async function secure(port: number, bytes: Buffer): Promise<Socket> {
  const socket = connectTls({ port, host: '127.0.0.1', ...CLIENT });
  await once(socket, 'secureConnect');
  if (bytes.length > 0) socket.write(bytes);
  return socket;
}

const EMPTY_BYTES = Buffer.alloc(0);
const HALF_PREFACE = CLIENT_PREFACE.subarray(0, 10);
const STAGES: readonly { name: string; tls: boolean; open: (port: number) => Promise<Socket> }[] = [
  { name: 'plain text, silent', tls: false, open: (port) => plain(port, EMPTY_BYTES) },
  { name: 'plain text, half of the preface', tls: false, open: (port) => plain(port, HALF_PREFACE) },
  { name: 'plain text, the preface without SETTINGS', tls: false, open: (port) => plain(port, CLIENT_PREFACE) },
  { name: 'TLS, silent', tls: true, open: (port) => plain(port, EMPTY_BYTES) },
  { name: 'TLS, three bytes of the handshake', tls: true, open: (port) => plain(port, clientHello.subarray(0, 3)) },
  { name: 'TLS, the handshake half done', tls: true, open: (port) => plain(port, clientHello) },
  { name: 'TLS, no preface', tls: true, open: (port) => secure(port, EMPTY_BYTES) },
  { name: 'TLS, half of the preface', tls: true, open: (port) => secure(port, HALF_PREFACE) },
  { name: 'TLS, the preface without SETTINGS', tls: true, open: (port) => secure(port, CLIENT_PREFACE) },
];

/** A server on a clock that stands still. */
async function still(tls: boolean, limits: Partial<WireLimits> = {}) {
  const clock = new ManualClock();
  const env = testEnv(
    1 << 20,
    clockOf({
      ...systemClock,
      monotonicMs: () => clock.monotonicMs(),
      timer: (ms, wake) => clock.timer(ms, wake),
    }),
  );
  const server = new WireServer({
    env,
    statusOf: testStatus,
    limits: { handshakeMs: 5000, ...limits },
    ...(tls && { tls: TLS }),
  });
  const port = await server.listen('127.0.0.1', 0);
  return { clock, env, server, port };
}

/** The number of sockets that the server has ended. */
function watchEnds(sockets: readonly Socket[]): () => number {
  let ends = 0;
  for (const socket of sockets) {
    let over = false;
    const end = (): void => {
      if (!over) ends++;
      over = true;
      socket.destroy();
    };
    socket.on('end', end).on('close', end).on('error', end).resume();
  }
  return () => ends;
}

describe('a connection that stops half way', () => {
  for (const { name, tls, open } of STAGES) {
    test(`is counted from its accept on, and ended at the deadline: ${name}`, async () => {
      const { clock, server, port } = await still(tls);
      const sockets = await Promise.all(Array.from({ length: COUNT }, () => open(port)));
      const ends = watchEnds(sockets);
      await until(() => server.connections === COUNT);
      clock.advance(4000);
      for (let i = 0; i < 20; i++) await systemClock.yield();
      assert.equal(ends(), 0, 'before the deadline');
      clock.advance(2000);
      await until(() => ends() === COUNT);
      await until(() => server.connections === 0);
      await server.close(0);
    });

    test(`does not hold up the end of the server: ${name}`, async () => {
      const { server, port } = await still(tls);
      const sockets = await Promise.all(Array.from({ length: COUNT }, () => open(port)));
      const ends = watchEnds(sockets);
      await until(() => server.connections === COUNT);
      // the clock stands still, so the grace never ends
      await server.close(60_000);
      await until(() => ends() === COUNT);
    });
  }

  test('is ended even if it continues to send, byte by byte', async () => {
    const { clock, server, port } = await still(true);
    const socket = await plain(port, EMPTY_BYTES);
    const ends = watchEnds([socket]);
    for (let i = 0; i < 10; i++) {
      socket.write(clientHello.subarray(i, i + 1));
      await systemClock.yield();
      clock.advance(1000);
    }
    await until(() => ends() === 1);
    await server.close(0);
  });
});
