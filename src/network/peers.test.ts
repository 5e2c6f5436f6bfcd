import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { until } from '../../test/raw-server.ts';
import { BigtableError, Code } from '../base/index.ts';
import { ByteBudget, requestContext } from '../env/index.ts';
import { across, type Process, startProcess } from './fixtures.ts';
import { PeerClients } from './peer-clients.ts';

const context = requestContext({ budget: new ByteBudget(1000) });

/** Two processes; the server's handler never answers the message "hang", and "wait" until the caller cancels it. */
async function pair(): Promise<{
  readonly server: Process;
  readonly client: Process;
  readonly started: () => number;
  call(message: unknown): Promise<unknown>;
  close(): Promise<void>;
}> {
  const [server, client] = [await startProcess('s1'), await startProcess('c1')];
  const transport = across(client, server);
  let started = 0;
  await transport.serve('a', {
    call: async (_method, message, { signal }) => {
      started++;
      if (message === 'hang') await new Promise(() => {});
      if (message === 'wait') await new Promise((_, reject) => signal?.addEventListener('abort', reject));
      return message;
    },
    async *stream() {
      yield 1;
      started++;
      await new Promise(() => {});
    },
  });
  return {
    server,
    client,
    started: () => started,
    call: (message) => transport.call('a', 'm', message, context),
    close: async () => {
      await client.close();
      await server.close();
    },
  };
}

async function outcomeOf(call: Promise<unknown>): Promise<BigtableError> {
  const thrown: unknown = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof BigtableError, String(thrown));
  return thrown;
}

describe('peers that are gone', () => {
  test('fail calls and streams under way, and later calls as not reached', async () => {
    const { server, client, started, call, close } = await pair();
    const hanging = outcomeOf(call('hang'));
    const answers = across(client, server).stream('a', 'm', null, context)[Symbol.asyncIterator]();
    assert.equal((await answers.next()).value, 1);
    const next = outcomeOf(answers.next());
    await until(() => started() === 2);
    await server.close();
    for (const error of [await hanging, await next]) {
      assert.equal(error.code, Code.UNAVAILABLE, error.message);
      assert.equal(error.details['notReached'], undefined, error.message);
    }
    for (let i = 0; i < 3; i++) {
      const error = await outcomeOf(call('later'));
      assert.equal(error.code, Code.UNAVAILABLE);
      assert.equal(error.details['notReached'], true, error.message);
      client.clock.advance(i * 500);
    }
    await close();
  });

  test('are called again when they are back, after a pause', async () => {
    const { server, client, call, close } = await pair();
    assert.equal(await call(1), 1);
    server.proxy.breakConnections();
    for (;;) {
      const answer = await call(2).catch((error: BigtableError) => error);
      if (answer === 2) break;
      client.clock.advance(1000);
    }
    assert.equal(server.proxy.sent.length, 2);
    await close();
  });

  test('and say nothing of it fail their calls after two pings’ time', async () => {
    const { server, client, started, call, close } = await pair();
    const hanging = outcomeOf(call('hang'));
    await until(() => started() === 1);
    server.proxy.goSilent();
    let over = false;
    void hanging.then(() => {
      over = true;
    });
    // keepAliveMs and the time for its answer are 2 s each; what was heard counts from the next look on
    for (let ms = 0; ms < 8000 && !over; ms += 500) {
      client.clock.advance(500);
      await client.clock.yield();
    }
    const error = await hanging;
    assert.equal(error.code, Code.UNAVAILABLE, error.message);
    assert.equal(error.details['notReached'], undefined);
    await close();
  });
});

describe('addresses', () => {
  test('that are not HOST:PORT/NAME are refused with words', async () => {
    const client = await startProcess('c1');
    for (const address of ['', 'a', '127.0.0.1:1', '127.0.0.1:1/', '127.0.0.1:1/a b', '/a', '127.0.0.1:1/a/b']) {
      const error = await outcomeOf(client.transport.call(address, 'm', 1, context));
      assert.equal(error.code, Code.INVALID_ARGUMENT, address);
      assert.match(error.message, /expected HOST:PORT\/NAME/);
    }
    await client.close();
  });

  test('of handlers that a process does not have are not reached', async () => {
    const { client, server, close } = await pair();
    const error = await outcomeOf(client.transport.call(server.addressOf('b'), 'm', 1, context));
    assert.equal(error.code, Code.UNAVAILABLE);
    assert.equal(error.details['notReached'], true);
    await close();
  });

  test('of this process are called directly: messages are passed as they are', async () => {
    const own = await startProcess('s1');
    const message = { any: () => 'thing' };
    await own.transport.serve(own.addressOf('a'), { call: async (_, received) => received, async *stream() {} });
    assert.equal(await own.transport.call(own.addressOf('a'), 'm', message, context), message);
    assert.equal(own.proxy.sent.length, 0);
    await own.close();
  });
});

test('connections are kept to so many peers; the one used the longest ago is drained', () => {
  const closed: string[] = [];
  const clients = new PeerClients(2, (address) => ({ close: () => void closed.push(address) }));
  const a = clients.of('a');
  clients.of('b');
  assert.equal(clients.of('a'), a);
  clients.of('c');
  assert.deepEqual(closed, ['b']);
  clients.of('d');
  assert.deepEqual([closed, clients.size], [['b', 'a'], 2]);
  assert.equal(clients.clear().length, 2);
});

describe('calls that their callers cancel', () => {
  test('do not end the connection, however many', async () => {
    const { server, client, started, call, close } = await pair();
    const hanging = outcomeOf(call('hang'));
    await until(() => started() === 1);
    const transport = across(client, server);
    for (let wave = 0; wave < 30; wave++) {
      const before = started();
      const aborts = Array.from({ length: 100 }, () => new AbortController());
      const calls = aborts.map(({ signal }) => outcomeOf(transport.call('a', 'm', 'wait', { ...context, signal })));
      await until(() => started() === before + aborts.length);
      for (const abort of aborts) abort.abort();
      for (const { code } of await Promise.all(calls)) assert.equal(code, Code.CANCELLED);
    }
    assert.equal(await call('plain'), 'plain');
    assert.equal(server.connections(), 1);
    await close();
    await hanging;
  });
});
