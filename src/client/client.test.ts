import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inCluster } from '../../test/cluster.ts';
import { rejectsWith, setCell, TABLES } from '../../test/tables.ts';
import { type BigtableError, Code, unavailable } from '../base/index.ts';
import { sleep, toPlainError, WriteWait } from '../env/index.ts';
import { LIMITS, type Mutation } from '../model/index.ts';
import {
  type BatchAnswer,
  decodePeerFile,
  encodePeerFile,
  notServing,
  PROTOCOL,
  type ProtocolVersion,
  type TabletServerCalls,
} from '../protocol/index.ts';
import { Client } from './index.ts';

const T = `${TABLES}t`;
const codes = (outcomes: readonly (BigtableError | undefined)[]): (Code | undefined)[] =>
  outcomes.map((outcome) => outcome?.code);
const entriesOf = (...rows: string[]) => rows.map((row) => ({ row, mutations: [setCell(row)] }));

describe('the client library', () => {
  test(
    'carries out every call on rows, over all tablets of a table',
    inCluster(async ({ client }, tables) => {
      await tables.create('t', { splits: ['g', 'p'] });
      await tables.set('t', 'a', '1');
      assert.deepEqual(codes(await client.mutateRows(tables.context(), T, entriesOf('h', 'q', 'b'))), [
        undefined,
        undefined,
        undefined,
      ]);
      assert.deepEqual(await tables.rows('t'), ['a', 'b', 'h', 'q']);
      const check = { table: T, row: 'a', predicate: undefined, whenTrue: [setCell('2')], whenFalse: [] };
      assert.equal(await client.checkAndMutateRow(tables.context(), check), true);
      assert.equal(await client.checkAndMutateRow(tables.context(), { ...check, row: 'z' }), false);
      const append = { family: 'f', qualifier: 'q', change: { kind: 'append', suffix: Buffer.from('!') } } as const;
      const [cell] = await client.readModifyWriteRow(tables.context(), T, 'a', [append]);
      assert.equal(Buffer.from(cell?.value ?? []).toString(), '2!');
      await client.dropRowRange(tables.context(), T, { start: 'b', end: 'i' });
      assert.deepEqual(await tables.rows('t'), ['a', 'q']);
      const samples = await client.sampleRowKeys(tables.context(), T);
      assert.deepEqual(
        samples.map(({ row }) => row),
        ['g', 'p', ''],
      );
    }),
  );

  test(
    'changes tables, and knows a change from its answer on',
    inCluster(async ({ client }, tables) => {
      await tables.create('t');
      await tables.create('u', { deletionProtection: true });
      assert.deepEqual(await client.listTableNames(tables.context(), TABLES), [T, `${TABLES}u`]);
      assert.equal((await client.listTables(tables.context(), 'projects/q/')).length, 0);
      await client.modifyFamilies(tables.context(), T, [{ kind: 'create', family: { name: 'g' } }]);
      await tables.set('t', 'a', '1', 'g');
      await client.updateTable(tables.context(), T, { deletionProtection: true });
      await rejectsWith(Code.FAILED_PRECONDITION, tables.delete('t'), /protected/);
      await client.updateTable(tables.context(), T, { deletionProtection: false });
      await tables.delete('t');
      await rejectsWith(Code.NOT_FOUND, client.getTable(tables.context(), T));
      await rejectsWith(Code.NOT_FOUND, tables.set('t', 'a', '1'));
      await rejectsWith(Code.NOT_FOUND, tables.rows('t'));
      await rejectsWith(Code.NOT_FOUND, client.sampleRowKeys(tables.context(), T));
    }),
  );

  test(
    'calls no master and no tablet server of another version, or with features that it does not know',
    inCluster(async (cluster, tables) => {
      const { lockService } = cluster.env;
      await tables.create('t');
      for (const row of ['a', 'g']) await tables.set('t', row, row);
      const names = (await lockService.list('servers/')).map(({ path }) => path);
      const become = async (path: string, protocol: ProtocolVersion): Promise<void> => {
        const [file, holder] = [await lockService.read(path), await lockService.holder(path)];
        assert.ok(file && holder);
        const contents = encodePeerFile({ ...decodePeerFile(path, file.contents), protocol });
        await lockService.write(path, contents, { sessionId: holder.sessionId });
      };
      const client = await Client.open({ env: cluster.env, limits: LIMITS.default });
      const called: string[] = [];
      cluster.onCall = ({ method }) => void called.push(method);
      await become('master', { ...PROTOCOL, version: 2 });
      const deletion = client.deleteTable(tables.context(), T);
      await rejectsWith(
        Code.FAILED_PRECONDITION,
        deletion,
        /the master .* speaks version 2 .* this program version 1 /,
      );
      await client.splitTablets(tables.context(), T, 'g');
      assert.match(cluster.messages.join('\n'), /the master could not be notified.*speaks version 2/);
      for (const name of names) await become(name, { ...PROTOCOL, requires: 2, knows: 2 });
      const flush = client.flush(tables.context());
      await rejectsWith(
        Code.FAILED_PRECONDITION,
        flush,
        /tablet server .* requires features 0x2: .* this program version 1 with features 0x0$/,
      );
      const refused = ['deleteTable', 'tabletSplit', 'flush'];
      assert.deepEqual(
        called.filter((method) => refused.includes(method)),
        [],
      );
      client.close();
      for (const path of ['master', ...names]) await become(path, PROTOCOL);
    }),
  );

  test(
    'refuses requests of a wrong form without a call',
    inCluster(async (cluster, tables) => {
      const { client } = cluster;
      await tables.create('t');
      cluster.onCall = () => assert.fail('no call is made');
      const context = tables.context();
      await rejectsWith(Code.INVALID_ARGUMENT, client.mutateRow(context, T, { row: '', mutations: [setCell('1')] }));
      await rejectsWith(Code.INVALID_ARGUMENT, client.mutateRows(context, T, []));
      await rejectsWith(
        Code.INVALID_ARGUMENT,
        client.checkAndMutateRow(context, { table: T, row: 'a', whenTrue: [], whenFalse: [] }),
      );
      await rejectsWith(Code.INVALID_ARGUMENT, client.readModifyWriteRow(context, T, 'a', []));
      await rejectsWith(Code.INVALID_ARGUMENT, client.getTable(context, 't'));
    }),
  );

  test(
    'checks large changes in slices, and carries them out as a whole',
    inCluster(async ({ client }, tables) => {
      await tables.create('t');
      const many = Array.from({ length: 5000 }, (_, i): Mutation => setCell(`${i}`, 'f', i + 1));
      await client.mutateRow(tables.context(), T, { row: 'a', mutations: many });
      assert.equal((await tables.read('t'))[0]?.length, 5001);
      const entries = Array.from(
        { length: 3000 },
        (_, i) => entriesOf(`r${i}`)[0] as { row: string; mutations: Mutation[] },
      );
      const outcomes = await client.mutateRows(tables.context(), T, entries);
      assert.ok(outcomes.every((outcome) => outcome === undefined));
      assert.equal((await tables.rows('t')).length, 3001);
    }),
  );

  test(
    'answers a batch by entry: an invalid entry does not keep the others',
    inCluster(async (cluster, tables) => {
      const { client } = cluster;
      await tables.create('t', { splits: ['m'] });
      const [a, z] = entriesOf('a', 'z');
      assert.ok(a && z);
      const unknown = { row: 'b', mutations: [setCell('1', 'none')] };
      const outcomes = await client.mutateRows(tables.context(), T, [a, { ...a, row: '' }, unknown, z]);
      assert.deepEqual(codes(outcomes), [undefined, Code.INVALID_ARGUMENT, Code.NOT_FOUND, undefined]);
      // one of two batches fails as a whole
      cluster.onCall = ({ method, message }) =>
        method === 'mutateRows' && JSON.stringify(message).includes('"row":"z"')
          ? Promise.reject(unavailable('the answer is lost'))
          : undefined;
      assert.deepEqual(codes(await client.mutateRows(tables.context(), T, [a, z])), [undefined, Code.UNAVAILABLE]);
    }),
  );

  test(
    'issues tokens that its tables recognise',
    inCluster(async ({ client }, tables) => {
      await tables.create('t');
      await tables.create('u');
      const token = await client.generateConsistencyToken(tables.context(), T);
      assert.equal(await client.checkConsistency(tables.context(), T, token), true);
      for (const wrong of ['', 'x', token.slice(0, -1), `${token}0`])
        await rejectsWith(Code.INVALID_ARGUMENT, client.checkConsistency(tables.context(), T, wrong), /not given by/);
      await rejectsWith(Code.INVALID_ARGUMENT, client.checkConsistency(tables.context(), `${TABLES}u`, token));
    }),
  );
});

describe('a call whose tablet has moved', () => {
  test(
    'is sent again to the server that has it now',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t', { splits: ['m'] });
        await tables.set('t', 'a', '1');
        await tables.set('t', 'z', '1');
        await cluster.kill(0);
        await tables.set('t', 'a', '2');
        const outcomes = await cluster.client.mutateRows(tables.context(), T, entriesOf('b', 'z'));
        assert.deepEqual(codes(outcomes), [undefined, undefined]);
        assert.deepEqual(await tables.rows('t'), ['a', 'b', 'z']);
      },
      { servers: 2 },
    ),
  );

  test(
    'is repeated only for entries that were refused as "not serving"',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      const sent: string[][] = [];
      cluster.onCall = ({ method, message, go }) => {
        if (method !== 'mutateRows') return undefined;
        const { entries, tableId } = message as TabletServerCalls['mutateRows']['message'];
        sent.push(entries.map(({ row }) => row));
        if (sent.length > 1) return undefined;
        return go().then((answer) => ({
          outcomes: (answer as BatchAnswer).outcomes.map((_, i) =>
            i === 1 ? toPlainError(notServing(tableId, 'b')) : undefined,
          ),
        }));
      };
      const outcomes = await cluster.client.mutateRows(tables.context(), T, entriesOf('a', 'b', 'c'));
      assert.deepEqual(codes(outcomes), [undefined, undefined, undefined]);
      assert.deepEqual(sent, [['a', 'b', 'c'], ['b']]);
    }),
  );

  test(
    'tells how long it was held back, where the caller asks for it',
    inCluster(
      async (cluster, tables) => {
        await tables.create('t');
        const many = entriesOf(...Array.from({ length: 1000 }, (_, i) => `row ${i}`));
        const asking = { ...tables.context(), writeWait: new WriteWait() };
        await cluster.client.mutateRows(asking, T, many);
        assert.equal(asking.writeWait.longestMs, 0);
        cluster.onCall = ({ method, go }) =>
          method === 'commit' ? sleep(cluster.clock, 3000).then(() => go()) : undefined;
        for (const context of [tables.context(), asking]) {
          // the first fills the memory, the others wait until it is flushed
          const batches = [0, 1, 2].map(() => cluster.client.mutateRows(context, T, many));
          for (const outcomes of await Promise.all(batches)) assert.deepEqual(new Set(outcomes), new Set([undefined]));
        }
        const { longestMs } = asking.writeWait;
        assert.ok(longestMs > 1500 && longestMs < 60_000, `${longestMs}`);
      },
      { settings: { memtableBytes: 64 * 1024 } },
    ),
  );

  test(
    'is not sent again if the outcome is unknown',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      let calls = 0;
      cluster.onCall = ({ method, go }) => {
        if (method !== 'mutateRow') return undefined;
        calls++;
        return go().then(() => Promise.reject(unavailable('the answer is lost')));
      };
      // once with the tablet unknown, once with the tablet known
      for (const row of ['a', 'b']) await rejectsWith(Code.UNAVAILABLE, tables.set('t', row, '1'), /answer is lost/);
      assert.equal(calls, 2);
      cluster.onCall = undefined;
      assert.deepEqual(await tables.rows('t'), ['a', 'b']);
    }),
  );

  test(
    'is repeated until its deadline, a minute without one, and no longer',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      const refused = ['mutateRow', 'mutateRows', 'sampleKeys'];
      cluster.onCall = ({ method }) => (refused.includes(method) ? Promise.reject(notServing('t', 'a')) : undefined);
      const { client, clock } = cluster;
      const lasts = async (work: () => Promise<unknown>): Promise<number> => {
        const startMs = clock.monotonicMs();
        await work();
        return clock.monotonicMs() - startMs;
      };
      const write = (timeoutMs?: number) => () =>
        rejectsWith(
          Code.UNAVAILABLE,
          client.mutateRow(tables.context(timeoutMs), T, { row: 'a', mutations: [setCell('1')] }),
        );
      const shortMs = await lasts(write(1000));
      assert.ok(shortMs > 400 && shortMs <= 1000, `${shortMs} ms`);
      const longMs = await lasts(write());
      assert.ok(longMs > 59_000 && longMs <= 60_000, `${longMs} ms`);
      const batchMs = await lasts(async () =>
        assert.deepEqual(codes(await client.mutateRows(tables.context(1000), T, entriesOf('a', 'b'))), [
          Code.UNAVAILABLE,
          Code.UNAVAILABLE,
        ]),
      );
      assert.ok(batchMs > 400 && batchMs <= 1000, `${batchMs} ms`);
      await lasts(() => rejectsWith(Code.UNAVAILABLE, client.sampleRowKeys(tables.context(1000), T)));
    }),
  );

  test(
    'is cancelled while it waits, and ends when the client is closed',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      const caller = new AbortController();
      let refusals = 0;
      cluster.onCall = ({ method }) => {
        if (method !== 'mutateRow') return undefined;
        if (++refusals === 3) caller.abort();
        return Promise.reject(notServing('t', 'a'));
      };
      const write = { row: 'a', mutations: [setCell('1')] };
      const context = tables.context(undefined, caller.signal);
      await rejectsWith(Code.CANCELLED, cluster.client.mutateRow(context, T, write));
      assert.equal(refusals, 3);
      const other = await Client.open({ env: cluster.env, limits: LIMITS.default });
      const waiting = other.mutateRow(tables.context(), T, write);
      other.close();
      await assert.rejects(waiting, { code: Code.UNAVAILABLE, retry: false, message: /client is closed/ });
    }),
  );

  test(
    'fails with NOT_FOUND if the table was deleted meanwhile, and uses a new one of its name',
    inCluster(async (cluster, tables) => {
      const work: Record<string, () => Promise<unknown>> = {
        write: () => tables.set('t', 'a', '1'),
        read: () => tables.rows('t'),
        batch: () =>
          cluster.client.mutateRows(tables.context(), T, entriesOf('a')).then(([error]) => Promise.reject(error)),
        samples: () => cluster.client.sampleRowKeys(tables.context(), T),
        drop: () => cluster.client.dropRowRange(tables.context(), T, { start: '', end: 'x' }),
      };
      for (const [name, call] of Object.entries(work)) {
        await tables.create('t');
        await tables.set('t', 'a', '1');
        // the client does not know of the deletion when it sends the call
        let armed = true;
        cluster.onCall = ({ method }) => {
          if (!armed || !['mutateRow', 'mutateRows', 'sampleKeys', 'dropRows'].includes(method)) return undefined;
          armed = false;
          return cluster.tables.delete('t').then(() => Promise.reject(notServing('t', 'a')));
        };
        cluster.onStream = ({ method, context }) => {
          if (!armed || method !== 'read' || context.principal === 'master') return undefined;
          armed = false;
          return (async function* () {
            await cluster.tables.delete('t');
            throw notServing('t', 'a');
            // biome-ignore lint/correctness/noUnreachable: makes it a generator of batches
            yield undefined;
          })();
        };
        await rejectsWith(Code.NOT_FOUND, call(), /t/);
        assert.equal(armed, false, name);
        cluster.onCall = cluster.onStream = undefined;
      }
      await tables.create('t');
      await tables.set('t', 'b', '1');
      assert.deepEqual(await tables.rows('t'), ['b']);
    }),
  );
});

describe('a call to the master', () => {
  test(
    'finds the next one, and fails if none comes',
    inCluster(async (cluster, tables) => {
      await tables.create('t');
      await cluster.master?.close();
      await rejectsWith(
        Code.UNAVAILABLE,
        cluster.client.deleteTable(tables.context(1000), T),
        /no master|no server at address/,
      );
      await cluster.startMaster();
      await tables.create('u');
      await rejectsWith(Code.ALREADY_EXISTS, tables.create('u'));
    }),
  );

  test(
    'is not sent again if its outcome is unknown, and the client then reads the result',
    inCluster(async (cluster, tables) => {
      cluster.onCall = ({ method, go }) =>
        method === 'createTable' ? go().then(() => Promise.reject(unavailable('the answer is lost'))) : undefined;
      await rejectsWith(Code.UNAVAILABLE, tables.create('t'), /answer is lost/);
      await tables.set('t', 'a', '1');
      assert.deepEqual(await tables.rows('t'), ['a']);
    }),
  );
});
