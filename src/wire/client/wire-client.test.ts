import assert from 'node:assert/strict';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import * as grpc from '@grpc/grpc-js';
import { BigtableError, Code } from '../../base/index.ts';
import { ByteBudget, CallContext, ManualClock, type RequestContext, requestContext } from '../../env/index.ts';
import { testEnv, testStatus, until } from '../../../test/raw-server.ts';
import { systemClock } from '../../platform/index.ts';
import { encodeBinary } from '../grpc/metadata.ts';
import { HpackEncoder } from '../hpack/encoder.ts';
import {
  CLIENT_PREFACE,
  ErrorCode,
  Flag,
  FrameReader,
  FrameType,
  frame,
  goAwayFrame,
  rstStreamFrame,
  settingsFrame,
} from '../http2/frames.ts';
import { lendOnward, MESSAGE_BUFFER_BYTES } from '../http2/message-buffers.ts';
import type { RpcStatus } from '../contract/rpc-server.ts';
import { WireServer } from '../server/wire-server.ts';
import { WireClient, type WireClientOptions } from './wire-client.ts';

const env = testEnv();
const budget = new ByteBudget(1 << 30);
const errorOf = ({ code, message, details }: RpcStatus): BigtableError =>
  new BigtableError(code, message, details ? { details: JSON.parse(details.toString()) } : {});
const clientOf = (port: number, more: Partial<WireClientOptions> = {}): WireClient =>
  new WireClient({ address: `127.0.0.1:${port}`, clock: systemClock, random: env.random, errorOf, ...more });
const plain = (options: { deadlineMs?: number; signal?: AbortSignal } = {}): RequestContext =>
  requestContext({ budget, ...options });
const within = (ms: number): RequestContext => plain({ deadlineMs: systemClock.monotonicMs() + ms });
const asIs = (bytes: Buffer): Buffer => bytes;

async function all(stream: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const messages: Buffer[] = [];
  for await (const message of stream) messages.push(message);
  return messages;
}

/** The same methods on two servers, of which one shares no code with the client. */
interface Peer {
  readonly port: number;
  /** Cancelled calls. */
  readonly cancelled: () => number;
  /** Messages that the endless stream has made. */
  readonly made: () => number;
  readonly lastHeader: (name: string) => string | undefined;
  close(): Promise<void>;
}

async function ownServer(): Promise<Peer> {
  let cancelled = 0;
  let made = 0;
  let lastHeader: (name: string) => string | undefined = () => undefined;
  const server = new WireServer({ env, statusOf: testStatus });
  server.register('/t/Echo', {
    kind: 'unary',
    handle: async (call, request) => {
      lastHeader = (name) => call.header(name);
      return request;
    },
  });
  server.register('/t/Fail', {
    kind: 'unary',
    handle: async () => Promise.reject(new BigtableError(Code.NOT_FOUND, 'no é', { details: { a: 'b' } })),
  });
  server.register('/t/Forever', {
    kind: 'unary',
    handle: (call) =>
      new Promise((_resolve, reject) =>
        call.context.signal?.addEventListener('abort', () => {
          cancelled++;
          reject(new BigtableError(Code.CANCELLED, 'cancelled'));
        }),
      ),
  });
  server.register('/t/Count', {
    kind: 'stream',
    handle: async (_call, request, sink) => {
      for (let i = 0; i < (request[0] ?? 0); i++) await sink.send(Buffer.alloc(i * 1000, i));
    },
  });
  server.register('/t/HalfWay', {
    kind: 'stream',
    handle: async (_call, _request, sink) => {
      await sink.send(Buffer.of(1));
      throw new BigtableError(Code.DATA_LOSS, 'half way');
    },
  });
  server.register('/t/Endless', {
    kind: 'stream',
    handle: async (_call, _request, sink) => {
      try {
        for (made = 0; ; made++) await sink.send(Buffer.alloc(50_000));
      } catch (error) {
        cancelled++;
        throw error;
      }
    },
  });
  const port = await server.listen('127.0.0.1', 0);
  return {
    port,
    cancelled: () => cancelled,
    made: () => made,
    lastHeader: (name) => lastHeader(name),
    close: () => server.close(0),
  };
}

async function grpcJsServer(): Promise<Peer> {
  let cancelled = 0;
  let made = 0;
  let metadata = new grpc.Metadata();
  const server = new grpc.Server({ 'grpc.max_receive_message_length': -1 });
  const method = (path: string, responseStream: boolean) => ({
    path,
    requestStream: false,
    responseStream,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  });
  const details = new grpc.Metadata();
  details.set('grpc-status-details-bin', Buffer.from('{"a":"b"}'));
  server.addService(
    {
      echo: method('/t/Echo', false),
      fail: method('/t/Fail', false),
      forever: method('/t/Forever', false),
      count: method('/t/Count', true),
      halfWay: method('/t/HalfWay', true),
      endless: method('/t/Endless', true),
    },
    {
      echo: (call: grpc.ServerUnaryCall<Buffer, Buffer>, done: grpc.sendUnaryData<Buffer>) => {
        metadata = call.metadata;
        done(null, call.request);
      },
      fail: (_call: unknown, done: grpc.sendUnaryData<Buffer>) =>
        done({ code: grpc.status.NOT_FOUND, details: 'no é', metadata: details }),
      forever: (call: grpc.ServerUnaryCall<Buffer, Buffer>) => void call.on('cancelled', () => cancelled++),
      count: (call: grpc.ServerWritableStream<Buffer, Buffer>) => {
        for (let i = 0; i < (call.request[0] ?? 0); i++) call.write(Buffer.alloc(i * 1000, i));
        call.end();
      },
      halfWay: (call: grpc.ServerWritableStream<Buffer, Buffer>) => {
        call.write(Buffer.of(1));
        call.emit('error', { code: grpc.status.DATA_LOSS, details: 'half way' });
      },
      endless: (call: grpc.ServerWritableStream<Buffer, Buffer>) => {
        const write = (): void => {
          while (!call.cancelled && call.write(Buffer.alloc(50_000))) made++;
        };
        call.on('drain', write);
        call.on('cancelled', () => cancelled++);
        write();
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  return {
    port,
    cancelled: () => cancelled,
    made: () => made,
    lastHeader: (name) => metadata.get(name)[0]?.toString(),
    close: async () => server.forceShutdown(),
  };
}

for (const [name, open] of [
  ['our own server', ownServer],
  ['a server of grpc-js', grpcJsServer],
] as const) {
  describe(`WireClient with ${name}`, () => {
    let peer: Peer;
    let client: WireClient;

    before(async () => {
      peer = await open();
      client = clientOf(peer.port, { headers: { 'x-fixed': 'always' } });
    });

    after(async () => {
      client.close();
      await peer.close();
    });

    test('a unary call, with its headers and deadline', async () => {
      assert.equal((await client.unary('/t/Echo', Buffer.from('hello'), within(60_000))).toString(), 'hello');
      assert.equal(peer.lastHeader('x-fixed'), 'always');
      assert.equal((await client.unary('/t/Echo', Buffer.alloc(0), plain())).length, 0);
    });

    test('many concurrent ones, of all sizes', async () => {
      const sizes = Array.from({ length: 300 }, (_, i) => (i % 10 === 0 ? i * 1000 : i));
      const answers = await Promise.all(
        sizes.map((size) => client.unary('/t/Echo', Buffer.alloc(size, size), plain())),
      );
      for (const [i, size] of sizes.entries()) assert.deepEqual(answers[i], Buffer.alloc(size, size));
    });

    test('messages above every window', async () => {
      const large = Buffer.alloc(5_000_000, 7);
      assert.ok((await client.unary('/t/Echo', large, plain())).equals(large));
    });

    test('a failure carries code, message and details', async () => {
      await assert.rejects(client.unary('/t/Fail', Buffer.alloc(0), plain()), {
        code: Code.NOT_FOUND,
        message: 'no é',
        details: { a: 'b' },
      });
      await assert.rejects(client.unary('/t/None', Buffer.alloc(0), plain()), { code: Code.UNIMPLEMENTED });
    });

    test('a stream comes whole, or ends with its error after what came', async () => {
      const messages = await all(client.stream('/t/Count', Buffer.of(60), plain()));
      assert.deepEqual(
        messages.map((message) => message.length),
        Array.from({ length: 60 }, (_, i) => i * 1000),
      );
      const some: Buffer[] = [];
      await assert.rejects(
        async () => {
          for await (const message of client.stream('/t/HalfWay', Buffer.alloc(0), plain())) some.push(message);
        },
        { code: Code.DATA_LOSS, message: 'half way' },
      );
      assert.equal(some.length, 1);
    });

    test('a deadline ends the call on both sides', async () => {
      const before = peer.cancelled();
      await assert.rejects(client.unary('/t/Forever', Buffer.alloc(0), within(30)), { code: Code.DEADLINE_EXCEEDED });
      await until(() => peer.cancelled() > before);
      await assert.rejects(client.unary('/t/Echo', Buffer.alloc(0), within(-1)), { code: Code.DEADLINE_EXCEEDED });
    });

    test('a cancellation ends the call on both sides, by a signal and by a context', async () => {
      const abort = new AbortController();
      const context = new CallContext({ budget });
      for (const [given, cancel] of [
        [plain({ signal: abort.signal }), () => abort.abort()],
        [context, () => context.interrupt(new BigtableError(Code.CANCELLED, 'enough'))],
      ] as const) {
        const before = peer.cancelled();
        const call = client.unary('/t/Forever', Buffer.alloc(0), given);
        await client.unary('/t/Echo', Buffer.alloc(0), plain());
        cancel();
        await assert.rejects(call, { code: Code.CANCELLED });
        await until(() => peer.cancelled() > before);
        await assert.rejects(client.unary('/t/Echo', Buffer.alloc(0), given), { code: Code.CANCELLED });
      }
    });

    test('a reader that stops holds the writer back; one that leaves ends it; others continue', async () => {
      const before = peer.cancelled();
      const stream = client.stream('/t/Endless', Buffer.alloc(0), plain())[Symbol.asyncIterator]();
      await stream.next();
      let [last, still] = [-1, 0];
      while (still < 100) {
        still = peer.made() === last ? still + 1 : 0;
        last = peer.made();
        await client.unary('/t/Echo', Buffer.alloc(1000), plain());
      }
      assert.ok(peer.made() < 200, `${peer.made()} messages were made`);
      for (let i = 0; i < 300; i++) await stream.next();
      assert.ok(peer.made() > 200);
      await stream.return?.();
      await until(() => peer.cancelled() > before);
      assert.deepEqual(await stream.next(), { done: true, value: undefined });
    });
  });
}

describe('WireClient and its limits', () => {
  test('the memory of messages that are sent onward is reused, and not before they were sent', async () => {
    const [origin, relay] = [0, 1].map(() => new WireServer({ env, statusOf: testStatus }));
    const memory = new Set<ArrayBufferLike>();
    const sizeOf = (i: number): number => MESSAGE_BUFFER_BYTES - (i % 50) * 1000;
    const count = 300;
    origin!.register('/t/Rows', {
      kind: 'stream',
      handle: async (_call, _request, sink) => {
        for (let i = 0; i < count; i++) await sink.send(Buffer.alloc(sizeOf(i), i));
      },
    });
    const between = clientOf(await origin!.listen('127.0.0.1', 0));
    relay!.register('/t/Onward', {
      kind: 'stream',
      handle: async (call, request, sink) => {
        for await (const bytes of between.stream('/t/Rows', request, call.context)) {
          if (bytes.buffer.byteLength === MESSAGE_BUFFER_BYTES) memory.add(bytes.buffer);
          lendOnward(bytes);
          await sink.send(bytes);
        }
      },
    });
    const client = clientOf(await relay!.listen('127.0.0.1', 0));
    const answers = await Promise.all([1, 2, 3].map(() => all(client.stream('/t/Onward', Buffer.alloc(0), plain()))));
    for (const messages of answers) {
      assert.equal(messages.length, count);
      for (const [i, bytes] of messages.entries()) assert.ok(bytes.equals(Buffer.alloc(sizeOf(i), i)), `message ${i}`);
    }
    assert.ok(memory.size > 0 && memory.size < count, `${memory.size} buffers`);
    client.close();
    between.close();
    await relay!.close(0);
    await origin!.close(0);
  });

  test('a message above the limit fails its call alone', async () => {
    const peer = await ownServer();
    const client = clientOf(peer.port, { maxMessageBytes: 1000 });
    await assert.rejects(client.unary('/t/Echo', Buffer.alloc(1001), plain()), {
      code: Code.RESOURCE_EXHAUSTED,
      message: /1001 bytes; the limit is 1000/,
    });
    assert.equal((await client.unary('/t/Echo', Buffer.alloc(1000), plain())).length, 1000);
    client.close();
    await peer.close();
  });

  test('an address without a server: calls fail immediately, with a message, and notReached', async () => {
    const client = clientOf(1);
    for (let i = 0; i < 3; i++) {
      await assert.rejects(client.unary('/t/Echo', Buffer.alloc(0), plain()), (error: BigtableError) => {
        assert.equal(error.code, Code.UNAVAILABLE);
        assert.match(error.message, /^cannot reach a server at 127\.0\.0\.1:1: connect ECONNREFUSED/);
        assert.equal(error.details.notReached, true);
        return true;
      });
    }
    client.close();
    await assert.rejects(client.unary('/t/Echo', Buffer.alloc(0), plain()), {
      code: Code.CANCELLED,
      message: /client is closed/,
    });
    await assert.rejects(all(clientOf(0, { address: 'nowhere' }).stream('/t/Echo', Buffer.alloc(0), plain())), {
      code: Code.INVALID_ARGUMENT,
      message: /invalid address "nowhere": expected HOST:PORT/,
    });
  });

  test('a server that comes back is found again', async () => {
    const first = await ownServer();
    const client = clientOf(first.port);
    await client.unary('/t/Echo', Buffer.alloc(0), plain());
    await first.close();
    await assert.rejects(client.unary('/t/Echo', Buffer.alloc(0), plain()), { code: Code.UNAVAILABLE });
    const server = new WireServer({ env, statusOf: testStatus });
    server.register('/t/Echo', { kind: 'unary', handle: async (_call, request) => request });
    await server.listen('127.0.0.1', first.port);
    for (let answered = false; !answered; await systemClock.yield()) {
      answered = await client.unary('/t/Echo', Buffer.of(9), plain()).then(
        (bytes) => bytes[0] === 9,
        () => false,
      );
    }
    client.close();
    await server.close(0);
  });

  test('of a peer that takes connections and says nothing is not waited for twice, where calls are to fail fast', async () => {
    const peer = await ownServer();
    let isSilent = true;
    const sockets: Socket[] = [];
    const proxy = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      if (isSilent) return socket.resume();
      const beyond = connect(peer.port, '127.0.0.1');
      socket.on('close', () => beyond.destroy());
      socket.pipe(beyond).pipe(socket);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const { port } = proxy.address() as { port: number };
    const clock = new ManualClock();
    const client = clientOf(port, { clock, connectMs: 3000, maxPauseMs: 100, failsFast: true });
    const call = (timeoutMs: number) =>
      client.unary('/t/Echo', Buffer.of(1), plain({ deadlineMs: clock.monotonicMs() + timeoutMs }));
    const first = call(1000);
    first.catch(() => {});
    await until(() => sockets.length === 1);
    clock.advance(1500);
    await assert.rejects(first, { code: Code.DEADLINE_EXCEEDED });
    const waiting = call(10_000);
    clock.advance(1500);
    await assert.rejects(waiting, { code: Code.UNAVAILABLE, message: /no connection within 3000 ms/ });
    for (let i = 2; i < 5; i++) {
      do {
        clock.advance(150);
        // the clock stands still: a call that waited would never end
        await assert.rejects(call(1000), { code: Code.UNAVAILABLE, message: /no connection within 3000 ms/ });
        await systemClock.yield();
      } while (sockets.length < i);
      clock.advance(3000);
    }
    isSilent = false;
    for (let isAnswered = false; !isAnswered; clock.advance(1)) {
      isAnswered = await call(1000).then(
        () => true,
        () => false,
      );
      await systemClock.yield();
    }
    client.close();
    for (const socket of sockets) socket.destroy();
    proxy.close();
    await peer.close();
  });
});

/** A server of single frames: the client's frames are listed, the test sends the answers. */
class Script {
  readonly frames: { type: number; flags: number; streamId: number; payload: Buffer }[] = [];
  readonly sockets: Socket[] = [];
  readonly #server: Server;
  readonly #encoder = new HpackEncoder({ maxTableBytes: 0 });

  constructor(settings: readonly (readonly [number, number])[] | Buffer = []) {
    this.#server = createServer((socket) => {
      this.sockets.push(socket);
      let prefaceBytes = CLIENT_PREFACE.length;
      const reader = new FrameReader(1 << 20, (type, flags, streamId, payload) =>
        this.frames.push({ type, flags, streamId, payload }),
      );
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        const skipped = Math.min(prefaceBytes, chunk.length);
        prefaceBytes -= skipped;
        reader.push(Buffer.from(chunk.subarray(skipped)));
      });
      socket.write(
        Buffer.isBuffer(settings) ? settings : settingsFrame(settings as readonly (readonly [number, number])[]),
      );
    });
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return (this.#server.address() as { port: number }).port;
  }

  /** The streams on which requests have come. */
  get requests(): number[] {
    return this.frames.filter(({ type }) => type === FrameType.HEADERS).map(({ streamId }) => streamId);
  }

  send(...bytes: Buffer[]): void {
    this.sockets.at(-1)?.write(Buffer.concat(bytes));
  }

  headers(streamId: number, fields: readonly string[], end = false): Buffer {
    return frame(
      FrameType.HEADERS,
      Flag.END_HEADERS | (end ? Flag.END_STREAM : 0),
      streamId,
      this.#encoder.encode(fields),
    );
  }

  ok(streamId: number, ...messages: Buffer[]): Buffer {
    return Buffer.concat([
      this.headers(streamId, START),
      ...messages.map((bytes) => frame(FrameType.DATA, 0, streamId, bytes)),
      this.headers(streamId, ['grpc-status', '0'], true),
    ]);
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
  }
}

const START = [':status', '200', 'content-type', 'application/grpc+proto'];
const message = (bytes: Buffer, flag = 0): Buffer =>
  Buffer.concat([Buffer.of(flag, 0, 0, bytes.length >>> 8, bytes.length), bytes]);

async function scripted(
  settings: ConstructorParameters<typeof Script>[0],
  run: (script: Script, client: WireClient) => Promise<void>,
  more: Partial<WireClientOptions> = {},
): Promise<void> {
  const script = new Script(settings);
  const client = clientOf(await script.listen(), more);
  try {
    await run(script, client);
  } finally {
    client.close();
    script.close();
  }
}

describe('WireClient with servers of every kind', () => {
  test('a call that the server resets once its time is over has exceeded its deadline', async () => {
    for (const [passedMs, code] of [
      [51, Code.DEADLINE_EXCEEDED],
      [49, Code.CANCELLED],
    ] as const) {
      const clock = new ManualClock();
      const run = async (script: Script, client: WireClient): Promise<void> => {
        const call = client.unary('/t/Echo', Buffer.of(1), plain({ deadlineMs: clock.monotonicMs() + 50 }));
        call.catch(() => {});
        await until(() => script.requests.length === 1);
        // before the deadline fires: it does so with a tick
        clock.advance(passedMs);
        script.send(rstStreamFrame(1, ErrorCode.CANCEL));
        await assert.rejects(call, { code });
      };
      await scripted([], run, { clock });
    }
  });

  test('no more streams than the server takes: the rest wait their turn, and keep their deadlines', async () => {
    await scripted([[3, 2]], async (script, client) => {
      const calls = [1, 2, 3].map((byte) => client.unary('/t/Echo', Buffer.of(byte), plain()));
      const impatient = client.unary('/t/Echo', Buffer.of(4), within(20));
      await assert.rejects(impatient, { code: Code.DEADLINE_EXCEEDED });
      await until(() => script.requests.length === 2);
      script.send(script.ok(3, message(Buffer.of(33))));
      assert.equal((await calls[1])?.[0], 33);
      await until(() => script.requests.length === 3);
      script.send(script.ok(5, message(Buffer.of(55))), script.ok(1, message(Buffer.of(11))));
      assert.deepEqual(
        (await Promise.all(calls)).map((bytes) => bytes[0]),
        [11, 33, 55],
      );
    });
  });

  test('GOAWAY: streams above its last are sent again on a new connection, those below continue', async () => {
    await scripted([], async (script, client) => {
      const first = client.unary('/t/Echo', Buffer.of(1), plain());
      const second = client.unary('/t/Echo', Buffer.of(2), plain());
      await until(() => script.requests.length === 2);
      script.send(goAwayFrame(1, ErrorCode.NO_ERROR, 'bye'));
      await until(() => script.requests.length === 3);
      assert.equal(script.sockets.length, 2);
      script.send(script.ok(1, message(Buffer.of(22))));
      assert.equal((await second)[0], 22);
      script.sockets[0]?.write(script.ok(1, message(Buffer.of(11))));
      assert.equal((await first)[0], 11);
    });
  });

  test('a refused stream is sent again a few times, then fails with notReached', async () => {
    await scripted([], async (script, client) => {
      const call = client.unary('/t/Echo', Buffer.of(1), plain());
      for (const [at, streamId] of [1, 3, 5].entries()) {
        await until(() => script.requests.length === at + 1);
        script.send(rstStreamFrame(streamId, ErrorCode.REFUSED_STREAM));
      }
      await assert.rejects(call, { code: Code.UNAVAILABLE, details: { notReached: true } });
    });
  });

  test('a connection lost in the middle: the outcome is unknown', async () => {
    await scripted([], async (script, client) => {
      const call = client.unary('/t/Echo', Buffer.of(1), plain());
      await until(() => script.requests.length === 1);
      script.sockets[0]?.destroy();
      await assert.rejects(
        call,
        (error: BigtableError) =>
          error.code === Code.UNAVAILABLE && error.details.notReached === undefined && /was lost/.test(error.message),
      );
    });
  });

  test('a silent server is sent a PING, and its connection is then closed', async () => {
    await scripted(
      [],
      async (script, client) => {
        await assert.rejects(client.unary('/t/Echo', Buffer.of(1), plain()), {
          code: Code.UNAVAILABLE,
          message: /does not answer: nothing came for 20 ms after a PING/,
        });
        assert.ok(script.frames.some(({ type }) => type === FrameType.PING));
      },
      { keepAliveMs: 10, keepAliveTimeoutMs: 20 },
    );
  });

  test('so is one that has answered no call, where none waits as long as that', async () => {
    await scripted(
      [],
      async (script, client) => {
        const abort = new AbortController();
        const call = client.unary('/t/Echo', Buffer.of(1), plain({ signal: abort.signal }));
        await until(() => script.requests.length === 1);
        abort.abort();
        await assert.rejects(call, { code: Code.CANCELLED });
        await until(() => script.sockets[0]?.destroyed === true);
        assert.ok(script.frames.some(({ type }) => type === FrameType.PING));
        assert.equal(client.connections, 0);
      },
      { keepAliveMs: 40, keepAliveTimeoutMs: 20 },
    );
  });

  test('and one that is silent for the time of some calls, one after another', async () => {
    await scripted(
      [],
      async (script, client) => {
        const late = (): Promise<void> =>
          assert.rejects(client.unary('/t/Echo', Buffer.of(1), within(20)), { code: Code.DEADLINE_EXCEEDED });
        await late();
        // those that were sent meanwhile tell no more than one does
        await Promise.all([late(), late()]);
        const answered = client.unary('/t/Echo', Buffer.of(2), plain());
        await until(() => script.requests.length === 4);
        script.send(script.ok(7, message(Buffer.of(2))));
        await answered;
        await late();
        const waiting = client.unary('/t/Echo', Buffer.of(3), plain());
        await late();
        assert.deepEqual([client.connections, script.sockets.length], [1, 1]);
        await Promise.all([
          late(),
          assert.rejects(waiting, {
            code: Code.UNAVAILABLE,
            message: /does not answer: nothing came in the time of 3/,
          }),
        ]);
        assert.equal(client.connections, 0);
        const next = client.unary('/t/Echo', Buffer.of(4), plain());
        await until(() => script.sockets.length === 2 && script.requests.length === 9);
        script.send(script.ok(1, message(Buffer.of(4))));
        assert.deepEqual(await next, Buffer.of(4));
      },
      { maxSilentCalls: 3 },
    );
  });

  test('PINGs and SETTINGS are answered, unknown frames passed over', async () => {
    await scripted([], async (script, client) => {
      const call = client.unary('/t/Echo', Buffer.of(1), plain());
      await until(() => script.requests.length === 1);
      script.send(
        frame(FrameType.PING, 0, 0, Buffer.from('12345678')),
        frame(99, 0xff, 0, Buffer.from('?')),
        settingsFrame([[4, 5]]),
        script.ok(1, message(Buffer.of(5))),
      );
      assert.equal((await call)[0], 5);
      await until(() =>
        script.frames.some(
          ({ type, flags, payload }) =>
            type === FrameType.PING && flags === Flag.ACK && payload.toString() === '12345678',
        ),
      );
      assert.equal(
        script.frames.filter(({ type, flags }) => type === FrameType.SETTINGS && flags === Flag.ACK).length,
        2,
      );
    });
  });

  test("a request waits for the server's window, and continues as it grows", async () => {
    await scripted([[4, 10]], async (script, client) => {
      const call = client.unary('/t/Echo', Buffer.alloc(20, 1), plain());
      const sentBytes = (): number =>
        script.frames
          .filter(({ type }) => type === FrameType.DATA)
          .reduce((sum, { payload }) => sum + payload.length, 0);
      await until(() => sentBytes() === 10);
      script.send(settingsFrame([[4, 12]]));
      await until(() => sentBytes() === 12);
      script.send(frame(FrameType.WINDOW_UPDATE, 0, 1, Buffer.of(0, 0, 0, 13)));
      await until(() => sentBytes() === 25);
      script.send(script.ok(1, message(Buffer.of(5))));
      await call;
    });
  });

  test('a request that stays open has no end, whatever the window; leaving the answer ends it', async () => {
    await scripted([[4, 10]], async (script, client) => {
      for (const [bytes, streamId] of [
        [2, 1],
        [20, 3],
      ] as const) {
        const answers = client
          .stream('/t/Watch', Buffer.alloc(bytes), plain(), undefined, true)
          [Symbol.asyncIterator]();
        const first = answers.next();
        const data = () => script.frames.filter((one) => one.type === FrameType.DATA && one.streamId === streamId);
        await until(() => data().length > 0);
        if (bytes > 10) script.send(frame(FrameType.WINDOW_UPDATE, 0, streamId, Buffer.of(0, 0, 0, 100)));
        script.send(script.headers(streamId, START), frame(FrameType.DATA, 0, streamId, message(Buffer.of(7))));
        assert.deepEqual([...(await first).value], [7]);
        await answers.return?.();
        const resets = () => script.frames.filter((one) => one.type === FrameType.RST_STREAM);
        await until(() => resets().some((one) => one.streamId === streamId));
        assert.equal(
          data().reduce((sum, { payload }) => sum + payload.length, 0),
          5 + bytes,
        );
        assert.ok(data().every(({ flags }) => (flags & Flag.END_STREAM) === 0));
      }
    });
  });

  test('gzip answers', async () => {
    await scripted([], async (script, client) => {
      const text = Buffer.from('compressible '.repeat(50));
      const gzip = [...START, 'grpc-encoding', 'gzip'];
      const answer = (streamId: number): Buffer =>
        Buffer.concat([
          script.headers(streamId, gzip),
          frame(
            FrameType.DATA,
            0,
            streamId,
            Buffer.concat([message(gzipSync(text), 1), message(Buffer.from('plain'))]),
          ),
          script.headers(streamId, ['grpc-status', '0'], true),
        ]);
      const messages = all(client.stream('/t/Echo', Buffer.of(1), plain()));
      await until(() => script.requests.length === 1);
      script.send(answer(1));
      assert.deepEqual(await messages, [text, Buffer.from('plain')]);
    });
  });

  const faults: readonly (readonly [
    name: string,
    expected: { code: Code; message?: RegExp },
    answer: (script: Script) => Buffer,
  ])[] = [
    [
      'trailers alone',
      { code: Code.NOT_FOUND, message: /^not here$/ },
      (script) => script.headers(1, [...START, 'grpc-status', '5', 'grpc-message', 'not%20here'], true),
    ],
    ['an unknown status', { code: Code.UNKNOWN }, (script) => script.headers(1, [...START, 'grpc-status', '77'], true)],
    ['HTTP 503', { code: Code.UNAVAILABLE }, (script) => script.headers(1, [':status', '503'], true)],
    [
      'HTTP 200 without gRPC',
      { code: Code.UNKNOWN, message: /text\/html/ },
      (script) => script.headers(1, [':status', '200', 'content-type', 'text/html']),
    ],
    [
      'an interim answer first',
      { code: Code.ABORTED },
      (script) =>
        Buffer.concat([
          script.headers(1, [':status', '103']),
          script.headers(1, [...START, 'grpc-status', '10'], true),
        ]),
    ],
    [
      'DATA that ends the stream',
      { code: Code.INTERNAL, message: /without a status/ },
      (script) => Buffer.concat([script.headers(1, START), frame(FrameType.DATA, Flag.END_STREAM, 1, Buffer.alloc(0))]),
    ],
    ['DATA without headers', { code: Code.INTERNAL }, () => frame(FrameType.DATA, 0, 1, message(Buffer.of(1)))],
    ['no message', { code: Code.INTERNAL, message: /0 messages/ }, (script) => script.ok(1)],
    [
      'two messages',
      { code: Code.INTERNAL, message: /2 messages/ },
      (script) => script.ok(1, message(Buffer.of(1)), message(Buffer.of(2))),
    ],
    [
      'half a message',
      { code: Code.INTERNAL, message: /within a message/ },
      (script) => script.ok(1, message(Buffer.of(1)).subarray(0, 4)),
    ],
    ['an invalid prefix', { code: Code.INTERNAL }, (script) => script.ok(1, message(Buffer.of(1), 9))],
    [
      'a message of 4 GiB',
      { code: Code.RESOURCE_EXHAUSTED },
      (script) => script.ok(1, Buffer.of(0, 255, 255, 255, 255)),
    ],
    ['gzip without notice', { code: Code.INTERNAL }, (script) => script.ok(1, message(gzipSync(Buffer.from('x')), 1))],
    [
      'invalid gzip',
      { code: Code.INTERNAL },
      (script) =>
        Buffer.concat([
          script.headers(1, [...START, 'grpc-encoding', 'gzip']),
          frame(FrameType.DATA, 0, 1, message(Buffer.from('nonsense of some length\x09\0\0\0'), 1)),
          script.headers(1, ['grpc-status', '0'], true),
        ]),
    ],
    [
      'an encoding not offered',
      { code: Code.INTERNAL, message: /"zstd"/ },
      (script) => script.headers(1, [...START, 'grpc-encoding', 'zstd']),
    ],
    [
      'headers above the limit',
      { code: Code.RESOURCE_EXHAUSTED, message: /header list of 84000 bytes/ },
      () => frame(FrameType.HEADERS, Flag.END_HEADERS, 1, Buffer.alloc(2000, 0x82)),
    ],
    [
      'RST_STREAM',
      { code: Code.INTERNAL, message: /INTERNAL_ERROR/ },
      () => rstStreamFrame(1, ErrorCode.INTERNAL_ERROR),
    ],
    [
      'RST_STREAM to calm down',
      { code: Code.RESOURCE_EXHAUSTED },
      () => rstStreamFrame(1, ErrorCode.ENHANCE_YOUR_CALM),
    ],
    [
      'a broken header block',
      { code: Code.INTERNAL, message: /broke the protocol/ },
      () => frame(FrameType.HEADERS, Flag.END_HEADERS, 1, Buffer.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff)),
    ],
    [
      'a push',
      { code: Code.INTERNAL, message: /PUSH_PROMISE/ },
      () => frame(FrameType.PUSH_PROMISE, Flag.END_HEADERS, 1, Buffer.of(0, 0, 0, 2)),
    ],
    [
      'a frame of 1 MiB',
      { code: Code.INTERNAL, message: /limit is 65536/ },
      () => Buffer.of(16, 0, 0, 0, 0, 0, 0, 0, 1),
    ],
    ['a stream that was never opened', { code: Code.INTERNAL }, (script) => script.headers(7, START)],
    [
      'a WINDOW_UPDATE of 0',
      { code: Code.INTERNAL, message: /WINDOW_UPDATE of 0/ },
      () => frame(FrameType.WINDOW_UPDATE, 0, 0, Buffer.alloc(4)),
    ],
    [
      'a short GOAWAY',
      { code: Code.INTERNAL, message: /too short/ },
      () => frame(FrameType.GOAWAY, 0, 0, Buffer.alloc(3)),
    ],
  ];
  for (const [name, expected, answer] of faults) {
    test(`answered with ${name}`, async () => {
      await scripted([], async (script, client) => {
        const call = client.unary('/t/Echo', Buffer.of(1), plain());
        call.catch(() => {});
        await until(() => script.requests.length === 1);
        script.send(answer(script));
        await assert.rejects(call, expected);
      });
    });
  }

  test('details come as bytes', async () => {
    await scripted([], async (script, client) => {
      const call = client.unary('/t/Echo', Buffer.of(1), plain());
      call.catch(() => {});
      await until(() => script.requests.length === 1);
      script.send(
        script.headers(
          1,
          [...START, 'grpc-status', '3', 'grpc-status-details-bin', encodeBinary(Buffer.from('{"x":1}'))],
          true,
        ),
      );
      await assert.rejects(call, { code: Code.INVALID_ARGUMENT, details: { x: 1 } });
    });
  });

  test('a peer that speaks something else, or nothing', async () => {
    await scripted(Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), async (_script, client) => {
      await assert.rejects(client.unary('/t/Echo', Buffer.of(1), plain()), {
        code: Code.UNAVAILABLE,
        message: /^the server at .* does not speak HTTP\/2/,
      });
    });
    // an alert of TLS: unexpected message
    await scripted(Buffer.from('15030100020246', 'hex'), async (_script, client) => {
      await assert.rejects(client.unary('/t/Echo', Buffer.of(1), plain()), {
        code: Code.UNAVAILABLE,
        message: /^the server at .* speaks TLS: connect to it with TLS/,
      });
    });
    await scripted(
      Buffer.alloc(0),
      async (_script, client) => {
        await assert.rejects(client.unary('/t/Echo', Buffer.of(1), plain()), {
          code: Code.UNAVAILABLE,
          message: /no connection within 30 ms/,
        });
      },
      { connectMs: 30 },
    );
  });
});
