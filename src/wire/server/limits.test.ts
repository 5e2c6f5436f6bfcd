import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import * as http2 from 'node:http2';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import * as grpc from '@grpc/grpc-js';
import { Code } from '../../base/index.ts';
import { clockOf, ManualClock } from '../../env/index.ts';
import { rawServer, testEnv, testStatus, until } from '../../../test/raw-server.ts';
import { systemClock } from '../../platform/index.ts';
import { CLIENT_PREFACE, Flag, FrameReader, FrameType, frame, settingsFrame } from '../http2/frames.ts';
import type { RpcServer } from '../contract/rpc-server.ts';
import { WireServer, type WireLimits } from './wire-server.ts';

const MIB = 1024 * 1024;
const HELLO = Buffer.concat([CLIENT_PREFACE, settingsFrame([])]);

function length(server: RpcServer): void {
  server.register('/t/Length', {
    kind: 'unary',
    handle: async (_call, request) => Buffer.from(String(request.length)),
  });
  server.register('/t/Echo', { kind: 'unary', handle: async (_call, request) => request });
  server.register('/t/Thirds', {
    kind: 'unary',
    handle: async (_call, request) => {
      const third = Math.ceil(request.length / 3);
      return [0, 1, 2].map((i) => request.subarray(i * third, (i + 1) * third));
    },
  });
  server.register('/t/Lengths', {
    kind: 'bidi',
    handle: async (_call, requests, sink) => {
      for await (const request of requests) await sink.send([Buffer.from(String(request.length)), Buffer.from(';')]);
    },
  });
  server.register('/t/First', {
    kind: 'bidi',
    handle: async (_call, requests, sink) => {
      for await (const request of requests) return void (await sink.send(request));
    },
  });
}

describe('messages', () => {
  test('of any size arrive whole, alone and one after another', async () => {
    const env = testEnv();
    const wire = await rawServer(env, length);
    const sizes = [0, 1, 16_379, 16_380, 65_530, 65_531, 262_138, 262_139, 262_140, 1_000_000, 5_000_000];
    for (const size of sizes) {
      const { code, messages } = await wire.call('/t/Length', [Buffer.alloc(size)]);
      assert.deepEqual([code, String(messages[0])], [Code.OK, String(size)]);
    }
    const { code, messages } = await wire.call(
      '/t/Lengths',
      sizes.map((size) => Buffer.alloc(size)),
    );
    assert.deepEqual([code, Buffer.concat(messages).toString()], [Code.OK, sizes.map((size) => `${size};`).join('')]);
    await until(() => env.requestBudget.usedBytes === 0);
    await wire.close();
  });

  test('in several parts arrive as one, deflated or not', async () => {
    for (const compression of [0, 2]) {
      const env = testEnv();
      const wire = await rawServer(env, length, { client: { 'grpc.default_compression_algorithm': compression } });
      for (const size of [0, 100, 100_000, 3_000_000]) {
        const request = randomBytes(size);
        const { code, messages } = await wire.call('/t/Thirds', [request]);
        assert.equal(code, Code.OK);
        assert.ok(request.equals(messages[0] as Buffer));
      }
      await until(() => env.requestBudget.usedBytes === 0);
      await wire.close();
    }
  });

  test('above the limit are refused by the length that they announce', async () => {
    const wire = await rawServer(testEnv(), length, { server: { limits: { maxRequestBytes: 1000 } } });
    assert.equal((await wire.call('/t/Length', [Buffer.alloc(1000)])).code, Code.OK);
    for (const path of ['/t/Length', '/t/Lengths']) {
      const { code, message } = await wire.call(path, [Buffer.alloc(1001)]);
      assert.deepEqual([code, message], [Code.RESOURCE_EXHAUSTED, 'a message of 1001 bytes; the limit is 1000']);
    }
    await wire.close();
  });

  test('each method has a limit of its own; tiny requests are not counted and never wait', async () => {
    const env = testEnv(MIB);
    const wire = await rawServer(env, (server) => {
      server.register('/t/Tiny', {
        kind: 'unary',
        maxRequestBytes: 100,
        handle: async (call, request) => Buffer.from(`${request.length} ${call.context.reservation.heldBytes}`),
      });
      server.register('/t/Large', {
        kind: 'unary',
        maxRequestBytes: 100_000,
        handle: async (_call, request) => Buffer.from(String(request.length)),
      });
    });
    const spent = env.requestBudget.reservation();
    spent.force(4 * MIB);
    const waiting = env.requestBudget.reservation();
    const turn = waiting.grow(MIB / 2);
    assert.equal(String((await wire.call('/t/Tiny', [Buffer.alloc(100)])).messages[0]), '100 0');
    assert.equal((await wire.call('/t/Tiny', [Buffer.alloc(101)])).code, Code.RESOURCE_EXHAUSTED);
    assert.equal(
      (await wire.call('/t/Large', [Buffer.alloc(100_001)])).message,
      'a message of 100001 bytes; the limit is 100000',
    );
    spent.release();
    await turn;
    waiting.release();
    assert.equal(String((await wire.call('/t/Large', [Buffer.alloc(100_000)])).messages[0]), '100000');
    await wire.close();
  });

  test('calls that take one message refuse none and two', async () => {
    const wire = await rawServer(testEnv(), length);
    for (const messages of [[], [Buffer.of(1), Buffer.of(2)]])
      assert.equal((await wire.call('/t/Length', messages)).code, Code.INTERNAL);
    await wire.close();
  });

  test('a handler that reads one of many answers, and the rest goes nowhere', async () => {
    const env = testEnv();
    const wire = await rawServer(env, length);
    const { code, messages } = await wire.call(
      '/t/First',
      Array.from({ length: 50 }, (_, i) => Buffer.alloc(100_000, i)),
    );
    assert.equal(messages[0]?.[0], 0);
    assert.ok(code === Code.OK || code === Code.CANCELLED, `${code}`);
    await until(() => env.requestBudget.usedBytes === 0);
    assert.equal((await wire.call('/t/Length', [Buffer.alloc(5)])).code, Code.OK);
    await wire.close();
  });

  test('a message whose length is claimed and never sent frees what it reserved', async () => {
    const clock = new ManualClock();
    const env = testEnv(
      MIB,
      clockOf({
        ...systemClock,
        monotonicMs: () => clock.monotonicMs(),
        timer: (ms, wake) => clock.timer(ms, wake),
      }),
    );
    const wire = await rawServer(env, length, { server: { limits: { keepAliveMs: 1e9 } } });
    const session = http2.connect(`http://127.0.0.1:${wire.port}`);
    const stream = session.request({
      ':method': 'POST',
      ':path': '/t/Length',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const status = new Promise((resolve) => stream.on('response', (headers) => resolve(headers['grpc-status'])));
    stream.on('error', () => {});
    stream.write(Buffer.from([0, 0, 0x0f, 0, 0, 1]));
    await until(() => env.requestBudget.usedBytes > 0);
    assert.ok(env.requestBudget.usedBytes < 1000, 'an announced length costs nothing');
    stream.write(Buffer.alloc(65_536));
    await until(() => env.requestBudget.usedBytes > 900_000);
    // once for what came since the first check, and once for the silence
    clock.advance(61_000);
    clock.advance(61_000);
    assert.equal(Number(await status), Code.CANCELLED);
    await until(() => env.requestBudget.usedBytes === 0);
    session.destroy();
    await wire.close();
  });

  test('a request that waits for memory is not taken for one of which nothing comes', async () => {
    const clock = new ManualClock();
    const env = testEnv(
      MIB,
      clockOf({
        ...systemClock,
        monotonicMs: () => clock.monotonicMs(),
        timer: (ms, wake) => clock.timer(ms, wake),
      }),
    );
    const wire = await rawServer(env, length, { server: { limits: { keepAliveMs: 1e9 } } });
    const spent = env.requestBudget.reservation();
    spent.force(MIB);
    const session = http2.connect(`http://127.0.0.1:${wire.port}`);
    const stream = session.request({
      ':method': 'POST',
      ':path': '/t/Length',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const status = new Promise((resolve) => stream.on('trailers', (headers) => resolve(headers['grpc-status'])));
    stream.on('response', (headers) =>
      assert.equal(headers['grpc-status'], undefined, String(headers['grpc-message'])),
    );
    stream.on('error', () => {});
    stream.resume();
    const request = Buffer.alloc(5 + 500_000);
    request.writeUInt32BE(500_000, 1);
    stream.end(request);
    await until(() => env.requestBudget.waiting === 1);
    for (let i = 0; i < 5; i++) clock.advance(61_000);
    assert.equal(env.requestBudget.waiting, 1);
    spent.release();
    assert.equal(Number(await status), Code.OK);
    session.destroy();
    await wire.close();
  });

  test('a large answer whose reader leaves, or runs out of time, is discarded', async () => {
    const env = testEnv();
    const wire = await rawServer(env, (server) =>
      server.register('/t/Huge', { kind: 'unary', handle: async () => Buffer.alloc(20 * MIB) }),
    );
    for (const timeout of ['20m', undefined]) {
      const session = http2.connect(`http://127.0.0.1:${wire.port}`);
      const stream = session.request({
        ':method': 'POST',
        ':path': '/t/Huge',
        'content-type': 'application/grpc',
        te: 'trailers',
        ...(timeout && { 'grpc-timeout': timeout }),
      });
      stream.on('error', () => {});
      stream.end(Buffer.alloc(5));
      await until(() => env.requestBudget.usedBytes > MIB);
      if (timeout === undefined) session.destroy();
      await until(() => env.requestBudget.usedBytes === 0);
      session.destroy();
    }
    assert.deepEqual(env.errors, []);
    await wire.close();
  });

  test('a request that waits for the budget is not taken in', async () => {
    const env = testEnv(MIB);
    const wire = await rawServer(env, length);
    const other = env.requestBudget.reservation();
    assert.ok(other.tryGrow(MIB));
    const session = http2.connect(`http://127.0.0.1:${wire.port}`);
    await new Promise((resolve) => session.once('remoteSettings', resolve));
    const stream = session.request({
      ':method': 'POST',
      ':path': '/t/Length',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    let [sent, answer] = [false, ''];
    stream.on('data', (bytes: Buffer) => {
      answer = bytes.subarray(5).toString();
    });
    const body = Buffer.alloc(800_005);
    body.writeUInt32BE(800_000, 1);
    stream.end(body, () => {
      sent = true;
    });
    await until(() => env.requestBudget.waiting === 1);
    for (let i = 0; i < 200; i++) await systemClock.yield();
    assert.equal(sent, false);
    assert.equal(session.state.remoteWindowSize, MIB - 128 * 1024, 'the first share alone came');
    other.release();
    await until(() => answer !== '');
    assert.deepEqual([answer, sent], ['800000', true]);
    session.destroy();
    await wire.close();
  });
});

describe('gzip', () => {
  const gzip = { 'grpc.default_compression_algorithm': 2 };

  test('messages are inflated, and their answers deflated', async () => {
    const env = testEnv();
    const wire = await rawServer(env, length, { client: gzip });
    for (const size of [0, 10, 1000, 100_000, 5_000_000]) {
      const { code, messages } = await wire.call('/t/Echo', [Buffer.alloc(size, 7)]);
      assert.equal(code, Code.OK);
      assert.ok(Buffer.alloc(size, 7).equals(messages[0] as Buffer));
    }
    const { messages } = await wire.call('/t/Lengths', [Buffer.alloc(10), Buffer.alloc(200_000), Buffer.alloc(3)]);
    assert.equal(Buffer.concat(messages).toString(), '10;200000;3;');
    await until(() => env.requestBudget.usedBytes === 0);
    await wire.close();
  });

  /** Raw calls, with their answers as they are on the wire. */
  async function raw(wire: { port: number }, body: Buffer, encoding: string) {
    const session = http2.connect(`http://127.0.0.1:${wire.port}`);
    const stream = session.request({
      ':method': 'POST',
      ':path': '/t/Echo',
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-encoding': encoding,
    });
    const parts: Buffer[] = [];
    let status: unknown;
    let answered: unknown;
    stream.on('response', (headers) => {
      status ??= headers['grpc-status'];
      answered = headers['grpc-encoding'];
    });
    stream.on('trailers', (headers) => {
      status ??= headers['grpc-status'];
    });
    stream.on('data', (bytes: Buffer) => parts.push(bytes));
    const over = new Promise((resolve) => stream.on('close', resolve));
    const prefix = Buffer.from([1, 0, 0, 0, 0]);
    prefix.writeUInt32BE(body.length, 1);
    stream.end(Buffer.concat([prefix, body]));
    await over;
    session.destroy();
    return { status: Number(status), answered, bytes: Buffer.concat(parts) };
  }

  test('an answer says that it is deflated', async () => {
    const wire = await rawServer(testEnv(), length);
    const { status, answered, bytes } = await raw(wire, gzipSync(Buffer.alloc(10_000)), 'gzip');
    assert.deepEqual([status, answered, bytes[0]], [Code.OK, 'gzip', 1]);
    assert.equal(gunzipSync(bytes.subarray(5)).length, 10_000);
    await wire.close();
  });

  const bomb = gzipSync(Buffer.alloc(20 * MIB));
  const liar = Buffer.from(bomb);
  liar.writeUInt32LE(100, liar.length - 4);
  for (const [what, body, encoding, expected] of [
    ['more than the limit', bomb, 'gzip', Code.RESOURCE_EXHAUSTED],
    ['more than it says', liar, 'gzip', Code.INTERNAL],
    ['no gzip file', Buffer.from('nothing of the kind at all'), 'gzip', Code.INTERNAL],
    ['a compressed message that was not announced', gzipSync('x'), 'identity', Code.INTERNAL],
    ['another encoding', gzipSync('x'), 'br', Code.UNIMPLEMENTED],
  ] as const) {
    test(`${what} is refused`, async () => {
      const env = testEnv();
      const wire = await rawServer(env, length, { server: { limits: { maxRequestBytes: 10 * MIB } } });
      assert.equal((await raw(wire, body, encoding)).status, expected);
      await until(() => env.requestBudget.usedBytes === 0);
      await wire.close();
    });
  }
});

/** Encodes as HPACK literals that no table keeps. */
function headerBlock(): Buffer {
  const fields = [
    ':method',
    'POST',
    ':scheme',
    'http',
    ':path',
    '/t/x',
    ':authority',
    'x',
    'content-type',
    'application/grpc',
    'te',
    'trailers',
  ];
  return Buffer.concat(
    fields.map((text, i) => Buffer.from([...(i % 2 === 0 ? [0] : []), text.length, ...Buffer.from(text)])),
  );
}

describe('connections', () => {
  /** A server on a clock that stands still, and bare connections to it. */
  async function still(limits: Partial<WireLimits>) {
    const clock = new ManualClock();
    const env = testEnv(
      MIB,
      clockOf({
        ...systemClock,
        monotonicMs: () => clock.monotonicMs(),
        timer: (ms, wake) => clock.timer(ms, wake),
      }),
    );
    const server = new WireServer({ env, statusOf: testStatus, limits });
    const port = await server.listen('127.0.0.1', 0);
    return {
      clock,
      env,
      server,
      /** `isSilent`: the client answers no PING. */
      open: async (hello: Buffer, { isSilent = false } = {}) => {
        const socket = connect(port, '127.0.0.1');
        const seen: number[] = [];
        const frames = new FrameReader(1 << 20, (type, flags, _streamId, payload) => {
          seen.push(type);
          if (type === FrameType.PING && !(flags & Flag.ACK) && !isSilent)
            socket.write(frame(FrameType.PING, Flag.ACK, 0, payload));
        });
        let closed = false;
        socket.on('data', (bytes) => frames.push(bytes));
        socket.on('error', () => {});
        socket.on('close', () => {
          closed = true;
        });
        socket.write(hello);
        await until(() => seen.includes(FrameType.SETTINGS) || closed);
        if (hello.length > 0)
          await until(() => seen.filter((type) => type === FrameType.SETTINGS).length > 1 || closed);
        return { socket, seen, isClosed: () => closed };
      },
    };
  }

  test('that never begin are ended', async () => {
    const { clock, server, open } = await still({ handshakeMs: 5000 });
    const silent = await open(Buffer.alloc(0));
    const whole = await open(HELLO);
    clock.advance(6000);
    await until(silent.isClosed);
    assert.equal(whole.isClosed(), false);
    await server.close(0);
  });

  test('that are silent are pinged, and ended when they do not answer', async () => {
    const { clock, server, open } = await still({ keepAliveMs: 10_000, keepAliveTimeoutMs: 5000 });
    const { seen, isClosed } = await open(HELLO, { isSilent: true });
    clock.advance(11_000);
    await until(() => seen.includes(FrameType.PING));
    assert.equal(isClosed(), false);
    clock.advance(6000);
    await until(isClosed);
    await server.close(0);
  });

  test('that are not used end with GOAWAY', async () => {
    const { clock, server, open } = await still({ maxIdleMs: 60_000, keepAliveMs: 1e9 });
    const { seen, isClosed } = await open(HELLO);
    clock.advance(62_000);
    await until(isClosed);
    assert.ok(seen.includes(FrameType.GOAWAY));
    await server.close(0);
  });

  test('that were ended and are not closed by the client are cut off', async () => {
    const { clock, server, open } = await still({});
    const { socket, isClosed } = await open(HELLO);
    socket.write(Buffer.from('000004080000000000' + '00000000', 'hex'));
    await until(isClosed);
    clock.advance(5000);
    await server.close(0);
  });

  /** HEADERS of a POST to /t/x, which is not served: the stream stays open for the rest of the request. */
  const CALL = Buffer.concat([Buffer.from('000000010400000001', 'hex'), headerBlock()]);
  CALL.writeUIntBE(CALL.length - 9, 0, 3);

  test('above the limit replace idle ones, those that never had a call first', async () => {
    const { clock, server, env, open } = await still({ maxConnections: 4 });
    const [first, called] = [await open(HELLO), await open(Buffer.concat([HELLO, CALL]))];
    await until(() => called.seen.includes(FrameType.HEADERS));
    clock.advance(1000);
    const [second, third] = [await open(HELLO), await open(Buffer.alloc(0))];
    const opened = [];
    for (const expected of [first, second, third, called]) {
      opened.push(await open(Buffer.concat([HELLO, CALL])));
      await until(expected.isClosed);
    }
    assert.ok(first.seen.includes(FrameType.GOAWAY));
    assert.ok(opened.every(({ isClosed }) => !isClosed()));
    assert.deepEqual([server.connections, env.metrics.get('wire.replacedConnections')], [4, 4]);
    await server.close(0);
  });

  test('above the limit are refused where all have calls; one line is logged, and one when it is over', async () => {
    const { clock, server, env, open } = await still({ maxConnections: 3, maxIdleMs: 1e9, keepAliveMs: 1e9 });
    server.register('/t/x', { kind: 'unary', handle: () => new Promise(() => {}) });
    const some = await Promise.all([1, 2, 3].map(() => open(Buffer.concat([HELLO, CALL]))));
    for (let i = 0; i < 20; i++) await until((await open(HELLO)).isClosed);
    assert.ok(some.every(({ isClosed }) => !isClosed()));
    assert.equal(env.metrics.get('wire.refusedConnections'), 20);
    assert.deepEqual(
      env.warnings.map((line) => line.split(' {')[0]),
      ['connections are refused'],
    );
    some[0]?.socket.destroy();
    await until(() => server.connections === 2);
    assert.equal((await open(HELLO)).isClosed(), false);
    clock.advance(60_000);
    clock.advance(2000);
    assert.match(env.infos.at(-1) ?? '', /no more: connections are refused.*20/);
    let isClosed = false;
    const closed = server.close(0).then(() => (isClosed = true));
    await until(() => {
      clock.advance(1);
      return isClosed;
    });
    await closed;
  });

  test('that are drained are cut off even if they continue to send', async () => {
    const { clock, server, open } = await still({ maxIdleMs: 60_000, keepAliveMs: 1e9 });
    const { socket, seen } = await open(HELLO);
    socket.removeAllListeners('end').allowHalfOpen = true;
    clock.advance(62_000);
    await until(() => seen.includes(FrameType.GOAWAY));
    for (let i = 0; i < 6 && server.connections > 0; i++) {
      socket.write(Buffer.from(`000008060000000000${'00'.repeat(8)}`, 'hex'));
      await systemClock.yield();
      clock.advance(1000);
    }
    assert.equal(server.connections, 0);
    await server.close(0);
  });

  test('that a machine has accepted are served by a server that stops, and their calls answered', async () => {
    const { server, open } = await still({});
    const call = Buffer.from(CALL);
    call.writeUInt8(5, 4);
    const opening = open(Buffer.concat([HELLO, call]));
    const closed = server.close(60_000);
    const { seen, isClosed } = await opening;
    await closed;
    await until(isClosed);
    assert.ok(seen.includes(FrameType.HEADERS) && seen.includes(FrameType.GOAWAY), `${seen}`);
  });

  test('that have not begun learn that a server stops: what they send was not worked on', async () => {
    const { server, open } = await still({});
    const { seen, isClosed } = await open(Buffer.alloc(0));
    await server.close(60_000);
    await until(isClosed);
    assert.ok(seen.includes(FrameType.GOAWAY), `${seen}`);
  });

  test('whose calls are short are in use', async () => {
    const { clock, server, open } = await still({ maxIdleMs: 60_000, keepAliveMs: 1e9 });
    const { socket, seen, isClosed } = await open(HELLO);
    for (let id = 1; id < 20; id += 2) {
      const call = Buffer.from(CALL);
      call.writeUInt32BE(id, 5);
      call.writeUInt8(5, 4);
      const answers = seen.filter((type) => type === FrameType.HEADERS).length;
      socket.write(call);
      await until(() => seen.filter((type) => type === FrameType.HEADERS).length > answers);
      clock.advance(30_000);
    }
    assert.equal(isClosed() || seen.includes(FrameType.GOAWAY), false);
    await server.close(0);
  });

  test('plain HTTP is answered with what the server expects', async () => {
    const wire = await rawServer(testEnv(), length);
    const session = http2.connect(`http://127.0.0.1:${wire.port}`);
    for (const [method, type, expected] of [
      ['GET', undefined, 405],
      ['POST', 'text/html', 415],
    ] as const) {
      const stream = session.request({ ':method': method, ':path': '/', ...(type && { 'content-type': type }) });
      stream.end();
      const status = await new Promise((resolve) => stream.on('response', (headers) => resolve(headers[':status'])));
      let text = '';
      for await (const bytes of stream) text += String(bytes);
      assert.equal(status, expected);
      assert.match(text, /gRPC server/);
    }
    session.destroy();
    await wire.close();
  });

  test('an invalid timeout is answered with a message', async () => {
    const wire = await rawServer(testEnv(), length);
    const metadata = new grpc.Metadata();
    const session = http2.connect(`http://127.0.0.1:${wire.port}`);
    const stream = session.request({
      ':method': 'POST',
      ':path': '/t/Echo',
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-timeout': 'soon',
    });
    stream.end();
    assert.equal(
      await new Promise((resolve) => stream.on('response', (headers) => resolve(Number(headers['grpc-status'])))),
      Code.INTERNAL,
    );
    session.destroy();
    assert.equal((await wire.call('/t/Echo', [Buffer.alloc(0)], { metadata, deadlineMs: 10_000 })).code, Code.OK);
    await wire.close();
  });
});
