/** Requests of an operator, where servers fail, answer late, or lose their tablets to others meanwhile. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { inSimulatedTime } from '../../test/simulated-time.ts';
import { BigtableError, Code } from '../base/index.ts';
import { ManualClock, requestContext, type Transport } from '../env/index.ts';
import { notServing, type TabletServerCalls } from '../protocol/index.ts';
import type { CompactionProgress } from '../service/index.ts';
import { Database } from './open/database.ts';
import { keepAlive, rejectsWith, TABLES, TestDatabase, World, type WorldOptions } from './fixtures.ts';
import { checkSettings } from './settings/settings.ts';

const T = `${TABLES}t`;
const SPLITS = ['b', 'c', 'd'];
const ROWS = ['a1', 'b1', 'c1', 'd1'];

let release = (): void => {};
before(() => (release = keepAlive()));
after(() => release());

type Compact = TabletServerCalls['compact']['message'];

/** A database whose calls to compact a tablet go through `compact`, which may answer in place of the server. */
async function started(
  compact: (message: Compact) => Promise<undefined> | undefined,
  { tabletServers = 1, ...options }: WorldOptions = {},
): Promise<TestDatabase> {
  const env = await new World(options).env();
  const { transport } = env;
  const between: Transport = {
    serve: (address, handler) => transport.serve(address, handler),
    call: (address, method, message, context) =>
      (method === 'compact' ? compact(message as Compact) : undefined) ??
      transport.call(address, method, message, context),
    stream: transport.stream.bind(transport),
  };
  return new TestDatabase(
    await Database.start({ env: { ...env, transport: between }, settings: checkSettings({}), tabletServers }),
  );
}

async function fill(db: TestDatabase): Promise<void> {
  await db.create('t', { splits: SPLITS });
  for (const row of ROWS) await db.set('t', row, 'x');
}

const filesOf = async (db: TestDatabase): Promise<number[]> =>
  (await db.service.listTablets(db.context(), T)).map(({ files }) => files);

describe('compactions on demand', () => {
  test('that fail for one tablet do not prevent those of the others; the call fails at its end', async () => {
    let fails = true;
    const db = await started(({ range }) =>
      fails && range.start === 'b' ? Promise.reject(new BigtableError(Code.DATA_LOSS, 'a bad block')) : undefined,
    );
    await fill(db);
    const reported: CompactionProgress[] = [];
    await rejectsWith(
      Code.DATA_LOSS,
      async () => {
        for await (const progress of db.service.compactTables(db.context(), T)) reported.push(progress);
      },
      /a bad block/,
    );
    assert.deepEqual(reported.at(-1), { doneTablets: 4, totalTablets: 4 });
    assert.deepEqual(await filesOf(db), [1, 0, 1, 1]);
    await rejectsWith(Code.DATA_LOSS, db.database.compact());
    fails = false;
    await db.database.compact();
    assert.deepEqual(await filesOf(db), [1, 1, 1, 1]);
    await db.close();
  });

  test('find a tablet that has moved to another server meanwhile, or has been split', async () => {
    const refused = new Set<string>();
    let split = async (): Promise<void> => {};
    const db = await started(
      ({ tableId, range }) => {
        if (refused.has(range.start)) return undefined;
        refused.add(range.start);
        if (range.start !== 'c') return Promise.reject(notServing(tableId, range.start));
        return split().then(() => Promise.reject(notServing(tableId, range.start)));
      },
      { tabletServers: 2 },
    );
    await fill(db);
    split = () => db.database.splitTablet(T, 'c1');
    await db.set('t', 'c0', 'x');
    const reported: CompactionProgress[] = [];
    for await (const progress of db.service.compactTables(db.context(), T)) reported.push(progress);
    assert.deepEqual(reported.at(-1), { doneTablets: 4, totalTablets: 4 });
    assert.deepEqual(await filesOf(db), [1, 1, 1, 1, 1]);
    assert.deepEqual(await db.rows('t'), ['a1', 'b1', 'c0', 'c1', 'd1']);
    await db.close();
  });

  test('that take long report every ten seconds that they continue, and end at their deadline', async () => {
    const clock = new ManualClock();
    let finish = (): void => {};
    const db = await started(
      ({ range }) => (range.start === 'd' ? new Promise((resolve) => (finish = () => resolve(undefined))) : undefined),
      { clock },
    );
    await inSimulatedTime(clock, fill(db));
    const startMs = clock.monotonicMs();
    const compacting = (async () => {
      const atMs: number[] = [];
      for await (const { doneTablets } of db.service.compactTables(db.context(), T)) {
        if (doneTablets === 3) atMs.push(clock.monotonicMs() - startMs);
        if (atMs.length === 4) finish();
      }
      return atMs;
    })();
    const atMs = await inSimulatedTime(clock, compacting);
    const first = atMs[0]!;
    assert.deepEqual(
      atMs.map((ms) => ms - first),
      [0, 10_000, 20_000, 30_000],
    );
    await inSimulatedTime(
      clock,
      rejectsWith(Code.DEADLINE_EXCEEDED, async () => {
        for await (const _ of db.service.compactTables(db.context(25_000), T));
      }),
    );
    await inSimulatedTime(clock, db.close());
  });

  test('that are cancelled begin no more tablets', async () => {
    let begun = 0;
    const db = await started(() => {
      begun++;
      return new Promise(() => {});
    });
    await db.create('t', { splits: Array.from({ length: 40 }, (_, i) => `s${String(i).padStart(2, '0')}`) });
    const caller = new AbortController();
    const context = requestContext({ budget: db.env.requestBudget, signal: caller.signal });
    const compacting = (async () => {
      for await (const _ of db.service.compactTables(context, T)) setImmediate(() => caller.abort());
    })();
    await rejectsWith(Code.CANCELLED, compacting);
    assert.equal(begun, 16, 'as many as are compacted concurrently');
    await db.close();
  });
});

describe('counters', () => {
  test('of servers that share their metrics are counted once', async () => {
    const db = await new World({ tabletServers: 3 }).start();
    await fill(db);
    await db.database.compact(T);
    const counters = await db.service.counters(db.context());
    assert.equal(counters['tablet.majorCompactions'], db.env.metrics.get('tablet.majorCompactions'));
    assert.equal(counters['tablet.majorCompactions'], 4);
    await db.close();
  });
});
