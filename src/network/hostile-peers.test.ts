/** Peers that break the rules, on loopback sockets: before, within and after the greeting, and around the end. */
import assert from 'node:assert/strict';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { testEnv, until } from '../../test/raw-server.ts';
import { BigtableError, Code } from '../base/index.ts';
import { ByteBudget, CallContext, type RequestContext, requestContext } from '../env/index.ts';
import { systemClock } from '../platform/index.ts';
import { across, CLUSTER, PLAIN_CODEC, type Process, SECRET, startProcess } from './fixtures.ts';
import { admitClient } from './greeting.ts';
import { NetworkTransport } from './index.ts';

const budget = new ByteBudget(1000);
const context = requestContext({ budget });
const IDENTITY = { name: 'false', cluster: CLUSTER, role: 'server' };

async function failureOf(call: Promise<unknown>): Promise<BigtableError> {
  const thrown: unknown = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof BigtableError, String(thrown));
  return thrown;
}

function assertNotReached(error: BigtableError, of?: unknown): void {
  assert.deepEqual([error.code, error.details['notReached']], [Code.UNAVAILABLE, true], `${String(of)}: ${error}`);
}

async function startUntilEnd(t: TestContext, name: string): Promise<Process> {
  const process = await startProcess(name);
  t.after(() => process.close());
  return process;
}

/** A server of anyone, that does `answer` with each of its sockets. */
async function listening(t: TestContext, answer: (socket: Socket) => void): Promise<string> {
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    answer(socket);
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `127.0.0.1:${(server.address() as { port: number }).port}/a`;
}

/** A server that echoes, and never answers "hang". */
async function echoing(t: TestContext): Promise<{ readonly server: Process; readonly started: unknown[] }> {
  const server = await startUntilEnd(t, 's1');
  const started: unknown[] = [];
  await server.transport.serve(server.addressOf('a'), {
    call: async (_method, message) => {
      started.push(message);
      if (message === 'hang') await new Promise(() => {});
      return message;
    },
    async *stream() {},
  });
  return { server, started };
}

const field = (number: number, value: string): Buffer =>
  Buffer.concat([Buffer.of(number * 8 + 2, value.length), Buffer.from(value, 'latin1')]);
const framed = (bytes: Buffer): Buffer => Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 255), bytes]);
const SETTINGS = Buffer.of(0, 0, 0, 4, 0, 0, 0, 0, 0);

describe('a port that is that of another program now', () => {
  test('is not reached, whatever it answers to the greeting', async (t) => {
    const client = await startUntilEnd(t, 'c1');
    const [http, ssh] = ['HTTP/1.1 400 Bad Request\r\n\r\n', 'SSH-2.0-OpenSSH_9.6\r\n'];
    for (const answer of [http, ssh, '\0\0', '\0\x05hello', '\x0f\xff', '\xff\xff', '\0\x04\0\0\0\0', '']) {
      const address = await listening(t, (socket) => socket.end(Buffer.from(answer, 'latin1')));
      assertNotReached(await failureOf(client.transport.call(address, 'm', 1, context)), answer);
    }
  });

  test('cannot choose the code with which it refuses', async (t) => {
    const client = await startUntilEnd(t, 'c1');
    for (const code of [0, Code.NOT_FOUND, Code.ALREADY_EXISTS, Code.ABORTED, Code.CANCELLED, 100]) {
      const address = await listening(t, (socket) => {
        socket.once('data', () => {
          const version = Buffer.of(10, 6, 8, 1, 16, 0, 24, 0);
          const hello = Buffer.concat([
            version,
            field(2, 'x'),
            field(3, 'y'),
            field(4, 'n'.repeat(32)),
            field(5, CLUSTER),
          ]);
          const refusal = Buffer.concat([Buffer.of(8, code), field(2, 'as you wish')]);
          socket.write(Buffer.concat([framed(hello), framed(field(2, refusal.toString('latin1')))]));
        });
      });
      const error = await failureOf(client.transport.call(address, 'm', 1, context));
      assertNotReached(error, code);
      assert.match(error.message, /refused by the y x: as you wish/);
    }
  });

  test('that is silent holds a call until its deadline, or until it is cancelled', async (t) => {
    const client = await startUntilEnd(t, 'c1');
    let connections = 0;
    const address = await listening(t, () => void connections++);
    const call = (of: Partial<RequestContext>) =>
      failureOf(client.transport.call(address, 'm', 1, { ...context, signal: undefined, ...of }));
    const cancelled = new CallContext({ budget });
    const calls = [
      failureOf(client.transport.call(address, 'm', 1, cancelled)),
      call({ deadlineMs: client.clock.monotonicMs() + 100 }),
      call({ deadlineMs: Number.NEGATIVE_INFINITY }),
      call({ deadlineMs: client.clock.monotonicMs() }),
      call({ deadlineMs: Number.MAX_SAFE_INTEGER }),
    ] as const;
    await until(() => connections === 1);
    cancelled.interrupt(new BigtableError(Code.CANCELLED, 'enough'));
    for (let ms = 0; ms < 4000; ms += 100) client.clock.advance(100);
    const codes = (await Promise.all(calls)).map(({ code }) => code);
    const { CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE } = Code;
    assert.deepEqual(codes, [CANCELLED, DEADLINE_EXCEEDED, DEADLINE_EXCEEDED, DEADLINE_EXCEEDED, UNAVAILABLE]);
  });
});

describe('a peer of the cluster that greets', () => {
  const afterGreeting =
    (bytes: Buffer) =>
    (socket: Socket): void => {
      void admitClient(socket, IDENTITY, SECRET).then(() => {
        socket.resume();
        socket.write(bytes);
      });
    };

  /** Answers each request. A frame of stream 1 in the answer becomes one of the request's. */
  const afterRequest =
    (answer: Buffer) =>
    (socket: Socket): void => {
      void admitClient(socket, IDENTITY, SECRET).then(() => {
        let received = Buffer.alloc(0);
        // the frames after the preface
        let at = 24;
        socket.write(SETTINGS);
        socket.on('data', (chunk: Buffer) => {
          received = Buffer.concat([received, chunk]);
          for (; received.length >= at + 9; at += 9 + received.readUIntBE(at, 3)) {
            if (received[at + 3] !== 1) continue;
            const own = Buffer.from(answer);
            if (own[8] === 1) received.copy(own, 5, at + 5, at + 9);
            socket.write(own);
          }
        });
      });
    };

  test('and then does not speak HTTP/2, is not reached', async (t) => {
    const client = await startUntilEnd(t, 'c1');
    for (const bytes of [Buffer.alloc(100, 0xff), Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')]) {
      const address = await listening(t, afterGreeting(bytes));
      assertNotReached(await failureOf(client.transport.call(address, 'm', 1, context)));
    }
  });

  test('and then breaks HTTP/2, fails a call that it may have begun, whose outcome is unknown', async (t) => {
    const client = await startUntilEnd(t, 'c1');
    const address = await listening(t, afterGreeting(Buffer.concat([SETTINGS, Buffer.alloc(100, 0xff)])));
    const error = await failureOf(client.transport.call(address, 'm', 1, context));
    assert.deepEqual([error.code, error.details['notReached']], [Code.UNAVAILABLE, undefined]);
    assert.match(error.message, /broke the protocol/);
  });

  test('and then ends a call without an answer, leaves its outcome unknown, in whatever way it ends it', async (t) => {
    const client = await startUntilEnd(t, 'c1');
    const reset = (code: number): Buffer => Buffer.of(0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, code);
    const headers = (flags: number, ...block: number[]): Buffer =>
      Buffer.from([0, 0, block.length, 1, flags, 0, 0, 0, 1, ...block]);
    // END_STREAM and END_HEADERS; :status 200, 400, 404, 500 of HPACK's static table
    const answers = [0x88, 0x8c, 0x8d, 0x8e].map((status) => headers(5, status));
    const [noError, internalError, cancel, protocolError, insecure] = [0, 2, 8, 1, 12];
    const resets = [noError, internalError, cancel, protocolError, insecure].map(reset);
    const dataFirst = Buffer.of(0, 0, 1, 0, 0, 0, 0, 0, 1, 7);
    const text = (value: string): number[] => [value.length, ...Buffer.from(value)];
    const statuses = ['1', '2', '13', '99', '-1'].map((status) =>
      headers(
        5,
        0x88,
        0,
        ...text('content-type'),
        ...text('application/grpc'),
        0,
        ...text('grpc-status'),
        ...text(status),
      ),
    );
    const garbage = [0, ...text('grpc-status-details-bin'), ...text('AQID')];
    const unreadable = headers(5, 0x88, 0, ...text('grpc-status'), ...text('5'), ...garbage);
    for (const answer of [...answers, ...resets, dataFirst, ...statuses, unreadable]) {
      const address = await listening(t, afterRequest(answer));
      const error = await failureOf(client.transport.call(address, 'm', 1, context));
      const found = [error.code, error.details['notReached']];
      assert.deepEqual(found, [Code.UNAVAILABLE, undefined], `${answer.toString('hex')}: ${error.message}`);
    }
  });

  test('and refuses a call before it has begun it, is not reached', async (t) => {
    const client = await startUntilEnd(t, 'c1');
    const refused = Buffer.of(0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 7);
    const goAway = Buffer.of(0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    for (const answer of [refused, goAway]) {
      const address = await listening(t, (socket) => afterRequest(answer)(socket));
      const failing = failureOf(client.transport.call(address, 'm', 1, context));
      let isOver = false;
      void failing.then(() => {
        isOver = true;
      });
      for (let i = 0; i < 200 && !isOver; i++) {
        client.clock.advance(20);
        await client.clock.yield();
      }
      assertNotReached(await failing, answer.toString('hex'));
    }
  });

  test('and takes no calls, holds them until their deadlines, and those without one for the time of a connection', async (t) => {
    const client = await startUntilEnd(t, 'c1');
    let connections = 0;
    const noStreams = Buffer.of(0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0);
    const address = await listening(t, (socket) => {
      connections++;
      afterGreeting(noStreams)(socket);
    });
    const startMs = client.clock.monotonicMs();
    const ends: number[] = [];
    const call = async (of: Partial<RequestContext>): Promise<BigtableError> => {
      const error = await failureOf(client.transport.call(address, 'm', 1, { ...context, signal: undefined, ...of }));
      ends.push(client.clock.monotonicMs() - startMs);
      return error;
    };
    const calls = [call({ deadlineMs: startMs + 500 }), call({ deadlineMs: startMs + 1000 }), call({})] as const;
    await until(() => connections === 1);
    for (let i = 0; i < 100; i++) await client.clock.yield();
    for (let ms = 0; ms < 4000; ms += 100) {
      client.clock.advance(100);
      for (let i = 0; i < 10; i++) await client.clock.yield();
    }
    const [first, second, endless] = await Promise.all(calls);
    assert.deepEqual([first.code, second.code], [Code.DEADLINE_EXCEEDED, Code.DEADLINE_EXCEEDED]);
    assertNotReached(endless);
    assert.match(endless.message, /it took no call within 3000 ms/);
    assert.ok(ends[0]! <= 600 && ends[1]! <= 1100 && ends[2]! <= 4000, String(ends));
  });

  test('byte by byte, with HTTP/2 right behind it, is called', async (t) => {
    const { server } = await echoing(t);
    const client = await startUntilEnd(t, 'c1');
    const address = await listening(t, (near) => {
      const far = connect({ host: '127.0.0.1', port: server.proxy.port, noDelay: true });
      near.setNoDelay(true);
      for (const [from, to] of [[near, far] as const, [far, near] as const]) {
        from.on('error', () => {});
        from.on('close', () => to.destroy());
        let before = Promise.resolve();
        from.on('data', (chunk: Buffer) => {
          before = before.then(async () => {
            for (const byte of chunk) {
              to.write(Buffer.of(byte));
              await systemClock.yield();
            }
          });
        });
      }
    });
    await server.transport.serve(address, { call: async (_, message) => message, async *stream() {} });
    assert.equal(await client.transport.call(address, 'm', 'slowly', context), 'slowly');
  });
});

describe('a transport that is closed', () => {
  test('makes no connection for a later call', async (t) => {
    const { server } = await echoing(t);
    const client = await startUntilEnd(t, 'c1');
    const transport = across(client, server);
    assert.equal(await transport.call('a', 'm', 1, context), 1);
    await client.transport.close(0);
    assertNotReached(await failureOf(transport.call('a', 'm', 2, context)));
    assertNotReached(await failureOf((async () => transport.stream('a', 'm', 2, context)[Symbol.asyncIterator]())()));
    assert.equal(server.proxy.sent.length, 1);
  });

  test('cuts off its own calls, after the grace, with an unknown outcome', async (t) => {
    const { server, started } = await echoing(t);
    const client = await startUntilEnd(t, 'c1');
    const hanging = failureOf(across(client, server).call('a', 'm', 'hang', context));
    await until(() => started.includes('hang'));
    const closed = client.transport.close(1000);
    client.clock.advance(1000);
    await closed;
    const error = await hanging;
    assert.deepEqual([error.code, error.details['notReached']], [Code.UNAVAILABLE, undefined], error.message);
  });

  test('while it begins to listen, does not listen', async () => {
    const transport = new NetworkTransport({ env: testEnv(), codec: PLAIN_CODEC, identity: IDENTITY, secret: SECRET });
    const listening = failureOf(transport.listen('127.0.0.1', 0));
    await transport.close(0);
    assert.equal((await listening).code, Code.UNAVAILABLE);
    await transport.close(0);
  });
});

test('a call whose app profile or principal fits no header fails alone', async (t) => {
  const { server, started } = await echoing(t);
  const client = await startUntilEnd(t, 'c1');
  const transport = across(client, server);
  const hanging = failureOf(transport.call('a', 'm', 'hang', context));
  await until(() => started.includes('hang'));
  const giant = ['p'.repeat(1 << 20), '\0'.repeat(30_000), 'p'.repeat(9000), 'half \ud800'];
  for (const of of giant.flatMap((text) => [{ appProfile: text }, { principal: text }])) {
    const error = await failureOf(transport.call('a', 'm', 1, { ...context, signal: undefined, ...of }));
    assert.equal(error.code, Code.INVALID_ARGUMENT, error.message);
    assert.match(error.message, /invalid (app profile|principal): (\d+ characters|it holds half)/);
  }
  assert.equal(server.proxy.sent.length, 1);
  await client.close();
  await hanging;
});
