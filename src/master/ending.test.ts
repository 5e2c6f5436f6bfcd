/** A master ends in limited time, whatever the servers do. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inCluster } from '../../test/cluster.ts';
import { END_WAIT_MS } from '../env/index.ts';
import { METADATA_TABLE_ID } from '../metadata/index.ts';

describe('a master that ends', () => {
  test(
    'does not wait for a commit that is never answered: its successor assigns the tablets',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: ['e', 'm', 's'] });
        for (const row of ['a', 'g', 'p', 'x']) await tables.set('t', row, row);
        const dead = cluster.servers.findIndex((one) => {
          const all = [...one!.tablets.all()];
          return all.length > 0 && all.every(({ tableId }) => tableId !== METADATA_TABLE_ID);
        });
        assert.ok(dead >= 0, 'a server has tablets of users only');
        let commits = 0;
        cluster.onCall = ({ method, context }) => {
          if (method !== 'commit') return undefined;
          commits++;
          return cluster.noAnswer(context);
        };
        await cluster.kill(dead);
        while (commits === 0) await cluster.env.clock.yield();
        const beginMs = cluster.clock.monotonicMs();
        await cluster.master!.close();
        assert.ok(cluster.clock.monotonicMs() - beginMs <= 2 * END_WAIT_MS);
        cluster.onCall = undefined;
        await cluster.startMaster();
        assert.deepEqual(await tables.rows('t'), ['a', 'g', 'p', 'x']);
      },
      { servers: 3 },
    ),
  );
});
