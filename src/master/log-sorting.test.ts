import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import type { Tables } from '../../test/tables.ts';
import { unavailable } from '../base/index.ts';
import { sleep } from '../env/index.ts';
import { callMaster, LOGS_DIRECTORY, type TabletServerCalls } from '../protocol/index.ts';

const SPLITS = Array.from({ length: 29 }, (_, i) => `r${i + 10}`);
const ROWS = ['a', ...SPLITS];
const SIZES = { partBytes: 20_000, leastBytes: 5000, leastBytesOfFew: 30_000, leastCallBytes: 30_000 };
const OPTIONS = { servers: 4, sortedLogs: SIZES };

type SortCall = TabletServerCalls['sortLog']['message'];

/** A table of 30 tablets with a row each, in the logs alone. Returns a server without a tablet of METADATA. */
async function fill(cluster: Cluster, tables: Tables): Promise<number> {
  await tables.create('t', { splits: SPLITS });
  for (let version = 0; version < 10; version++)
    for (const row of ROWS) await tables.set('t', row, `${row} ${version} ${'x'.repeat(1500)}`);
  return cluster.servers.findIndex(
    (server) => ![...server!.tablets.all()].some(({ tableId }) => tableId === '00000000') && server!.tablets.size > 2,
  );
}

/** The calls to sort. `fails`: those that fail. */
function sortCalls(cluster: Cluster, fails: (call: SortCall, address: string) => boolean = () => false): SortCall[] {
  const calls: SortCall[] = [];
  cluster.onCall = ({ method, message, address, go }) => {
    if (method !== 'sortLog') return undefined;
    calls.push(message as SortCall);
    return fails(message as SortCall, address) ? Promise.reject(unavailable('not now')) : go();
  };
  return calls;
}

async function rowsAre(tables: Tables): Promise<void> {
  const rows = await tables.rows('t');
  assert.deepEqual(
    rows.map((row) => row.split(' ')[0]),
    ROWS,
  );
}

const sortedFiles = async ({ env }: Cluster): Promise<string[]> =>
  (await env.fileSystem.list('sorted/')).map(({ path }) => path);

describe('the log of a dead server', () => {
  test(
    'is sorted by several servers, read sorted, and its files vanish with it',
    inCluster(async (cluster, tables) => {
      const dead = await fill(cluster, tables);
      const { name } = cluster.servers[dead]!;
      const calls = sortCalls(cluster);
      const begun: (number | undefined)[] = [];
      const { fileSystem } = cluster.env;
      const { readLog } = fileSystem;
      (fileSystem as { readLog: typeof readLog }).readLog = (path, from) => {
        begun.push(from);
        return readLog(path, from);
      };
      await cluster.kill(dead);
      await rowsAre(tables);
      // all look at its tail, which says where a replay begins
      const tail = await fileSystem.logTail?.(LOGS_DIRECTORY + name);
      const readings = begun.filter((from) => from !== tail);
      assert.ok(calls.length >= 3, `${calls.length}`);
      const begins = calls.map(({ start }) => start).sort((a, b) => a - b);
      assert.deepEqual(
        calls.map(({ end }) => end ?? Number.POSITIVE_INFINITY).sort((a, b) => a - b),
        [...begins.slice(1), Number.POSITIVE_INFINITY],
      );
      assert.ok(new Set(calls.map(({ to }) => to)).size >= 2, 'by more than one server');
      assert.equal(readings.length, calls.length, 'each part of the log is read once, by the server that sorts it');
      assert.equal((await sortedFiles(cluster)).length, calls.length);
      // the tablets were flushed: nothing lists the log
      await sleep(cluster.clock, 10_000);
      await callMaster(cluster.env.transport, 'master', 'sweep', {}, tables.context());
      assert.ok(!(await fileSystem.listLogs(LOGS_DIRECTORY)).includes(LOGS_DIRECTORY + name));
      assert.deepEqual(await sortedFiles(cluster), []);
      await rowsAre(tables);
    }, OPTIONS),
  );

  test(
    'keeps its sorted files in a sweep for as long as a row lists it',
    inCluster(async (cluster, tables) => {
      const dead = await fill(cluster, tables);
      sortCalls(cluster);
      await cluster.kill(dead);
      await sleep(cluster.clock, 500);
      const files = await sortedFiles(cluster);
      assert.ok(files.length >= 3);
      await callMaster(cluster.env.transport, 'master', 'sweep', {}, tables.context());
      assert.deepEqual(await sortedFiles(cluster), files);
      await rowsAre(tables);
    }, OPTIONS),
  );

  test(
    'is sorted by others where a server fails, and read where all fail',
    inCluster(async (cluster, tables) => {
      const dead = await fill(cluster, tables);
      const bad = cluster.servers.findIndex((_, i) => i !== dead);
      const calls = sortCalls(cluster, (_call, address) => address === `server-${bad}`);
      await cluster.kill(dead);
      await rowsAre(tables);
      assert.equal((await sortedFiles(cluster)).length, calls.length - 1);
      const next = cluster.servers.findIndex((server, i) => server !== undefined && i !== bad);
      sortCalls(cluster, () => true);
      for (const row of ROWS) await tables.set('t', row, `${row} again`);
      await cluster.kill(next);
      await rowsAre(tables);
      assert.ok(cluster.messages.some((line) => line.includes('sorted in part only')));
    }, OPTIONS),
  );

  test(
    'is sorted once by two masters: the second one has the rest sorted',
    inCluster(async (cluster, tables) => {
      const dead = await fill(cluster, tables);
      let open = (): void => {};
      const held = new Promise<void>((resolve) => (open = resolve));
      const calls: SortCall[] = [];
      cluster.onCall = ({ method, message, go }) => {
        if (method !== 'sortLog') return undefined;
        calls.push(message as SortCall);
        return calls.length === 2 || calls.length === 3 ? held.then(go) : go();
      };
      await cluster.kill(dead);
      await sleep(cluster.clock, 500);
      const before = (await sortedFiles(cluster)).length;
      assert.ok(before >= 1);
      const closing = cluster.master!.close();
      await cluster.startMaster();
      open();
      await closing;
      await rowsAre(tables);
      const files = await sortedFiles(cluster);
      assert.ok(files.length > before);
      assert.equal(new Set(files.map((path) => path.split('.')[0])).size, files.length, 'no part is there twice');
      assert.ok(!cluster.messages.some((line) => line.includes('in part only')));
    }, OPTIONS),
  );

  test(
    'waits for a server, when none is left, and is sorted by the first that comes',
    inCluster(async (cluster, tables) => {
      await fill(cluster, tables);
      const calls = sortCalls(cluster);
      for (const index of cluster.servers.keys()) await cluster.kill(index);
      await sleep(cluster.clock, 5000);
      await cluster.startServer();
      await rowsAre(tables);
      assert.ok(calls.length > 0);
    }, OPTIONS),
  );

  test(
    'is not sorted where it is short for so few servers',
    inCluster(
      async (cluster, tables) => {
        const dead = await fill(cluster, tables);
        const calls = sortCalls(cluster);
        await cluster.kill(dead);
        await rowsAre(tables);
        assert.deepEqual(calls, []);
      },
      { servers: 3, sortedLogs: { ...SIZES, leastBytesOfFew: 1 << 20 } },
    ),
  );

  test(
    'is sorted, though it is short, where each of its appends costs a call',
    inCluster(
      async (cluster, tables) => {
        const dead = await fill(cluster, tables);
        const calls = sortCalls(cluster);
        await cluster.kill(dead);
        await rowsAre(tables);
        assert.ok(calls.length > 0);
      },
      { servers: 3, sortedLogs: { ...SIZES, leastBytesOfFew: 1 << 20 }, slotCostBytes: 4096 },
    ),
  );
});
