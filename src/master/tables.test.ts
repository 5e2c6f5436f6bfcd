import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import { rejectsWith, TABLES, type Tables } from '../../test/tables.ts';
import { BigtableError, Code, unavailable } from '../base/index.ts';
import { sleep, toPlainError } from '../env/index.ts';
import { Locator, MetadataClient } from '../locator/index.ts';
import { keyOfRow, type MetadataRow, USER_RANGE } from '../metadata/index.ts';
import type { TabletServerCalls } from '../protocol/index.ts';

const T = `${TABLES}t`;

async function metadataRows({ env }: Cluster, tables: Tables): Promise<MetadataRow[]> {
  const metadata = new MetadataClient({ ...env, locator: new Locator(env), stopped: () => false });
  const all: MetadataRow[] = [];
  for await (const rows of metadata.scan(USER_RANGE, tables.context())) all.push(...rows);
  return all;
}

const diskFull = (): BigtableError => new BigtableError(Code.RESOURCE_EXHAUSTED, 'the disk is full');

const marks = async ({ env }: Cluster): Promise<number> => (await env.lockService.list('deletions/')).length;

describe('tables', () => {
  test(
    'have the groups and extras that they are created with, and those of the last change',
    inCluster(async ({ client }, tables) => {
      const name = T;
      const created = await client.createTable(tables.context(), {
        name,
        families: [{ name: 'f', gcRule: { kind: 'maxVersions', versions: 1 } }, { name: 'g' }],
        splits: ['m', 'm'],
        granularity: 'millis',
        deletionProtection: false,
        groups: { fast: { families: ['g'], inMemory: true } },
        extra: { a: '1' },
      });
      assert.deepEqual([created.families['g']?.group, { ...created.extra }], ['fast', { a: '1' }]);
      const changed = await client.updateTable(tables.context(), name, { groups: {}, extra: { b: '2' } });
      assert.deepEqual([changed.families['g']?.group, { ...changed.extra }], [undefined, { a: '1', b: '2' }]);
      assert.deepEqual(await client.getTable(tables.context(), name), changed);
    }),
  );

  test(
    'are created once: of several at the same time one succeeds',
    inCluster(async (_cluster, tables) => {
      const outcomes = await Promise.all(
        [1, 2, 3].map(() =>
          tables.create('t').then(
            () => 'created',
            ({ code }: BigtableError) => code,
          ),
        ),
      );
      assert.deepEqual(outcomes.sort(), [Code.ALREADY_EXISTS, Code.ALREADY_EXISTS, 'created'].sort());
      await rejectsWith(Code.NOT_FOUND, tables.delete('none'));
      await rejectsWith(Code.NOT_FOUND, tables.service.updateTable(tables.context(), `${TABLES}none`, { extra: {} }));
    }),
  );

  test(
    'leave no file when their creation fails, and their name is free',
    inCluster(async (cluster, tables) => {
      cluster.onLockCall = (name, path) =>
        name === 'write' && path === `schemas/${T}` ? Promise.reject(diskFull()) : undefined;
      await rejectsWith(Code.RESOURCE_EXHAUSTED, tables.create('t', { splits: ['m'] }), /disk is full/);
      assert.deepEqual(await metadataRows(cluster, tables), []);
      // nor if the remains cannot be removed then
      let isAway = true;
      cluster.onCall = ({ method, context, message }) =>
        isAway && method === 'commit' && context.principal === 'master' && JSON.stringify(message).includes('released')
          ? Promise.reject(diskFull())
          : undefined;
      await assert.rejects(tables.create('t', { splits: ['m'] }));
      assert.equal((await metadataRows(cluster, tables)).length, 2);
      isAway = false;
      cluster.onLockCall = undefined;
      await sleep(cluster.clock, 60_000);
      assert.deepEqual(await metadataRows(cluster, tables), []);
      await tables.create('t');
      await tables.set('t', 'a', '1');
    }),
  );

  test(
    'are created, changed and deleted though the first answer to each change of a schema is lost',
    inCluster(async (cluster, tables) => {
      let calls = 0;
      cluster.onLockCall = (name, path, go) =>
        (name === 'write' || name === 'remove') && path === `schemas/${T}` && calls++ % 2 === 0
          ? go().then(() => Promise.reject(unavailable('the answer was lost')))
          : undefined;
      await tables.create('t');
      await tables.set('t', 'a', '1');
      await rejectsWith(Code.ALREADY_EXISTS, tables.create('t'));
      await tables.service.updateTable(tables.context(), T, { extra: { a: '1' } });
      assert.deepEqual({ ...(await tables.service.getTable(tables.context(), T)).extra }, { a: '1' });
      await tables.delete('t');
      assert.equal(calls, 6);
      assert.equal(await marks(cluster), 0);
      assert.deepEqual(await metadataRows(cluster, tables), []);
    }),
  );

  test(
    'keep their rows while their schema may yet be written, as long as their master has its lock',
    inCluster(async (cluster, tables) => {
      let late: (() => Promise<unknown>) | undefined;
      cluster.onLockCall = (name, path, go) => {
        if (name !== 'write' || path !== `schemas/${T}`) return undefined;
        late = go;
        return Promise.reject(unavailable('away'));
      };
      await rejectsWith(Code.UNAVAILABLE, tables.create('t'), /away/);
      await sleep(cluster.clock, 60_000);
      assert.equal((await metadataRows(cluster, tables)).length, 1);
      await late?.();
      await sleep(cluster.clock, 60_000);
      await tables.set('t', 'a', '1');
      assert.deepEqual(await tables.read('t'), [['a', '1']]);
      await tables.delete('t');
      await rejectsWith(Code.UNAVAILABLE, tables.create('t'), /away/);
      await cluster.master?.close();
      await cluster.startMaster();
      await sleep(cluster.clock, 60_000);
      assert.deepEqual(await metadataRows(cluster, tables), []);
      await assert.rejects(late?.() ?? Promise.resolve(), { code: Code.ABORTED });
    }),
  );

  test(
    'fail to be created if no tablet of them is served, and exist',
    inCluster(async (cluster, tables) => {
      cluster.onCall = ({ method, message, go }) => {
        if (method !== 'load') return undefined;
        cluster.onCall = undefined;
        const { tablets } = message as TabletServerCalls['load']['message'];
        return go().then(() => tablets.map(() => toPlainError(unavailable('the answer is lost'))));
      };
      await rejectsWith(Code.UNAVAILABLE, tables.create('t'), /answer is lost/);
      await tables.set('t', 'a', '1');
    }),
  );

  test(
    'have ids that are never given twice, and that run out',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      const first = await cluster.client.getTable(tables.context(), T);
      await tables.delete('t');
      await tables.create('t');
      assert.notEqual((await cluster.client.getTable(tables.context(), T)).id, first.id);
      const file = await cluster.env.lockService.read('next-table-id');
      const text = Buffer.from(file?.contents ?? []).toString();
      assert.match(text, /"next":/);
      await cluster.env.lockService.write(
        'next-table-id',
        Buffer.from(text.replace(/"next":\s*\d+/, `"next":${0x1_0000_0000}`)),
      );
      await rejectsWith(Code.RESOURCE_EXHAUSTED, tables.create('u'), /table ids/);
    }),
  );
});

describe('deletions', () => {
  test(
    'that are cut short after the removal of the schema are finished later',
    inCluster(async (cluster, tables) => {
      await tables.create('t', { splits: ['m'] });
      await tables.set('t', 'a', '1');
      let isAway = true;
      cluster.onCall = ({ method, context, message }) =>
        isAway && method === 'commit' && context.principal === 'master' && JSON.stringify(message).includes('released')
          ? Promise.reject(diskFull())
          : undefined;
      await tables.delete('t');
      await rejectsWith(Code.NOT_FOUND, tables.rows('t'));
      assert.equal(await marks(cluster), 1);
      // by the next master, too
      await cluster.master?.close();
      isAway = false;
      await cluster.startMaster();
      await sleep(cluster.clock, 60_000);
      assert.equal(await marks(cluster), 0);
      assert.deepEqual(await metadataRows(cluster, tables), []);
    }),
  );

  test(
    'that cannot remove the schema have not happened',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      await tables.set('t', 'a', '1');
      cluster.onLockCall = (name, path) =>
        name === 'remove' && path === `schemas/${T}` ? Promise.reject(unavailable('away')) : undefined;
      await rejectsWith(Code.UNAVAILABLE, tables.delete('t'), /away/);
      assert.equal(await marks(cluster), 0);
      // and whose mark is left: by this master, and by one that follows
      for (const restart of [false, true]) {
        cluster.onLockCall = (name, path) =>
          name === 'remove' ? Promise.reject(unavailable(`${String(path)} is away`)) : undefined;
        await assert.rejects(tables.delete('t'));
        assert.equal(await marks(cluster), 1);
        cluster.onLockCall = undefined;
        if (restart) {
          await cluster.master?.close();
          await cluster.startMaster();
        }
        await sleep(cluster.clock, 60_000);
        assert.equal(await marks(cluster), 0);
        assert.deepEqual(await tables.rows('t'), ['a']);
      }
    }),
  );
});

describe('tablets of a table whose schema has vanished', () => {
  test(
    'are kept, are not served, and come back with the schema',
    inCluster(
      async (cluster, tables) => {
        const { lockService } = cluster.env;
        await tables.create('t', { splits: ['m'] });
        for (const row of ['a', 'z']) await tables.set('t', row, row);
        const file = await lockService.read(`schemas/${T}`);
        assert.ok(file);
        await lockService.remove(`schemas/${T}`);
        await sleep(cluster.clock, 40_000);
        assert.equal(cluster.messages.filter((line) => /tablets and no schema/.test(line)).length, 1);
        await cluster.kill(0);
        await sleep(cluster.clock, 60_000);
        const rows = await metadataRows(cluster, tables);
        assert.deepEqual(rows.map(keyOfRow).length, 2);
        assert.ok(rows.some(({ server }) => server === undefined));
        await lockService.write(`schemas/${T}`, file.contents);
        await sleep(cluster.clock, 60_000);
        assert.deepEqual(await tables.rows('t'), ['a', 'z']);
        assert.equal(cluster.messages.filter((line) => /tablets and no schema/.test(line)).length, 1);
      },
      { servers: 2 },
    ),
  );
});

describe('merges', () => {
  const merge = ({ client }: Cluster, tables: Tables, row = 'm') => client.mergeTablets(tables.context(), T, row);
  const count = async ({ client }: Cluster, tables: Tables): Promise<number> =>
    (await client.listTablets(tables.context(), T)).length;

  test(
    'that are cut short at any call leave a table that is served whole',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: ['m'] });
        for (const row of ['a', 'z']) await tables.set('t', row, row);
        for (const [method, principal] of [
          ['flush', 'master'],
          ['unload', 'master'],
          ['commit', 'master'],
          ['load', 'master'],
        ])
          for (let failAt = 1; failAt <= 3; failAt++) {
            let calls = 0;
            cluster.onCall = (call) => {
              if (call.method !== method || call.context.principal !== principal || ++calls !== failAt)
                return undefined;
              return Promise.reject(new BigtableError(Code.RESOURCE_EXHAUSTED, 'no'));
            };
            await merge(cluster, tables).catch((error: BigtableError) => {
              assert.ok(error instanceof BigtableError, String(error));
              assert.notEqual(error.code, Code.INTERNAL, error.message);
            });
            cluster.onCall = undefined;
            assert.deepEqual(await tables.rows('t'), ['a', 'z'], `${method} ${failAt}`);
            if ((await count(cluster, tables)) === 1) await cluster.client.splitTablets(tables.context(), T, 'm');
            assert.equal(await count(cluster, tables), 2);
          }
        await merge(cluster, tables);
        assert.equal(await count(cluster, tables), 1);
      },
      { servers: 2 },
    ),
  );

  test(
    'of a tablet that is split before any read of METADATA end as one of the two orders would',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: ['m'] });
        for (const row of ['a', 'c', 'z']) await tables.set('t', row, row);
        for (let splitAt = 1; splitAt <= 6; splitAt++) {
          let reads = 0;
          cluster.onStream = ({ context, go }) => {
            if (context.principal !== 'master' || ++reads !== splitAt) return undefined;
            return (async function* () {
              await cluster.client.splitTablets(tables.context(), T, 'q');
              yield* go();
            })();
          };
          const merged = await merge(cluster, tables).catch((error: BigtableError) => error.code);
          cluster.onStream = undefined;
          assert.ok(merged === undefined || merged === Code.ABORTED, `read ${splitAt}: ${merged}`);
          assert.deepEqual(await tables.rows('t'), ['a', 'c', 'z']);
          // as before
          for (const { range } of await cluster.client.listTablets(tables.context(), T))
            if (range.end === 'q') await merge(cluster, tables, 'q');
          if ((await count(cluster, tables)) === 1) await cluster.client.splitTablets(tables.context(), T, 'm');
          assert.equal(await count(cluster, tables), 2);
        }
      },
      { servers: 2 },
    ),
  );

  test(
    'of a tablet that is split, moved or being assigned meanwhile are ABORTED or UNAVAILABLE',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: ['m'] });
        for (const row of ['a', 'c', 'z']) await tables.set('t', row, row);
        // split after the master has found the two
        let armed = true;
        cluster.onCall = ({ method, context, go }) => {
          if (!armed || method !== 'flush' || context.principal !== 'master') return undefined;
          armed = false;
          return cluster.client.splitTablets(tables.context(), T, 'q').then(go);
        };
        await assert.rejects(merge(cluster, tables), { code: Code.ABORTED });
        assert.deepEqual(await tables.rows('t'), ['a', 'c', 'z']);
        // its server refuses to release it
        cluster.onCall = ({ method, context }) =>
          method === 'unload' && context.principal === 'master'
            ? Promise.resolve([toPlainError(new BigtableError(Code.FAILED_PRECONDITION, 'not at this epoch'))])
            : undefined;
        await rejectsWith(Code.FAILED_PRECONDITION, merge(cluster, tables));
        cluster.onCall = undefined;
        assert.deepEqual(await tables.rows('t'), ['a', 'c', 'z']);
      },
      { servers: 2 },
    ),
  );
});
