/**
 * The calls of operators, through every door: compactions with their progress, splits, merges, flushes,
 * tablets, counters, and the names of all tables.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { BigtableError, Code, type Database, overService, RowMutation, type Table } from '../../src/embedded/index.ts';
import { ByteBudget, requestContext } from '../../src/env/index.ts';
import { systemClock } from '../../src/platform/index.ts';
import type { CompactionProgress } from '../../src/service/index.ts';
import { DOORS, type OpenDoor } from './doors.ts';

const KEYS = Array.from({ length: 60 }, (_, i) => `row${String(i).padStart(2, '0')}`);
const MAX_ROW = 65536;
const BUDGET = new ByteBudget(64 * 1024 * 1024);

async function all<T>(given: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of given) items.push(item);
  return items;
}

async function codeOf(call: Promise<unknown>): Promise<number> {
  return call.then(
    () => Code.OK,
    (error: unknown) => {
      assert.ok(error instanceof BigtableError, String(error));
      return error.code;
    },
  );
}

for (const { name, open } of DOORS) {
  describe(`control: ${name}`, () => {
    let door: OpenDoor;
    let database: Database;
    let tables = 0;

    let alive: NodeJS.Timeout;

    before(async () => {
      // a database in this process does not keep it alive by itself
      alive = setInterval(() => {}, 1000);
      door = await open();
      database = overService(door.service, { clock: systemClock, requestBudget: BUDGET }, () => door.close());
    });
    after(() => database.close().finally(() => clearInterval(alive)));

    const fill = async (splits: readonly string[] = []): Promise<Table> => {
      const table = await database.createTable(`t${tables++}`, { families: { f: {} }, splits });
      await table.applyAll(KEYS.map((key) => new RowMutation(key).set('f:q', key)));
      return table;
    };
    const idOf = ({ fullName }: Table): string => fullName;
    const keysOf = async (table: Table): Promise<string[]> => (await all(table.scan())).map((row) => row.name);
    const startsOf = async (table: Table): Promise<string[]> =>
      (await table.tablets()).map(({ start }) => start.toString());

    test('a compaction drops deleted data and tells of every tablet', async () => {
      const table = await fill(['row10', 'row30']);
      for (const prefix of ['row2', 'row3']) await table.deleteRows({ prefix });
      await database.flush();
      const told: CompactionProgress[] = [];
      await database.compact(idOf(table), { onProgress: (progress) => told.push(progress) });
      assert.deepEqual(told[0], { doneTablets: 0, totalTablets: 3 });
      assert.deepEqual(told.at(-1), { doneTablets: 3, totalTablets: 3 });
      assert.deepEqual(
        told,
        told.toSorted((a, b) => a.doneTablets - b.doneTablets),
      );
      assert.deepEqual(
        (await table.statistics()).map(({ family, cells }) => [family, cells]),
        [['f', 40]],
      );
      const tablets = await table.tablets();
      assert.deepEqual(
        tablets.map(({ start, end }) => [start.toString(), end?.toString()]),
        [
          ['', 'row10'],
          ['row10', 'row30'],
          ['row30', undefined],
        ],
      );
      for (const { files, fileBytes, server } of tablets)
        assert.ok(files === 1 && fileBytes > 0 && server !== '', JSON.stringify(tablets));
      assert.equal((await keysOf(table)).length, 40);
    });

    test('more tablets than are compacted at once; all tables', async () => {
      const table = await fill(KEYS.slice(1));
      await table.deleteRows({ prefix: 'row5' });
      const told: CompactionProgress[] = [];
      await database.compact({ onProgress: (progress) => told.push(progress) });
      assert.ok((told[0]?.totalTablets ?? 0) >= 60);
      assert.equal(told.at(-1)?.doneTablets, told[0]?.totalTablets);
      assert.deepEqual(
        (await table.statistics()).map(({ cells }) => cells),
        [50],
      );
    });

    test('statistics name a family that was dropped and made anew, and is empty', async () => {
      const table = await fill([]);
      await table.deleteFamily('f');
      await table.createFamily('f');
      assert.deepEqual(
        (await table.statistics()).map(({ family, cells }) => [family, cells]),
        [['f', 0]],
      );
    });

    test('a compaction without tablets, rows or progress', async () => {
      const table = await database.createTable(`t${tables++}`);
      await database.compact(idOf(table));
      await database.compact();
      assert.deepEqual(await table.statistics(), []);
    });

    test('compactions of one table at once all succeed, and so do those during a split, a merge and a deletion', async () => {
      const table = await fill(['row30']);
      const doomed = await fill(['row10', 'row20']);
      await Promise.all([
        ...Array.from({ length: 8 }, () => database.compact(idOf(table))),
        database.split(idOf(table), 'row15'),
        database.merge(idOf(table), 'row30'),
        database.compact(),
        database.deleteTable(idOf(doomed)),
      ]);
      assert.deepEqual(await keysOf(table), KEYS);
      assert.deepEqual(await startsOf(table), ['', 'row15']);
      assert.ok((await table.tablets()).every(({ files }) => files >= 1));
    });

    test('who gives up a compaction stops it, and all is as it was', async () => {
      const table = await fill(KEYS.slice(1));
      const giveUp = new AbortController();
      const told: number[] = [];
      const compacting = database.compact(idOf(table), {
        signal: giveUp.signal,
        onProgress: ({ doneTablets }) => {
          told.push(doneTablets);
          if (doneTablets >= 3) giveUp.abort();
        },
      });
      assert.equal(await codeOf(compacting), Code.CANCELLED);
      assert.ok((told.at(-1) ?? 0) < KEYS.length, 'it was not over');
      assert.deepEqual(await keysOf(table), KEYS);
      await table.deleteRow('row00');
      await database.compact(idOf(table));
      assert.deepEqual(
        (await table.statistics()).map(({ cells }) => cells),
        [KEYS.length - 1],
      );
      assert.equal(await codeOf(database.compact(idOf(table), { signal: AbortSignal.abort() })), Code.CANCELLED);
    });

    test('a compaction keeps to its deadline; who leaves the iteration, or throws, ends it', async () => {
      const table = await fill(KEYS.slice(1));
      const { service } = door;
      const late = requestContext({ budget: BUDGET, deadlineMs: 0 });
      await assert.rejects(all(service.compactTables(late, idOf(table))), { code: Code.DEADLINE_EXCEEDED });
      for await (const { doneTablets } of service.compactTables(door.context, idOf(table)))
        if (doneTablets === 1) break;
      const thrower = database.compact(idOf(table), {
        onProgress() {
          throw new RangeError('enough');
        },
      });
      await assert.rejects(thrower, RangeError);
      assert.deepEqual(await keysOf(table), KEYS);
    });

    test('tablets are split and merged', async () => {
      const table = await fill();
      await database.split(idOf(table), 'row20');
      await database.split(idOf(table), Buffer.from('row40'));
      await database.split(idOf(table), 'row40');
      assert.deepEqual(await startsOf(table), ['', 'row20', 'row40']);
      await database.merge(idOf(table), 'row20');
      assert.deepEqual(await startsOf(table), ['', 'row40']);
      await database.split(idOf(table));
      assert.ok((await startsOf(table)).length > 2);
      assert.deepEqual(await keysOf(table), KEYS);
      assert.equal(await codeOf(database.merge(idOf(table), 'row39x')), Code.FAILED_PRECONDITION);
      const one = await database.createTable(`t${tables++}`, { families: { f: {} } });
      await one.apply(new RowMutation('only').set('f:q', 'x'));
      assert.equal(await codeOf(database.split(idOf(one))), Code.FAILED_PRECONDITION);
    });

    test('a flush writes what is in memory', async () => {
      const table = await fill();
      assert.deepEqual(
        (await table.tablets()).map(({ files, memoryBytes }) => [files, memoryBytes > 0]),
        [[0, true]],
      );
      const [before] = await table.tablets();
      await database.flush();
      const [after] = await table.tablets();
      assert.equal(after?.files, 1);
      assert.ok((after?.memoryBytes ?? 0) < (before?.memoryBytes ?? 0));
    });

    test('counters count', async () => {
      const table = await fill(['row30']);
      const before = await database.counters();
      await database.flush();
      await database.compact(idOf(table));
      const now = await database.counters();
      assert.ok(
        (now['tablet.majorCompactions'] ?? 0) >= (before['tablet.majorCompactions'] ?? 0) + 2,
        JSON.stringify(now),
      );
      assert.deepEqual(Object.keys(now), Object.keys(now).toSorted());
    });

    test('the tables of all instances are listed', async () => {
      const names = [
        'projects/p/instances/i/tables/t',
        'projects/p/instances/j/tables/t',
        'projects/q/instances/i/tables/t',
      ];
      for (const each of names) await database.createTable(each);
      const every = await database.listTableNames();
      assert.deepEqual(
        every.filter((each) => !each.startsWith('projects/local/')),
        names,
      );
      assert.deepEqual(await database.listTableNames('projects/p/'), names.slice(0, 2));
      assert.deepEqual(await database.listTableNames('projects/p/instances/i/tables/'), names.slice(0, 1));
    });

    test('the events of tablets tell of splits, merges, files and servers', async () => {
      const table = await fill(['row20']);
      await database.flush();
      await database.split(idOf(table), 'row30');
      await database.merge(idOf(table), 'row20');
      const all = await table.tabletEvents();
      assert.deepEqual(
        all.map(({ start, end }) => [start.toString(), end?.toString()]),
        [
          ['', 'row30'],
          ['row30', undefined],
        ],
      );
      const kinds = all.map(({ events }) => events.map(({ kind }) => kind));
      for (const kind of ['merged', 'split', 'compacted', 'assigned'])
        assert.ok(
          kinds.some((each) => each.includes(kind)),
          `${kind}: ${kinds}`,
        );
      const servers = (await table.tablets()).map(({ server }) => server);
      for (const [i, { events }] of all.entries()) {
        assert.equal(events[0]?.server, servers[i], 'the newest event names the server of now');
        assert.ok(events.every(({ epoch }, j) => j === 0 || epoch <= events[j - 1]!.epoch));
        assert.ok(events.every(({ atMicros }) => atMicros > 0));
      }
    });

    test('bad requests are refused', async () => {
      const table = await fill();
      const long = 'r'.repeat(MAX_ROW + 1);
      const { service, context } = door;
      const calls: readonly [Code, () => Promise<unknown>][] = [
        [Code.NOT_FOUND, () => database.compact('none')],
        [Code.NOT_FOUND, () => database.split('none')],
        [Code.NOT_FOUND, () => database.split('none', 'r')],
        [Code.NOT_FOUND, () => database.merge('none', 'r')],
        [Code.NOT_FOUND, () => database.table('none').tablets()],
        [Code.NOT_FOUND, () => database.table('none').tabletEvents()],
        [Code.NOT_FOUND, () => database.table('none').statistics()],
        [Code.INVALID_ARGUMENT, () => database.compact('x'.repeat(100_000))],
        [Code.INVALID_ARGUMENT, () => database.compact('a/b')],
        [Code.INVALID_ARGUMENT, () => database.split('a/b', 'r')],
        [Code.INVALID_ARGUMENT, () => database.merge('a/b', 'r')],
        [Code.INVALID_ARGUMENT, () => database.table('a/b').tablets()],
        [Code.INVALID_ARGUMENT, () => database.table('a/b').tabletEvents()],
        [Code.INVALID_ARGUMENT, () => database.table('a/b').statistics()],
        [Code.INVALID_ARGUMENT, () => database.split(idOf(table), long)],
        [Code.INVALID_ARGUMENT, () => database.merge(idOf(table), long)],
        [Code.INVALID_ARGUMENT, () => service.splitTablets(context, idOf(table), '')],
        [Code.INVALID_ARGUMENT, () => service.mergeTablets(context, idOf(table), '')],
        [Code.INVALID_ARGUMENT, () => database.compact({ onProgres() {} } as never)],
        [Code.INVALID_ARGUMENT, () => database.compact(idOf(table), { onProgress: 'yes' as never })],
        [Code.INVALID_ARGUMENT, () => database.compact(undefined as never)],
        [Code.INVALID_ARGUMENT, () => database.compact(null as never)],
        [Code.INVALID_ARGUMENT, () => database.compact([] as never)],
      ];
      for (const [code, call] of calls) assert.equal(await codeOf(call()), code, String(call));
      assert.deepEqual(await startsOf(table), ['']);
    });
  });
}
