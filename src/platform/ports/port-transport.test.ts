import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { transportContract } from '../../../test/contracts/transport-contract.ts';
import { BigtableError, Code } from '../../base/index.ts';
import {
  ByteBudget,
  type CallHandler,
  type ContextOptions,
  LocalTransport,
  ManualClock,
  Metrics,
  requestContext,
  type Transport,
} from '../../env/index.ts';
import { acrossPort, portPair } from '../fixtures.ts';
import { PortPeer } from './port-peer.ts';
import { PortTransport } from './port-transport.ts';

/**
 * Time stands still unless a test advances it; turns of the event loop are real ones, since ports deliver messages in
 * them.
 */
class PortClock extends ManualClock {
  override yield(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
}

transportContract('ports', async () => {
  const clock = new PortClock();
  const { here, there, close } = portPair(clock);
  return {
    transport: acrossPort(here, there),
    nowMs: () => clock.monotonicMs(),
    pass: (ms) => clock.advance(ms),
    close: async () => close(),
  };
});

/** Two threads that call a third. Where their ports break they get others, as those to a thread that replaces one. */
transportContract('ports that break', async () => {
  const clock = new PortClock();
  const make = () => new PortTransport(new LocalTransport(clock));
  const [called, first, second] = [make(), make(), make()];
  const addresses = new Set<string>();
  let routes: { readonly caller: PortTransport; readonly near: PortPeer; readonly far: PortPeer }[] = [];
  const connect = (): void => {
    routes = [first, second].map((caller) => {
      const { port1, port2 } = new MessageChannel();
      const [near, far] = [
        { port: port1, of: caller },
        { port: port2, of: called },
      ].map(
        ({ port, of: { handlerOf } }) =>
          new PortPeer({ port, clock, budget: new ByteBudget(1 << 20), metrics: new Metrics(), handlerOf }),
      ) as [PortPeer, PortPeer];
      for (const address of addresses) caller.route(address, near);
      return { caller, near, far };
    });
  };
  const from = (caller: PortTransport): Transport => ({
    serve: (address, handler) => {
      addresses.add(address);
      for (const route of routes) route.caller.route(address, route.near);
      return called.serve(address, handler);
    },
    call: (...args) => caller.call(...args),
    stream: (...args) => caller.stream(...args),
  });
  connect();
  return {
    transport: from(first),
    nowMs: () => clock.monotonicMs(),
    pass: (ms) => clock.advance(ms),
    close: async () => {
      for (const { near, far } of routes) for (const peer of [near, far]) peer.close();
    },
    lossy: {
      second: from(second),
      breakConnections: () => {
        for (const { far } of routes) far.close();
        connect();
      },
    },
  };
});

describe('PortTransport', () => {
  const context = (options: Partial<ContextOptions> = {}) =>
    requestContext({ budget: new ByteBudget(1 << 20), ...options });

  async function served(handler: Partial<CallHandler>) {
    const pair = portPair(new PortClock());
    await pair.there.transport.serve('a', { call: async () => undefined, stream: async function* () {}, ...handler });
    pair.here.transport.route('a', pair.here.peer);
    return pair;
  }

  test('a thread that ends fails the calls and streams under way with UNAVAILABLE, and those to come', async () => {
    const { here, there } = await served({ call: () => new Promise(() => {}), stream: () => hanging() });
    const calls = [
      here.transport.call('a', 'm', null, context()),
      here.transport.stream('a', 'm', null, context())[Symbol.asyncIterator]().next(),
    ];
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    there.peer.close();
    for (const call of calls)
      await rejectsWith(Code.UNAVAILABLE, call, (error) => error.details['notReached'] === undefined);
    await rejectsWith(
      Code.UNAVAILABLE,
      here.transport.call('a', 'm', null, context()),
      (error) => error.details['notReached'] === true,
    );
  });

  test('the requests of a thread that ends are cancelled', async () => {
    let given: (() => void) | undefined;
    const aborted = new Promise<void>((resolve) => {
      given = resolve;
    });
    const { here } = await served({
      call: (_method, _message, received) =>
        new Promise(() => received.signal?.addEventListener('abort', () => given?.())),
    });
    const call = here.transport.call('a', 'm', null, context());
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    here.peer.close();
    await rejectsWith(Code.UNAVAILABLE, call);
    await aborted;
  });

  test('a message that cannot be cloned fails its call alone, and so does an answer', async () => {
    const { here, close } = await served({ call: async (method) => (method === 'bad' ? { f: () => {} } : 'good') });
    await assert.rejects(here.transport.call('a', 'good', { f: () => {} }, context()));
    await assert.rejects(here.transport.call('a', 'bad', null, context()));
    assert.equal(await here.transport.call('a', 'good', null, context()), 'good');
    close();
  });

  test('items of a stream that is cancelled while they are in flight do no harm', async () => {
    const { here, close } = await served({
      call: async () => 'still here',
      stream: async function* () {
        for (let n = 0; ; n++) yield { n, bytes: Buffer.alloc(10) };
      },
    });
    for (let i = 0; i < 20; i++) for await (const _ of here.transport.stream('a', 'm', null, context())) break;
    assert.equal(await here.transport.call('a', 'm', null, context()), 'still here');
    close();
  });

  test('bytes that a handler reserves are released when its call or stream ends, in every way', async () => {
    const { here, there, close } = await served({
      call: async (method, _message, received) => {
        assert.ok(received.reservation.tryGrow(1000));
        if (method === 'fail') throw new Error('as planned');
      },
      stream: async function* (_method, _message, received) {
        received.reservation.tryGrow(1000);
        for (let n = 0; n < 10; n++) yield n;
      },
    });
    await here.transport.call('a', 'm', null, context());
    await assert.rejects(here.transport.call('a', 'fail', null, context()));
    for await (const _ of here.transport.stream('a', 'm', null, context()));
    for await (const _ of here.transport.stream('a', 'm', null, context())) break;
    await here.transport.call('a', 'm', null, context());
    assert.equal(there.budget.usedBytes, 0);
    close();
  });

  test('a call that is passed on holds its bytes at both ends, and never waits for calls that wait there', async () => {
    let heldInside = 0;
    const { here, there, close } = await served({
      call: async (_method, _message, received) => {
        heldInside = received.reservation.heldBytes;
        return 'answered';
      },
    });
    const [full, waiting] = [there.budget.reservation(), there.budget.reservation()];
    full.force(2 << 20);
    const turn = waiting.grow(1 << 19);
    assert.equal(await here.transport.call('a', 'm', Buffer.alloc(100_000), context()), 'answered');
    assert.ok(heldInside >= 100_000, `${heldInside} bytes are held`);
    assert.equal(there.budget.usedBytes, 2 << 20);
    full.release();
    await turn;
    close();
  });

  test('a handler of this thread is called directly, and its answer is passed unchanged', async () => {
    const { here, close } = await served({});
    const answer = { same: true };
    await here.transport.serve('mine', { call: async () => answer, stream: async function* () {} });
    assert.equal(await here.transport.call('mine', 'm', null, context()), answer);
    close();
  });
});

async function* hanging(): AsyncGenerator<never> {
  await new Promise(() => {});
}

async function rejectsWith(
  code: Code,
  work: Promise<unknown>,
  also: (error: BigtableError) => boolean = () => true,
): Promise<void> {
  await assert.rejects(work, (error) => error instanceof BigtableError && error.code === code && also(error));
}
