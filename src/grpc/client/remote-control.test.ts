/**
 * The calls of an operator, client side against server side, over a real connection; and against a server that has none
 * of them.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code } from '../../base/index.ts';
import type { FamilyUsage, TabletHistory, TabletStatistics } from '../../model/index.ts';
import { systemClock } from '../../platform/index.ts';
import type { CompactionProgress, Service } from '../../service/index.ts';
import { rowKey } from '../convert/fixtures.ts';
import { apiServer, testContext } from '../fixtures.ts';
import { testEnv } from '../../../test/raw-server.ts';
import { registerCloudApi } from '../server/cloud-api.ts';
import { overWire, type RemoteService } from './remote-service.ts';

const TABLE = 'projects/p/instances/i/tables/t';
const RUNS = { numRuns: 40 };
const PLAIN = { noNullPrototype: true } as const;
const count = fc.nat({ max: Number.MAX_SAFE_INTEGER });

async function all<T>(given: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of given) items.push(item);
  return items;
}

describe('the calls of an operator to a remote service', () => {
  const env = testEnv();
  const context = testContext(env);
  let seen: unknown[] = [];
  let answer: unknown;
  let ended = (): void => {};
  let wire: Awaited<ReturnType<typeof apiServer>>;
  let remote: RemoteService;

  before(async () => {
    const streamOf = (name: string) =>
      async function* (_context: unknown, ...given: unknown[]) {
        seen = [name, ...given];
        try {
          yield* answer as AsyncIterable<CompactionProgress | TabletHistory>;
        } finally {
          ended();
        }
      };
    const service = new Proxy({} as Service, {
      get: (_target, name) =>
        name === 'compactTables' || name === 'listTabletEvents'
          ? streamOf(name)
          : async (_context: unknown, ...given: unknown[]) => {
              seen = [name, ...given];
              if (answer instanceof Error) throw answer;
              return answer;
            },
    });
    wire = await apiServer(env, (server) => void registerCloudApi(server, service, env));
    remote = overWire({ address: `127.0.0.1:${wire.port}`, clock: systemClock, random: env.random });
  });

  after(async () => {
    remote.close();
    await wire.close();
  });

  test('progress comes as it is reported; one table or all', async () => {
    const reports: CompactionProgress[] = [0, 1, 2].map((doneTablets) => ({ doneTablets, totalTablets: 2 }));
    answer = reports;
    assert.deepEqual(await all(remote.compactTables(context, TABLE)), reports);
    assert.deepEqual(seen, ['compactTables', TABLE]);
    assert.deepEqual(await all(remote.compactTables(context)), reports);
    assert.deepEqual(seen, ['compactTables', undefined]);
  });

  test('a caller that leaves a compaction ends it at the server', async () => {
    const over = new Promise<void>((resolve) => (ended = resolve));
    answer = (async function* () {
      for (;;) {
        await systemClock.yield();
        yield { doneTablets: 0, totalTablets: 1 };
      }
    })();
    for await (const _ of remote.compactTables(context, TABLE)) break;
    await over;
  });

  test('rows of splits and merges arrive as they were sent', async () => {
    answer = undefined;
    await fc.assert(
      fc.asyncProperty(rowKey, async (row) => {
        await remote.splitTablets(context, TABLE, row);
        assert.deepEqual(seen, ['splitTablets', TABLE, row]);
        await remote.mergeTablets(context, TABLE, row);
        assert.deepEqual(seen, ['mergeTablets', TABLE, row]);
      }),
      RUNS,
    );
    await remote.splitTablets(context, TABLE);
    assert.deepEqual(seen, ['splitTablets', TABLE, undefined]);
    await remote.flush(context);
    assert.deepEqual(seen, ['flush']);
    seen = [];
    await assert.rejects(remote.splitTablets(context, TABLE, ''), { code: Code.INVALID_ARGUMENT });
    await assert.rejects(remote.mergeTablets(context, TABLE, ''), { code: Code.INVALID_ARGUMENT });
    assert.deepEqual(seen, []);
  });

  test('tablets, usage and counters come back as they are, however many', async () => {
    const range = fc.record(
      { start: fc.oneof(fc.constant(''), rowKey), end: fc.option(rowKey, { nil: undefined }) },
      PLAIN,
    );
    const tablet: fc.Arbitrary<TabletStatistics> = fc.record(
      { range, server: fc.string(), files: count, fileBytes: count, memoryBytes: count },
      PLAIN,
    );
    const past = fc.record(
      {
        kind: fc.string(),
        atMicros: count,
        epoch: count,
        server: fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
      },
      PLAIN,
    );
    const history: fc.Arbitrary<TabletHistory> = fc.record({ range, events: fc.array(past, { maxLength: 20 }) }, PLAIN);
    const usage: fc.Arbitrary<FamilyUsage> = fc.record(
      { family: fc.constantFrom('f', 'g'), cells: count, logicalBytes: count, diskBytes: count, memoryBytes: count },
      PLAIN,
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(tablet, { maxLength: 50 }),
        fc.array(usage, { maxLength: 4 }),
        fc.array(history, { maxLength: 5 }),
        count,
        async (tablets, usages, histories, counted) => {
          answer = tablets;
          assert.deepEqual(await remote.listTablets(context, TABLE), tablets);
          assert.deepEqual(seen, ['listTablets', TABLE]);
          answer = histories;
          assert.deepEqual(await all(remote.listTabletEvents(context, TABLE)), histories);
          assert.deepEqual(seen, ['listTabletEvents', TABLE]);
          answer = usages;
          assert.deepEqual(await remote.familyUsage(context, TABLE), usages);
          assert.deepEqual(seen, ['familyUsage', TABLE]);
          answer = { 'log.bytes': counted, 'a.b': 1 };
          assert.deepEqual(await remote.counters(context), answer);
        },
      ),
      RUNS,
    );
  });

  test('a server that lacks the calls is named as such; other failures keep their message', async () => {
    answer = new BigtableError(Code.NOT_FOUND, 'no such table');
    await assert.rejects(remote.familyUsage(context, TABLE), { code: Code.NOT_FOUND, message: 'no such table' });
    const other = await apiServer(env, () => {});
    const elsewhere = overWire({ address: `127.0.0.1:${other.port}`, clock: systemClock, random: env.random });
    const calls = [
      () => all(elsewhere.compactTables(context)),
      () => elsewhere.flush(context),
      () => elsewhere.splitTablets(context, TABLE),
      () => elsewhere.mergeTablets(context, TABLE, 'r'),
      () => elsewhere.listTablets(context, TABLE),
      () => all(elsewhere.listTabletEvents(context, TABLE)),
      () => elsewhere.familyUsage(context, TABLE),
      () => elsewhere.counters(context),
      () => elsewhere.listTables(context, ''),
    ];
    for (const call of calls)
      await assert.rejects(call, {
        code: Code.UNIMPLEMENTED,
        message: /lacks edubba\.v1\.Control\/[A-Za-z]+: it is not an Edubba server, or one of an earlier version/,
      });
    elsewhere.close();
    await other.close();
  });
});
