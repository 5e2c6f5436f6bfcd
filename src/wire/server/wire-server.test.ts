import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import * as grpc from '@grpc/grpc-js';
import { BigtableError, Code, invalidArgument } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import { rawServer, testEnv, testStatus, until } from '../../../test/raw-server.ts';
import { systemClock } from '../../platform/index.ts';
import type { RpcCall, RpcSink } from '../contract/rpc-server.ts';
import { lendMessage, MESSAGE_BUFFER_BYTES, takeMessageBuffer } from '../http2/message-buffers.ts';
import { WireServer } from './wire-server.ts';

const asIs = (bytes: Buffer): Buffer => bytes;
const MIB = 1024 * 1024;

describe('the wire', () => {
  const env = testEnv();
  let wire: Awaited<ReturnType<typeof rawServer>>;
  let context: RequestContext | undefined;
  let heldInside = 0;
  let over: unknown;
  let sentMessages = 0;
  const lent = new Set<ArrayBufferLike>();

  before(async () => {
    wire = await rawServer(env, (server) => {
      const echo = async (call: RpcCall, request: Buffer): Promise<Buffer> => {
        context = call.context;
        heldInside = call.context.reservation.heldBytes;
        return Buffer.concat([request, Buffer.from(call.header('x-add') ?? '')]);
      };
      const forever = (call: RpcCall): Promise<never> =>
        new Promise((_resolve, reject) =>
          call.context.signal?.addEventListener('abort', () => {
            over = call.context.signal?.reason;
            reject(over);
          }),
        );
      const endless = async (_call: RpcCall, sink: RpcSink, size: number): Promise<void> => {
        try {
          for (sentMessages = 0; ; sentMessages++) await sink.send(Buffer.alloc(size));
        } catch (error) {
          over = error;
          throw error;
        }
      };
      server.register('/t/Echo', { kind: 'unary', handle: echo });
      server.register('/t/Fail', {
        kind: 'unary',
        handle: async () => Promise.reject(invalidArgument('bad é', { field: 'x' })),
      });
      server.register('/t/Throw', {
        kind: 'unary',
        handle: () => {
          throw new TypeError('a bug');
        },
      });
      server.register('/t/Forever', { kind: 'unary', handle: forever });
      server.register('/t/Count', {
        kind: 'stream',
        handle: async (_call, request, sink) => {
          for (let i = 0; i < (request[0] ?? 0); i++) await sink.send(Buffer.from([i]));
        },
      });
      server.register('/t/Copies', {
        kind: 'stream',
        handle: (_call, request, sink) => {
          const bytes = Buffer.alloc(request.readUInt32BE(1));
          for (let i = 0; i < (request[0] ?? 0); i++) void sink.sendCopy(bytes.fill(i))?.catch(() => {});
          bytes.fill(0xff);
          return undefined;
        },
      });
      server.register('/t/Lent', {
        kind: 'stream',
        handle: async (_call, request, sink) => {
          for (let i = 0; i < (request[0] ?? 0); i++) {
            const buffer = takeMessageBuffer();
            const message = buffer.fill(i).subarray(0, MESSAGE_BUFFER_BYTES - i);
            lendMessage(message, buffer);
            lent.add(buffer.buffer);
            await sink.send(message);
          }
        },
      });
      const throwing = (): never => {
        throw invalidArgument('synchronous');
      };
      server.register('/t/ThrowInStream', { kind: 'stream', handle: throwing });
      server.register('/t/ThrowInChat', { kind: 'bidi', handle: throwing });
      server.register('/t/CountThenFail', {
        kind: 'stream',
        handle: async (_call, _request, sink) => {
          await sink.send(Buffer.from([1]));
          throw new BigtableError(Code.DATA_LOSS, 'half way');
        },
      });
      server.register('/t/Silent', { kind: 'stream', handle: forever });
      server.register('/t/Endless', { kind: 'stream', handle: (call, _request, sink) => endless(call, sink, 100_000) });
      server.register('/t/Chat', {
        kind: 'bidi',
        handle: async (_call, requests, sink) => {
          for await (const bytes of requests) await sink.send(bytes);
        },
      });
    });
  });

  after(async () => {
    await wire.close();
  });

  test("a unary call carries bytes, headers and a context, and holds its request's bytes", async () => {
    const metadata = new grpc.Metadata();
    metadata.set('x-add', '!');
    const { messages } = await wire.call('/t/Echo', [Buffer.from('hello')], { metadata, deadlineMs: 60_000 });
    assert.equal(Buffer.concat(messages).toString(), 'hello!');
    assert.equal(heldInside, 5);
    assert.ok(
      context &&
        context.deadlineMs > systemClock.monotonicMs() + 50_000 &&
        context.deadlineMs < systemClock.monotonicMs() + 61_000,
    );
    await until(() => env.requestBudget.usedBytes === 0);
    await wire.call('/t/Echo', [Buffer.from('x')]);
    assert.equal(context?.deadlineMs, Number.POSITIVE_INFINITY);
  });

  test('the trace of the caller reaches the context', async () => {
    const metadata = new grpc.Metadata();
    metadata.set('traceparent', '00-abc-def-01');
    await wire.call('/t/Echo', [Buffer.alloc(0)], { metadata });
    assert.equal(context?.trace, '00-abc-def-01');
  });

  test('failures carry code, message and details', async () => {
    const { code, message, trailers } = await wire.call('/t/Fail', [Buffer.alloc(0)]);
    assert.deepEqual([code, message], [Code.INVALID_ARGUMENT, 'bad é']);
    assert.equal(trailers.get('grpc-status-details-bin').length, 1);
  });

  test("a bug in a handler is INTERNAL and goes to the log; the caller's faults do not", async () => {
    const before = env.errors.length;
    assert.equal((await wire.call('/t/Throw', [Buffer.alloc(0)])).code, Code.INTERNAL);
    assert.equal((await wire.call('/t/Fail', [Buffer.alloc(0)])).code, Code.INVALID_ARGUMENT);
    assert.equal(env.errors.length, before + 1);
    assert.match(env.errors.at(-1) ?? '', /a bug.*wire-server/s);
  });

  test('streams end well, or with their error after what was sent', async () => {
    const counted = await wire.call('/t/Count', [Buffer.from([5])]);
    assert.deepEqual([counted.code, Buffer.concat(counted.messages)], [Code.OK, Buffer.from([0, 1, 2, 3, 4])]);
    const failed = await wire.call('/t/CountThenFail', [Buffer.alloc(0)]);
    assert.deepEqual([failed.code, failed.messages.length], [Code.DATA_LOSS, 1]);
  });

  test('a message that was sent as a copy may be overwritten immediately, whether or not it could go out', async () => {
    for (const [count, size] of [
      [3, 10],
      [3, 4096],
      [3, 4097],
      [40, 4000],
    ] as const) {
      const request = Buffer.alloc(5);
      request[0] = count;
      request.writeUInt32BE(size, 1);
      const { code, messages } = await wire.call('/t/Copies', [request]);
      assert.equal(code, Code.OK);
      assert.ok(
        messages.length === count && messages.every((bytes, i) => bytes.equals(Buffer.alloc(size, i))),
        `${count} of ${size}`,
      );
    }
  });

  test('the memory of a message that is lent is reused, and not before the message was sent', async () => {
    const count = 200;
    const calls = await Promise.all([1, 2, 3].map(() => wire.call('/t/Lent', [Buffer.from([count])])));
    for (const { code, messages } of calls) {
      assert.equal(code, Code.OK);
      assert.equal(messages.length, count);
      for (const [i, bytes] of messages.entries())
        assert.ok(bytes.equals(Buffer.alloc(MESSAGE_BUFFER_BYTES - i, i)), `message ${i}`);
    }
    assert.ok(lent.size < 3 * count, `${lent.size} buffers`);
  });

  test('a stream may end, or fail, before its handler returns', async () => {
    const request = Buffer.alloc(5);
    assert.deepEqual((await wire.call('/t/Copies', [request])).code, Code.OK);
    for (const path of ['/t/ThrowInStream', '/t/ThrowInChat']) {
      const { code, message } = await wire.call(path, [Buffer.alloc(0)], { deadlineMs: 60_000 });
      assert.deepEqual([code, message], [Code.INVALID_ARGUMENT, 'synchronous']);
    }
    await until(() => env.requestBudget.usedBytes === 0);
  });

  test('a chat answers message by message', async () => {
    const { code, messages } = await wire.call('/t/Chat', [Buffer.from('a'), Buffer.from('b')]);
    assert.deepEqual([code, Buffer.concat(messages).toString()], [Code.OK, 'ab']);
  });

  test('an unknown path is UNIMPLEMENTED', async () => {
    const { code, message } = await wire.call('/t/Nothing', [Buffer.alloc(0)]);
    assert.equal(code, Code.UNIMPLEMENTED);
    assert.match(message, /t\/Nothing/);
  });

  test('headers of a stream come before its first message', async () => {
    const call = wire.client.makeServerStreamRequest('/t/Silent', asIs, asIs, Buffer.alloc(0));
    call.on('error', () => {});
    await new Promise((resolve) => call.once('metadata', resolve));
    call.cancel();
  });

  test('a caller that cancels aborts the call', async () => {
    const abort = new AbortController();
    over = undefined;
    const call = wire.call('/t/Forever', [Buffer.alloc(3)], { signal: abort.signal });
    await until(() => env.requestBudget.usedBytes === 3);
    abort.abort();
    assert.equal((await call).code, Code.CANCELLED);
    await until(() => over !== undefined);
    assert.equal((over as BigtableError).code, Code.CANCELLED);
    await until(() => env.requestBudget.usedBytes === 0);
  });

  test('a deadline ends the call on both sides', async () => {
    over = undefined;
    assert.equal((await wire.call('/t/Forever', [Buffer.alloc(0)], { deadlineMs: 30 })).code, Code.DEADLINE_EXCEEDED);
    await until(() => over !== undefined);
    assert.ok(over instanceof BigtableError);
  });

  test('a reader that stops reading stops the writer; one that leaves ends it', async () => {
    over = undefined;
    const call = wire.client.makeServerStreamRequest('/t/Endless', asIs, asIs, Buffer.alloc(0));
    call.on('error', () => {});
    await new Promise((resolve) => call.once('data', (bytes) => resolve(call.pause() && bytes)));
    let [last, still] = [-1, 0];
    while (still < 200) {
      still = sentMessages === last ? still + 1 : 0;
      last = sentMessages;
      await systemClock.yield();
    }
    assert.ok(env.requestBudget.usedBytes <= MIB + 100_000, `${env.requestBudget.usedBytes} bytes are held`);
    assert.ok(sentMessages < 100, `${sentMessages} messages were made`);
    call.cancel();
    await until(() => over !== undefined);
    assert.equal((over as BigtableError).code, Code.CANCELLED);
    await until(() => env.requestBudget.usedBytes === 0);
  });

  test('a deadline reaches a writer whose reader has stopped', async () => {
    over = undefined;
    const call = wire.client.makeServerStreamRequest('/t/Endless', asIs, asIs, Buffer.alloc(0), new grpc.Metadata(), {
      deadline: Date.now() + 150,
    });
    call.on('error', () => {});
    call.once('data', () => call.pause());
    await until(() => over !== undefined);
    assert.ok([Code.DEADLINE_EXCEEDED, Code.CANCELLED].includes((over as BigtableError).code as 1));
    call.cancel();
    await until(() => env.requestBudget.usedBytes === 0);
  });
});

describe('memory', () => {
  test('a request waits for space in the budget, and ends with its caller', async () => {
    const env = testEnv(4 * 1024 * 1024);
    let running = 0;
    let finish: (() => void) | undefined;
    const wire = await rawServer(env, (server) => {
      server.register('/t/Hold', {
        kind: 'unary',
        handle: () =>
          new Promise((resolve) => {
            running++;
            finish = () => resolve(Buffer.alloc(0));
          }),
      });
    });
    const first = wire.call('/t/Hold', [Buffer.alloc(2_000_000)]);
    await until(() => running === 1);
    const second = wire.call('/t/Hold', [Buffer.alloc(2_000_000)]);
    const impatient = wire.call('/t/Hold', [Buffer.alloc(2_000_000)], { deadlineMs: 50 });
    await until(() => env.requestBudget.waiting === 2);
    assert.equal((await impatient).code, Code.DEADLINE_EXCEEDED);
    await until(() => env.requestBudget.waiting === 1);
    assert.equal(running, 1);
    finish?.();
    assert.equal((await first).code, Code.OK);
    await until(() => running === 2);
    finish?.();
    assert.equal((await second).code, Code.OK);
    await until(() => env.requestBudget.usedBytes === 0);
    await wire.close();
  });

  test('a spent budget slows a stream down and does not stop it', async () => {
    const env = testEnv(10);
    const wire = await rawServer(env, (server) => {
      server.register('/t/Big', {
        kind: 'stream',
        handle: async (_call, _request, sink) => {
          for (let i = 0; i < 50; i++) await sink.send(Buffer.alloc(10_000, i));
        },
      });
    });
    const other = env.requestBudget.reservation();
    assert.ok(other.tryGrow(10));
    const { code, messages } = await wire.call('/t/Big', [Buffer.alloc(0)]);
    assert.deepEqual([code, messages.length], [Code.OK, 50]);
    other.release();
    await until(() => env.requestBudget.usedBytes === 0);
    await wire.close();
  });
});

describe('addresses and closing', () => {
  test('an address in use and one that is not ours fail with different codes', async () => {
    const env = testEnv();
    const first = new WireServer({ env, statusOf: testStatus });
    const port = await first.listen('127.0.0.1', 0);
    await assert.rejects(new WireServer({ env, statusOf: testStatus }).listen('127.0.0.1', port), {
      code: Code.ALREADY_EXISTS,
      message: new RegExp(`127.0.0.1:${port} is already in use`),
    });
    await assert.rejects(new WireServer({ env, statusOf: testStatus }).listen('192.0.2.1', 0), {
      code: Code.UNAVAILABLE,
      message: /cannot listen on 192.0.2.1/,
    });
    await first.close(0);
    const again = new WireServer({ env, statusOf: testStatus });
    assert.equal(await again.listen('127.0.0.1', port), port);
    await again.close(0);
  });

  test('closing lets calls in progress end, and cuts off those that take too long', async () => {
    const env = testEnv();
    let finish: (() => void) | undefined;
    const wire = await rawServer(env, (server) => {
      server.register('/t/Hold', {
        kind: 'unary',
        handle: () =>
          new Promise((resolve) => {
            finish = () => resolve(Buffer.from('done'));
          }),
      });
    });
    const patient = wire.call('/t/Hold', [Buffer.alloc(0)]);
    await until(() => finish !== undefined);
    const closed = wire.server.close(60_000);
    finish?.();
    assert.equal((await patient).code, Code.OK);
    await closed;
    wire.client.close();

    finish = undefined;
    const other = await rawServer(env, (server) =>
      server.register('/t/Hold', {
        kind: 'unary',
        handle: () =>
          new Promise(() => {
            finish = () => {};
          }),
      }),
    );
    const stuck = other.call('/t/Hold', [Buffer.alloc(0)]);
    await until(() => finish !== undefined);
    await other.server.close(20);
    assert.notEqual((await stuck).code, Code.OK);
    other.client.close();
  });
});
