/** Hot tablets at every door: those that calls went to are listed, with their rows and times. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code } from '../../src/base/index.ts';
import type { HotTablet } from '../../src/model/index.ts';
import { systemClock } from '../../src/platform/index.ts';
import { LASTING_DOORS, LastingDoor } from './lasting-doors.ts';

const INSTANCE = 'projects/p/instances/busy';
const CLUSTER = `${INSTANCE}/clusters/edubba`;
const TABLE = `${INSTANCE}/tables/t`;
const OTHER = 'projects/p/instances/other/tables/t';
const HOUR_MICROS = 3600e6;
const WRITES = 20;

for (const { name: doorName, make } of LASTING_DOORS) {
  describe(`hot tablets: ${doorName}`, () => {
    // every tablet with a call is hot: how busy this machine is decides nothing
    const door = new LastingDoor(
      () => make({ hotTabletPercent: 0 }),
      async ({ service, context }) => {
        for (const name of [TABLE, OTHER])
          await service.createTable(context, {
            name,
            families: [{ name: 'f' }],
            splits: ['g', 'm\0', 't'],
            granularity: 'micros',
            deletionProtection: false,
          });
      },
    );

    const list = (startMicros: number, endMicros: number, cluster = CLUSTER): Promise<readonly HotTablet[]> =>
      door.service.hotTablets!.listHotTablets(door.context, cluster, { startMicros, endMicros });
    const lastHour = (): Promise<readonly HotTablet[]> => {
      const now = systemClock.nowMicros();
      return list(now - HOUR_MICROS, now + 10e6);
    };
    const write = async (table: string, row: string, times: number): Promise<void> => {
      for (let i = 0; i < times; i++)
        await door.service.mutateRow(door.context, table, {
          row,
          mutations: [{ kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1000, value: Buffer.from('v') }],
        });
    };
    const starts = (all: readonly HotTablet[]) => all.map(({ range }) => range?.start);
    const refused = (call: Promise<unknown>, code: number) =>
      assert.rejects(call, (error) => error instanceof BigtableError && error.code === code);

    test('there are none before there were calls', async () => {
      assert.deepEqual(await lastHour(), []);
    });

    test('those that calls went to are listed, of all servers, and of the instance alone', async () => {
      const before = systemClock.nowMicros();
      for (const row of ['a', 'n', 'z']) await write(TABLE, row, WRITES);
      await write(OTHER, 'h', WRITES);
      for await (const _ of door.service.readRows(door.context, { table: TABLE, ranges: [{ start: 'h', end: 'i' }] }));
      const all = await lastHour();
      assert.deepEqual([...starts(all)].sort(), ['', 'g', 'm\0', 't'], JSON.stringify(all));
      for (const { id, table, range, startMicros, endMicros, cpuPercent } of all) {
        assert.equal(table, TABLE);
        assert.match(id, /^[-_a-zA-Z0-9]+$/);
        assert.ok(startMicros < endMicros && endMicros > before, `${startMicros} to ${endMicros}`);
        assert.ok(cpuPercent > 0 && cpuPercent <= 100, String(cpuPercent));
        assert.ok(range !== undefined);
      }
      assert.equal(new Set(all.map(({ id }) => id)).size, all.length);
      const heat = all.map(({ cpuPercent }) => cpuPercent);
      assert.deepEqual(
        heat,
        [...heat].sort((a, b) => b - a),
      );
    });

    test('a time before them has none, and one that is not allowed is refused', async () => {
      const now = systemClock.nowMicros();
      assert.deepEqual(await list(now - 30 * HOUR_MICROS, now - 26 * HOUR_MICROS), []);
      await refused(list(now, now - 1e6), Code.INVALID_ARGUMENT);
      await refused(list(now, now), Code.INVALID_ARGUMENT);
      await refused(list(now - 49 * HOUR_MICROS, now), Code.INVALID_ARGUMENT);
      await refused(list(now - 15 * 24 * HOUR_MICROS, now - 14 * 24 * HOUR_MICROS), Code.INVALID_ARGUMENT);
      await refused(list(now, now + HOUR_MICROS), Code.INVALID_ARGUMENT);
      await refused(list(now - 1e6, now, `${INSTANCE}/clusters/none`), Code.NOT_FOUND);
      await refused(list(now - 1e6, now, INSTANCE), Code.INVALID_ARGUMENT);
    });

    test('after a restart they are counted anew', async () => {
      await door.reopen();
      assert.deepEqual(await lastHour(), []);
      await write(TABLE, 'n', WRITES);
      assert.deepEqual(starts(await lastHour()), ['m\0']);
    });
  });
}
