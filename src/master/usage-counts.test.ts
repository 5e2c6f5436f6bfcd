import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../base/index.ts';
import { sleep } from '../env/index.ts';
import type { RowRange } from '../model/index.ts';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import { TABLES, type Tables } from '../../test/tables.ts';

const TABLE = 't';
const LOOK_MS = 31_000;
const COUNTS = ['measureUsage', 'usageCounted'];
const VALUE = 'v'.repeat(10_000);

/** The row's write is refused because of a quota. */
async function isRefused(tables: Tables, row: string): Promise<boolean> {
  try {
    await tables.set(TABLE, row, VALUE);
    return false;
  } catch (error) {
    assert.ok(error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED, String(error));
    return true;
  }
}

function setQuota({ client }: Cluster, tables: Tables, quotaBytes?: number): Promise<void> {
  return client.setQuota(tables.context(), TABLES + TABLE, quotaBytes === undefined ? {} : { quotaBytes });
}

/** The index of the server that has that tablet. */
function ownerOf({ servers }: Cluster, which: 'low' | 'high'): number {
  const isIt = ({ range }: { readonly range: RowRange }): boolean =>
    (which === 'low' ? range.end : range.start) === 'm';
  return servers.findIndex((server) => server !== undefined && [...server.tablets.all()].some(isIt));
}

/** Two servers, each with a tablet: rows below m and above. */
function onTwoServers(work: (cluster: Cluster, tables: Tables) => Promise<void>): () => Promise<void> {
  return inCluster(
    async (cluster, tables) => {
      await tables.create(TABLE, { splits: ['m'] });
      assert.notEqual(ownerOf(cluster, 'low'), ownerOf(cluster, 'high'), 'each server has a tablet');
      await work(cluster, tables);
    },
    { servers: 2 },
  );
}

describe('counts of usage', () => {
  test(
    'are made every half a minute, so that a server knows what others have written, and what was deleted',
    onTwoServers(async (cluster, tables) => {
      await setQuota(cluster, tables, 100_000);
      for (let i = 0; i < 8; i++) assert.equal(await isRefused(tables, `a${i}`), false);
      // the other server does not know of these yet
      assert.equal(await isRefused(tables, 'z1'), false);
      await sleep(cluster.clock, LOOK_MS);
      assert.equal(await isRefused(tables, 'z2'), true);
      assert.equal(await isRefused(tables, 'a9'), true);
      await cluster.client.dropRowRange(tables.context(), TABLES + TABLE, { start: '', end: 'm' });
      for await (const _ of cluster.client.compactTables(tables.context(), TABLES + TABLE));
      await sleep(cluster.clock, LOOK_MS);
      assert.equal(await isRefused(tables, 'z2'), false);
    }),
  );

  test(
    'go on with the next master, and with a server that has the tablet of one that died',
    onTwoServers(async (cluster, tables) => {
      await setQuota(cluster, tables, 50_000);
      for (let i = 0; i < 4; i++) await tables.set(TABLE, `a${i}`, VALUE);
      await cluster.master!.close();
      await cluster.startMaster();
      await sleep(cluster.clock, LOOK_MS);
      assert.equal(await isRefused(tables, 'z'), true);
      await cluster.kill(0);
      await cluster.startServer();
      await sleep(cluster.clock, LOOK_MS);
      for (const row of ['a9', 'z']) assert.equal(await isRefused(tables, row), true);
      await setQuota(cluster, tables);
      for (const row of ['a9', 'z']) assert.equal(await isRefused(tables, row), false);
    }),
  );

  test(
    'are not made without quotas',
    onTwoServers(async (cluster, tables) => {
      const made: string[] = [];
      cluster.onCall = ({ method, go }) => {
        if (COUNTS.includes(method)) made.push(method);
        return go();
      };
      await tables.set(TABLE, 'a', VALUE);
      await sleep(cluster.clock, 2 * LOOK_MS);
      assert.deepEqual(made, []);
      await setQuota(cluster, tables, 1e6);
      assert.deepEqual(made.sort(), ['measureUsage', 'measureUsage', 'usageCounted', 'usageCounted']);
      await setQuota(cluster, tables);
      made.length = 0;
      await sleep(cluster.clock, 2 * LOOK_MS);
      assert.deepEqual(made, []);
    }),
  );

  test(
    'miss what a server has that does not answer: the others refuse by what is known',
    onTwoServers(async (cluster, tables) => {
      await setQuota(cluster, tables, 50_000);
      for (let i = 0; i < 4; i++) await tables.set(TABLE, `a${i}`, VALUE);
      const owner = ownerOf(cluster, 'low');
      cluster.onCall = ({ address, method, go }) => {
        if (method === 'measureUsage' && address === `server-${owner}`)
          return Promise.reject(new BigtableError(Code.UNIMPLEMENTED, 'an earlier release'));
        return go();
      };
      await sleep(cluster.clock, LOOK_MS);
      assert.equal(await isRefused(tables, 'z'), false);
      cluster.onCall = undefined;
      await sleep(cluster.clock, LOOK_MS);
      assert.equal(await isRefused(tables, 'z2'), true);
    }),
  );
});
