/** A store that is full refuses the fence of a dead server: the master goes on trying. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inCluster } from '../../test/cluster.ts';
import { setCell, TABLES } from '../../test/tables.ts';
import { BigtableError, Code } from '../base/index.ts';
import { sleep } from '../env/index.ts';

describe('a fence that a full store refuses', () => {
  test(
    'keeps the tablets of the dead unserved, those of others served, and is made once there is space',
    inCluster(
      async (cluster, tables) => {
        const rows = Array.from({ length: 8 }, (_, i) => `r${i}`);
        await tables.create('t', { splits: rows.slice(1) });
        await sleep(cluster.clock, 10_000);
        for (const row of rows) await tables.set('t', row, row);
        const { fileSystem } = cluster;
        const fence = fileSystem.fence.bind(fileSystem);
        let [isFull, refused, loads] = [true, 0, 0];
        fileSystem.fence = async (path) => {
          if (!isFull) return fence(path);
          refused++;
          throw new BigtableError(Code.RESOURCE_EXHAUSTED, 'no space left');
        };
        cluster.onCall = ({ method }) => {
          if (method === 'load' && isFull) loads++;
          return undefined;
        };
        await cluster.kill(1);
        await sleep(cluster.clock, 20_000);
        assert.ok(refused >= 3, `${refused} attempts`);
        assert.equal(loads, 0, 'no tablet is given away before the fence');
        const early = await Promise.allSettled(
          rows.map((row) =>
            cluster.client.mutateRow(tables.context(1000), `${TABLES}t`, { row, mutations: [setCell('early')] }),
          ),
        );
        const served = early.filter(({ status }) => status === 'fulfilled').length;
        assert.ok(served > 0 && served < rows.length, `${served} of ${rows.length} rows are served`);
        isFull = false;
        for (const row of rows) await tables.set('t', row, `${row} again`);
        assert.deepEqual(
          await tables.read('t'),
          rows.map((row) => [row, `${row} again`]),
        );
      },
      { servers: 2 },
    ),
  );
});
