/** A tablet server ends in limited time, whatever the others do. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inCluster } from '../../test/cluster.ts';
import { TABLES } from '../../test/tables.ts';
import { END_WAIT_MS } from '../env/index.ts';
import { callServer } from '../protocol/index.ts';

describe('a tablet server that ends', () => {
  test(
    'does not wait for a commit that is never answered: what it would flush is replayed elsewhere',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: ['m'] });
        for (const row of ['a', 'x']) await tables.set('t', row, row);
        const { id } = await cluster.client.getTable(tables.context(), `${TABLES}t`);
        const index = cluster.servers.findIndex((one) => [...one!.tablets.all()].some(({ tableId }) => tableId === id));
        const server = cluster.servers[index]!;
        const keys = [...server.tablets.all()].filter(({ tableId }) => tableId === id).map(({ key }) => key);
        let commits = 0;
        cluster.onCall = ({ method, context }) => {
          if (method !== 'commit') return undefined;
          commits++;
          return cluster.noAnswer(context);
        };
        const flushed = callServer(cluster.env.transport, server.address, 'flush', { keys }, tables.context());
        flushed.catch(() => {});
        while (commits === 0) await cluster.env.clock.yield();
        const beginMs = cluster.clock.monotonicMs();
        await server.close();
        assert.ok(cluster.clock.monotonicMs() - beginMs <= 2 * END_WAIT_MS);
        cluster.onCall = undefined;
        cluster.servers[index] = undefined;
        assert.deepEqual(await tables.rows('t'), ['a', 'x']);
      },
      { servers: 2 },
    ),
  );
});
