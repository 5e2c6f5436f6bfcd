import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { describe, test } from 'node:test';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import fc from 'fast-check';
import { until } from '../../test/raw-server.ts';
import { BigtableError, Code } from '../base/index.ts';
import { ByteBudget, requestContext } from '../env/index.ts';
import { systemClock, systemRandom } from '../platform/index.ts';
import { PROTOCOL, type ProtocolVersion } from '../protocol/index.ts';
import { WireClient } from '../wire/index.ts';
import { across, CLUSTER, type Process, SECRET, startProcess } from './fixtures.ts';
import { greetServer } from './greeting.ts';
import { ClusterSecret, type NetworkOptions, NetworkTransport, readClusterSecret } from './index.ts';

const context = requestContext({ budget: new ByteBudget(1000) });
const OTHER = ClusterSecret.parse('another secret, of 32 characters', 'the test');
const pem = (name: string): Buffer => readFileSync(`test/certificates/${name}`);
const tlsOf = (name: string, isRequired: boolean) => ({
  server: { key: pem('server.key'), cert: pem('server.pem'), ca: pem('ca.pem'), requestCert: isRequired },
  client: { ca: pem('ca.pem'), serverName: 'localhost', key: pem(`${name}.key`), cert: pem(`${name}.pem`) },
});

interface Pair {
  readonly server: Process;
  readonly client: Process;
  /** Calls that the server has carried out. */
  readonly carriedOut: () => number;
  /** Calls the server; its handler answers with the message. */
  call(message?: unknown): Promise<unknown>;
}

async function withPair(
  of: { readonly server?: Partial<NetworkOptions>; readonly client?: Partial<NetworkOptions> },
  work: (pair: Pair) => Promise<void>,
): Promise<void> {
  const server = await startProcess('s1', of.server);
  const client = await startProcess('c1', of.client);
  let count = 0;
  const transport = across(client, server);
  await transport.serve('a', {
    call: async (_method, message) => {
      count++;
      return message;
    },
    async *stream() {},
  });
  try {
    await work({
      server,
      client,
      carriedOut: () => count,
      call: (message) => transport.call('a', 'm', message, context),
    });
  } finally {
    await client.close();
    await server.close();
  }
}

async function fails(call: Promise<unknown>, code: Code, words: RegExp): Promise<BigtableError> {
  const thrown: unknown = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof BigtableError, String(thrown));
  assert.equal(thrown.code, code, thrown.message);
  assert.match(thrown.message, words);
  return thrown;
}

/** A connection of anyone: what comes back, and its end. */
async function raw(port: number): Promise<{ readonly socket: Socket; readonly received: Buffer[]; closed: boolean }> {
  const socket = connect({ host: '127.0.0.1', port });
  const one = { socket, received: [] as Buffer[], closed: false };
  socket.on('data', (chunk: Buffer) => one.received.push(chunk));
  socket.on('error', () => {});
  socket.on('close', () => {
    one.closed = true;
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  return one;
}

describe('peers prove that they know the secret', () => {
  test('and calls go through then', () =>
    withPair({}, async ({ call, carriedOut }) => {
      assert.deepEqual(await Promise.all([call(1), call(2)]), [1, 2]);
      assert.equal(carriedOut(), 2);
    }));

  test('a client with another secret is refused with UNAUTHENTICATED, and so is its next attempt', () =>
    withPair({ client: { secret: OTHER } }, async ({ server, client, call, carriedOut }) => {
      await fails(call(), Code.UNAUTHENTICATED, /refused by the server s1: the client has another cluster secret/);
      client.clock.advance(1000);
      await fails(call(), Code.UNAUTHENTICATED, /another cluster secret/);
      assert.equal(carriedOut(), 0);
      assert.ok(
        server.infos.some((line) => line.includes('another cluster secret')),
        String(server.infos),
      );
    }));

  test('a client without a secret is refused with UNAUTHENTICATED', () =>
    withPair({ client: { secret: undefined, tls: tlsOf('client', true) } }, async ({ server, carriedOut }) => {
      // as one that has certificates instead, but greets in plain
      const sent = await startProcess('c2', { secret: SECRET });
      await across(sent, server).call('a', 'm', 1, context);
      const greeting = Buffer.concat(server.proxy.sent.at(-1)!).subarray(0, 8 + 2 + 128);
      const stranger = await raw(server.proxy.port);
      const hello = Buffer.concat([greeting.subarray(0, 10 + greeting.readUInt16BE(8)), Buffer.of(0, 0)]);
      stranger.socket.write(hello);
      await until(() => stranger.closed);
      assert.match(
        Buffer.concat(stranger.received).toString('latin1'),
        /does not show that it knows the cluster secret/,
      );
      assert.equal(carriedOut(), 1);
      await sent.close();
    }));

  test('a server without the secret gets no call, nor a proof that is of use to it', () =>
    withPair({ server: { secret: OTHER } }, async ({ call }) => {
      await fails(call(), Code.UNAUTHENTICATED, /./);
    }));

  test('a server that only pretends is found out', async () => {
    const client = await startProcess('c1');
    // it says the client's own words back: a proof of the other side is none
    const mirror = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('readable', () => {
        socket.read(8);
        const length: Buffer = socket.read(2);
        const hello: Buffer = socket.read(length.readUInt16BE());
        socket.write(Buffer.concat([length, hello]));
        socket.on('data', (chunk: Buffer) => socket.write(chunk));
      });
    });
    await new Promise<void>((resolve) => mirror.listen(0, '127.0.0.1', resolve));
    const { port } = mirror.address() as { port: number };
    await fails(
      client.transport.call(`127.0.0.1:${port}/a`, 'm', 1, context),
      Code.UNAUTHENTICATED,
      /the server has another cluster secret/,
    );
    await client.close();
    mirror.close();
  });

  test('a greeting that was overheard is worth nothing', () =>
    withPair({}, async ({ server, call, carriedOut }) => {
      await call('once');
      const overheard = Buffer.concat(server.proxy.sent[0]!);
      const thief = await raw(server.proxy.port);
      thief.socket.write(overheard);
      await until(() => thief.closed || carriedOut() > 1);
      assert.match(Buffer.concat(thief.received).toString('latin1'), /another cluster secret/);
      assert.equal(carriedOut(), 1);
    }));

  test('a client of HTTP/2 that does not greet gets no answer', () =>
    withPair({}, async ({ server, carriedOut }) => {
      const client = new WireClient({
        address: `127.0.0.1:${server.proxy.port}`,
        clock: systemClock,
        random: systemRandom,
        errorOf: ({ code, message }) => new BigtableError(code, message),
      });
      await assert.rejects(client.unary('/edubba.internal.v1.Calls/m', Buffer.alloc(0), context), {
        code: Code.UNAVAILABLE,
      });
      client.close();
      assert.equal(carriedOut(), 0);
      assert.ok(
        server.infos.some((line) => line.includes('its connection has no greeting')),
        String(server.infos),
      );
    }));

  test('bytes that are no greeting end the connection, whatever they are', () =>
    withPair({}, async ({ server, call, carriedOut }) => {
      const magic = Buffer.from('edubba\0\x01', 'latin1');
      await fc.assert(
        fc.asyncProperty(fc.boolean(), fc.uint8Array({ minLength: 9, maxLength: 200 }), async (greets, bytes) => {
          const stranger = await raw(server.proxy.port);
          stranger.socket.end(greets ? Buffer.concat([magic, bytes]) : bytes);
          await until(() => stranger.closed);
        }),
        { numRuns: 50 },
      );
      assert.equal(await call('still here'), 'still here');
      assert.equal(carriedOut(), 1);
    }));

  test('connections that do not greet are few, keep no peer out, and end after their time', () =>
    withPair({ server: { limits: { maxHandshakes: 3, handshakeMs: 5000 } } }, async ({ server, call }) => {
      const silent: Awaited<ReturnType<typeof raw>>[] = [];
      for (let i = 0; i < 5; i++) {
        silent.push(await raw(server.proxy.port));
        await until(() => server.connections() === i + 1);
      }
      assert.equal(await call('now'), 'now');
      await until(() => silent.filter(({ closed }) => closed).length === 3);
      assert.deepEqual(
        silent.map(({ closed }) => closed),
        [true, true, true, false, false],
      );
      server.clock.advance(6000);
      await until(() => silent.every(({ closed }) => closed));
      assert.equal(await call('still'), 'still');
    }));
});

test('a program that is written after docs/formats/internal-calls.md is admitted', () =>
  withPair({}, async ({ server }) => {
    const bytesOf = (writer: BinaryWriter): Buffer => Buffer.from(writer.finish());
    const framed = (message: Buffer): Buffer =>
      Buffer.concat([Buffer.of(message.length >> 8, message.length), message]);
    const withLength = (message: Buffer): Buffer => Buffer.concat([Buffer.of(0, 0, 0, message.length), message]);
    const version = bytesOf(
      new BinaryWriter()
        .tag(1, WireType.Varint)
        .int32(1)
        .tag(2, WireType.Varint)
        .int32(0)
        .tag(3, WireType.Varint)
        .int32(0),
    );
    const hello = bytesOf(
      new BinaryWriter()
        .tag(1, WireType.LengthDelimited)
        .bytes(version)
        .tag(2, WireType.LengthDelimited)
        .string('x1')
        .tag(3, WireType.LengthDelimited)
        .string('client')
        .tag(4, WireType.LengthDelimited)
        .bytes(Buffer.alloc(32, 7))
        .tag(5, WireType.LengthDelimited)
        .string('cluster-1'),
    );
    const magic = Buffer.from('edubba\0\x01', 'latin1');
    const peer = await raw(server.proxy.port);
    const received = (): Buffer => Buffer.concat(peer.received);
    const frameAt = (at: number): Buffer => received().subarray(at + 2, at + 2 + received().readUInt16BE(at));
    const cameAt = (at: number): boolean =>
      received().length >= at + 2 && received().length >= at + 2 + received().readUInt16BE(at);
    peer.socket.write(Buffer.concat([magic, framed(hello)]));
    await until(() => cameAt(0) || peer.closed);
    const challenge = frameAt(0);
    const transcript = createHash('sha256')
      .update(Buffer.concat([magic, withLength(hello), withLength(challenge), withLength(Buffer.alloc(0))]))
      .digest();
    const prove = (side: string): Buffer =>
      createHmac('sha256', '0123456789abcdef0123456789abcdef').update(`edubba ${side}\0`).update(transcript).digest();
    const proof = (side: string): Buffer =>
      bytesOf(new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(prove(side)));
    peer.socket.write(framed(proof('client')));
    await until(() => cameAt(2 + challenge.length) || peer.closed);
    assert.deepEqual(frameAt(2 + challenge.length), proof('server'));
    peer.socket.destroy();
  }));

describe('peers of another cluster', () => {
  const other = { identity: { name: 'x1', cluster: 'cluster-2', role: 'server' } };
  const words = /the server (s1|x1) belongs to cluster "cluster-[12]", and this process to "cluster-[21]"/;

  test('that has the same secret are not reached, and are told why', async () => {
    for (const sides of [{ server: other }, { client: other }])
      await withPair(sides, async ({ call, carriedOut }) => {
        const error = await fails(call(), Code.UNAVAILABLE, words);
        assert.equal(error.details['notReached'], true);
        assert.equal(carriedOut(), 0);
      });
  });

  test('are refused by the server, too', async () => {
    const server = await startProcess('s1');
    const socket = connect({ host: '127.0.0.1', port: server.proxy.port });
    // it does not look at who answers
    const mirror = { ...other.identity, cluster: '' };
    Object.defineProperty(mirror, 'cluster', { get: once(['cluster-2', 'cluster-1']) });
    await fails(
      greetServer(socket, mirror, SECRET),
      Code.UNAVAILABLE,
      /refused by the server s1: the server x1 belongs/,
    );
    socket.destroy();
    await server.close();
  });
});

/** A function that returns the values one after another, and the last one from then on. */
function once<T>(values: readonly T[]): () => T {
  let at = 0;
  return () => values[Math.min(at++, values.length - 1)]!;
}

describe('peers speak versions that fit', () => {
  const of = (protocol: Partial<ProtocolVersion>): Partial<NetworkOptions> => ({
    identity: { name: 'p', cluster: CLUSTER, role: 'server', protocol: { ...PROTOCOL, ...protocol } },
  });

  test('one that knows more features, and requires none of them, talks to the one before it', async () => {
    await withPair({ server: of({ knows: 4 }) }, async ({ call }) => assert.equal(await call(1), 1));
    await withPair({ client: of({ knows: 4 }) }, async ({ call }) => assert.equal(await call(1), 1));
  });

  test('a feature that the other side does not know is refused with words, on whichever side it is', async () => {
    const words = /requires features 0x4: of the internal calls, .* speaks version 1 with features 0x[04]/;
    for (const sides of [{ server: of({ requires: 4, knows: 4 }) }, { client: of({ requires: 4, knows: 4 }) }])
      await withPair(sides, async ({ call, carriedOut }) => {
        await fails(call(), Code.FAILED_PRECONDITION, words);
        assert.equal(carriedOut(), 0);
      });
  });

  test('another version is refused with words', () =>
    withPair({ client: of({ version: 2 }) }, async ({ call }) => {
      await fails(call(), Code.FAILED_PRECONDITION, /the versions differ/);
    }));
});

describe('peers with TLS', () => {
  test('and a secret', () =>
    withPair({ server: { tls: tlsOf('client', false) }, client: { tls: tlsOf('client', false) } }, async ({ call }) =>
      assert.equal(await call(1), 1),
    ));

  test('and certificates of the cluster alone', () =>
    withPair(
      {
        server: { secret: undefined, tls: tlsOf('client', true) },
        client: { secret: undefined, tls: tlsOf('client', true) },
      },
      async ({ call }) => assert.equal(await call(1), 1),
    ));

  test('of another authority are refused', () =>
    withPair(
      {
        server: { secret: undefined, tls: tlsOf('client', true) },
        client: { secret: undefined, tls: tlsOf('stranger', true) },
      },
      async ({ call, carriedOut }) => {
        await fails(call(), Code.UNAVAILABLE, /./);
        assert.equal(carriedOut(), 0);
      },
    ));

  test('a greeting that someone in between passes on is refused', () =>
    withPair(
      { server: { tls: tlsOf('client', false) }, client: { tls: tlsOf('client', false) } },
      async ({ server, client, carriedOut }) => {
        const { key, cert } = tlsOf('client', false).server;
        const between = createTlsServer({ key, cert, ALPNProtocols: ['h2'] }, (near) => {
          const far = connectTls({
            host: '127.0.0.1',
            port: server.proxy.port,
            ca: pem('ca.pem'),
            servername: 'localhost',
            ALPNProtocols: ['h2'],
          });
          for (const socket of [near, far]) socket.on('error', () => {});
          near.pipe(far).pipe(near);
        });
        await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve));
        const { port } = between.address() as { port: number };
        await fails(
          client.transport.call(`127.0.0.1:${port}/a`, 'm', 1, context),
          Code.UNAUTHENTICATED,
          /another cluster secret/,
        );
        assert.equal(carriedOut(), 0);
        between.close();
      },
    ));
});

describe('the cluster secret', () => {
  test('has at least 32 bytes, and is shown by nothing', () => {
    for (const text of ['', 'short', 'x'.repeat(31), 'y'.repeat(5000)])
      assert.throws(
        () => ClusterSecret.parse(` ${text}\n`, 'file f'),
        (error) =>
          error instanceof BigtableError &&
          error.code === Code.INVALID_ARGUMENT &&
          /the cluster secret of file f has \d+ bytes/.test(error.message) &&
          (text.length < 5 || !error.message.includes(text)),
      );
    const secret = ClusterSecret.parse(`  ${'s3cret'.repeat(8)}\n`, 'file f');
    assert.ok(!JSON.stringify({ secret }).includes('s3cret'));
    const transcript = Buffer.from('t');
    assert.deepEqual(
      secret.prove('client', transcript),
      ClusterSecret.parse('s3cret'.repeat(8), 'f').prove('client', transcript),
    );
  });

  test('comes from a file or from the environment', async () => {
    const [file, text] = [join(mkdtempSync(join(tmpdir(), 'edubba-secret-')), 'secret'), 'x'.repeat(40)];
    writeFileSync(file, `${text}\n`);
    const expected = ClusterSecret.parse(text, 'the test').prove('client', Buffer.alloc(0));
    const variable = { EDUBBA_CLUSTER_SECRET: text };
    for (const secret of [await readClusterSecret(file, {}), await readClusterSecret(undefined, variable)])
      assert.deepEqual(secret?.prove('client', Buffer.alloc(0)), expected);
    assert.equal(await readClusterSecret(undefined, {}), undefined);
    const invalid = { code: Code.INVALID_ARGUMENT };
    await assert.rejects(readClusterSecret(file, variable), invalid);
    await assert.rejects(readClusterSecret(`${file}-missing`, {}), invalid);
    await assert.rejects(readClusterSecret(undefined, { EDUBBA_CLUSTER_SECRET: '' }), invalid);
    writeFileSync(file, Buffer.alloc(40, 0xfe));
    await assert.rejects(readClusterSecret(file, {}), invalid);
    rmSync(dirname(file), { recursive: true });
  });

  test('or certificates of clients are needed', () => {
    const { tls } = { tls: tlsOf('client', false) };
    for (const more of [{}, { tls }])
      assert.throws(
        () =>
          new NetworkTransport({
            env: {} as never,
            codec: {} as never,
            identity: { name: 'n', cluster: 'c', role: 'r' },
            secret: undefined,
            ...more,
          }),
        { code: Code.INVALID_ARGUMENT },
      );
  });
});
