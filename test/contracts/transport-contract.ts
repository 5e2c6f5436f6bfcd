/**
 * The contract of every Transport, as tests (src/env/calls/transport.ts). Messages are plain cloneable data; whether
 * they are copied is the adapter's affair. `pass` lets time pass on the clock that deadlines use.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code, CorruptionError, codeName } from '../../src/base/index.ts';
import {
  asRefusal,
  ByteBudget,
  type CallHandler,
  callRefused,
  type ContextOptions,
  type RequestContext,
  requestContext,
  type Transport,
} from '../../src/env/index.ts';

export interface TransportUnderTest {
  readonly transport: Transport;
  readonly nowMs: () => number;
  readonly pass: (ms: number) => void;
  /** Calls may end this much after their deadlines. Default: 0. */
  readonly lateMs?: number;
  readonly close?: () => Promise<void>;
  /** Set for an adapter whose answers may get lost. */
  readonly lossy?: {
    /** The transport of another process that calls the same handlers. */
    readonly second: Transport;
    /** Breaks all connections, with the answers under way. */
    readonly breakConnections: () => void;
  };
}

type Body = (transport: Transport, subject: TransportUnderTest) => Promise<void>;
type Contract = (title: string, body: Body) => void;

export function transportContract(name: string, make: () => Promise<TransportUnderTest>): void {
  const contract: Contract = (title, body) => {
    test(title, async () => {
      const subject = await make();
      try {
        await body(subject.transport, subject);
      } finally {
        await subject.close?.();
      }
    });
  };
  describe(`transport contract: ${name}`, () => {
    describe('addresses', () => addressesAreServed(contract));
    describe('calls', () => callsAreAnswered(contract));
    describe('calls given up', () => callsAreGivenUp(contract));
    describe('streams', () => streamsFlow(contract));
    describe('streams given up', () => streamsAreGivenUp(contract));
    describe('answers that are lost', () => answersAreLost(contract));
  });
}

const budget = new ByteBudget(1 << 20);

function addressesAreServed(contract: Contract): void {
  contract('a call reaches the handler of its address', async (transport) => {
    await transport.serve(
      'one',
      answering((method) => `one: ${method}`),
    );
    await transport.serve(
      'two',
      answering((method) => `two: ${method}`),
    );
    assert.equal(await transport.call('one', 'm', null, context()), 'one: m');
    assert.equal(await transport.call('two', 'n', null, context()), 'two: n');
  });

  contract('an address that is not served is UNAVAILABLE, for calls and streams', async (transport) => {
    await fails(transport.call('nobody', 'm', null, context()), Code.UNAVAILABLE);
    await fails(collect(transport.stream('nobody', 'm', null, context())), Code.UNAVAILABLE);
  });

  contract('an address is served by one handler, and free when that stops', async (transport) => {
    const stop = await transport.serve(
      'a',
      answering(() => 1),
    );
    await fails(
      transport.serve(
        'a',
        answering(() => 2),
      ),
      Code.ALREADY_EXISTS,
    );
    assert.equal(await transport.call('a', 'm', null, context()), 1);
    await stop();
    await fails(transport.call('a', 'm', null, context()), Code.UNAVAILABLE);
    await transport.serve(
      'a',
      answering(() => 3),
    );
    await stop();
    assert.equal(await transport.call('a', 'm', null, context()), 3);
  });
}

function callsAreAnswered(contract: Contract): void {
  contract('messages and answers are plain data of every kind', async (transport) => {
    const seen: unknown[] = [];
    await transport.serve('a', {
      ...answering(() => undefined),
      call: async (_, message) => {
        seen.push(message);
        return message;
      },
    });
    const messages = [
      undefined,
      null,
      1.5,
      2n ** 63n - 1n,
      'text',
      { list: [{ a: 1 }] },
      new Map([['k', Uint8Array.of(1)]]),
      Uint8Array.of(0, 255),
      true,
    ];
    for (const message of messages) assert.deepEqual(await transport.call('a', 'echo', message, context()), message);
    assert.deepEqual(seen, messages);
  });

  contract('the context arrives with the call', async (transport, { nowMs }) => {
    const seen: RequestContext[] = [];
    await transport.serve('a', {
      call: async (_method, _message, received) => seen.push(received),
      async *stream(_method, _message, received) {
        yield seen.push(received);
      },
    });
    const given = {
      deadlineMs: nowMs() + 5000,
      principal: 'anna',
      appProfile: 'batch',
      priority: 'low',
      trace: 't-1',
    } as const;
    await transport.call('a', 'm', null, context(given));
    await collect(transport.stream('a', 'm', null, context(given)));
    assert.equal(seen.length, 2);
    for (const { deadlineMs, principal, appProfile, priority, trace } of seen) {
      assert.deepEqual({ deadlineMs, principal, appProfile, priority, trace }, given);
    }
  });

  contract('what the handler throws arrives as BigtableError', async (transport) => {
    const thrown: Record<string, () => unknown> = {
      bigtable: () => new BigtableError(Code.ABORTED, 'try again', { retry: false, details: { row: 'r' } }),
      corruption: () => new CorruptionError('a.sst', 7, 'bad'),
      'type-error': () => new TypeError('oops'),
      text: () => 'just text',
    };
    await transport.serve('a', {
      call: async (method) => {
        throw thrown[method]?.();
      },
      async *stream(method) {
        yield 1;
        throw thrown[method]?.();
      },
    });
    const call = (method: string): Promise<unknown> => transport.call('a', method, null, context());
    const stream = (method: string): Promise<unknown> => collect(transport.stream('a', method, null, context()));
    for (const through of [call, stream]) {
      const aborted = await fails(through('bigtable'), Code.ABORTED);
      assert.deepEqual([aborted.message, aborted.retry, aborted.details], ['try again', false, { row: 'r' }]);
      const corrupt = await fails(through('corruption'), Code.DATA_LOSS);
      assert.ok(corrupt instanceof CorruptionError && corrupt.file === 'a.sst' && corrupt.offset === 7);
      assert.equal((await fails(through('type-error'), Code.INTERNAL)).message, 'oops');
      assert.equal((await fails(through('text'), Code.INTERNAL)).message, 'just text');
    }
  });

  contract('"not reached" is about the call itself: not about one that its handler has made', async (transport) => {
    const refused = (): never => {
      throw callRefused('not here');
    };
    await transport.serve('refusing', { call: refused, stream: refused });
    const passing = (to: string, change = (error: BigtableError) => error): CallHandler => ({
      call: (_method, message) =>
        transport.call(to, 'm', message, context()).catch((error: BigtableError) => Promise.reject(change(error))),
      async *stream(_method, message) {
        try {
          yield* transport.stream(to, 'm', message, context());
        } catch (error) {
          throw change(error as BigtableError);
        }
      },
    });
    await transport.serve('outer', passing('nobody'));
    await transport.serve('passing', passing('refusing'));
    await transport.serve('twice', passing('passing'));
    await transport.serve('whole', passing('refusing', asRefusal));
    const nothingWasDone = { notReached: true };
    const expected = { nobody: nothingWasDone, outer: {}, refusing: nothingWasDone, passing: {}, twice: {} };
    for (const [address, details] of Object.entries({ ...expected, whole: nothingWasDone }))
      for (const call of [
        transport.call(address, 'm', 1, context()),
        collect(transport.stream(address, 'm', 1, context())),
      ]) {
        const error = await fails(call, Code.UNAVAILABLE);
        assert.deepEqual(error.details, details, address);
        assert.equal(error.retry, true);
        assert.match(error.message, /nobody|not here/);
      }
  });

  contract('a handler that throws before it promises fails the call, not the caller', async (transport) => {
    const broken = (): never => {
      throw new BigtableError(Code.UNIMPLEMENTED, 'no such method');
    };
    await transport.serve('a', { call: broken, stream: broken });
    await fails(transport.call('a', 'm', null, context()), Code.UNIMPLEMENTED);
    await fails(collect(transport.stream('a', 'm', null, context())), Code.UNIMPLEMENTED);
  });

  contract('many calls at once are answered each by its own answer', async (transport) => {
    const held: ((value: unknown) => void)[] = [];
    await transport.serve('a', {
      ...answering(() => undefined),
      call: (_, message) => new Promise((resolve) => held.push(() => resolve(message))),
    });
    const calls = Array.from({ length: 30 }, (_, i) => transport.call('a', 'm', i, context()));
    while (held.length < calls.length) await turn();
    for (const answer of held.reverse()) answer(undefined);
    assert.deepEqual(
      await Promise.all(calls),
      Array.from({ length: 30 }, (_, i) => i),
    );
  });
}

function callsAreGivenUp(contract: Contract): void {
  contract('an abort fails a pending call at once, and the handler learns it', async (transport) => {
    const { handler, started, aborted } = hanging();
    await transport.serve('a', handler);
    const abort = new AbortController();
    const call = transport.call('a', 'm', null, context({ signal: abort.signal }));
    await started;
    abort.abort();
    await fails(call, Code.CANCELLED);
    await aborted;
  });

  contract('a call given up before it began never reaches an answer', async (transport) => {
    await transport.serve(
      'a',
      answering(() => 1),
    );
    const signal = AbortSignal.abort();
    await fails(transport.call('a', 'm', null, context({ signal })), Code.CANCELLED);
    await fails(collect(transport.stream('a', 'm', null, context({ signal }))), Code.CANCELLED);
  });

  contract(
    'a deadline fails a pending call when its time is over, not before',
    async (transport, { nowMs, pass, lateMs = 0 }) => {
      const { handler, started } = hanging();
      await transport.serve('a', handler);
      let over = false;
      const call = transport.call('a', 'm', null, context({ deadlineMs: nowMs() + 100 })).finally(() => {
        over = true;
      });
      call.catch(() => {});
      await started;
      pass(99);
      await turn();
      assert.equal(over, false);
      pass(1 + lateMs);
      await fails(call, Code.DEADLINE_EXCEEDED);
    },
  );

  contract('a deadline in the past fails the call', async (transport, { nowMs, pass }) => {
    pass(10);
    await transport.serve(
      'a',
      answering(() => 1),
    );
    await fails(transport.call('a', 'm', null, context({ deadlineMs: nowMs() - 1 })), Code.DEADLINE_EXCEEDED);
    await fails(
      collect(transport.stream('a', 'm', null, context({ deadlineMs: nowMs() - 1 }))),
      Code.DEADLINE_EXCEEDED,
    );
  });

  contract(
    'an answer in time is not touched by the deadline or by a later abort',
    async (transport, { nowMs, pass }) => {
      await transport.serve(
        'a',
        answering(() => 'in time'),
      );
      const abort = new AbortController();
      assert.equal(
        await transport.call('a', 'm', null, context({ deadlineMs: nowMs() + 100, signal: abort.signal })),
        'in time',
      );
      pass(1000);
      abort.abort();
      await turn();
    },
  );
}

function streamsFlow(contract: Contract): void {
  contract('answers come in order, and then the end', async (transport) => {
    await transport.serve('a', counting(100));
    const expected = Array.from({ length: 100 }, (_, i) => ({ n: i }));
    assert.deepEqual(await collect(transport.stream('a', 'count', null, context())), expected);
    const answers = transport.stream('a', 'count', null, context())[Symbol.asyncIterator]();
    for (const answer of expected) assert.deepEqual(await answers.next(), { done: false, value: answer });
    assert.equal((await answers.next()).done, true);
    assert.equal((await answers.next()).done, true);
  });

  contract('a stream may be empty', async (transport) => {
    await transport.serve('a', counting(0));
    assert.deepEqual(await collect(transport.stream('a', 'count', null, context())), []);
  });

  contract('answers before an error arrive, then the error, then the end', async (transport) => {
    await transport.serve('a', {
      ...counting(0),
      async *stream() {
        yield 1;
        yield 2;
        throw new BigtableError(Code.NOT_FOUND, 'gone');
      },
    });
    const answers = transport.stream('a', 'm', null, context())[Symbol.asyncIterator]();
    assert.deepEqual([(await answers.next()).value, (await answers.next()).value], [1, 2]);
    await fails(answers.next(), Code.NOT_FOUND);
    assert.equal((await answers.next()).done, true);
  });

  contract('a consumer that leaves early ends the handler’s stream', async (transport) => {
    const ended = new Signal();
    await transport.serve('a', {
      ...counting(0),
      async *stream() {
        try {
          for (let n = 0; ; n++) yield { n, bytes: Buffer.alloc(10_000) };
        } finally {
          ended.give();
        }
      },
    });
    const seen: unknown[] = [];
    for await (const answer of transport.stream('a', 'm', null, context())) {
      seen.push((answer as { n: number }).n);
      if (seen.length === 3) break;
    }
    await ended.given;
    assert.deepEqual(seen, [0, 1, 2]);
  });

  contract('a slow consumer holds the handler back', async (transport) => {
    let made = 0;
    await transport.serve('a', {
      ...counting(0),
      async *stream() {
        for (;;) yield { n: made++, bytes: Buffer.alloc(10_000) };
      },
    });
    const answers = transport.stream('a', 'm', null, context())[Symbol.asyncIterator]();
    for (let i = 0; i < 5; i++) await answers.next();
    for (let i = 0; i < 10; i++) await turn();
    assert.ok(made < 5000, `${made} answers were made for 5 that were taken`);
    await answers.return?.();
  });

  contract('several streams of one handler do not mix', async (transport) => {
    await transport.serve('a', {
      ...counting(0),
      async *stream(_, message) {
        for (let n = 0; n < 20; n++) yield `${message} ${n}`;
      },
    });
    const streams = await Promise.all(
      ['x', 'y', 'z'].map((name) => collect(transport.stream('a', 'm', name, context()))),
    );
    assert.deepEqual(
      streams,
      ['x', 'y', 'z'].map((name) => Array.from({ length: 20 }, (_, n) => `${name} ${n}`)),
    );
  });
}

function streamsAreGivenUp(contract: Contract): void {
  contract('an abort fails the answer that is awaited, and the handler learns it', async (transport) => {
    const { handler, started, aborted } = hanging();
    await transport.serve('a', handler);
    const abort = new AbortController();
    const answers = transport.stream('a', 'm', null, context({ signal: abort.signal }))[Symbol.asyncIterator]();
    assert.equal((await answers.next()).value, 'first');
    const next = answers.next();
    await started;
    abort.abort();
    await fails(next, Code.CANCELLED);
    assert.equal((await answers.next()).done, true);
    await aborted;
  });

  contract('an abort between two answers fails the next one', async (transport) => {
    await transport.serve('a', counting(10));
    const abort = new AbortController();
    const answers = transport.stream('a', 'm', null, context({ signal: abort.signal }))[Symbol.asyncIterator]();
    await answers.next();
    abort.abort();
    await turn();
    await fails(answers.next(), Code.CANCELLED);
    assert.equal((await answers.next()).done, true);
  });

  contract('a deadline ends a stream', async (transport, { nowMs, pass, lateMs = 0 }) => {
    const { handler, started } = hanging();
    await transport.serve('a', handler);
    const answers = transport.stream('a', 'm', null, context({ deadlineMs: nowMs() + 100 }))[Symbol.asyncIterator]();
    assert.equal((await answers.next()).value, 'first');
    const next = answers.next();
    await started;
    pass(100 + lateMs);
    await fails(next, Code.DEADLINE_EXCEEDED);
  });

  contract('a stream with a deadline and a signal that ends in time is whole', async (transport, { nowMs, pass }) => {
    await transport.serve('a', counting(10));
    const abort = new AbortController();
    const answers = await collect(
      transport.stream('a', 'm', null, context({ deadlineMs: nowMs() + 100, signal: abort.signal })),
    );
    assert.equal(answers.length, 10);
    pass(1000);
    abort.abort();
    await turn();
  });
}

/** Subjects that lose no answers pass without a step. */
function answersAreLost(contract: Contract): void {
  contract('a call was carried out once, and fails with an unknown outcome', async (transport, { lossy }) => {
    if (lossy === undefined) return;
    let carriedOut = 0;
    await transport.serve(
      'a',
      answering(() => {
        carriedOut++;
        lossy.breakConnections();
        return 'lost';
      }),
    );
    for (let i = 1; i <= 5; i++) {
      for (const from of [transport, lossy.second]) {
        const error = await fails(from.call('a', 'm', i, context()), Code.UNAVAILABLE);
        assert.equal(error.details['notReached'], undefined, error.message);
      }
      assert.equal(carriedOut, 2 * i);
    }
  });

  contract('a stream fails after the items that came, and the next one is whole', async (transport, { lossy }) => {
    if (lossy === undefined) return;
    let isLost = true;
    await transport.serve('a', {
      ...counting(0),
      async *stream() {
        yield 'first';
        if (isLost) await new Promise(() => {});
        yield 'second';
      },
    });
    for (const from of [transport, lossy.second]) {
      isLost = true;
      const answers = from.stream('a', 'm', null, context())[Symbol.asyncIterator]();
      assert.equal((await answers.next()).value, 'first');
      const next = answers.next();
      lossy.breakConnections();
      const error = await fails(next, Code.UNAVAILABLE);
      assert.equal(error.details['notReached'], undefined);
      assert.equal((await answers.next()).done, true);
      isLost = false;
      assert.deepEqual(await collect(from.stream('a', 'm', null, context())), ['first', 'second']);
    }
  });

  contract(
    'of the calls of two processes no answered one is undone, and none is done twice',
    async (transport, subject) => {
      const { lossy, pass } = subject;
      if (lossy === undefined) return;
      const done = new Map<number, number>();
      await transport.serve('a', {
        ...answering(() => undefined),
        call: async (_, message) => {
          const n = message as number;
          done.set(n, (done.get(n) ?? 0) + 1);
          if (n % 7 === 3) lossy.breakConnections();
          if (n % 5 === 2) await turn();
          return n;
        },
      });
      const one = async (from: Transport, n: number): Promise<void> => {
        for (;;) {
          try {
            assert.equal(await from.call('a', 'm', n, context()), n);
            assert.equal(done.get(n), 1);
            return;
          } catch (thrown) {
            assert.ok(thrown instanceof BigtableError, String(thrown));
            assert.equal(codeName(thrown.code), 'UNAVAILABLE', thrown.message);
            if (thrown.details['notReached'] !== true) return assert.ok((done.get(n) ?? 0) <= 1);
            assert.equal(done.get(n), undefined);
            pass(2000);
          }
        }
      };
      const [first, second] = [transport, lossy.second];
      for (let round = 0; round < 10; round++)
        await Promise.all(Array.from({ length: 20 }, (_, i) => one(i % 2 === 0 ? first : second, round * 20 + i)));
      assert.ok(done.size > 0);
    },
  );
}

/** A promise that is kept from outside. */
class Signal {
  give: () => void = () => {};
  readonly given = new Promise<void>((resolve) => {
    this.give = resolve;
  });
}

function context(options: Omit<ContextOptions, 'budget'> = {}): RequestContext {
  return requestContext({ ...options, budget });
}

function answering(answer: (method: string) => unknown): CallHandler {
  return {
    call: async (method) => answer(method),
    async *stream() {},
  };
}

function counting(count: number): CallHandler {
  return {
    ...answering(() => undefined),
    async *stream() {
      for (let n = 0; n < count; n++) yield { n };
    },
  };
}

/** Never answers until its context is given up; a stream gives one answer first. */
function hanging(): { handler: CallHandler; started: Promise<void>; aborted: Promise<void> } {
  const [started, aborted] = [new Signal(), new Signal()];
  const hang = async (received: RequestContext): Promise<void> => {
    started.give();
    await new Promise<void>((resolve) => received.signal?.addEventListener('abort', () => resolve()));
    aborted.give();
  };
  const handler: CallHandler = {
    call: (_method, _message, received) => hang(received),
    async *stream(_method, _message, received) {
      yield 'first';
      await hang(received);
    },
  };
  return { handler, started: started.given, aborted: aborted.given };
}

async function collect(answers: AsyncIterable<unknown>): Promise<unknown[]> {
  const seen: unknown[] = [];
  for await (const answer of answers) seen.push(answer);
  return seen;
}

/** A turn of the event loop, in which messages between threads arrive. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

async function fails(call: Promise<unknown>, code: Code): Promise<BigtableError> {
  const outcome = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(outcome instanceof BigtableError, `expected a BigtableError, not ${outcome}`);
  assert.equal(codeName(outcome.code), codeName(code), outcome.message);
  return outcome;
}
