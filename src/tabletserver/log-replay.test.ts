import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  type EncodedRecord,
  isAfter,
  type LogRecord,
  Origin,
  type RecordBody,
  type RedoRecord,
  type RecordsOfAppend,
  type RowSpan,
} from '../commitlog/index.ts';
import { ManualClock } from '../env/index.ts';
import { intersectRanges, isEmptyRange, rangeContains, type RowRange } from '../model/index.ts';
import { LogReplay, type ReplayRequest } from './log-replay.ts';

const record = (tableId: string, epoch: number, sequence: number, body: RecordBody): LogRecord => ({
  tableId,
  epoch,
  sequence,
  commitMicros: 0,
  origin: Origin.user,
  body,
});
const rows = (...keys: string[]): RecordBody => ({
  kind: 'rows',
  rows: keys.map((row) => ({ row, mutations: [{ kind: 'deleteFromRow' }] })),
});

/** A record as it comes from its log; `decoded` gets each that is decoded. */
function encoded(made: LogRecord, decoded: (made: LogRecord) => void): EncodedRecord {
  const { tableId, epoch, sequence, body } = made;
  const touches = (range: RowRange): boolean =>
    body.kind === 'rows'
      ? body.rows.some(({ row }) => rangeContains(range, row))
      : !isEmptyRange(intersectRanges(body.range, range));
  const span = (): RowSpan | undefined => {
    if (body.kind !== 'rows') return undefined;
    const keys = body.rows.map(({ row }) => row).sort();
    return { first: keys[0]!, last: keys.at(-1)! };
  };
  return {
    tableId,
    epoch,
    sequence,
    touches,
    span,
    decode: () => (decoded(made), made),
    redo: () => (decoded(made), made),
  };
}

const recordsOf = (replay: LogReplay, request: ReplayRequest): Promise<RedoRecord[]> =>
  replay.apply(request, async (records) => [...records]);
const noneSorted = async (): Promise<undefined> => undefined;

interface Logs {
  readonly read: (path: string) => AsyncIterable<RecordsOfAppend<EncodedRecord>>;
  readonly reads: string[];
  readonly decoded: LogRecord[];
}

/** Logs as lists, the number of reads of each, and the records of them that were decoded. */
function logsOf(logs: Record<string, readonly LogRecord[]>): Logs {
  const reads: string[] = [];
  const decoded: LogRecord[] = [];
  return {
    reads,
    decoded,
    read: async function* (path) {
      reads.push(path);
      yield { position: 0, previous: 0, records: [] };
      for (const [position, one] of (logs[path] ?? []).entries())
        yield { position, previous: 0, records: [encoded(one, (made) => decoded.push(made))] };
    },
  };
}

describe('the replay of logs', () => {
  test('returns to each tablet its records after its redo point, in order, once', async () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd');
    const one = fc.record({
      table: fc.constantFrom('00000010', '00000011'),
      epoch: fc.integer({ min: 1, max: 3 }),
      sequence: fc.integer({ min: 1, max: 6 }),
      keys: fc.uniqueArray(key, { minLength: 1, maxLength: 3 }),
    });
    const unique = fc.uniqueArray(one, {
      maxLength: 20,
      selector: ({ table, epoch, sequence }) => `${table} ${epoch} ${sequence}`,
    });
    await fc.assert(
      fc.asyncProperty(
        unique,
        fc.array(fc.nat(2), { maxLength: 25 }),
        fc.nat(3),
        fc.nat(6),
        fc.constantFrom<[string, string | undefined]>(['', 'b'], ['b', undefined], ['', undefined], ['b', 'd']),
        async (all, places, epoch, sequence, [start, end]) => {
          const logs: Record<string, LogRecord[]> = { x: [], y: [] };
          for (const [i, { table, epoch: e, sequence: s, keys }] of all.entries()) {
            const made = record(table, e, s, rows(...keys));
            // some are in both logs: written again when an append was slow
            const place = places[i] ?? 0;
            if (place !== 1) logs['x']?.push(made);
            if (place !== 0) logs['y']?.push(made);
          }
          const { read, reads } = logsOf(logs);
          const replay = new LogReplay(read, noneSorted, new ManualClock());
          const range = { start, end };
          const redo = { epoch, sequence };
          const found = [...(await recordsOf(replay, { tableId: '00000010', range, redo, logs: ['x', 'y'] }))];
          const expected = all
            .filter(
              (entry) =>
                entry.table === '00000010' &&
                isAfter(entry, redo) &&
                entry.keys.some((row) => rangeContains(range, row)),
            )
            .sort((a, b) => a.epoch - b.epoch || a.sequence - b.sequence);
          assert.deepEqual(
            found.map((entry) => [entry.epoch, entry.sequence]),
            expected.map((entry) => [entry.epoch, entry.sequence]),
          );
          for (const [i, { body }] of found.entries()) {
            assert.ok(body.kind === 'rows');
            assert.deepEqual(
              body.rows.map(({ row }) => row),
              expected[i]?.keys.filter((row) => rangeContains(range, row)),
            );
          }
          await recordsOf(replay, { tableId: '00000011', range, redo, logs: ['x', 'y'] });
          assert.deepEqual(reads, ['x', 'y'], 'a log is read once for all tablets');
          replay.clear();
        },
      ),
    );
  });

  test('decodes nothing of other tables, nothing at or below the redo point, and no row of another tablet', async () => {
    const wanted = record('00000010', 2, 4, rows('b'));
    const others = [
      record('00000010', 1, 9, rows('b')),
      record('00000010', 2, 2, rows('b')),
      record('00000011', 2, 3, rows('b')),
      record('00000010', 2, 5, rows('c')),
    ];
    const { read, decoded } = logsOf({ x: [...others, wanted] });
    const replay = new LogReplay(read, noneSorted, new ManualClock());
    const request = {
      tableId: '00000010',
      range: { start: 'a', end: 'c' },
      redo: { epoch: 2, sequence: 2 },
      logs: ['x'],
    };
    await replay.apply(request, async (found) => {
      assert.deepEqual(decoded, [], 'nothing is decoded before its turn');
      assert.deepEqual([...found], [wanted]);
    });
    assert.deepEqual(decoded, [wanted]);
  });

  test('cuts dropped rows to the tablet', async () => {
    const { read } = logsOf({
      x: [record('00000010', 1, 1, { kind: 'dropRows', range: { start: 'b', end: undefined } })],
    });
    const replay = new LogReplay(read, noneSorted, new ManualClock());
    const ask = async (start: string, end: string | undefined) =>
      [
        ...(await recordsOf(replay, {
          tableId: '00000010',
          range: { start, end },
          redo: { epoch: 0, sequence: 0 },
          logs: ['x'],
        })),
      ].map(({ body }) => body);
    assert.deepEqual(await ask('a', 'c'), [{ kind: 'dropRows', range: { start: 'b', end: 'c' } }]);
    assert.deepEqual(await ask('a', 'b'), []);
    assert.deepEqual(await ask('c', undefined), [{ kind: 'dropRows', range: { start: 'c', end: undefined } }]);
  });

  test('releases logs when no tablet has requested them for a while, and those it could not read', async () => {
    const clock = new ManualClock();
    let fails = true;
    const { read, reads } = logsOf({});
    const replay = new LogReplay(
      (path) => {
        if (fails) throw new Error('not now');
        return read(path);
      },
      noneSorted,
      clock,
    );
    const request = {
      tableId: '00000010',
      range: { start: '', end: undefined },
      redo: { epoch: 0, sequence: 0 },
      logs: ['x'],
    };
    await assert.rejects(recordsOf(replay, request), /not now/);
    fails = false;
    await recordsOf(replay, request);
    clock.advance(9_000);
    await recordsOf(replay, request);
    clock.advance(9_000);
    await recordsOf(replay, request);
    assert.equal(reads.length, 1);
    clock.advance(11_000);
    await recordsOf(replay, request);
    assert.equal(reads.length, 2);
  });

  test('an empty log is damage, since every log begins with a record', async () => {
    const replay = new LogReplay(async function* () {}, noneSorted, new ManualClock());
    const request = {
      tableId: '00000010',
      range: { start: '', end: undefined },
      redo: { epoch: 0, sequence: 0 },
      logs: ['x'],
    };
    await assert.rejects(recordsOf(replay, request), { name: 'CorruptionError', file: 'x' });
  });
});
