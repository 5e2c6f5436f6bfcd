/** Change streams behind every door: what a client receives, and what is refused. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DOORS, type OpenDoor } from '../../../test/behaviour/doors.ts';
import { Code } from '../../base/index.ts';
import type { Mutation } from '../../model/index.ts';
import type { ChangeService, ChangeStreamRequest, StreamEvent } from '../../service/index.ts';

const TABLES = 'projects/p/instances/i/tables/';
const DAY_MICROS = 86_400e6;
const WHOLE = { start: '', end: undefined };
const set = (value: string | Buffer, timestamp = 1): Mutation => ({
  kind: 'setCell',
  family: 'f',
  qualifier: 'q',
  timestamp,
  value: Buffer.from(value),
});
const now = (): number => Date.now() * 1000;
const hasCode = (code: Code) => (error: unknown) => (error as { readonly code?: Code }).code === code;

for (const { name, open } of DOORS) {
  describe(`change streams, ${name}`, { concurrency: false }, () => {
    let door: OpenDoor;
    let changes: ChangeService;
    let release = (): void => {};
    let tables = 0;

    before(async () => {
      const timer = setInterval(() => {}, 1000);
      release = () => clearInterval(timer);
      door = await open();
      changes = door.service.changes!;
    });
    after(async () => {
      await door.close();
      release();
    });

    const compact = async (table: string): Promise<void> => {
      for await (const _ of door.service.compactTables(door.context, table));
    };
    const create = async (isStreamed = true, splits: readonly string[] = []): Promise<string> => {
      const table = `${TABLES}t${tables++}`;
      await door.service.createTable(door.context, {
        name: table,
        families: [
          { name: 'f' },
          { name: 'old', gcRule: { kind: 'maxVersions', versions: 1 } },
          { name: 'n', valueType: { aggregate: { kind: 'sum', input: 'int64' } } },
        ],
        splits,
        granularity: 'micros',
        deletionProtection: false,
        ...(isStreamed && { changeStream: { retentionMicros: DAY_MICROS } }),
      });
      return table;
    };
    const write = (table: string, row: string, ...mutations: Mutation[]): Promise<void> =>
      door.service.mutateRow(door.context, table, { row, mutations });
    /** All events until now. */
    const read = async (request: Partial<ChangeStreamRequest> & { readonly table: string }): Promise<StreamEvent[]> => {
      const events: StreamEvent[] = [];
      // the clock of the test tells milliseconds
      const asked = { range: WHOLE, heartbeatMs: 100, endMicros: now() + 1000, ...request };
      for await (const event of changes.readChanges(door.context, asked)) events.push(event);
      return events;
    };
    const rowsOf = (events: readonly StreamEvent[]): string[] =>
      events.flatMap((event) => (event.kind === 'change' ? [event.row] : []));

    test('tell of each kind of change, in order, with its time', async () => {
      const startMicros = now();
      const table = await create();
      const all: readonly Mutation[] = [
        set('v'),
        { kind: 'addToCell', family: 'n', qualifier: 'q', timestamp: 0, input: 5 },
        { kind: 'mergeToCell', family: 'n', qualifier: 'q', timestamp: 0, state: Buffer.alloc(8) },
        { kind: 'deleteFromColumn', family: 'f', qualifier: 'q', range: { start: 1, end: 5 } },
        { kind: 'deleteFromColumn', family: 'f', qualifier: 'q' },
        { kind: 'deleteFromFamily', family: 'f' },
      ];
      await write(table, 'r\xff', ...all);
      await write(table, 'r\xff', { kind: 'deleteFromRow' });
      const events = (await read({ table, startMicros })).filter((event) => event.kind === 'change');
      assert.deepEqual(
        events.map(({ row, mutations, origin }) => [row, mutations.length, origin]),
        [
          ['r\xff', 6, 'user'],
          ['r\xff', 1, 'user'],
        ],
      );
      assert.deepEqual(
        events[0]!.mutations.map(({ kind }) => kind),
        all.map(({ kind }) => kind),
      );
      assert.deepEqual(events[1]!.mutations, [{ kind: 'deleteFromRow' }]);
      for (const { commitMicros, watermarkMicros } of events)
        assert.ok(commitMicros >= startMicros && commitMicros <= now() && watermarkMicros <= now());
      // of an atomic change the stream has the result
      await door.service.readModifyWriteRow(door.context, table, 'x', [
        { family: 'f', qualifier: 'n', change: { kind: 'increment', amount: 7 } },
      ]);
      const token = events[1]!.token;
      const [one] = (await read({ table, tokens: [{ range: WHOLE, token }] })).filter(({ kind }) => kind === 'change');
      assert.ok(one?.kind === 'change' && one.mutations[0]?.kind === 'setCell');
      assert.equal(Buffer.from(one.mutations[0].value).readBigInt64BE(), 7n);
    });

    test('carry large values, and many cells', async () => {
      const startMicros = now();
      const table = await create();
      const large = Buffer.alloc(3_000_001, 'x');
      await write(table, 'a', set('small'), set(large, 2), set('small', 3));
      await write(table, 'b', ...Array.from({ length: 5000 }, (_, i) => set(`v${i}`.repeat(100), i + 1)));
      const events = (await read({ table, startMicros })).filter((event) => event.kind === 'change');
      assert.deepEqual(
        events.map(({ row, mutations }) => [row, mutations.length]),
        [
          ['a', 3],
          ['b', 5000],
        ],
      );
      const [, second] = events[0]!.mutations;
      assert.ok(second?.kind === 'setCell' && large.equals(second.value));
      const last = events[1]!.mutations.at(-1);
      assert.ok(last?.kind === 'setCell' && Buffer.from(last.value).toString() === 'v4999'.repeat(100));
    });

    test('go on from every token, and deliver what comes after it alone', async () => {
      const startMicros = now();
      const table = await create();
      const rows = ['a', 'b', 'c', 'd', 'e'];
      await door.service.mutateRows(
        door.context,
        table,
        rows.map((row) => ({ row, mutations: [set(row)] })),
      );
      const events = await read({ table, startMicros });
      assert.deepEqual(rowsOf(events), rows);
      for (const [i, event] of events.entries()) {
        if (event.kind === 'closed') continue;
        const tokens = [{ range: WHOLE, token: event.token }];
        assert.deepEqual(rowsOf(await read({ table, tokens })), rowsOf(events.slice(i + 1)));
      }
      const later = now() + 1000;
      while (now() <= later);
      await write(table, 'f', set('f'));
      assert.deepEqual(rowsOf(await read({ table, startMicros: later })), ['f']);
      assert.deepEqual(rowsOf(await read({ table, startMicros, endMicros: later })), rows);
      assert.deepEqual(rowsOf(await read({ table, startMicros, range: { start: 'b', end: 'd' } })), ['b', 'c']);
    });

    test('close when a tablet is split or merged, with the tokens to go on', async () => {
      const startMicros = now();
      const table = await create();
      await write(table, 'a', set('1'));
      await write(table, 'x', set('1'));
      const whole = (await changes.changeStreamRanges(door.context, table))[0]!;
      assert.deepEqual(whole, WHOLE);
      const events: StreamEvent[] = [];
      const stream = changes.readChanges(door.context, { table, range: WHOLE, startMicros, heartbeatMs: 100 });
      for await (const event of stream) {
        events.push(event);
        if (rowsOf(events).length === 2 && events.length === 2)
          await door.service.splitTablets(door.context, table, 'm');
      }
      const closed = events.at(-1);
      assert.ok(closed?.kind === 'closed');
      const parts = [
        { start: '', end: 'm' },
        { start: 'm', end: undefined },
      ];
      assert.deepEqual(closed.ranges, parts);
      await write(table, 'b', set('2'));
      await write(table, 'y', set('2'));
      const read2 = await Promise.all(
        closed.tokens.map(({ range, token }) => read({ table, range, tokens: [{ range, token }] })),
      );
      assert.deepEqual(read2.map(rowsOf), [['b'], ['y']]);
      // the streams of both parts end when they are merged
      const streams = closed.tokens.map(async ({ range, token }) => {
        const all: StreamEvent[] = [];
        for await (const event of changes.readChanges(door.context, {
          table,
          range,
          tokens: [{ range, token }],
          heartbeatMs: 100,
        }))
          all.push(event);
        return all;
      });
      await write(table, 'c', set('3'));
      await door.service.mergeTablets(door.context, table, 'm');
      const streamed = await Promise.all(streams);
      const ends = streamed.map((all) => all.at(-1)!);
      const tokens = ends.flatMap((event) => (event.kind === 'closed' ? event.tokens : []));
      for (const end of ends)
        assert.ok(end.kind === 'closed' && end.ranges.length === 1 && end.ranges[0]?.end === undefined);
      await write(table, 'a', set('4'));
      const merged = rowsOf(await read({ table, tokens }));
      assert.deepEqual(merged.slice(-1), ['a']);
      const all = [...rowsOf(events), ...read2.flatMap(rowsOf), ...streamed.flatMap(rowsOf), ...merged];
      for (const row of ['a', 'b', 'c', 'x', 'y']) assert.ok(all.includes(row), row);
    });

    test('tell of rows that DropRowRange has deleted', async () => {
      const startMicros = now();
      const table = await create();
      for (const row of ['a1', 'a2', 'b']) await write(table, row, set('1'));
      await door.service.dropRowRange(door.context, table, { start: 'a', end: 'b' });
      const deleted = (await read({ table, startMicros })).filter(
        (event) => event.kind === 'change' && event.mutations[0]?.kind === 'deleteFromRow',
      );
      assert.deepEqual(rowsOf(deleted), ['a1', 'a2']);
    });

    test('tell of versions that garbage collection has dropped', async () => {
      const startMicros = now();
      const table = await create();
      for (const at of [1, 2, 3]) await write(table, 'a', { ...set('v', at), family: 'old' } as Mutation);
      await compact(table);
      const events = (await read({ table, startMicros })).filter((event) => event.kind === 'change');
      assert.deepEqual(
        events.map(({ origin }) => origin),
        ['user', 'user', 'user', 'garbageCollection'],
      );
      const { row, mutations } = events[3]!;
      assert.equal(row, 'a');
      assert.ok(mutations[0]?.kind === 'deleteFromColumn' && mutations.length === 1);
      const { family, qualifier, range } = mutations[0];
      assert.ok(range?.start === undefined || range.start <= 1, 'all older versions');
      assert.deepEqual([family, qualifier, Number(range?.end)], ['old', 'q', 3]);
    });

    test('send heartbeats while nothing happens', async () => {
      const table = await create();
      const beats: number[] = [];
      for await (const event of changes.readChanges(door.context, { table, range: WHOLE, heartbeatMs: 100 })) {
        assert.ok(event.kind === 'heartbeat');
        beats.push(event.watermarkMicros);
        if (beats.length === 3) break;
      }
      assert.deepEqual(
        [...beats].sort((a, b) => a - b),
        beats,
      );
    });

    test('refuse what cannot be read, with the right status', async () => {
      const table = await create(true, ['m']);
      const plain = await create(false);
      const refused = (code: Code, request: Partial<ChangeStreamRequest> & { readonly table: string }) =>
        assert.rejects(read(request), hasCode(code), JSON.stringify(request));
      await refused(Code.FAILED_PRECONDITION, { table: plain });
      await refused(Code.NOT_FOUND, { table: `${TABLES}none` });
      await refused(Code.INVALID_ARGUMENT, { table, startMicros: now() + 60e6, endMicros: undefined });
      await refused(Code.OUT_OF_RANGE, { table, startMicros: now() - 2 * DAY_MICROS });
      await refused(Code.INVALID_ARGUMENT, { table, range: { start: 'b', end: 'b' } });
      await refused(Code.INVALID_ARGUMENT, { table, tokens: [{ range: WHOLE, token: 'no token' }] });
      await refused(Code.INVALID_ARGUMENT, { table, tokens: [{ range: { start: '', end: 'b' }, token: '' }] });
      // a partition of two tablets is closed immediately, with a token for each
      const [closed] = await read({ table, startMicros: now() });
      assert.ok(closed?.kind === 'closed' && closed.tokens.length === 2);
      await assert.rejects(changes.changeStreamRanges(door.context, plain), hasCode(Code.FAILED_PRECONDITION));
      await assert.rejects(changes.changeStreamRanges(door.context, `${TABLES}none`), hasCode(Code.NOT_FOUND));
      assert.equal((await changes.changeStreamRanges(door.context, table)).length, 2);
      for (const retentionMicros of [0, DAY_MICROS - 1, 7 * DAY_MICROS + 1])
        await assert.rejects(
          door.service.updateTable(door.context, table, { changeStream: { retentionMicros } }),
          hasCode(Code.INVALID_ARGUMENT),
        );
    });
  });
}
