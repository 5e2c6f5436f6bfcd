import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { transportOverPort } from '../../../test/contracts/over-port.ts';
import { transportContract } from '../../../test/contracts/transport-contract.ts';
import { ByteBudget } from '../budget/budget.ts';
import { requestContext } from '../calls/context.ts';
import { LocalTransport } from './local-transport.ts';
import { ManualClock } from './manual-clock.ts';

transportContract('local', async () => {
  const clock = new ManualClock();
  return { transport: new LocalTransport(clock), nowMs: () => clock.monotonicMs(), pass: (ms) => clock.advance(ms) };
});

transportContract('local, over a port', async () => {
  const clock = new ManualClock();
  const { proxy, close } = transportOverPort(new LocalTransport(clock));
  return {
    transport: proxy,
    nowMs: () => clock.monotonicMs(),
    pass: (ms) => clock.advance(ms),
    close: async () => close(),
  };
});

describe('LocalTransport', () => {
  const budget = new ByteBudget(1000);

  test('passes message, context and answer as they are', async () => {
    const transport = new LocalTransport(new ManualClock());
    const message = { value: Uint8Array.of(1) };
    const context = requestContext({ budget });
    const seen: unknown[] = [];
    await transport.serve('a', {
      call: async (...args) => {
        seen.push(...args);
        return message;
      },
      async *stream(...args) {
        seen.push(...args);
        yield message;
      },
    });
    assert.equal(await transport.call('a', 'm', message, context), message);
    for await (const answer of transport.stream('a', 'm', message, context)) assert.equal(answer, message);
    assert.equal(seen.length, 6);
    for (const at of [0, 3]) {
      assert.equal(seen[at], 'm');
      assert.equal(seen[at + 1], message);
      assert.equal(seen[at + 2], context);
    }
  });

  test('no timer and no listener outlives its call or stream', async () => {
    const clock = new ManualClock();
    const transport = new LocalTransport(clock);
    let listeners = 0;
    const signal = new AbortController().signal;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...args: Parameters<AbortSignal['addEventListener']>) => {
      listeners++;
      return addEventListener.apply(signal, args);
    };
    signal.removeEventListener = (...args: Parameters<AbortSignal['removeEventListener']>) => {
      listeners--;
      return removeEventListener.apply(signal, args);
    };
    await transport.serve('a', {
      call: async (method) => {
        if (method === 'fail') throw new Error('as planned');
      },
      async *stream(method) {
        yield 1;
        if (method === 'fail') throw new Error('as planned');
        yield 2;
      },
    });
    const context = requestContext({ budget, signal, deadlineMs: 1000 });
    for (const method of ['succeed', 'fail']) {
      await transport.call('a', method, null, context).catch(() => {});
      const answers = transport.stream('a', method, null, context)[Symbol.asyncIterator]();
      const first = answers.next();
      assert.equal(listeners, 1);
      assert.equal(clock.nextTimerMs(), 1000);
      await first;
      assert.equal(listeners, 0);
      await answers.next().catch(() => {});
      await answers.return?.();
      assert.equal(listeners, 0);
      assert.equal(clock.nextTimerMs(), Number.POSITIVE_INFINITY);
    }
  });

  test('a call without deadline and signal sets no timer', async () => {
    const clock = new ManualClock();
    const transport = new LocalTransport(clock);
    await transport.serve('a', { call: () => new Promise(() => {}), async *stream() {} });
    void transport.call('a', 'm', null, requestContext({ budget }));
    assert.equal(clock.nextTimerMs(), Number.POSITIVE_INFINITY);
  });
});
