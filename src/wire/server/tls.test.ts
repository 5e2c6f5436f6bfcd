import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { connect } from 'node:tls';
import * as grpc from '@grpc/grpc-js';
import { BigtableError, Code } from '../../base/index.ts';
import { clockOf, ManualClock, requestContext } from '../../env/index.ts';
import { systemClock } from '../../platform/index.ts';
import { rawServer, testEnv, until } from '../../../test/raw-server.ts';
import { WireClient } from '../client/wire-client.ts';

const pem = (name: string): Buffer => readFileSync(`test/certificates/${name}`);
const CA = pem('ca.pem');
const SERVER = { key: pem('server.key'), cert: pem('server.pem') };
const CLIENT = [pem('client.key'), pem('client.pem')] as const;
const STRANGER = [pem('stranger.key'), pem('stranger.pem')] as const;

type Register = Parameters<typeof rawServer>[1];
const echo: Register = (server) =>
  server.register('/t/Echo', { kind: 'unary', handle: async (_call, request) => request });

describe('TLS', () => {
  let wire: Awaited<ReturnType<typeof rawServer>>;

  before(async () => {
    wire = await rawServer(testEnv(), echo, { server: { tls: SERVER }, credentials: grpc.credentials.createSsl(CA) });
  });

  after(async () => {
    await wire.close();
  });

  test('calls go through, large ones too', async () => {
    const { code, messages } = await wire.call('/t/Echo', [Buffer.alloc(500_000, 3)]);
    assert.equal(code, Code.OK);
    assert.ok(Buffer.alloc(500_000, 3).equals(messages[0] as Buffer));
  });

  test('a client that does not speak HTTP/2 is disconnected', async () => {
    for (const ALPNProtocols of [['http/1.1'], undefined]) {
      const socket = connect({ port: wire.port, host: '127.0.0.1', ca: CA, ...(ALPNProtocols && { ALPNProtocols }) });
      socket.on('error', () => {});
      await new Promise((resolve) => socket.on('close', resolve));
    }
  });

  test('versions older than the minimum are refused, after new certificates too', async () => {
    const strict = await rawServer(testEnv(), echo, {
      server: { tls: { ...SERVER, minVersion: '1.3' } },
      credentials: grpc.credentials.createSsl(CA),
    });
    const version = (port: number, maxVersion: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'): Promise<string | null> =>
      new Promise((resolve) => {
        const socket = connect(
          {
            port,
            host: '127.0.0.1',
            ca: CA,
            ALPNProtocols: ['h2'],
            minVersion: 'TLSv1',
            maxVersion,
            ciphers: 'DEFAULT@SECLEVEL=0',
          },
          () => {
            resolve(socket.getProtocol());
            socket.destroy();
          },
        );
        socket.on('error', () => resolve(null));
      });
    assert.deepEqual(
      [await version(wire.port, 'TLSv1.1'), await version(wire.port, 'TLSv1.2'), await version(wire.port, 'TLSv1.3')],
      [null, 'TLSv1.2', 'TLSv1.3'],
    );
    for (let round = 0; round < 2; round++) {
      assert.deepEqual(
        [await version(strict.port, 'TLSv1.2'), await version(strict.port, 'TLSv1.3')],
        [null, 'TLSv1.3'],
      );
      strict.server.reloadTls({ ...SERVER, minVersion: '1.3' });
    }
    await strict.close();
  });

  test('another certificate is shown from the next connection on; an invalid one changes nothing', async () => {
    const shown = (): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connect(
          { port: wire.port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] },
          () => {
            resolve(String(socket.getPeerCertificate().subject.CN));
            socket.destroy();
          },
        );
        socket.on('error', reject);
      });
    assert.equal(await shown(), 'server');
    wire.server.reloadTls({ key: STRANGER[0], cert: STRANGER[1] });
    assert.equal(await shown(), 'stranger');
    assert.throws(() => wire.server.reloadTls({ key: 'none', cert: 'none' }));
    assert.equal(await shown(), 'stranger');
    wire.server.reloadTls(SERVER);
    assert.equal(await shown(), 'server');
  });
});

describe('TLS on one side only', () => {
  /** The error of a call, and what the server logs of its connection. */
  const outcome = async (server: { readonly tls?: typeof SERVER }, tls?: { readonly ca: Buffer }) => {
    const logged: unknown[] = [];
    const env = testEnv();
    const logger = {
      ...env.logger,
      info: (_message: string, fields?: { readonly message?: unknown }) => logged.push(fields?.message),
    };
    const wire = await rawServer({ ...env, logger }, echo, { server });
    const client = new WireClient({
      address: `127.0.0.1:${wire.port}`,
      clock: systemClock,
      random: env.random,
      errorOf: ({ code, message }) => new BigtableError(code, message),
      ...(tls && { tls }),
    });
    const error = await client.unary('/t/Echo', Buffer.of(1), requestContext({ budget: env.requestBudget })).then(
      () => undefined,
      (thrown: BigtableError) => thrown,
    );
    await until(() => logged.length > 0);
    client.close();
    await wire.close();
    return { code: error?.code, message: error?.message.replace(/:\d+/, ''), logged: logged[0] };
  };

  test('plain text to a server that speaks TLS', async () => {
    assert.deepEqual(await outcome({ tls: SERVER }), {
      code: Code.UNAVAILABLE,
      message:
        'the server at 127.0.0.1 closed the connection before it answered: it may speak TLS where the client does not',
      logged: 'the client speaks plain text, and this port TLS',
    });
  });

  test('TLS to a server that speaks plain text', async () => {
    assert.deepEqual(await outcome({}, { ca: CA }), {
      code: Code.UNAVAILABLE,
      message: 'the server at 127.0.0.1 does not speak TLS: connect to it without TLS',
      logged: 'the client speaks TLS, and this port plain text',
    });
  });
});

describe('mutual TLS', () => {
  test('only clients with a certificate of the authority get through', async () => {
    const tls = { ...SERVER, ca: CA, requestCert: true };
    const answers: number[] = [];
    for (const certificate of [CLIENT, STRANGER, undefined]) {
      const credentials = certificate
        ? grpc.credentials.createSsl(CA, certificate[0], certificate[1])
        : grpc.credentials.createSsl(CA);
      const wire = await rawServer(testEnv(), echo, { server: { tls }, credentials });
      answers.push((await wire.call('/t/Echo', [Buffer.of(1)], { deadlineMs: 5000 })).code);
      await wire.close();
    }
    assert.deepEqual(answers, [Code.OK, Code.UNAVAILABLE, Code.UNAVAILABLE]);
  });

  /** A connection with a certificate and a call in progress, on a clock that stands still. */
  async function connected() {
    const clock = new ManualClock();
    const env = testEnv(
      1 << 20,
      clockOf({
        ...systemClock,
        monotonicMs: () => clock.monotonicMs(),
        timer: (ms, wake) => clock.timer(ms, wake),
      }),
    );
    let running = 0;
    const register: Register = (server) => {
      echo(server);
      server.register('/t/Forever', {
        kind: 'unary',
        handle: (call) =>
          new Promise((_resolve, reject) => {
            running++;
            call.context.signal?.addEventListener('abort', () => {
              running--;
              reject(call.context.signal?.reason);
            });
          }),
      });
    };
    const tls = { ...SERVER, ca: CA, requestCert: true };
    const limits = { maxCertificateAgeMs: 600_000, drainMs: 10_000, maxIdleMs: 1e9, keepAliveMs: 1e9 };
    const wire = await rawServer(env, register, {
      server: { tls, limits },
      credentials: grpc.credentials.createSsl(CA, ...CLIENT),
    });
    assert.equal((await wire.call('/t/Echo', [Buffer.of(1)])).code, Code.OK);
    const stuck = wire.call('/t/Forever', [Buffer.of(1)]);
    await until(() => running === 1);
    return { clock, wire, tls, stuck, running: () => running };
  }

  test('a client that a removed authority admitted loses the connection, and its calls in progress soon after', async () => {
    const { clock, wire, tls, stuck, running } = await connected();
    wire.server.reloadTls({ ...tls });
    assert.equal((await wire.call('/t/Echo', [Buffer.of(1)])).code, Code.OK, 'the same authority changes nothing');
    wire.server.reloadTls({ ...tls, ca: pem('stranger.pem') });
    assert.equal((await wire.call('/t/Echo', [Buffer.of(1)], { deadlineMs: 5000 })).code, Code.UNAVAILABLE);
    assert.equal(running(), 1);
    clock.advance(12_000);
    assert.notEqual((await stuck).code, Code.OK);
    await until(() => running() === 0);
    await wire.close();
  });

  test('a certificate is requested again from time to time, since it may have expired', async () => {
    const { clock, wire, stuck } = await connected();
    clock.advance(590_000);
    assert.equal((await wire.call('/t/Echo', [Buffer.of(1)])).code, Code.OK);
    clock.advance(10_000 + 60_000 + 2000);
    assert.notEqual((await stuck).code, Code.OK);
    await until(() => wire.server.connections === 0);
    assert.equal((await wire.call('/t/Echo', [Buffer.of(1)])).code, Code.OK, 'the client connects anew');
    await wire.close();
  });
});
