import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ManualClock, SLICE_MS } from '../../env/index.ts';
import { Connection } from './connection.ts';
import { ReadTurns } from './read-turns.ts';
import { Pipe, streamsFlushed, TurnClock } from './fixtures.ts';
import {
  CLIENT_PREFACE,
  ErrorCode,
  errorCodeName,
  Flag,
  FrameReader,
  FrameType,
  frame,
  rstStreamFrame,
  Setting,
  settingsFrame,
  windowUpdateFrame,
} from './frames.ts';
import { DEFAULT_LIMITS, type Http2Limits, PINGS_PER_FRAME } from './limits.ts';
import type { Stream } from './stream.ts';

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** A connection that answers nothing by itself, and its peer. */
function peer(limits: Partial<Http2Limits> = {}, clock = new ManualClock(), requestMs = 0) {
  const pipe = new Pipe();
  const streams: Stream[] = [];
  const failures: unknown[] = [];
  let resets = 0;
  const connection = new Connection({
    socket: pipe,
    clock,
    turns: new ReadTurns(clock),
    limits: { ...DEFAULT_LIMITS, ...limits },
    onRequest: (stream) => {
      streams.push(stream);
      clock.advance(requestMs);
      stream.owner = {
        onData: () => {},
        onEnd: () => {},
        onReset: () => {
          resets++;
        },
        onSent: () => {},
      };
    },
    onClosed: () => {},
    onFailed: (thrown) => failures.push(thrown),
  });
  return {
    pipe,
    connection,
    streams,
    failures,
    get resets() {
      return resets;
    },
    send: (...frames: Buffer[]) => {
      pipe.push(Buffer.concat(frames));
      return streamsFlushed();
    },
    frames: () => {
      const seen: Frame[] = [];
      new FrameReader(1 << 20, (type, flags, streamId, payload) => seen.push({ type, flags, streamId, payload })).push(
        Buffer.concat(pipe.written),
      );
      return seen;
    },
  };
}

type Peer = ReturnType<typeof peer>;

const HELLO = Buffer.concat([CLIENT_PREFACE, settingsFrame([])]);
/** :method POST, :scheme http, :path /. */
const BLOCK = Buffer.from([0x83, 0x86, 0x84]);
const ALL = Flag.END_HEADERS | Flag.END_STREAM;
const EMPTY_BYTES = Buffer.alloc(0);

const headers = (streamId: number, flags: number = ALL, block = BLOCK): Buffer =>
  frame(FrameType.HEADERS, flags, streamId, block);
const open = (streamId: number): Buffer => headers(streamId, Flag.END_HEADERS);
const data = (streamId: number, bytes: number, flags = 0): Buffer =>
  frame(FrameType.DATA, flags, streamId, Buffer.alloc(bytes));
const times = (count: number, make: (i: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, i) => make(i)));
const odd = (i: number): number => 2 * i + 1;

/** The code of the GOAWAY that ended the connection. */
function goAway({ frames, pipe }: Peer): string {
  const last = frames().find(({ type }) => type === FrameType.GOAWAY);
  assert.ok(last, 'the connection continues');
  assert.ok(pipe.hasEnded, 'nothing more can be written');
  return errorCodeName(last.payload.readUInt32BE(4));
}

function resetOf(streamId: number, { frames }: Peer): string {
  const reset = frames().find((each) => each.type === FrameType.RST_STREAM && each.streamId === streamId);
  return reset ? errorCodeName(reset.payload.readUInt32BE(0)) : 'none';
}

/** Input that ends the connection, by the code of its GOAWAY. */
const ATTACKS: readonly [string, keyof typeof ErrorCode, Buffer, Partial<Http2Limits>?][] = [
  ['HTTP/1', 'PROTOCOL_ERROR', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  [
    'no SETTINGS first',
    'PROTOCOL_ERROR',
    Buffer.concat([CLIENT_PREFACE, frame(FrameType.PING, 0, 0, Buffer.alloc(8))]),
  ],
  [
    'rapid reset',
    'ENHANCE_YOUR_CALM',
    Buffer.concat([HELLO, times(1002, (i) => Buffer.concat([open(odd(i)), rstStreamFrame(odd(i), ErrorCode.CANCEL)]))]),
  ],
  [
    'resets that it makes us send',
    'ENHANCE_YOUR_CALM',
    Buffer.concat([HELLO, times(1002, (i) => Buffer.concat([open(odd(i)), windowUpdateFrame(odd(i), 0)]))]),
  ],
  ['more streams than are allowed', 'ENHANCE_YOUR_CALM', Buffer.concat([HELLO, times(2200, (i) => open(odd(i)))])],
  [
    'a flood of PINGs',
    'ENHANCE_YOUR_CALM',
    Buffer.concat([HELLO, times(1002, () => frame(FrameType.PING, 0, 0, Buffer.alloc(8)))]),
  ],
  ['a flood of SETTINGS', 'ENHANCE_YOUR_CALM', Buffer.concat([HELLO, times(1002, () => settingsFrame([]))])],
  ['empty DATA', 'ENHANCE_YOUR_CALM', Buffer.concat([HELLO, open(1), times(10_002, () => data(1, 0))])],
  [
    'PRIORITY',
    'ENHANCE_YOUR_CALM',
    Buffer.concat([HELLO, times(10_002, (i) => frame(FrameType.PRIORITY, 0, odd(i), Buffer.alloc(5)))]),
  ],
  ['unknown frames', 'ENHANCE_YOUR_CALM', Buffer.concat([HELLO, times(10_002, () => frame(77, 0, 0, EMPTY_BYTES))])],
  [
    'windows of closed streams',
    'ENHANCE_YOUR_CALM',
    Buffer.concat([HELLO, open(1), rstStreamFrame(1, ErrorCode.CANCEL), times(10_002, () => windowUpdateFrame(1, 1))]),
  ],
  [
    'CONTINUATIONs without end',
    'ENHANCE_YOUR_CALM',
    Buffer.concat([HELLO, headers(1, 0), times(17, () => frame(FrameType.CONTINUATION, 0, 1, EMPTY_BYTES))]),
  ],
  [
    'a header block without end',
    'ENHANCE_YOUR_CALM',
    Buffer.concat([HELLO, headers(1, 0), times(5, () => frame(FrameType.CONTINUATION, 0, 1, Buffer.alloc(16_000)))]),
  ],
  [
    'a table above the limit',
    'COMPRESSION_ERROR',
    Buffer.concat([HELLO, headers(1, ALL, Buffer.from([0x3f, 0xe2, 0x1f, ...BLOCK]))]),
  ],
  [
    'an invalid block',
    'COMPRESSION_ERROR',
    Buffer.concat([HELLO, headers(1, ALL, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]))]),
  ],
  ['a frame above the limit', 'FRAME_SIZE_ERROR', Buffer.concat([HELLO, open(1), data(1, 16_385)])],
  [
    "more bytes than the connection's window",
    'FLOW_CONTROL_ERROR',
    Buffer.concat([HELLO, times(80, (i) => Buffer.concat([open(odd(i)), data(odd(i), 16_384)]))]),
  ],
  ['a window beyond 2^31-1', 'FLOW_CONTROL_ERROR', Buffer.concat([HELLO, windowUpdateFrame(0, 0x7fffffff)])],
  [
    'first windows beyond 2^31-1',
    'FLOW_CONTROL_ERROR',
    Buffer.concat([
      HELLO,
      open(1),
      windowUpdateFrame(1, 1),
      settingsFrame([[Setting.INITIAL_WINDOW_SIZE, 0x7fffffff]]),
    ]),
  ],
  ['a frame between the frames of a header block', 'PROTOCOL_ERROR', Buffer.concat([HELLO, headers(1, 0), data(1, 1)])],
  [
    'a promise',
    'PROTOCOL_ERROR',
    Buffer.concat([HELLO, frame(FrameType.PUSH_PROMISE, Flag.END_HEADERS, 1, Buffer.alloc(4))]),
  ],
  ['DATA of a stream that was never opened', 'PROTOCOL_ERROR', Buffer.concat([HELLO, data(1, 1)])],
  ['an even stream', 'PROTOCOL_ERROR', Buffer.concat([HELLO, open(2)])],
  ['a stream number that goes back', 'PROTOCOL_ERROR', Buffer.concat([HELLO, open(5), open(3)])],
];

/** Input that ends one stream, and no other. */
const STREAM_FAULTS: readonly [string, keyof typeof ErrorCode, (streamId: number) => Buffer][] = [
  [
    'headers that are too many',
    'ENHANCE_YOUR_CALM',
    (id) => headers(id, ALL, Buffer.concat([BLOCK, times(2100, () => Buffer.from([0x90]))])),
  ],
  [
    'more bytes than its window',
    'FLOW_CONTROL_ERROR',
    (id) => Buffer.concat([open(id), times(17, () => data(id, 16_384))]),
  ],
  ['a window update of 0', 'PROTOCOL_ERROR', (id) => Buffer.concat([open(id), windowUpdateFrame(id, 0)])],
  [
    'a window beyond 2^31-1',
    'FLOW_CONTROL_ERROR',
    (id) => Buffer.concat([open(id), windowUpdateFrame(id, 0x7fffffff)]),
  ],
  ['no path', 'PROTOCOL_ERROR', (id) => headers(id, ALL, Buffer.from([0x83, 0x86]))],
  ['an upper-case name', 'PROTOCOL_ERROR', (id) => headers(id, ALL, Buffer.from([...BLOCK, 0, 1, 0x41, 1, 0x61]))],
  [
    'a value with a line break',
    'PROTOCOL_ERROR',
    (id) => headers(id, ALL, Buffer.from([...BLOCK, 0, 1, 0x61, 1, 0x0a])),
  ],
  [
    'a header of HTTP/1 connections',
    'PROTOCOL_ERROR',
    (id) =>
      headers(id, ALL, Buffer.concat([BLOCK, Buffer.from([0, 7]), Buffer.from('upgrade'), Buffer.from([1, 0x61])])),
  ],
  ['DATA after its end', 'STREAM_CLOSED', (id) => Buffer.concat([headers(id), data(id, 1)])],
  [
    'a dependency on itself',
    'PROTOCOL_ERROR',
    (id) => frame(FrameType.HEADERS, ALL | Flag.PRIORITY, id, Buffer.from([0, 0, 0, id, 0, ...BLOCK])),
  ],
];

describe('input that ends a connection', () => {
  for (const [what, code, bytes, limits] of ATTACKS) {
    test(`${what}: ${code}`, async () => {
      const it = peer(limits);
      await it.send(bytes);
      assert.equal(goAway(it), code);
      assert.equal(it.failures.length, 1);
      assert.equal(it.connection.isDead, true);
      // later frames change nothing
      const before = it.streams.length;
      await it.send(times(100, (i) => open(odd(i + 5000))));
      assert.equal(it.streams.length, before);
    });
  }
});

describe('input that ends a stream', () => {
  for (const [what, code, bytes] of STREAM_FAULTS) {
    test(`${what}: ${code}`, async () => {
      const it = peer();
      await it.send(HELLO, open(1), bytes(3), open(5));
      assert.equal(resetOf(3, it), code);
      assert.deepEqual(it.failures, []);
      assert.deepEqual(
        it.streams.map(({ id }) => id).filter((id) => id !== 3),
        [1, 5],
      );
    });
  }
});

describe('a connection', () => {
  test('counts streams that were reset as long as their work continues', async () => {
    const it = peer({ maxStreams: 3 });
    await it.send(
      HELLO,
      times(3, (i) => Buffer.concat([open(odd(i)), rstStreamFrame(odd(i), ErrorCode.CANCEL)])),
      open(7),
    );
    assert.equal(it.resets, 3);
    assert.equal(resetOf(7, it), 'REFUSED_STREAM');
    it.streams[0]?.done();
    await it.send(open(9));
    assert.equal(resetOf(9, it), 'none');
    assert.deepEqual(
      it.streams.map(({ id }) => id),
      [1, 3, 5, 9],
    );
  });

  test('allows a reset for each stream that ends in good order', async () => {
    const it = peer();
    await it.send(HELLO);
    const askAndReset = async (i: number): Promise<void> => {
      await it.send(headers(odd(2 * i)), open(odd(2 * i + 1)), rstStreamFrame(odd(2 * i + 1), ErrorCode.CANCEL));
      const [asked, cancelled] = it.streams.slice(-2);
      asked!.headers(EMPTY_BYTES);
      asked!.end();
      for (const stream of [asked, cancelled]) stream!.done();
    };
    for (let i = 0; i < 3000; i++) await askAndReset(i);
    assert.deepEqual(it.failures, []);
    await it.send(
      times(1002, (i) => Buffer.concat([open(odd(6000 + i)), rstStreamFrame(odd(6000 + i), ErrorCode.CANCEL)])),
    );
    assert.equal(goAway(it), 'ENHANCE_YOUR_CALM');
  });

  test('does not buffer answers to a peer that never reads', async () => {
    const it = peer({ pings: { burst: 1e9, perSecond: 0 } });
    it.pipe.stuck = true;
    await it.send(HELLO);
    for (let i = 0; i < 100 && !it.pipe.destroyed; i++)
      await it.send(times(2000, () => frame(FrameType.PING, 0, 0, Buffer.alloc(8))));
    assert.equal(it.pipe.destroyed, true);
    assert.ok(it.pipe.writableLength < 2_000_000, `${it.pipe.writableLength} bytes wait`);
  });

  test('returns the window of bytes that a stream did not read', async () => {
    const it = peer();
    for (let i = 0; i < 40; i++)
      await it.send(
        ...(i === 0 ? [HELLO] : []),
        open(odd(i)),
        times(4, () => data(odd(i), 16_384)),
        rstStreamFrame(odd(i), ErrorCode.CANCEL),
      );
    assert.deepEqual(it.failures, []);
    const given = it
      .frames()
      .filter(({ type, streamId }) => type === FrameType.WINDOW_UPDATE && streamId === 0)
      .map(({ payload }) => payload.readUInt32BE(0));
    assert.ok(given.reduce((a, b) => a + b, 0) >= 40 * 65_536 - 65_535);
  });

  test('answers PINGs immediately, and accepts them in proportion to the data that it sends', async () => {
    const it = peer({ pings: { burst: 5, perSecond: 0 } });
    await it.send(HELLO, open(1));
    for (let i = 0; i < 20; i++) {
      it.streams[0]?.data(Buffer.from('x'));
      it.streams[0]?.send();
      await it.send(
        times(PINGS_PER_FRAME, (j) => frame(FrameType.PING, 0, 0, Buffer.alloc(8, PINGS_PER_FRAME * i + j))),
      );
    }
    const answers = it.frames().filter(({ type, flags }) => type === FrameType.PING && flags === Flag.ACK);
    assert.deepEqual(
      answers.map(({ payload }) => payload[0]),
      Array.from({ length: 20 * PINGS_PER_FRAME }, (_, i) => i),
    );
  });

  test('a flood of PINGs between answers ends the connection', async () => {
    const it = peer({ pings: { burst: 5, perSecond: 0 } });
    await it.send(HELLO, open(1));
    for (let i = 0; i < 20 && it.failures.length === 0; i++) {
      it.streams[0]?.data(Buffer.from('x'));
      it.streams[0]?.send();
      await it.send(times(PINGS_PER_FRAME + 1, () => frame(FrameType.PING, 0, 0, Buffer.alloc(8))));
    }
    assert.match(String(it.failures[0]), /too many PING/);
  });

  test('windows may be opened for all sent bytes, byte by byte, and not for nothing', async () => {
    const it = peer({ windowUpdates: { burst: 20, perSecond: 0 } });
    await it.send(HELLO, open(1));
    for (let i = 0; i < 50; i++) {
      it.streams[0]?.data(Buffer.from('12345678'));
      it.streams[0]?.send();
      await it.send(times(8, () => Buffer.concat([windowUpdateFrame(0, 1), windowUpdateFrame(1, 1)])));
    }
    assert.deepEqual(it.failures, []);
    for (const streamId of [0, 1]) {
      const other = peer({ windowUpdates: { burst: 20, perSecond: 0 } });
      await other.send(
        HELLO,
        open(1),
        times(21, () => windowUpdateFrame(streamId, 1)),
      );
      assert.match(String(other.failures[0]), /too many WINDOW_UPDATE/);
    }
  });

  test('survives any bytes after a good beginning', async () => {
    const anyFrame = fc.record({
      type: fc.nat(10),
      flags: fc.constantFrom(0, 1, 4, 5, 8, 0x20, 0x2d),
      streamId: fc.constantFrom(0, 1, 2, 3, 5),
      payload: fc.uint8Array({ maxLength: 20 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(anyFrame, { maxLength: 30 }), async (frames) => {
        const it = peer();
        await it.send(
          HELLO,
          open(1),
          ...frames.map(({ type, flags, streamId, payload }) => frame(type, flags, streamId, payload)),
        );
        assert.ok(
          it.failures.every((failure) => failure instanceof Error && failure.name === 'Http2Error'),
          String(it.failures[0]),
        );
        assert.equal(it.connection.isDead, it.failures.length > 0);
      }),
      { numRuns: 500 },
    );
  });
});

describe('requests that wait for their turn', () => {
  const slow = (): { it: Peer; clock: TurnClock } => {
    const clock = new TurnClock();
    return { it: peer({}, clock, SLICE_MS), clock };
  };

  test('are refused once the connection drains', async () => {
    const { it, clock } = slow();
    await it.send(
      HELLO,
      times(20, (i) => headers(odd(i))),
    );
    const began = it.streams.length;
    assert.ok(began < 20, `${began} began in one turn`);
    it.connection.drain('enough');
    clock.advance(1000);
    for (let i = 0; i < 10; i++) await clock.turn();
    assert.equal(it.streams.length, began);
    assert.equal(resetOf(odd(began - 1), it), 'none');
    for (let i = began; i < 20; i++) assert.equal(resetOf(odd(i), it), 'REFUSED_STREAM');
  });

  test('do not begin once the connection is gone', async () => {
    const { it, clock } = slow();
    await it.send(
      HELLO,
      times(20, (i) => headers(odd(i))),
    );
    const began = it.streams.length;
    it.connection.destroy();
    for (let i = 0; i < 10; i++) await clock.turn();
    assert.equal(it.streams.length, began);
    assert.equal(it.resets, began);
  });

  test('are counted as they begin: a flood among them ends the connection', async () => {
    const { it, clock } = slow();
    await it.send(
      HELLO,
      times(8, (i) => headers(odd(i))),
      times(1100, () => frame(FrameType.PING, 0, 0, Buffer.alloc(8))),
    );
    assert.deepEqual(it.failures, []);
    for (let i = 0; i < 10; i++) await clock.turn();
    assert.equal(goAway(it), 'ENHANCE_YOUR_CALM');
    assert.equal(it.failures.length, 1);
  });
});

describe('sending', () => {
  const sentTo = (it: Peer, streamId: number): number =>
    it
      .frames()
      .filter((each) => each.type === FrameType.DATA && each.streamId === streamId)
      .reduce((sum, { payload }) => sum + payload.length, 0);

  test("streams take turns, and none sends beyond its window or the connection's", async () => {
    const it = peer();
    await it.send(HELLO, open(1), open(3), windowUpdateFrame(1, 1_000_000));
    for (const stream of it.streams) stream.data(Buffer.alloc(200_000, stream.id));
    for (const stream of it.streams) stream.send();
    await it.send();
    assert.equal(sentTo(it, 1) + sentTo(it, 3), 65_535);
    await it.send(windowUpdateFrame(0, 1_000_000));
    assert.deepEqual([sentTo(it, 1), sentTo(it, 3)], [200_000, 65_535]);
    await it.send(windowUpdateFrame(3, 100));
    assert.equal(sentTo(it, 3), 65_635);
    await it.send(settingsFrame([[Setting.INITIAL_WINDOW_SIZE, 65_535 + 1000]]));
    assert.equal(sentTo(it, 3), 66_635);
    await it.send(settingsFrame([[Setting.INITIAL_WINDOW_SIZE, 0]]), windowUpdateFrame(3, 66_000));
    assert.equal(sentTo(it, 3), 66_635, 'a window below nothing');
    await it.send(windowUpdateFrame(3, 200_000));
    assert.equal(sentTo(it, 3), 200_000);
    assert.ok(it.frames().every(({ payload }) => payload.length <= 16_384));
  });

  test('trailers come after the data, and need no window', async () => {
    const it = peer();
    await it.send(HELLO, headers(1), headers(3));
    const [first, second] = it.streams as [Stream, Stream];
    first.headers(BLOCK);
    first.data(Buffer.alloc(70_000));
    first.end(BLOCK);
    second.headers(BLOCK);
    second.end(BLOCK);
    await it.send();
    const ends = (streamId: number): boolean =>
      it
        .frames()
        .some(
          (each) =>
            each.type === FrameType.HEADERS && each.streamId === streamId && (each.flags & Flag.END_STREAM) !== 0,
        );
    assert.deepEqual([ends(1), ends(3)], [false, true]);
    await it.send(windowUpdateFrame(0, 10_000), windowUpdateFrame(1, 10_000));
    assert.deepEqual([ends(1), sentTo(it, 1)], [true, 70_000]);
  });

  const answer = (stream: Stream | undefined): void => {
    stream?.headers(BLOCK);
    stream?.end(BLOCK);
    stream?.done();
  };
  const lastStreams = ({ frames }: Peer): number[] =>
    frames().flatMap(({ type, payload }) => (type === FrameType.GOAWAY ? [payload.readUInt32BE(0)] : []));

  test('a drain lets streams end that were opened before the client knew, and refuses new ones', async () => {
    const it = peer();
    await it.send(HELLO, headers(1));
    it.connection.drain('enough');
    await it.send();
    const ping = it.frames().findLast(({ type }) => type === FrameType.PING);
    await it.send(headers(3), frame(FrameType.PING, Flag.ACK, 0, ping!.payload), headers(5));
    assert.deepEqual(lastStreams(it), [2 ** 31 - 1, 3]);
    assert.deepEqual([resetOf(3, it), resetOf(5, it)], ['none', 'REFUSED_STREAM']);
    assert.equal(it.pipe.hasEnded, false);
    answer(it.streams[0]);
    answer(it.streams[1]);
    await it.send();
    assert.equal(goAway(it), 'NO_ERROR');
  });

  test('a drained client that answers no PING has a second', async () => {
    const clock = new ManualClock();
    const it = peer({}, clock);
    await it.send(HELLO);
    it.connection.drain('enough');
    clock.advance(999);
    await it.send(headers(1));
    clock.advance(1);
    await it.send(headers(3));
    assert.deepEqual(lastStreams(it), [2 ** 31 - 1, 1]);
    assert.deepEqual([resetOf(1, it), resetOf(3, it)], ['none', 'REFUSED_STREAM']);
    answer(it.streams[0]);
    await it.send();
    assert.ok(it.pipe.hasEnded);
  });

  test('a client that leaves is not told to wait, nor one that is dismissed', async () => {
    const [left, dismissed] = [peer(), peer()];
    await left.send(HELLO, frame(FrameType.GOAWAY, 0, 0, Buffer.alloc(8)));
    assert.deepEqual(lastStreams(left), [0]);
    assert.ok(left.pipe.hasEnded);
    await dismissed.send(HELLO);
    dismissed.connection.dismiss('enough');
    assert.deepEqual(lastStreams(dismissed), [0]);
  });
});
