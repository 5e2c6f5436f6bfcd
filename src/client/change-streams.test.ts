import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ChangeConsumer } from '../../test/change-consumer.ts';
import { type Cluster, inCluster } from '../../test/cluster.ts';
import { allRows } from '../../test/metadata-rows.ts';
import { rejectsWith, TABLES, type Tables } from '../../test/tables.ts';
import { Code, unavailable } from '../base/index.ts';
import { sleep } from '../env/index.ts';
import { logPathOf } from '../protocol/index.ts';
import type { ChangeStreamRequest, StreamEvent } from '../service/index.ts';

const T = `${TABLES}t`;
const DAY_MICROS = 86_400e6;
const WHOLE = { start: '', end: undefined };

const create = ({ client }: Cluster, tables: Tables, splits: readonly string[] = []) =>
  client.createTable(tables.context(), {
    name: T,
    families: [{ name: 'f', gcRule: { kind: 'maxVersions', versions: 1 } }],
    splits,
    granularity: 'micros',
    deletionProtection: false,
    changeStream: { retentionMicros: DAY_MICROS },
  });

async function read({ client, clock }: Cluster, tables: Tables, request: Partial<ChangeStreamRequest>) {
  const events: StreamEvent[] = [];
  const asked = { table: T, range: WHOLE, endMicros: clock.nowMicros(), ...request };
  for await (const event of client.changes.readChanges(tables.context(60_000), asked)) events.push(event);
  return events;
}

describe('change streams', () => {
  test(
    'are followed over splits and merges, and while a server does not answer',
    inCluster(async (cluster, tables) => {
      const { client, clock } = cluster;
      await create(cluster, tables, ['m']);
      const consumer = new ChangeConsumer('t', clock.nowMicros());
      const rows = (): string[] => consumer.changes.map(({ row }) => row);
      await tables.set('t', 'a', '1');
      await consumer.catchUp(tables);
      await client.splitTablets(tables.context(), T, 'd');
      await tables.set('t', 'b', '2');
      await tables.set('t', 'e', '2');
      await consumer.catchUp(tables);
      await client.mergeTablets(tables.context(), T, 'm');
      await tables.set('t', 'x', '3');
      let calls = 0;
      cluster.onCall = ({ method }) =>
        method === 'readChanges' && calls++ === 0 ? Promise.reject(unavailable('no answer')) : undefined;
      await consumer.catchUp(tables);
      cluster.onCall = undefined;
      assert.deepEqual([...new Set(rows())].sort(), ['a', 'b', 'e', 'x']);
    }),
  );

  test(
    'are closed with tokens for the tablets that the partition is in now',
    inCluster(async (cluster, tables) => {
      const { client, clock } = cluster;
      await create(cluster, tables);
      const startMicros = clock.nowMicros();
      await tables.set('t', 'a', '1');
      const [event] = await read(cluster, tables, { startMicros });
      assert.ok(event?.kind === 'change');
      await client.splitTablets(tables.context(), T, 'm');
      const events = await read(cluster, tables, { tokens: [{ range: WHOLE, token: event.token }] });
      const closed = events.at(-1);
      assert.ok(closed?.kind === 'closed');
      assert.deepEqual(
        closed.tokens.map(({ range }) => range),
        [
          { start: '', end: 'm' },
          { start: 'm', end: undefined },
        ],
      );
      assert.deepEqual(await client.changes.changeStreamRanges(tables.context(), T), closed.ranges);
    }),
  );

  test(
    'read of the log of a past owner the part alone that it had the tablet',
    inCluster(async (cluster, tables) => {
      const { client, clock, fileSystem } = cluster;
      await create(cluster, tables);
      await tables.create('other');
      const startMicros = clock.nowMicros();
      const written: string[] = [];
      const rounds = 12;
      for (let i = 0; i < rounds; i++) {
        for (let j = 0; j < 20; j++) await tables.set('other', 'x', `${j}`);
        await tables.set('t', `a${i}`, '1');
        await tables.set('t', `z${i}`, '1');
        written.push(`a${i}`, `z${i}`);
        // a merge releases both parts, so that there is one more owner
        await client.splitTablets(tables.context(), T, 'm');
        await client.mergeTablets(tables.context(), T, 'm');
      }
      let [appends, all] = [0, 0];
      const readLog = fileSystem.readLog.bind(fileSystem);
      for await (const _ of readLog(logPathOf(cluster.servers[0]!.name))) all++;
      fileSystem.readLog = async function* (path, from) {
        for await (const append of readLog(path, from)) {
          appends++;
          yield append;
        }
      };
      const consumer = new ChangeConsumer('t', startMicros);
      await consumer.catchUp(tables);
      assert.deepEqual(consumer.changes.map(({ row }) => row).sort(), written.sort());
      assert.ok(all > rounds * 20, `${all} appends in the log`);
      assert.ok(appends <= 2 * all, `of ${all} appends ${appends} were read`);
    }),
  );

  test(
    'do not fill the disk: what is kept for them alone goes before a write is refused',
    inCluster(
      async (cluster, tables) => {
        const { client, clock, fileSystem } = cluster;
        await create(cluster, tables);
        const startMicros = clock.nowMicros();
        const consumer = new ChangeConsumer('t', startMicros);
        fileSystem.freeBytes = 16 << 20;
        for (let i = 0; i < 1000; i++) {
          await tables.set('t', 'a', `${i} ${'x'.repeat(50_000)}`);
          if (i % 50 === 0) await consumer.catchUp(tables);
          if (i % 100 !== 0) continue;
          for await (const _ of client.compactTables(tables.context(), T));
        }
        await consumer.catchUp(tables);
        assert.equal(consumer.changes.filter(({ origin }) => origin === 'user').length, 1000, 'a reader keeps up');
        await rejectsWith(Code.OUT_OF_RANGE, async () => void (await read(cluster, tables, { startMicros })));
        assert.ok(cluster.messages.some((message) => message.includes('the disk is nearly full')));
      },
      { settings: { memtableBytes: 1 << 20, logLimitBytes: 1 << 20 } },
    ),
  );

  test(
    'of tables without one, and requests that make no sense, are refused',
    inCluster(async (cluster, tables) => {
      const { client, clock } = cluster;
      const { changes } = client;
      await tables.create('plain');
      await create(cluster, tables);
      const now = clock.nowMicros();
      await rejectsWith(Code.NOT_FOUND, changes.changeStreamRanges(tables.context(), `${TABLES}none`));
      await rejectsWith(Code.FAILED_PRECONDITION, changes.changeStreamRanges(tables.context(), `${TABLES}plain`));
      for (const [code, request] of [
        [Code.NOT_FOUND, { table: `${TABLES}none` }],
        [Code.FAILED_PRECONDITION, { table: `${TABLES}plain` }],
        [Code.INVALID_ARGUMENT, { range: { start: 'b', end: 'a' } }],
        [Code.INVALID_ARGUMENT, { range: { start: 'a', end: 'a' } }],
        [Code.INVALID_ARGUMENT, { startMicros: now + 1e9 }],
        [Code.INVALID_ARGUMENT, { startMicros: now, endMicros: now - 1 }],
        [Code.INVALID_ARGUMENT, { startMicros: now, tokens: [] }],
        [Code.INVALID_ARGUMENT, { tokens: [] }],
        [Code.OUT_OF_RANGE, { startMicros: Math.max(0, now - 2 * DAY_MICROS) }],
      ] as const)
        await rejectsWith(code, async () => void (await read(cluster, tables, request)));
      await sleep(clock, 10);
      const quiet = await read(cluster, tables, { startMicros: clock.nowMicros() });
      assert.ok(quiet.every(({ kind }) => kind === 'heartbeat'));
    }),
  );

  test(
    'pass over a server that was given the tablet and died before it served it',
    inCluster(
      async (cluster, tables) => {
        const { client, clock } = cluster;
        const startMicros = clock.nowMicros();
        const letters = [...'bcdefghi'];
        await tables.create('other', { splits: letters });
        /** Logs lose what they had. */
        const trim = async (): Promise<void> => {
          for (let i = 0; i < 3; i++) {
            for (const row of letters) await tables.set('other', row, String(i));
            await tables.service.flush(tables.context());
          }
        };
        await trim();
        await create(cluster, tables);
        await tables.set('t', 'a', '1');
        await sleep(clock, 60_000);
        const { id } = await client.getTable(tables.context(), T);
        const ownerOf = async (): Promise<number> => {
          const { users } = await allRows(cluster.env, tables.context());
          const row = users.find(({ tableId }) => tableId === id);
          return cluster.servers.findIndex((server) => server !== undefined && server.name === row?.server?.name);
        };
        let loads = 0;
        cluster.onCall = ({ method, message, context }) => {
          const isOfTable = method === 'load' && JSON.stringify(message).includes(id);
          return isOfTable && ++loads === 1 ? cluster.noAnswer(context) : undefined;
        };
        await cluster.kill(await ownerOf());
        await sleep(clock, 2000);
        assert.equal(loads, 1);
        await trim();
        await cluster.kill(await ownerOf());
        await sleep(clock, 5000);
        cluster.onCall = undefined;
        await tables.set('t', 'b', '2');
        const consumer = new ChangeConsumer('t', startMicros);
        await consumer.catchUp(tables);
        assert.deepEqual(
          consumer.changes.map(({ row }) => row),
          ['a', 'b'],
        );
      },
      { servers: 4 },
    ),
  );
});
