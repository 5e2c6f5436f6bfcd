import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import { TABLES, type Tables } from '../../test/tables.ts';
import { notReached, sleep } from '../env/index.ts';
import { keysOfTable, METADATA_TABLE_ID, type MetadataRow, ROOT_RANGE, USER_RANGE } from '../metadata/index.ts';
import type { RowRange } from '../model/index.ts';
import { Locator, MetadataClient } from '../locator/index.ts';
import { callMaster, LOGS_DIRECTORY, type ReadMessage, SERVERS_DIRECTORY, type TabletRef } from '../protocol/index.ts';

const SPLITS = Array.from({ length: 59 }, (_, i) => `r${i + 10}`);

const metadataOf = ({ env }: Cluster): MetadataClient =>
  new MetadataClient({ ...env, locator: new Locator(env), stopped: () => false });

async function rowsIn(cluster: Cluster, tables: Tables, range: RowRange): Promise<MetadataRow[]> {
  const rows: MetadataRow[] = [];
  for await (const some of metadataOf(cluster).scan(range, tables.context())) rows.push(...some);
  return rows;
}

async function rowsOf(cluster: Cluster, tables: Tables): Promise<MetadataRow[]> {
  const { id } = await cluster.client.getTable(tables.context(), `${TABLES}t`);
  return rowsIn(cluster, tables, keysOfTable(id));
}

const indexOf = ({ server }: MetadataRow): number => Number(server!.address.slice('server-'.length));

/**
 * A table of 60 tablets. Returns the indices of the servers: the owners of the root tablet and of METADATA's other one,
 * and those without any of them.
 */
async function fill(cluster: Cluster, tables: Tables): Promise<{ root: number; metadata: number; others: number[] }> {
  await tables.create('t', { splits: SPLITS });
  for (const row of SPLITS) await tables.set('t', row, row);
  await sleep(cluster.clock, 10_000);
  const root = (await metadataOf(cluster).readRoot(tables.context()))!;
  const [metadata] = await rowsIn(cluster, tables, ROOT_RANGE);
  const taken = [indexOf(root), indexOf(metadata!)] as const;
  return {
    root: taken[0],
    metadata: taken[1],
    others: [...cluster.servers.keys()].filter((index) => !taken.includes(index)),
  };
}

const failing = (error: Error): AsyncIterable<never> => ({
  [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) }),
});

/** The calls of the master since its making. */
class MastersCalls {
  lockCalls = 0;
  /** Ranges of METADATA that it has read, by their starts. */
  readonly reads: ReadMessage['ranges'][number][] = [];

  constructor(cluster: Cluster) {
    cluster.onLockCall = (name) => {
      if (name !== 'leaseHolds') this.lockCalls++;
      return undefined;
    };
    cluster.onStream = ({ message, context }) => {
      const { tableId, ranges } = message as ReadMessage;
      if (context.principal === 'master' && tableId === METADATA_TABLE_ID) this.reads.push(...ranges);
      return undefined;
    };
  }

  /** Reads of more than a row. */
  scans(): ReadMessage['ranges'] {
    return this.reads.filter(({ start, end }) => end !== `${start}\0`);
  }
}

const ownersOf = (rows: readonly MetadataRow[]): Set<number> => new Set(rows.map(indexOf));

describe('the recovery of a dead server', () => {
  for (const part of ['root', 'metadata'] as const)
    test(
      `begins when its lock is free, where a new master already waits for a tablet that it had (${part})`,
      inCluster(
        async (cluster, tables) => {
          const { clock } = cluster;
          const index = (await fill(cluster, tables))[part];
          const address = `server-${index}`;
          await cluster.master?.close();
          const dead = notReached('its process is gone');
          cluster.onCall = (call) => (call.address === address ? Promise.reject(dead) : undefined);
          cluster.onStream = (stream) => (stream.address === address ? failing(dead) : undefined);
          const starting = cluster.startMaster();
          // the look at all has begun, and waits
          await sleep(clock, 1500);
          await cluster.kill(index);
          const freeMs = clock.monotonicMs();
          assert.equal((await tables.rows('t')).length, SPLITS.length);
          assert.ok(clock.monotonicMs() - freeMs < 3000, `${clock.monotonicMs() - freeMs} ms`);
          await starting;
        },
        { servers: 3 },
      ),
    );

  test(
    'reads the rows of its tablets and no others, and makes at most ten calls of the lock service',
    inCluster(
      async (cluster, tables) => {
        const { clock } = cluster;
        const { others } = await fill(cluster, tables);
        const had = (await rowsOf(cluster, tables)).filter((row) => indexOf(row) === others[0]).length;
        assert.ok(had >= 15, `${had}`);
        const calls = new MastersCalls(cluster);
        const dead = cluster.kill(others[0]!);
        const killedMs = clock.monotonicMs();
        await dead;
        await sleep(clock, 3000);
        assert.deepEqual(calls.scans(), []);
        assert.equal(calls.reads.length, had);
        // of these the session of the dead server takes two
        assert.ok(calls.lockCalls <= 12, `${calls.lockCalls}`);
        assert.deepEqual(ownersOf(await rowsOf(cluster, tables)), new Set([0, 1, 2].filter((i) => i !== others[0])));
        assert.equal((await tables.rows('t')).length, SPLITS.length);
        assert.ok(clock.monotonicMs() - killedMs < 4000);
        // the next look at all rows verifies it
        await sleep(clock, 30_000);
        assert.ok(calls.scans().some(({ start }) => start === USER_RANGE.start));
      },
      { servers: 3 },
    ),
  );

  test(
    'is not missed when the lock goes while its holder is being read, because the file went before',
    inCluster(
      async (cluster, tables) => {
        const { others } = await fill(cluster, tables);
        const index = others[0]!;
        const row = (await rowsOf(cluster, tables)).find((each) => indexOf(each) === index);
        const path = SERVERS_DIRECTORY + row!.server!.name;
        let isRead = (): void => {};
        const read = new Promise<void>((resolve) => (isRead = resolve));
        let answer = (): void => {};
        const answered = new Promise<void>((resolve) => (answer = resolve));
        cluster.onLockCall = (name, of, go) => {
          if (name !== 'holder' || of !== path) return undefined;
          cluster.onLockCall = undefined;
          return go().then(async (holder) => {
            assert.ok(holder !== undefined, 'it was read before the lock went');
            isRead();
            await answered;
            return holder;
          });
        };
        await cluster.env.lockService.remove(path);
        await read;
        await cluster.kill(index);
        await sleep(cluster.clock, 100);
        answer();
        await sleep(cluster.clock, 3000);
        assert.ok(!ownersOf(await rowsOf(cluster, tables)).has(index));
        assert.equal((await tables.rows('t')).length, SPLITS.length);
      },
      { servers: 3 },
    ),
  );

  test(
    'goes on when another server dies',
    inCluster(
      async (cluster, tables) => {
        const { metadata, others } = await fill(cluster, tables);
        const loads = new Map<string, number>();
        let isHeld = true;
        let open = (): void => {};
        const passed = new Promise<void>((resolve) => (open = resolve));
        cluster.onCall = ({ method, message, address, go }) => {
          if (method !== 'load') return undefined;
          for (const { key, epoch } of (message as { tablets: readonly TabletRef[] }).tablets)
            loads.set(`${key} ${epoch}`, (loads.get(`${key} ${epoch}`) ?? 0) + 1);
          return isHeld && address === `server-${metadata}` ? passed.then(go) : undefined;
        };
        await cluster.kill(others[0]!);
        await sleep(cluster.clock, 500);
        const calls = new MastersCalls(cluster);
        await cluster.kill(others[1]!);
        await sleep(cluster.clock, 3000);
        assert.deepEqual(calls.scans(), [], 'no assignment of all');
        isHeld = false;
        open();
        await sleep(cluster.clock, 500);
        assert.ok(
          [...loads.values()].every((count) => count === 1),
          'no tablet is loaded again',
        );
        assert.equal((await tables.rows('t')).length, SPLITS.length);
        assert.deepEqual(
          ownersOf(await rowsOf(cluster, tables)),
          new Set([0, 1, 2, 3].filter((i) => !others.includes(i))),
        );
      },
      { servers: 4 },
    ),
  );

  test(
    'with METADATA on it serves METADATA first, and every tablet after it',
    inCluster(
      async (cluster, tables) => {
        const { metadata } = await fill(cluster, tables);
        const calls: string[] = [];
        cluster.onCall = ({ method, message }) => {
          if (method === 'load')
            for (const { key } of (message as { tablets: readonly TabletRef[] }).tablets) calls.push(key);
          return undefined;
        };
        await cluster.kill(metadata);
        assert.equal((await tables.rows('t')).length, SPLITS.length);
        assert.ok(calls.length > 2);
        assert.ok(calls[0]!.startsWith(METADATA_TABLE_ID));
      },
      { servers: 3 },
    ),
  );

  test(
    'finds tablets of a split whose notice was lost',
    inCluster(
      async (cluster, tables) => {
        const { others } = await fill(cluster, tables);
        cluster.onCall = ({ method }) => (method === 'tabletSplit' ? Promise.resolve(undefined) : undefined);
        const rows = await rowsOf(cluster, tables);
        const row = rows.find((each) => indexOf(each) === others[0])!.range.start;
        await cluster.client.splitTablets(tables.context(), `${TABLES}t`, `${row}5`);
        await cluster.kill(others[0]!);
        await sleep(cluster.clock, 10_000);
        assert.deepEqual(ownersOf(await rowsOf(cluster, tables)), new Set([0, 1, 2].filter((i) => i !== others[0])));
        assert.equal((await tables.rows('t')).length, SPLITS.length);
      },
      { servers: 3 },
    ),
  );

  test(
    'of one without tablets is over when its log was deleted and it is forgotten meanwhile',
    inCluster(
      async (cluster, tables) => {
        const { env, clock } = cluster;
        const [metadata] = await rowsIn(cluster, tables, ROOT_RANGE);
        const root = (await metadataOf(cluster).readRoot(tables.context()))!;
        const idle = [0, 1, 2].find((i) => i !== indexOf(root) && i !== indexOf(metadata!))!;
        let goOn = (): void => {};
        const held = new Promise<void>((resolve) => (goOn = resolve));
        cluster.onLockCall = (name, path, go) =>
          name === 'tryAcquire' && String(path).startsWith(SERVERS_DIRECTORY) ? held.then(go) : undefined;
        await cluster.kill(idle);
        await sleep(clock, 100);
        assert.equal((await callMaster(env.transport, 'master', 'sweep', {}, tables.context())).logs, 1);
        // the look at all servers
        await sleep(clock, 40_000);
        goOn();
        await sleep(clock, 5000);
        assert.deepEqual(
          cluster.messages.filter((line) => /failed|invariant/.test(line)),
          [],
        );
        assert.equal((await env.fileSystem.listLogs(LOGS_DIRECTORY)).length, 2);
      },
      { servers: 3 },
    ),
  );
});
