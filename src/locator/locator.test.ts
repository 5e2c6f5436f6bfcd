import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inCluster } from '../../test/cluster.ts';
import { rejectsWith, TABLES, type Tables } from '../../test/tables.ts';
import { BigtableError, Code } from '../base/index.ts';
import { Metrics, notReached, pullStreamOf, sleep } from '../env/index.ts';
import { Locator, MetadataClient, SchemaCache } from './index.ts';
import { commitOfRow, keyOfRow, METADATA_TABLE_ID, metadataKey, ROOT_KEY, USER_RANGE } from '../metadata/index.ts';
import { isNotServing, notServing } from '../protocol/index.ts';

function newLocator(db: Tables): { locator: Locator; roundTrips: () => number; metadata: MetadataClient } {
  const metrics = new Metrics();
  const locator = new Locator({ ...db.env, metrics });
  return {
    locator,
    metadata: new MetadataClient({ ...db.env, locator, stopped: () => false }),
    roundTrips: () => metrics.get('locator.roundTrips'),
  };
}

async function tableId(db: Tables, table: string): Promise<string> {
  return (await db.service.getTable(db.context(), TABLES + table)).id;
}

describe('the locator', () => {
  test(
    'climbs in three round trips, then knows the tablet and ten more',
    inCluster(async (_cluster, db) => {
      const splits = Array.from({ length: 20 }, (_, i) => String.fromCharCode(0x61 + i));
      await db.create('t', { splits });
      const id = await tableId(db, 't');
      const { locator, roundTrips } = newLocator(db);
      const found = await locator.locate(id, 'bb', db.context());
      assert.deepEqual(found.range, { start: 'b', end: 'c' });
      assert.equal(roundTrips(), 3);
      for (const split of splits.slice(2, 12)) assert.equal(locator.cached(id, split)?.range.start, split);
      assert.equal(locator.cached(id, 'n'), undefined);
      assert.equal(locator.cached(id, 'a'), undefined);
      assert.equal((await locator.locate(id, 'n', db.context())).range.start, 'n');
      assert.equal(roundTrips(), 4);
    }),
  );

  test(
    'finds the tablet below a key, for reverse scans',
    inCluster(async (_cluster, db) => {
      await db.create('t', { splits: ['c', 'f'] });
      const id = await tableId(db, 't');
      for (const warm of [false, true]) {
        const { locator, roundTrips } = newLocator(db);
        if (warm) await locator.locate(id, '', db.context());
        const before = roundTrips();
        const starts = [];
        for (const end of [undefined, 'z', 'f\0', 'f', 'e', 'c', 'a'])
          starts.push((await locator.locateBefore(id, end, db.context())).range.start);
        assert.deepEqual(starts, ['f', 'f', 'f', 'c', 'c', '', '']);
        if (warm) assert.equal(roundTrips(), before);
      }
    }),
  );

  test(
    'callers that miss concurrently climb once',
    inCluster(async (_cluster, db) => {
      await db.create('t', { splits: ['c', 'f'] });
      const id = await tableId(db, 't');
      const { locator, roundTrips } = newLocator(db);
      await Promise.all([...'abcdefgh'].map((row) => locator.locate(id, row, db.context())));
      assert.equal(roundTrips(), 3);
    }),
  );

  test(
    'callers that miss while METADATA is not served ask for it a few times in all',
    inCluster(
      async (cluster, db) => {
        const { clock } = cluster;
        await db.create('t', { splits: ['m'] });
        const id = await tableId(db, 't');
        const { locator, roundTrips } = newLocator(db);
        cluster.onStream = () =>
          pullStreamOf({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(notReached('it has gone')) }) });
        const before = roundTrips();
        const failed = async (row: string): Promise<void> => {
          for (let i = 0; i < 10; i++) {
            await rejectsWith(Code.UNAVAILABLE, locator.locate(id, row, db.context()));
            await sleep(clock, 10);
          }
        };
        await Promise.all([...'abcdefghijklmnopqrstuvwxyz'].map((row) => failed(row)));
        assert.ok(roundTrips() - before <= 3 * 4, `${roundTrips() - before} round trips`);
        cluster.onStream = undefined;
        await sleep(clock, 100);
        await locator.locate(id, 'a', db.context());
      },
      { servers: 2 },
    ),
  );

  test(
    'a table that METADATA does not have is not found',
    inCluster(async (_cluster, db) => {
      await db.create('t');
      const { locator } = newLocator(db);
      for (const id of ['0000000f', '00000011', 'ffffffff'])
        await rejectsWith(Code.NOT_FOUND, locator.locate(id, 'a', db.context()), /no tablet of table/);
    }),
  );

  test(
    'locations that went stale on every level are found anew in at most six round trips',
    inCluster(
      async (cluster, db) => {
        await db.create('t', { splits: ['m'] });
        const id = await tableId(db, 't');
        const { locator, roundTrips } = newLocator(db);
        const stale = [await locator.locate(id, 'a', db.context()), await locator.locate(id, 'z', db.context())];
        // each server in turn ends itself, so that every tablet is given to another
        for (const index of [0, 1]) {
          await cluster.startServer();
          await cluster.kill(index);
          for (const row of ['a', 'z']) await db.set('t', row, '2');
        }
        for (const [i, row] of ['a', 'z'].entries()) {
          const before = roundTrips();
          locator.drop(stale[i]!);
          const found = await locator.locate(id, row, db.context());
          assert.ok(found.epoch > stale[i]!.epoch);
          assert.ok(
            roundTrips() - before <= 5,
            `${roundTrips() - before} round trips next to the call that was refused`,
          );
        }
      },
      { servers: 2 },
    ),
  );

  test(
    'METADATA is read and committed to like one table, the root row too',
    inCluster(async (_cluster, db) => {
      await db.create('t', { splits: ['m'] });
      const id = await tableId(db, 't');
      const { metadata } = newLocator(db);
      const root = await metadata.readRow(ROOT_KEY, db.context());
      assert.deepEqual(root, await metadata.readRoot(db.context()));
      const rows = [];
      for await (const some of metadata.scan({ start: '', end: undefined }, db.context())) rows.push(...some);
      assert.deepEqual(rows.map(keyOfRow), [
        metadataKey(METADATA_TABLE_ID, undefined),
        metadataKey(id, 'm'),
        metadataKey(id, undefined),
      ]);
      const [, lower] = rows;
      assert.ok(root && lower);
      const event = { kind: 'compacted', atMicros: 0 } as const;
      const commits = [root, lower].map((row, i) =>
        commitOfRow(`c${i}`, event, keyOfRow(row), row, { ...row, commitId: '' }),
      );
      const stale = commitOfRow('late', event, keyOfRow(lower), { ...lower, version: lower.version + 7 }, lower);
      for (let i = 0; i < 2; i++) {
        const outcomes = await metadata.commit([...commits, stale], db.context());
        assert.deepEqual(
          outcomes.map(({ kind }) => kind),
          ['done', 'done', 'refused'],
        );
      }
      assert.equal((await metadata.readRoot(db.context()))?.commitId, 'c0');
      assert.equal((await metadata.readRow(keyOfRow(lower), db.context()))?.version, lower.version + 1);
      assert.equal(await metadata.readRow(metadataKey('0000abcd', 'x'), db.context()), undefined);
    }),
  );

  test(
    'METADATA is changed by commits alone',
    inCluster(async (_cluster, db) => {
      await db.create('t');
      const { locator } = newLocator(db);
      const { server } = await locator.locate(METADATA_TABLE_ID, USER_RANGE.start, db.context());
      const message = {
        tableId: METADATA_TABLE_ID,
        row: `${USER_RANGE.start}x`,
        mutations: [{ kind: 'deleteFromRow' }],
      };
      await rejectsWith(
        Code.INVALID_ARGUMENT,
        db.env.transport.call(server.address, 'mutateRow', message, db.context()),
        /conditional commits/,
      );
      await rejectsWith(
        Code.UNIMPLEMENTED,
        db.env.transport.call(server.address, 'nothing', {}, db.context()),
        /nothing/,
      );
    }),
  );

  test(
    '"not serving" is recognised by its details',
    inCluster(async (_cluster, db) => {
      const error = await db.env.transport
        .call('server-0', 'mutateRow', { tableId: '0000ffff', row: 'a', mutations: [] }, db.context())
        .catch((thrown: unknown) => thrown);
      assert.ok(isNotServing(error as never));
      const unreached = await db.env.transport
        .call('nowhere', 'mutateRow', {}, db.context())
        .catch((thrown: unknown) => thrown);
      assert.ok(isNotServing(unreached as never));
    }),
  );
});

describe('a locator without an answer', () => {
  test(
    'answers "not serving" without a root, and passes on the errors of servers',
    inCluster(async (cluster, db) => {
      await db.create('t');
      const id = await tableId(db, 't');
      const { locator } = newLocator(db);
      let refusals = 0;
      cluster.onStream = ({ context }) => {
        if (context.principal === 'master') return undefined;
        refusals++;
        throw notServing(METADATA_TABLE_ID, '');
      };
      await assert.rejects(locator.locate(id, 'a', db.context()), (error) => isNotServing(error as BigtableError));
      assert.equal(refusals, 1, 'what was just found is not read again');
      cluster.onStream = () => {
        throw new BigtableError(Code.DATA_LOSS, 'damaged');
      };
      await rejectsWith(Code.DATA_LOSS, newLocator(db).locator.locate(id, 'a', db.context()));
      cluster.onStream = undefined;
      cluster.onLockCall = (name, path) =>
        name === 'read' && path === 'root' ? Promise.resolve(undefined) : undefined;
      await assert.rejects(newLocator(db).locator.locate(id, 'a', db.context()), (error) =>
        isNotServing(error as BigtableError),
      );
      cluster.onLockCall = undefined;
    }),
  );

  test(
    'says "not serving" while a tablet is assigned to no server',
    inCluster(async (_cluster, db) => {
      await db.create('t');
      const id = await tableId(db, 't');
      const { locator, metadata } = newLocator(db);
      const row = await metadata.readRow(metadataKey(id, undefined), db.context());
      assert.ok(row);
      const released = { ...row, server: undefined, epoch: row.epoch + 1 };
      const commit = commitOfRow('r', { kind: 'released', atMicros: 0 }, keyOfRow(row), row, released);
      await metadata.commit([commit], db.context());
      await assert.rejects(locator.locate(id, 'a', db.context()), (error) => isNotServing(error as BigtableError));
    }),
  );
});

describe('the cache of schemas', () => {
  test(
    'follows every change, and keeps one object for each state',
    inCluster(async (_cluster, db) => {
      await db.create('a');
      const errors: unknown[] = [];
      const schemas = new SchemaCache(db.env, (error) => errors.push(error));
      await schemas.start();
      const first = schemas.byName(`${TABLES}a`);
      assert.ok(first && schemas.byId(first.id) === first);
      await schemas.refresh(`${TABLES}a`);
      assert.equal(schemas.byName(`${TABLES}a`), first);
      await db.service.modifyFamilies(db.context(), `${TABLES}a`, [{ kind: 'create', family: { name: 'g' } }]);
      assert.deepEqual(Object.keys((await schemas.read(`${TABLES}a`))?.schema.families ?? {}), ['f', 'g']);
      await db.create('b');
      await db.service.deleteTable(db.context(), `${TABLES}a`);
      await schemas.refresh(`${TABLES}a`);
      await schemas.refresh(`${TABLES}b`);
      assert.equal(schemas.byId(first.id), undefined);
      assert.deepEqual(
        schemas.list(TABLES).map(({ name }) => name),
        [`${TABLES}b`],
      );
      await db.env.lockService.write(`schemas/${TABLES}broken`, Buffer.from('{}'));
      await assert.rejects(schemas.read(`${TABLES}broken`), /schemas\/.*broken/);
      schemas.stop();
      assert.ok(errors.length <= 1);
    }),
  );
});
