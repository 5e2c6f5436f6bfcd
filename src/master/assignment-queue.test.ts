import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import type { Tables } from '../../test/tables.ts';
import { unavailable } from '../base/index.ts';
import { sleep, within } from '../env/index.ts';
import { Locator, MetadataClient } from '../locator/index.ts';
import { isMetadataTablet, type MetadataKey, ROOT_KEY, ROOT_RANGE } from '../metadata/index.ts';
import { callServer, type TabletRef, type TabletServerCalls } from '../protocol/index.ts';

const SPLITS = Array.from({ length: 199 }, (_, i) => `r${i + 100}`);

/** A table of 200 tablets, spread over the servers. */
async function fill(cluster: Cluster, tables: Tables): Promise<void> {
  await tables.create('t', { splits: SPLITS });
  for (const row of SPLITS) await tables.set('t', row, row);
  await sleep(cluster.clock, 60_000);
}

/** The users' tablets that the server has. */
async function tabletsOf({ env }: Cluster, tables: Tables, index: number): Promise<MetadataKey[]> {
  const { tablets } = await callServer(env.transport, `server-${index}`, 'status', {}, tables.context());
  return tablets.map(({ key }) => key).filter((key) => !isMetadataTablet(key));
}

const keysOf = (message: unknown): MetadataKey[] =>
  (message as { tablets: readonly TabletRef[] }).tablets.map(({ key }) => key);

describe('the assignment queue', () => {
  test(
    'has a server load few tablets at a time, and a call that is slow holds up no other',
    inCluster(
      async (cluster, tables) => {
        await fill(cluster, tables);
        let open = (): void => {};
        const passed = new Promise<void>((resolve) => (open = resolve));
        let slow: MetadataKey[] = [];
        let [calls, most, largest] = [0, 0, 0];
        cluster.onCall = ({ method, message, context, go }) => {
          if (method !== 'load') return undefined;
          const keys = keysOf(message);
          if (keys.every(isMetadataTablet)) return undefined;
          largest = Math.max(largest, keys.length);
          if (slow.length === 0) slow = keys;
          if (keys[0] === slow[0]) return within(passed.then(go), context, cluster.clock);
          most = Math.max(most, ++calls);
          return sleep(cluster.clock, 100)
            .then(go)
            .finally(() => calls--);
        };
        await cluster.kill(1);
        await sleep(cluster.clock, 8000);
        assert.ok(slow.length > 0 && largest <= 16 && most <= 4, `${slow.length} ${largest} ${most}`);
        assert.equal((await tabletsOf(cluster, tables, 0)).length, SPLITS.length + 1 - slow.length);
        open();
        await sleep(cluster.clock, 2000);
        assert.equal((await tables.rows('t')).length, SPLITS.length);
      },
      { servers: 2 },
    ),
  );

  test(
    'looks again at a tablet whose server dies while it is being given',
    inCluster(
      async (cluster, tables) => {
        await fill(cluster, tables);
        let second = -1;
        cluster.onCall = ({ method, message, address, context }) => {
          if (method !== 'load' || keysOf(message).every(isMetadataTablet)) return undefined;
          if (second < 0) second = Number(address.slice('server-'.length));
          // the first that is given tablets never loads them
          return address === `server-${second}` ? cluster.noAnswer(context) : undefined;
        };
        await cluster.kill(2);
        await sleep(cluster.clock, 1000);
        assert.ok(second >= 0);
        await cluster.kill(second);
        await sleep(cluster.clock, 3000);
        const left = [0, 1, 2].find((index) => index !== 2 && index !== second)!;
        assert.equal((await tabletsOf(cluster, tables, left)).length, SPLITS.length + 1);
        assert.equal((await tables.rows('t')).length, SPLITS.length);
      },
      { servers: 3 },
    ),
  );

  test(
    "has a new master serve the root tablet before users' tablets are given away",
    inCluster(
      async (cluster, tables) => {
        await fill(cluster, tables);
        const metadata = new MetadataClient({
          ...cluster.env,
          locator: new Locator(cluster.env),
          stopped: () => false,
        });
        const holders = [(await metadata.readRoot(tables.context()))!];
        for await (const rows of metadata.scan(ROOT_RANGE, tables.context())) holders.push(...rows);
        const [root, ...others] = holders.map(({ server }) =>
          cluster.servers.findIndex((one) => one?.name === server!.name),
        );
        let rootLoads = 0;
        cluster.onCall = ({ address, method, message, context, go }) => {
          if (method === 'load' && keysOf(message).includes(ROOT_KEY) && ++rootLoads === 1)
            return go().then(async () => {
              const needed = [root, ...others, Number(address.slice('server-'.length))];
              const dying = [...cluster.servers.keys()].find((index) => !needed.includes(index))!;
              // the root tablet is served; the master does not know it
              await cluster.kill(dying);
              await sleep(cluster.clock, 3000);
              throw unavailable('the answer is lost');
            });
          if (method !== 'commit' || rootLoads !== 1) return undefined;
          const { commits } = message as TabletServerCalls['commit']['message'];
          if (commits.some(({ rows }) => rows.some(({ key }) => isMetadataTablet(key)))) return undefined;
          // METADATA's tablet is not served until the root tablet is
          return cluster.noAnswer(context);
        };
        await cluster.master!.close();
        await cluster.kill(root!);
        const started = cluster.startMaster();
        await sleep(cluster.clock, 20_000);
        assert.equal(rootLoads, 2);
        await started;
        assert.equal((await tables.rows('t')).length, SPLITS.length);
      },
      { servers: 4 },
    ),
  );
});
