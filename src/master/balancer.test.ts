import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import { TABLES, type Tables } from '../../test/tables.ts';
import { sleep } from '../env/index.ts';
import { Locator, MetadataClient } from '../locator/index.ts';
import {
  isMetadataTablet,
  keysOfTable,
  METADATA_TABLE_ID,
  type MetadataRow,
  ROOT_KEY,
  USER_RANGE,
} from '../metadata/index.ts';
import type { ReadMessage, ServerStatus } from '../protocol/index.ts';

const SPLITS = Array.from({ length: 119 }, (_, i) => `r${i + 100}`);

async function rowsOf(cluster: Cluster, tables: Tables): Promise<MetadataRow[]> {
  const { id } = await cluster.client.getTable(tables.context(), `${TABLES}t`);
  return rowsOfTable(cluster, tables, id);
}

async function rowsOfTable({ env }: Cluster, tables: Tables, id: string): Promise<MetadataRow[]> {
  const metadata = new MetadataClient({ ...env, locator: new Locator(env), stopped: () => false });
  const rows: MetadataRow[] = [];
  for await (const some of metadata.scan(keysOfTable(id), tables.context())) rows.push(...some);
  return rows;
}

const movesOf = ({ env }: Cluster): number => env.metrics.snapshot()['master.movedTablets'] ?? 0;

describe('the balancer', () => {
  test(
    'fills a server that comes without a look at all rows in between, four tablets of a server at a time',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: SPLITS });
        for (const row of SPLITS) await tables.set('t', row, row);
        await sleep(cluster.clock, 40_000);
        let looks = 0;
        const [moving, most] = [new Map<string, number>(), new Map<string, number>()];
        cluster.onStream = ({ message, context }) => {
          const { tableId, ranges } = message as ReadMessage;
          const isLook = tableId === METADATA_TABLE_ID && ranges[0]?.start === USER_RANGE.start;
          if (isLook && context.principal === 'master') looks++;
          return undefined;
        };
        cluster.onCall = ({ method, address, go }) => {
          if (method !== 'unload') return undefined;
          moving.set(address, (moving.get(address) ?? 0) + 1);
          most.set(address, Math.max(most.get(address) ?? 0, moving.get(address)!));
          return sleep(cluster.clock, 300)
            .then(go)
            .finally(() => moving.set(address, moving.get(address)! - 1));
        };
        await cluster.startServer();
        await sleep(cluster.clock, 20_000);
        const owners = (await rowsOf(cluster, tables)).map(({ server }) => server?.address);
        assert.equal(owners.filter((owner) => owner === 'server-2').length, 40);
        assert.equal(movesOf(cluster), 40);
        assert.ok(looks <= 1, `${looks}`);
        assert.ok(Math.max(...most.values()) <= 4);
        await sleep(cluster.clock, 120_000);
        assert.equal(movesOf(cluster), 40, 'none moves back');
        assert.deepEqual(await tables.rows('t'), SPLITS);
      },
      { servers: 2 },
    ),
  );

  test(
    'spreads METADATA’s tablets one by one, and leaves the root tablet where it is',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: SPLITS });
        for (const row of SPLITS) await tables.set('t', row, row);
        await sleep(cluster.clock, 40_000);
        const root = cluster.servers[0]!;
        let [moving, most] = [0, 0];
        cluster.onCall = ({ method, message, go }) => {
          const { tablets = [] } = message as { tablets?: readonly { key: string }[] };
          if (method !== 'unload' || !tablets.some(({ key }) => isMetadataTablet(key))) return undefined;
          assert.ok(!tablets.some(({ key }) => key === ROOT_KEY));
          most = Math.max(most, ++moving);
          return go().finally(() => moving--);
        };
        for (let i = 0; i < 2; i++) await cluster.startServer();
        await sleep(cluster.clock, 60_000);
        assert.ok([...root.tablets.all()].some(({ key }) => key === ROOT_KEY));
        const owners = (await rowsOfTable(cluster, tables, METADATA_TABLE_ID)).map(({ server }) => server?.address);
        const counts = cluster.servers.map((server) => owners.filter((owner) => owner === server?.address).length);
        assert.ok(owners.length >= 4, `${owners.length} tablets of METADATA`);
        assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, `${counts}`);
        assert.equal(most, 1);
        assert.deepEqual(await tables.rows('t'), SPLITS);
      },
      { settings: { metadataTabletBytes: 6 << 10 } },
    ),
  );

  test(
    'moves a tablet away from a server that has most of the requests, once',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: ['c', 'f', 'j', 'm'] });
        for (const row of ['a', 'd', 'g', 'k', 'n']) await tables.set('t', row, row);
        const endsAt = async (address: string): Promise<string[]> =>
          (await rowsOf(cluster, tables))
            .filter(({ server }) => server?.address === address)
            .map(({ range: { end } }) => end ?? '');
        const [zero, one] = [await endsAt('server-0'), await endsAt('server-1')];
        // one tablet more than the other server has, so that one may go
        const busy = (zero.length > one.length ? zero : one).slice(0, 2);
        let answers = 0;
        cluster.onCall = ({ method, go }) =>
          method === 'status'
            ? go().then((answer) => {
                const status = answer as ServerStatus;
                answers++;
                const isBusy = (key: string): boolean => busy.includes(key.slice(METADATA_TABLE_ID.length + 1));
                return {
                  ...status,
                  tablets: status.tablets.map((each) => ({ ...each, requests: isBusy(each.key) ? answers * 1e5 : 1 })),
                };
              })
            : undefined;
        await sleep(cluster.clock, 300_000);
        assert.equal(movesOf(cluster), 1);
        for (const address of ['server-0', 'server-1'])
          assert.equal((await endsAt(address)).filter((end) => busy.includes(end)).length, 1);
      },
      { servers: 2 },
    ),
  );
});
