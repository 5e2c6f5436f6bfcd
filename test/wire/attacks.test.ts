/**
 * Known attacks of hostile clients, against a real server over real sockets: each row says what is sent, what the
 * server must answer, and how many bytes it may hold for it meanwhile. After each, a well-behaved call must still be
 * answered.
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { BigtableError, Code } from '../../src/base/index.ts';
import { ByteBudget, type Clock, clockOf, Metrics, requestContext, silentLogger } from '../../src/env/index.ts';
import { systemClock, systemRandom } from '../../src/platform/index.ts';
import { WireClient, WireServer } from '../../src/wire/index.ts';
import {
  CANCEL,
  Flag,
  FrameType,
  frame,
  HELLO,
  callHeaders,
  INITIAL_WINDOW_SIZE,
  rstStreamFrame,
  messagePrefix,
  settingsFrame,
  windowUpdateFrame,
} from './raw-frames.ts';
import { RawPeer } from './raw-peer.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const MAX_REQUEST_BYTES = 4 * MIB;
const ALL = Flag.END_HEADERS | Flag.END_STREAM;

const ECHO = callHeaders('/t/Echo');
const FOREVER = callHeaders('/t/Forever');
const LARGE = callHeaders('/t/Large');

const headers = (streamId: number, block: Buffer, flags: number = Flag.END_HEADERS): Buffer =>
  frame(FrameType.HEADERS, flags, streamId, block);
const data = (streamId: number, bytes: Buffer, flags = 0): Buffer => frame(FrameType.DATA, flags, streamId, bytes);
const call = (streamId: number, block: Buffer, message = Buffer.alloc(0)): Buffer =>
  Buffer.concat([
    headers(streamId, block),
    data(streamId, Buffer.concat([messagePrefix(message.length), message]), Flag.END_STREAM),
  ]);
const times = (count: number, make: (i: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, i) => make(i)));
const odd = (i: number): number => 2 * i + 1;

interface Attack {
  readonly name: string;
  /** Sent at once, or as often as the server takes it, until it has answered. */
  readonly sends: Buffer;
  readonly over?: Buffer;
  readonly expects: string;
  /** The stream that is to end, where the connection goes on. */
  readonly streamId?: number;
  /** Bytes of the budget; default: one small request. */
  readonly maxHeldBytes?: number;
}

/** A field of 3969 bytes that the table keeps: as large as it can be. */
const BOMB = Buffer.concat([Buffer.of(0x40, 1, 0x62, 0x7f, 0x81, 0x1e), Buffer.alloc(127 + 1 + 0x1e * 128, 120)]);

const ATTACKS: readonly Attack[] = [
  {
    name: 'a preface of garbage',
    sends: Buffer.from('\x16\x03\x01 not HTTP/2 at all'),
    expects: 'GOAWAY PROTOCOL_ERROR',
  },
  { name: 'HTTP/1', sends: Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n'), expects: 'GOAWAY PROTOCOL_ERROR' },
  {
    name: 'a frame that says 16 MiB',
    sends: Buffer.concat([HELLO, Buffer.of(0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1)]),
    expects: 'GOAWAY FRAME_SIZE_ERROR',
  },
  {
    name: 'a flood of CONTINUATIONs',
    sends: Buffer.concat([HELLO, headers(1, ECHO, 0)]),
    over: times(100, () => frame(FrameType.CONTINUATION, 0, 1, Buffer.of(0x90))),
    expects: 'GOAWAY ENHANCE_YOUR_CALM',
  },
  {
    name: 'a header block that does not end',
    sends: Buffer.concat([HELLO, headers(1, ECHO, 0)]),
    over: frame(FrameType.CONTINUATION, 0, 1, Buffer.alloc(16_000, 0x90)),
    expects: 'GOAWAY ENHANCE_YOUR_CALM',
  },
  {
    name: 'an HPACK bomb: 4 KB a reference',
    sends: Buffer.concat([HELLO, headers(1, BOMB, ALL), headers(3, Buffer.alloc(16_000, 0xbe), ALL)]),
    expects: 'RST_STREAM ENHANCE_YOUR_CALM',
    streamId: 3,
  },
  {
    name: 'headers above the limit in the list',
    sends: Buffer.concat([HELLO, headers(1, Buffer.alloc(5000, 0x90), ALL)]),
    expects: 'RST_STREAM ENHANCE_YOUR_CALM',
    streamId: 1,
  },
  {
    name: 'a table above the limit',
    sends: Buffer.concat([HELLO, headers(1, Buffer.of(0x3f, 0xff, 0xff, 0x7f), ALL)]),
    expects: 'GOAWAY COMPRESSION_ERROR',
  },
  {
    name: 'a flood of SETTINGS',
    sends: HELLO,
    over: times(500, () => settingsFrame([[INITIAL_WINDOW_SIZE, 1]])),
    expects: 'GOAWAY ENHANCE_YOUR_CALM',
  },
  {
    name: 'a flood of PINGs',
    sends: HELLO,
    over: times(500, () => frame(FrameType.PING, 0, 0, Buffer.alloc(8))),
    expects: 'GOAWAY ENHANCE_YOUR_CALM',
  },
  {
    name: 'a flood of empty DATA',
    sends: Buffer.concat([HELLO, headers(1, ECHO)]),
    over: times(1000, () => data(1, Buffer.alloc(0))),
    expects: 'GOAWAY ENHANCE_YOUR_CALM',
  },
  {
    name: 'a flood of PRIORITY',
    sends: HELLO,
    over: times(1000, () => frame(FrameType.PRIORITY, 0, 1, Buffer.alloc(5))),
    expects: 'GOAWAY ENHANCE_YOUR_CALM',
  },
  {
    name: 'a flood of unknown frames',
    sends: HELLO,
    over: times(1000, () => frame(0xee, 0, 0, Buffer.alloc(3))),
    expects: 'GOAWAY ENHANCE_YOUR_CALM',
  },
  {
    name: 'a connection window of more than 2^31-1',
    sends: Buffer.concat([HELLO, windowUpdateFrame(0, 0x7fffffff)]),
    expects: 'GOAWAY FLOW_CONTROL_ERROR',
  },
  {
    name: 'a connection window that grows by 0',
    sends: Buffer.concat([HELLO, windowUpdateFrame(0, 0)]),
    expects: 'GOAWAY PROTOCOL_ERROR',
  },
  {
    name: 'a stream window of more than 2^31-1',
    sends: Buffer.concat([HELLO, headers(1, ECHO), windowUpdateFrame(1, 0x7fffffff)]),
    expects: 'RST_STREAM FLOW_CONTROL_ERROR',
    streamId: 1,
  },
  {
    name: 'a stream window that grows by 0',
    sends: Buffer.concat([HELLO, headers(1, ECHO), windowUpdateFrame(1, 0)]),
    expects: 'RST_STREAM PROTOCOL_ERROR',
    streamId: 1,
  },
  { name: 'stream 0', sends: Buffer.concat([HELLO, headers(0, ECHO)]), expects: 'GOAWAY PROTOCOL_ERROR' },
  { name: 'an even stream', sends: Buffer.concat([HELLO, headers(2, ECHO)]), expects: 'GOAWAY PROTOCOL_ERROR' },
  {
    name: 'DATA of a stream that was never opened',
    sends: Buffer.concat([HELLO, data(9, Buffer.of(1))]),
    expects: 'GOAWAY PROTOCOL_ERROR',
  },
  {
    name: 'a message of 4 GiB, as its prefix says',
    sends: Buffer.concat([HELLO, headers(1, ECHO), data(1, messagePrefix(0xffffffff))]),
    expects: 'status 8',
    streamId: 1,
  },
  {
    name: 'a message above the limit',
    sends: Buffer.concat([
      HELLO,
      headers(1, ECHO),
      data(1, Buffer.concat([messagePrefix(MAX_REQUEST_BYTES + 1), Buffer.alloc(1000)])),
    ]),
    expects: 'status 8',
    streamId: 1,
  },
  {
    name: 'a gzip bomb: 64 MiB in 64 KB',
    sends: Buffer.concat([
      HELLO,
      headers(1, callHeaders('/t/Echo', 'grpc-encoding', 'gzip')),
      ...inFrames(1, gzipSync(Buffer.alloc(64 * MIB)), 1),
    ]),
    expects: 'status 8',
    streamId: 1,
    maxHeldBytes: MIB,
  },
  {
    name: 'a gzip bomb that lies about its length',
    sends: Buffer.concat([
      HELLO,
      headers(1, callHeaders('/t/Echo', 'grpc-encoding', 'gzip')),
      ...inFrames(1, Buffer.concat([gzipSync(Buffer.alloc(64 * MIB)).subarray(0, -4), Buffer.of(10, 0, 0, 0)]), 1),
    ]),
    expects: 'status 13',
    streamId: 1,
    maxHeldBytes: MIB,
  },
];

/** A message in frames that end the stream. */
function inFrames(streamId: number, message: Buffer, flag: number): Buffer[] {
  const bytes = Buffer.concat([messagePrefix(message.length, flag), message]);
  const frames: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 16_384)
    frames.push(data(streamId, bytes.subarray(at, at + 16_384), at + 16_384 >= bytes.length ? Flag.END_STREAM : 0));
  return frames;
}

describe('attacks', () => {
  const budget = new ByteBudget(64 * MIB);
  /** Runs `late` seconds ahead of the machine's, so that long silences need no waiting. */
  let lateMs = 0;
  const clock: Clock = clockOf({ ...boundClock(), monotonicMs: () => systemClock.monotonicMs() + lateMs });
  let maxHeld = 0;
  let server: WireServer;
  let client: WireClient;
  let port = 0;
  let running = 0;
  let made = 0;

  before(async () => {
    const env = { clock, random: systemRandom, requestBudget: budget, logger: silentLogger, metrics: new Metrics() };
    const statusOf = (thrown: unknown) => ({
      code: thrown instanceof BigtableError ? thrown.code : Code.INTERNAL,
      message: String(thrown),
      details: undefined,
    });
    server = new WireServer({
      env,
      statusOf,
      limits: {
        maxRequestBytes: MAX_REQUEST_BYTES,
        maxConnections: 40,
        handshakeMs: 60_000,
        stallMs: 60_000,
        maxStreams: 100,
      },
    });
    server.register('/t/Echo', { kind: 'unary', handle: async (_call, message) => message });
    server.register('/t/Forever', {
      kind: 'unary',
      handle: async (of) => {
        running++;
        return new Promise((_resolve, reject) =>
          of.context.signal?.addEventListener('abort', () => {
            running--;
            reject(new BigtableError(Code.CANCELLED, 'given up'));
          }),
        );
      },
    });
    server.register('/t/Large', {
      kind: 'stream',
      handle: async (_call, _message, sink) => {
        for (made = 0; made < 1000; made++) await sink.send(Buffer.alloc(MIB / 4));
      },
    });
    port = await server.listen('127.0.0.1', 0);
    client = new WireClient({
      address: `127.0.0.1:${port}`,
      clock: systemClock,
      random: systemRandom,
      errorOf: ({ code, message }) => new BigtableError(code, message),
    });
  });

  after(async () => {
    client.close();
    await server.close(0);
  });

  beforeEach(() => {
    maxHeld = 0;
  });

  async function until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      maxHeld = Math.max(maxHeld, budget.usedBytes);
      await systemClock.yield();
    }
  }

  /** Others are served, and nothing of the attack is left. */
  async function stillWell(): Promise<void> {
    assert.equal(
      (await client.unary('/t/Echo', Buffer.from('well'), requestContext({ budget: new ByteBudget(MIB) }))).toString(),
      'well',
    );
    await until(() => budget.usedBytes === 0 && running === 0);
  }

  for (const attack of ATTACKS) {
    test(`${attack.name}: ${attack.expects}`, async () => {
      const peer = await RawPeer.connect(port);
      const { streamId } = attack;
      const answer = (): string | undefined =>
        streamId === undefined ? peer.end : (peer.statusOf(streamId) ?? peer.resetOf(streamId) ?? peer.end);
      await peer.send(attack.sends);
      for (let i = 0; i < 1000 && attack.over && answer() === undefined; i++) await peer.send(attack.over);
      await until(() => answer() !== undefined);
      assert.equal(answer(), attack.expects);
      assert.ok(maxHeld <= (attack.maxHeldBytes ?? 64 * KIB), `${maxHeld} bytes were held`);
      peer.destroy();
      await stillWell();
    });
  }

  test('rapid reset: GOAWAY ENHANCE_YOUR_CALM, and the work of the reset calls has ended', async () => {
    const peer = await RawPeer.connect(port);
    await peer.send(HELLO);
    for (let i = 0; peer.end === undefined; i += 100) {
      await peer.send(
        times(100, (j) => Buffer.concat([call(odd(i + j), FOREVER), rstStreamFrame(odd(i + j), CANCEL)])),
      );
    }
    assert.equal(peer.end, 'GOAWAY ENHANCE_YOUR_CALM');
    peer.destroy();
    await stillWell();
  });

  test('more streams than allowed are refused, those before them go on', async () => {
    const peer = await RawPeer.connect(port);
    await peer.send(Buffer.concat([HELLO, times(130, (i) => call(odd(i), FOREVER))]));
    await until(() => peer.resetOf(odd(129)) !== undefined);
    assert.equal(peer.resetOf(odd(100)), 'RST_STREAM REFUSED_STREAM');
    assert.equal(peer.resetOf(odd(99)), undefined);
    assert.equal(running, 100);
    peer.destroy();
    await stillWell();
  });

  test('a reader that does not read a large answer holds back its own call', async () => {
    const peer = await RawPeer.connect(port);
    peer.socket.pause();
    await peer.send(
      Buffer.concat([
        HELLO,
        windowUpdateFrame(0, 0x7fff0000),
        settingsFrame([[INITIAL_WINDOW_SIZE, 0x7fffffff]]),
        call(1, LARGE),
      ]),
    );
    let [last, still] = [-1, 0];
    while (still < 50) {
      still = made === last ? still + 1 : 0;
      last = made;
      await client.unary('/t/Echo', Buffer.alloc(0), requestContext({ budget: new ByteBudget(MIB) }));
      maxHeld = Math.max(maxHeld, budget.usedBytes);
    }
    assert.ok(made < 100, `${made} messages were made`);
    assert.ok(maxHeld <= 2 * MIB, `${maxHeld} bytes were held`);
    peer.destroy();
    await stillWell();
  });

  test('a window that stays shut holds back its own call', async () => {
    const peer = await RawPeer.connect(port);
    await peer.send(Buffer.concat([HELLO, settingsFrame([[INITIAL_WINDOW_SIZE, 0]]), call(1, LARGE)]));
    await until(() => made >= 4);
    assert.equal(peer.dataBytes, 0);
    await stillWellButFor(2 * MIB);
    peer.destroy();
    await stillWell();
  });

  test('requests that do not end hold what came of them, and end when nothing more comes', async () => {
    const peer = await RawPeer.connect(port);
    const part = (i: number): Buffer =>
      Buffer.concat([headers(odd(i), ECHO), data(odd(i), Buffer.concat([messagePrefix(MIB), Buffer.alloc(1000)]))]);
    await peer.send(Buffer.concat([HELLO, times(20, part)]));
    await until(() => budget.usedBytes > 0);
    await stillWellButFor(20 * MIB + 100 * KIB);
    lateMs += 200_000;
    await until(
      () =>
        peer.isClosed ||
        peer.socket.readableEnded ||
        Array.from({ length: 20 }, (_, i) => peer.statusOf(odd(i))).every((status) => status !== undefined),
    );
    peer.destroy();
    await stillWell();
  });

  test('a slow preface and half-open connections are ended, and those above the limit replace older ones', async () => {
    const peers: RawPeer[] = [];
    for (let i = 0; i < 30; i++) peers.push(await RawPeer.connect(port));
    await peers[0]?.send(HELLO.subarray(0, 10));
    for (let i = 0; i < 30; i++) peers.push(await RawPeer.connect(port).catch(() => peers[0] as RawPeer));
    await until(() => peers.some((peer) => peer.end !== undefined));
    assert.ok(server.connections <= 40, `${server.connections} connections`);
    await client.unary('/t/Echo', Buffer.from('well'), requestContext({ budget: new ByteBudget(MIB) }));
    lateMs += 120_000;
    await until(() => peers.every((peer) => peer.end !== undefined));
    for (const peer of peers) peer.destroy();
    await stillWell();
  });

  async function stillWellButFor(maxBytes: number): Promise<void> {
    await client.unary('/t/Echo', Buffer.from('well'), requestContext({ budget: new ByteBudget(MIB) }));
    assert.ok(budget.usedBytes <= maxBytes, `${budget.usedBytes} bytes are held`);
  }
});

function boundClock(): Clock {
  return clockOf({
    nowMicros: () => systemClock.nowMicros(),
    monotonicMs: () => systemClock.monotonicMs(),
    timer: (delayMs, wake) => systemClock.timer(delayMs, wake),
    yield: () => systemClock.yield(),
  });
}
