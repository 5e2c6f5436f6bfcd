import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ByteBudget, ManualClock, type Priority, type RequestContext, requestContext, sleep } from '../env/index.ts';
import { METADATA_TABLE_ID } from '../metadata/index.ts';
import { inSimulatedTime } from '../../test/simulated-time.ts';
import { CallTurns } from './call-turns.ts';

const budget = new ByteBudget(1000);
const of = (priority: Priority, more: object = {}): RequestContext => requestContext({ budget, priority, ...more });

/** Runs the body in simulated time, with a function that makes calls, and a log of those that were carried out. */
function inTurns(
  body: (parts: {
    readonly clock: ManualClock;
    readonly turns: CallTurns;
    readonly call: (name: string, context: RequestContext) => Promise<string>;
    readonly done: string[];
    /** Calls of high priority, one after the other, until the returned function is called. */
    readonly load: () => () => Promise<void>;
  }) => Promise<void>,
): () => Promise<void> {
  return async () => {
    const clock = new ManualClock();
    const turns = new CallTurns(clock);
    const done: string[] = [];
    const named = turns.call(async ({ name }: { readonly tableId: string; readonly name: string }) => {
      done.push(name);
      return name;
    });
    const call = (name: string, context: RequestContext): Promise<string> => named({ tableId: 't', name }, context);
    const load = (): (() => Promise<void>) => {
      let isOver = false;
      const busy = (async () => {
        while (!isOver) {
          await call('high', of('high'));
          await sleep(clock, 1);
        }
      })();
      return () => {
        isOver = true;
        return busy;
      };
    };
    const work = body({ clock, turns, call, done, load });
    await inSimulatedTime(
      clock,
      work,
      () => '',
      () => 0,
    );
  };
}

test('a call without an app profile has the highest priority', () => {
  assert.equal(requestContext({ budget }).priority, 'high');
});

describe('calls of lower priority', () => {
  test(
    'begin immediately where there are no others',
    inTurns(async ({ clock, call }) => {
      const startMs = clock.monotonicMs();
      for (const priority of ['low', 'medium', 'low', 'high', 'medium'] as const) {
        await call('x', of(priority));
        await sleep(clock, 20);
      }
      assert.equal(clock.monotonicMs() - startMs, 100);
    }),
  );

  test(
    'wait for those of a higher one, and go on one after the other',
    inTurns(async ({ clock, call, done, load }) => {
      await call('first', of('low'));
      const end = load();
      const waited = async (priority: Priority): Promise<number> => {
        const startMs = clock.monotonicMs();
        await call(priority, of(priority));
        return clock.monotonicMs() - startMs;
      };
      const [low, lower, lowest, medium, high] = await Promise.all([
        waited('low'),
        waited('low'),
        waited('low'),
        waited('medium'),
        waited('high'),
      ]);
      assert.equal(high, 0);
      assert.ok(medium >= 3 && medium <= 5, `${medium}`);
      assert.ok(low >= 10 && low <= 14, `${low}`);
      assert.ok(lower >= 20 && lower <= 26, `${lower}`);
      assert.ok(lowest >= 30 && lowest <= 38, `${lowest}`);
      assert.ok(done.indexOf('medium') < done.indexOf('low'));
      await end();
      const late = await waited('low');
      assert.ok(late <= 6, `${late}: the others have ended`);
      await sleep(clock, 20);
      assert.equal(await waited('low'), 0);
    }),
  );

  test(
    'of the middle go before the low ones',
    inTurns(async ({ clock, call, done }) => {
      await call('first', of('low'));
      await call('high', of('high'));
      const calls = [call('low 1', of('low')), call('medium', of('medium')), call('low 2', of('low'))];
      await Promise.all(calls);
      assert.deepEqual(done.slice(2), ['medium', 'low 1', 'low 2']);
      assert.ok(clock.monotonicMs() < 40);
    }),
  );

  test(
    'go on together where no higher one is made any more',
    inTurns(async ({ clock, call }) => {
      await call('first', of('low'));
      await call('high', of('high'));
      const endMs = await Promise.all(
        Array.from({ length: 100 }, async (_, i) => {
          await call(`${i}`, of('low'));
          return clock.monotonicMs();
        }),
      );
      assert.ok(endMs[5]! <= 16, 'one by one at first');
      assert.ok(endMs[99]! <= 24, `${endMs[99]}`);
    }),
  );

  test(
    'end with their deadline, and are not carried out later',
    inTurns(async ({ clock, call, done, load }) => {
      await call('first', of('low'));
      await call('high', of('high'));
      const late = call('late', of('low', { deadlineMs: clock.monotonicMs() + 1 }));
      await assert.rejects(late, /deadline/);
      await sleep(clock, 1000);
      assert.deepEqual(done, ['first', 'high']);
      // and take no turn of another one
      const end = load();
      await sleep(clock, 5);
      const atMs = clock.monotonicMs();
      const cancelled = Array.from({ length: 50 }, () => call('late', of('low', { deadlineMs: atMs + 3 })));
      const last = call('last', of('low'));
      for (const one of cancelled) await assert.rejects(one, /deadline/);
      await last;
      assert.ok(clock.monotonicMs() - atMs < 20, `${clock.monotonicMs() - atMs}`);
      await end();
    }),
  );

  test(
    'that read go on batch by batch, and end when their reader does',
    inTurns(async ({ clock, turns, call, load }) => {
      let ended = 0;
      const counted = turns.stream(async function* ({ count }: { readonly tableId: string; readonly count: number }) {
        try {
          for (let i = 0; i < count; i++) yield i;
        } finally {
          ended++;
        }
      });
      const stream = (count: number, context: RequestContext, tableId = 't') => counted({ tableId, count }, context);
      await call('first', of('low'));
      const end = load();
      await sleep(clock, 5);
      const startMs = clock.monotonicMs();
      const read: number[] = [];
      for await (const item of stream(3, of('low'))) read.push(item);
      assert.deepEqual(read, [0, 1, 2]);
      const tookMs = clock.monotonicMs() - startMs;
      // three items, and the end
      assert.ok(tookMs >= 30 && tookMs < 60, `${tookMs}`);
      for await (const _ of stream(3, of('high'))) break;
      for await (const _ of stream(3, of('low'))) break;
      assert.equal(ended, 3);
      const beforeMs = clock.monotonicMs();
      for await (const _ of stream(100, of('low'), METADATA_TABLE_ID));
      assert.equal(clock.monotonicMs(), beforeMs, 'a read of METADATA waits for no one');
      await end();
    }),
  );
});
