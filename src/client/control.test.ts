import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inCluster } from '../../test/cluster.ts';
import { rejectsWith, setCell, TABLES, type Tables } from '../../test/tables.ts';
import { BigtableError, Code, CorruptionError } from '../base/index.ts';
import { sleep } from '../env/index.ts';
import { notServing } from '../protocol/index.ts';
import type { CompactionProgress, Service } from '../service/index.ts';

const T = `${TABLES}t`;

async function filled(tables: Tables, splits: readonly string[]): Promise<void> {
  await tables.create('t', { splits });
  for (const row of ['a', 'b', 'g', 'h', 'p', 'q']) await tables.set('t', row, row);
}

async function progressOf(steps: AsyncIterable<CompactionProgress>): Promise<string[]> {
  const reported: string[] = [];
  for await (const { doneTablets, totalTablets } of steps) reported.push(`${doneTablets}/${totalTablets}`);
  return reported;
}

const startsOf = async (service: Service, tables: Tables): Promise<string[]> =>
  (await service.listTablets(tables.context(), T)).map(({ range }) => range.start);

describe('compactions of tables', () => {
  test(
    'leave one file a tablet, and report their progress',
    inCluster(async ({ client }, tables) => {
      await filled(tables, ['g', 'p']);
      await client.flush(tables.context());
      for (const row of ['a', 'g', 'p']) await tables.set('t', row, '2');
      assert.deepEqual(await progressOf(client.compactTables(tables.context(), T)), ['0/3', '1/3', '2/3', '3/3']);
      for (const { files, memoryBytes } of await client.listTablets(tables.context(), T)) {
        assert.equal(files, 1);
        assert.equal(memoryBytes, 0);
      }
      await tables.create('u');
      assert.equal((await progressOf(client.compactTables(tables.context()))).at(-1), '4/4');
      const [usage] = await client.familyUsage(tables.context(), T);
      assert.equal(usage?.family, 'f');
    }),
  );

  test(
    'of other tablets proceed when one fails; the call fails at its end',
    inCluster(async (cluster, tables) => {
      await filled(tables, ['g', 'p']);
      let calls = 0;
      cluster.onCall = ({ method }) =>
        method === 'compact' && ++calls === 1 ? Promise.reject(new CorruptionError('file', 0, 'damaged')) : undefined;
      const reported: number[] = [];
      await rejectsWith(Code.DATA_LOSS, async () => {
        for await (const { doneTablets } of cluster.client.compactTables(tables.context(), T))
          reported.push(doneTablets);
      });
      assert.deepEqual([reported.at(-1), calls], [3, 3]);
    }),
  );

  test(
    'find a tablet that has moved, skip a table that is deleted, and fail for one that never was',
    inCluster(async (cluster, tables) => {
      await filled(tables, ['g', 'p']);
      let calls = 0;
      cluster.onCall = ({ method }) =>
        method === 'compact' && ++calls === 1 ? Promise.reject(notServing('t', 'a')) : undefined;
      assert.equal((await progressOf(cluster.client.compactTables(tables.context(), T))).at(-1), '3/3');
      assert.equal(calls, 4);
      await rejectsWith(Code.NOT_FOUND, progressOf(cluster.client.compactTables(tables.context(), `${TABLES}none`)));
      await rejectsWith(Code.INVALID_ARGUMENT, progressOf(cluster.client.compactTables(tables.context(), 'none')));
      let armed = true;
      cluster.onCall = ({ method }) => {
        if (method !== 'compact' || !armed) return undefined;
        armed = false;
        return tables.delete('t').then(() => Promise.reject(notServing('t', 'a')));
      };
      assert.equal((await progressOf(cluster.client.compactTables(tables.context(), T))).at(-1), '3/3');
      // deleted between the list of tables and the read of its tablets
      await tables.create('u');
      await tables.create('v');
      cluster.onCall = undefined;
      cluster.client.close();
      await cluster.openClient();
      armed = true;
      cluster.onStream = ({ context, go }) => {
        if (!armed || context.principal === 'master') return undefined;
        armed = false;
        return (async function* () {
          await cluster.tables.delete('u');
          yield* go();
        })();
      };
      const steps = await progressOf(cluster.client.compactTables(tables.context()));
      assert.equal(steps.at(-1), '1/1');
    }),
  );

  test(
    'that take long report every ten seconds, and begin no more when their caller cancels or its deadline passes',
    inCluster(async (cluster, tables) => {
      const { client, clock } = cluster;
      await filled(
        tables,
        Array.from({ length: 20 }, (_, i) => `k${`${i}`.padStart(2, '0')}`),
      );
      let begun = 0;
      cluster.onCall = ({ method, context }) => {
        if (method !== 'compact') return undefined;
        begun++;
        return sleep(clock, 25_000, context.signal).then(() => undefined);
      };
      const startMs = clock.monotonicMs();
      const reported: number[] = [];
      for await (const { doneTablets } of client.compactTables(tables.context(), T)) {
        reported.push(clock.monotonicMs() - startMs);
        if (doneTablets > 0) break;
      }
      assert.equal(begun, 16);
      assert.deepEqual(
        reported.map((ms) => Math.round(ms / 1000)),
        [0, 10, 20, 25],
      );
      await rejectsWith(Code.DEADLINE_EXCEEDED, progressOf(client.compactTables(tables.context(15_000), T)));
      const caller = new AbortController();
      const cancelled = progressOf(client.compactTables(tables.context(undefined, caller.signal), T));
      clock.timer(5000, () => caller.abort());
      await rejectsWith(Code.CANCELLED, cancelled);
      assert.equal(begun, 48);
    }),
  );
});

describe('splits and merges', () => {
  test(
    'are made at a row, or near the middle of every tablet',
    inCluster(async ({ client }, tables) => {
      await filled(tables, []);
      await client.splitTablets(tables.context(), T, 'g');
      await client.splitTablets(tables.context(), T, 'g');
      assert.deepEqual(await startsOf(client, tables), ['', 'g']);
      await client.mergeTablets(tables.context(), T, 'g');
      assert.deepEqual(await startsOf(client, tables), ['']);
      const values = Array.from({ length: 40 }, (_, i) => setCell('x'.repeat(5000), 'f', i + 1));
      for (const row of ['a', 'c', 'h', 'q']) await tables.mutate('t', row, ...values);
      await client.splitTablets(tables.context(), T);
      assert.equal((await startsOf(client, tables)).length, 2);
      assert.deepEqual(await tables.rows('t'), ['a', 'b', 'c', 'g', 'h', 'p', 'q']);
    }),
  );

  test(
    'are refused with a message: a tablet of one row, no tablets that meet, a wrong row, no such table',
    inCluster(async ({ client }, tables) => {
      await tables.create('t');
      await tables.set('t', 'a', '1');
      await rejectsWith(Code.FAILED_PRECONDITION, client.splitTablets(tables.context(), T), /no two rows/);
      await rejectsWith(Code.FAILED_PRECONDITION, client.mergeTablets(tables.context(), T, 'a'), /meet at row/);
      await rejectsWith(Code.INVALID_ARGUMENT, client.splitTablets(tables.context(), T, ''));
      await rejectsWith(Code.INVALID_ARGUMENT, client.mergeTablets(tables.context(), T, ''));
      for (const row of [undefined, 'a'])
        await rejectsWith(Code.NOT_FOUND, client.splitTablets(tables.context(), `${TABLES}none`, row));
      await rejectsWith(Code.NOT_FOUND, client.mergeTablets(tables.context(), `${TABLES}none`, 'a'));
      await rejectsWith(Code.NOT_FOUND, client.listTablets(tables.context(), `${TABLES}none`));
      await rejectsWith(Code.NOT_FOUND, client.familyUsage(tables.context(), `${TABLES}none`));
    }),
  );

  test(
    'pass on what a server fails with',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      cluster.onCall = ({ method }) =>
        method === 'split' ? Promise.reject(new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full')) : undefined;
      for (const row of [undefined, 'a'])
        await rejectsWith(Code.RESOURCE_EXHAUSTED, cluster.client.splitTablets(tables.context(), T, row), /full/);
    }),
  );

  test(
    'next to a deletion of the table answer NOT_FOUND',
    inCluster(async (cluster, tables) => {
      const work: (() => Promise<void>)[] = [
        () => cluster.client.splitTablets(tables.context(), T),
        () => cluster.client.splitTablets(tables.context(), T, 'b'),
        () => cluster.client.mergeTablets(tables.context(), T, 'g'),
      ];
      for (const start of work)
        for (let turns = 0; turns < 80; turns += 4) {
          await filled(tables, ['g']);
          const split = start().then(
            () => undefined,
            (error: BigtableError) => error,
          );
          for (let i = 0; i < turns; i++) await Promise.resolve();
          await tables.delete('t');
          const error = await split;
          if (error) assert.equal(error.code, Code.NOT_FOUND, `after ${turns} turns: ${error.message}`);
        }
    }),
  );
});

describe('calls on all servers', () => {
  test(
    'sum counters, those of one thread once, and skip servers that have ended',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t');
        const counters = await cluster.client.counters(tables.context());
        const names = Object.keys(counters);
        assert.deepEqual(names, [...names].sort());
        assert.equal(counters['master.movedTablets'] ?? 0, cluster.env.metrics.snapshot()['master.movedTablets'] ?? 0);
        cluster.onCall = ({ method, address }) =>
          method === 'flush' && address === 'server-1' ? Promise.reject(notServing('t', 'a')) : undefined;
        await cluster.client.flush(tables.context());
        cluster.onCall = ({ method }) =>
          method === 'flush'
            ? Promise.reject(new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full'))
            : undefined;
        await rejectsWith(Code.RESOURCE_EXHAUSTED, cluster.client.flush(tables.context()));
        cluster.onCall = ({ method, address }) =>
          method === 'counters' && address !== 'master'
            ? Promise.resolve({ name: address, counters: { b: 2, a: 1 } })
            : undefined;
        const summed = await cluster.client.counters(tables.context());
        assert.deepEqual([summed['a'], summed['b']], [2, 4]);
      },
      { servers: 2 },
    ),
  );
});

describe('what is asked of all tablets of a table', () => {
  /** Merges the last two tablets before the third call of that method. */
  const mergedMeanwhile = (method: string, ask: (service: Service, tables: Tables) => Promise<void>) =>
    inCluster(async (cluster, tables) => {
      await filled(tables, ['g', 'p']);
      let calls = 0;
      cluster.onCall = (call) => {
        if (call.method !== method || ++calls !== 3) return undefined;
        return cluster.client.mergeTablets(tables.context(), T, 'p').then(() => call.go());
      };
      await ask(cluster.client, tables);
      assert.ok(calls > 3, `${calls}`);
    });

  test(
    'is of tablets that partition it, though two are merged meanwhile',
    mergedMeanwhile('tabletStatistics', async (service, tables) => {
      assert.deepEqual(await startsOf(service, tables), ['', 'g']);
    }),
  );

  test(
    'counts no row twice',
    mergedMeanwhile('familyUsage', async (service, tables) => {
      const [usage] = await service.familyUsage(tables.context(), T);
      const [again] = await service.familyUsage(tables.context(), T);
      assert.deepEqual(usage, again);
    }),
  );

  test(
    'gives samples that ascend',
    mergedMeanwhile('sampleKeys', async (service, tables) => {
      const samples = await service.sampleRowKeys(tables.context(), T);
      assert.deepEqual(
        samples.map(({ row }) => row),
        ['g', ''],
      );
    }),
  );
});
