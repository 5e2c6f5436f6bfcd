import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ListCursor } from '../../../test/list-cursor.ts';
import { addWrapping, INT64_MAX, INT64_MIN, type Int64, int64Bytes, readInt64BE } from '../../base/index.ts';
import { clockOf, Pacer } from '../../env/index.ts';
import { Memtable } from '../../memtable/index.ts';
import {
  type AggregateKind,
  columnKey,
  CursorState,
  compareEntries,
  type Entry,
  EntryKind,
  familyOf,
  type Layer,
  type LayerCursor,
  type Mutation,
  normalizeRanges,
  type RowRangeDeletion,
} from '../../model/index.ts';
import { MergeCursor } from './merge-cursor.ts';

const KINDS: Record<string, AggregateKind> = { sum: 'sum', max: 'max' };
const aggregateOf = (family: string): AggregateKind | undefined => KINDS[family];

/**
 * A layer over a sorted list, whose cursors need a load whenever `lazy` says so, sometimes several, like an SSTable's.
 */
class ListLayer implements Layer {
  readonly entries: readonly Entry[];
  readonly deletions: readonly RowRangeDeletion[];
  readonly lazy: () => boolean;

  constructor(entries: readonly Entry[], deletions: readonly RowRangeDeletion[], lazy: () => boolean) {
    this.entries = entries;
    this.deletions = deletions;
    this.lazy = lazy;
  }

  get firstRow(): string | undefined {
    return this.entries[0]?.row;
  }

  get lastRow(): string | undefined {
    return this.entries.at(-1)?.row;
  }

  rowRangeDeletions(): readonly RowRangeDeletion[] {
    return this.deletions;
  }

  mayContainRows(): boolean {
    return true;
  }

  cursor(): LayerCursor {
    return new ListCursor(this.entries, this.lazy);
  }
}

function entriesOf(memtable: Memtable): Entry[] {
  const out: Entry[] = [];
  const cursor = memtable.cursor();
  for (cursor.seekRow(''); cursor.state === CursorState.ready; cursor.next()) out.push(entryAt(cursor));
  return out;
}

function entryAt(cursor: LayerCursor): Entry {
  const { row, column, kind, timestamp, rangeEnd } = cursor;
  const value = cursor.value();
  assert.equal(value.length, cursor.valueLength);
  return { row, column, kind, timestamp, rangeEnd, value };
}

function show(entry: Entry): string {
  const { row, column, kind, timestamp, value } = entry;
  assert.equal(kind, EntryKind.put, 'a read sees puts only');
  return `${row} ${column.replace('\0', ':')}@${timestamp}=${Buffer.from(value).toString('latin1')}`;
}

async function settled(cursor: MergeCursor): Promise<void> {
  for (let loads = 0; cursor.state === CursorState.needsLoad; loads++) {
    assert.ok(loads < 10_000, 'loads come to an end');
    await cursor.load();
  }
}

async function rest(cursor: MergeCursor): Promise<string[]> {
  const out: string[] = [];
  for (;;) {
    await settled(cursor);
    if (cursor.state === CursorState.done) return out;
    out.push(show(entryAt(cursor)));
    cursor.next();
  }
}

/** The model: the present contents of each row; a deletion deletes. Columns by key, then cells by timestamp. */
class Model {
  readonly rows = new Map<string, Map<string, Map<Int64, Uint8Array>>>();

  apply(row: string, mutations: readonly Mutation[]): void {
    const columns = this.rows.get(row) ?? new Map<string, Map<Int64, Uint8Array>>();
    this.rows.set(row, columns);
    for (const mutation of mutations) {
      if (mutation.kind === 'deleteFromRow') columns.clear();
      else if (mutation.kind === 'deleteFromFamily')
        for (const column of columns.keys()) if (familyOf(column) === mutation.family) columns.delete(column);
      if (!('qualifier' in mutation)) continue;
      const column = columnKey(mutation.family, mutation.qualifier);
      const cells = columns.get(column) ?? new Map<Int64, Uint8Array>();
      columns.set(column, cells);
      if (mutation.kind === 'deleteFromColumn') {
        const { start = INT64_MIN, end = 2n ** 63n } = mutation.range ?? {};
        for (const stamp of cells.keys()) if (stamp >= start && stamp < end) cells.delete(stamp);
      } else if (mutation.kind === 'setCell') {
        cells.set(mutation.timestamp as Int64, mutation.value);
      } else if (mutation.kind === 'addToCell') {
        const present = cells.get(mutation.timestamp);
        const [a, b] = [present && readInt64BE(Buffer.from(present), 0), mutation.input as number];
        cells.set(
          mutation.timestamp,
          int64Bytes(a === undefined ? b : mutation.family === 'sum' ? addWrapping(a, b) : a > b ? a : b),
        );
      }
    }
  }

  dropRows(start: string, end: string | undefined): void {
    for (const row of this.rows.keys()) if (row >= start && (end === undefined || row < end)) this.rows.delete(row);
  }

  row(row: string): Entry[] {
    const columns = [...(this.rows.get(row) ?? [])];
    const cells = columns.flatMap(([column, versions]) =>
      [...versions].map(([timestamp, value]) => ({ row, column, kind: EntryKind.put, timestamp, value })),
    );
    return cells.sort(compareEntries);
  }

  cells(): Entry[] {
    return [...this.rows.keys()].sort().flatMap((row) => this.row(row));
  }
}

const ROWS = ['a', 'b', 'b\0', 'c', 'dd', 'e'];
const rowName = fc.constantFrom(...ROWS);
const bound = fc.option(fc.constantFrom(...ROWS, '', 'bb', 'z'), { nil: undefined });
const timestamp = fc.constantFrom<Int64>(INT64_MIN, -(2n ** 53n), 0, 1, 2, 3, 4, 5, 6, 2n ** 53n, INT64_MAX);
const qualifier = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('', 'q', 'q\0', '\xff') },
  { weight: 1, arbitrary: fc.nat({ max: 80 }).map((n) => `n${n}`) },
);
const anyFamily = fc.constantFrom('f', 'f-', 'sum', 'max');
let written = 0;
const value = fc.constant(0).map(() => Buffer.from(`v${written++}`));
const plainSet = fc.record({
  kind: fc.constant('setCell' as const),
  family: fc.constantFrom('f', 'f-'),
  qualifier,
  timestamp,
  value,
});
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  { weight: 7, arbitrary: plainSet },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('setCell' as const),
      family: fc.constantFrom('sum', 'max'),
      qualifier,
      timestamp,
      value: fc.integer().map(int64Bytes),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('addToCell' as const),
      family: fc.constantFrom('sum', 'max'),
      qualifier,
      timestamp,
      input: fc.integer(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('deleteFromColumn' as const),
      family: anyFamily,
      qualifier,
      range: fc.option(
        fc.record({ start: fc.option(timestamp, { nil: undefined }), end: fc.option(timestamp, { nil: undefined }) }),
        { nil: undefined },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('deleteFromFamily' as const), family: anyFamily }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'deleteFromRow' as const }) },
);
const bulk = fc.nat({ max: 40 }).map((first): Mutation[] =>
  Array.from({ length: 70 }, (_, i) => ({
    kind: 'setCell',
    family: 'f',
    qualifier: `n${first + i}`,
    timestamp: 1,
    value: Buffer.from(`b${first}`),
  })),
);

const write = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('apply' as const),
      row: rowName,
      mutations: fc.oneof(
        { weight: 9, arbitrary: fc.array(mutation, { minLength: 1, maxLength: 6 }) },
        { weight: 1, arbitrary: bulk },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop' as const), start: rowName, end: bound }) },
);
const freeze = fc.record({ kind: fc.constant('freeze' as const), flush: fc.boolean() });
const history = fc.array(fc.oneof({ weight: 3, arbitrary: write }, { weight: 1, arbitrary: freeze }), {
  maxLength: 30,
  size: 'max',
});
/** Returns true at the turns of the list, over and over. */
const laziness = fc.array(fc.boolean(), { minLength: 1, maxLength: 9 }).map((turns) => {
  // a cursor must get there in the end
  const finite = [...turns, false];
  let turn = 0;
  return () => finite[turn++ % finite.length] as boolean;
});
type Step = typeof history extends fc.Arbitrary<(infer S)[]> ? S : never;

/** A tablet's layers, newest first, and the model of them. */
class Layers {
  readonly model = new Model();
  active = new Memtable();
  older: Layer[] = [];
  readonly lazy: () => boolean;

  constructor(lazy: () => boolean) {
    this.lazy = lazy;
  }

  get all(): Layer[] {
    return [this.active, ...this.older];
  }

  take(step: Step): void {
    if (step.kind === 'apply') {
      this.active.apply(step.row, step.mutations, aggregateOf);
      this.model.apply(step.row, step.mutations);
    } else if (step.kind === 'drop') {
      this.active.dropRows({ start: step.start, end: step.end });
      this.model.dropRows(step.start, step.end);
    } else {
      this.active.freeze();
      const frozen: Layer = step.flush
        ? new ListLayer(entriesOf(this.active), this.active.rowRangeDeletions(), this.lazy)
        : this.active;
      this.older = [frozen, ...this.older];
      this.active = new Memtable();
    }
  }
}

function layersOf(steps: readonly Step[], lazy: () => boolean): Layers {
  const layers = new Layers(lazy);
  for (const step of steps) layers.take(step);
  return layers;
}

describe('MergeCursor against the model', () => {
  test('scans, forward and backward, from anywhere', async () => {
    await fc.assert(
      fc.asyncProperty(history, laziness, rowName, async (steps, lazy, row) => {
        const { all, model } = layersOf(steps, lazy);
        const cells = model.cells();
        const cursor = new MergeCursor(all, { aggregateOf });
        for (const start of ['', row, `${row}\0`]) {
          cursor.seekRow(start);
          assert.deepEqual(await rest(cursor), cells.filter((cell) => cell.row >= start).map(show));
        }
        const rows = [...new Set(cells.map((cell) => cell.row))].reverse();
        for (const end of [undefined, row, `${row}\0`]) {
          cursor.seekRowBefore(end);
          const expected = rows
            .filter((each) => end === undefined || each < end)
            .flatMap((each) => model.row(each).map(show));
          assert.deepEqual(await rest(cursor), expected);
        }
        cursor.close();
        assert.equal(cursor.state, CursorState.done);
      }),
      { numRuns: 80 },
    );
  });

  test('moves of every kind, mixed', async () => {
    const move = fc.oneof(
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('seekRow' as const), row: rowName }) },
      {
        weight: 2,
        arbitrary: fc.record({
          kind: fc.constant('seekRowBefore' as const),
          row: fc.option(rowName, { nil: undefined }),
        }),
      },
      {
        weight: 4,
        arbitrary: fc.record({ kind: fc.constant('next' as const), count: fc.integer({ min: 1, max: 5 }) }),
      },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('skipRow' as const) }) },
      {
        weight: 8,
        arbitrary: fc.record({
          kind: fc.constant('seekColumn' as const),
          family: anyFamily,
          qualifier: fc.option(qualifier, { nil: undefined }),
          timestamp: fc.option(timestamp, { nil: undefined }),
        }),
      },
    );
    await fc.assert(
      fc.asyncProperty(
        history,
        laziness,
        fc.array(move, { maxLength: 20, size: 'max' }),
        async (steps, lazy, moves) => {
          const { all, model } = layersOf(steps, lazy);
          const cells = model.cells();
          const rows = [...new Set(cells.map((cell) => cell.row))];
          const cursor = new MergeCursor(all, { aggregateOf });
          let reversed = false;
          // the position of the model: a row, and the rest of it
          let row: string | undefined;
          let left: Entry[] = [];
          const enter = (next: string | undefined): void => {
            row = next;
            left = next === undefined ? [] : model.row(next);
          };
          const nextRow = (): void =>
            enter(
              row === undefined
                ? undefined
                : reversed
                  ? rows.findLast((each) => each < (row as string))
                  : rows.find((each) => each > (row as string)),
            );
          for (const each of moves) {
            if (each.kind === 'seekRow') {
              cursor.seekRow(each.row);
              reversed = false;
              enter(rows.find((other) => other >= each.row));
            } else if (each.kind === 'seekRowBefore') {
              cursor.seekRowBefore(each.row);
              reversed = true;
              enter(rows.findLast((other) => each.row === undefined || other < each.row));
            } else if (row === undefined) {
              continue;
            } else if (each.kind === 'next') {
              for (let i = 0; i < each.count && row !== undefined; i++) {
                cursor.next();
                await settled(cursor);
                left.shift();
                if (left.length === 0) nextRow();
              }
            } else if (each.kind === 'skipRow') {
              cursor.skipRow();
              nextRow();
            } else {
              const column = each.qualifier === undefined ? each.family : columnKey(each.family, each.qualifier);
              cursor.seekColumn(column, each.timestamp);
              left = left.filter(
                (cell) =>
                  cell.column > column ||
                  (cell.column === column && (each.timestamp === undefined || cell.timestamp <= each.timestamp)),
              );
              if (left.length === 0) nextRow();
            }
            await settled(cursor);
            assert.equal(
              cursor.state === CursorState.done ? undefined : show(entryAt(cursor)),
              left[0] && show(left[0]),
            );
          }
        },
      ),
      { numRuns: 120 },
    );
  });

  test('a merge of neighbouring layers is a layer: in their place it reads the same', async () => {
    await fc.assert(
      fc.asyncProperty(history, laziness, fc.nat(), fc.nat(), async (steps, lazy, a, b) => {
        const { all, model } = layersOf(steps, lazy);
        const from = a % all.length;
        const count = 1 + (b % (all.length - from));
        const merged = all.slice(from, from + count);
        const cursor = new MergeCursor(merged, { aggregateOf, keepDeletions: true });
        const entries: Entry[] = [];
        for (cursor.seekRow(''); ; cursor.next()) {
          await settled(cursor);
          if (cursor.state === CursorState.done) break;
          entries.push(entryAt(cursor));
        }
        entries.forEach((entry, i) => {
          const last = entries[i - 1];
          if (last === undefined) return;
          assert.ok(compareEntries(last, entry) < 0, 'entries ascend, none twice');
          if (
            last.kind !== EntryKind.rangeDeletion ||
            entry.kind !== EntryKind.rangeDeletion ||
            last.row !== entry.row ||
            last.column !== entry.column
          )
            return;
          assert.ok(last.rangeEnd !== undefined && last.rangeEnd < entry.timestamp, 'ranges of a column are disjoint');
        });
        const deletions = normalizeRanges(merged.flatMap((layer) => layer.rowRangeDeletions()));
        const skipped: string[] = [];
        for (cursor.seekRow(''); ; cursor.skipRow()) {
          await settled(cursor);
          if (cursor.state === CursorState.done) break;
          skipped.push(cursor.row);
        }
        assert.deepEqual(skipped, [...new Set(entries.map((entry) => entry.row))]);
        const layer = new ListLayer(entries, deletions, lazy);
        const read = new MergeCursor([...all.slice(0, from), layer, ...all.slice(from + count)], { aggregateOf });
        read.seekRow('');
        assert.deepEqual(await rest(read), model.cells().map(show));
      }),
      { numRuns: 120 },
    );
  });

  test('while rows are written and dropped, each row is seen as it was at one instant of the read', async () => {
    const drop = fc.record({ kind: fc.constant('drop' as const), start: rowName, end: bound });
    const turn = fc.oneof(
      { weight: 2, arbitrary: write },
      { weight: 1, arbitrary: drop },
      { weight: 4, arbitrary: fc.constant({ kind: 'move' as const }) },
    );
    await fc.assert(
      fc.asyncProperty(
        history,
        laziness,
        fc.boolean(),
        fc.array(turn, { maxLength: 60, size: 'max' }),
        async (steps, lazy, reversed, turns) => {
          const layers = layersOf(steps, lazy);
          const cursor = new MergeCursor(layers.all, { aggregateOf });
          const states = new Map(ROWS.map((row) => [row, new Set<string>()]));
          const note = (): void =>
            ROWS.forEach((row) => states.get(row)?.add(layers.model.row(row).map(show).join('\n')));
          note();
          if (reversed) cursor.seekRowBefore(undefined);
          else cursor.seekRow('');
          const expected = reversed ? ROWS.toReversed() : ROWS;
          let at = 0;
          let seen: string[] = [];
          let row: string | undefined;
          const checkUpTo = (next: string | undefined): void => {
            for (; at < expected.length && expected[at] !== next; at++) {
              const name = expected[at] as string;
              const content = name === row ? seen.join('\n') : '';
              assert.ok(states.get(name)?.has(content), `row ${name} was never ${content === '' ? 'empty' : content}`);
            }
          };
          for (const each of [...turns, ...Array.from({ length: 3000 }, () => ({ kind: 'move' as const }))]) {
            if (each.kind !== 'move') {
              layers.take(each);
              note();
            } else if (cursor.state === CursorState.needsLoad) {
              await cursor.load();
            } else if (cursor.state === CursorState.ready) {
              if (cursor.row !== row) {
                checkUpTo(cursor.row);
                row = cursor.row;
                seen = [];
              }
              seen.push(show(entryAt(cursor)));
              cursor.next();
            }
          }
          assert.equal(cursor.state, CursorState.done);
          checkUpTo(undefined);
        },
      ),
      { numRuns: 150 },
    );
  });
});

const never = (): boolean => false;
const set = (family: string, name: string, stamp: Int64, text = 'v'): Mutation => ({
  kind: 'setCell',
  family,
  qualifier: name,
  timestamp: stamp,
  value: Buffer.from(text),
});

function memtables(...changes: (readonly [row: string, ...mutations: Mutation[]])[][]): Memtable[] {
  return changes.map((rows) => {
    const memtable = new Memtable();
    for (const [row, ...mutations] of rows) memtable.apply(row, mutations, aggregateOf);
    return memtable;
  });
}

describe('MergeCursor', () => {
  test('a deletion hides older layers whatever the timestamps, and nothing newer', async () => {
    const layers = memtables(
      [['r', set('f', 'q', 1, 'newest')]],
      [['r', { kind: 'deleteFromRow' }, set('f', 'q', 2, 'adjacent')]],
      [
        ['r', set('f', 'q', 9, 'hidden'), set('g', 'q', 9, 'hidden')],
        ['s', set('f', 'q', 9, 'other row')],
      ],
    );
    const cursor = new MergeCursor(layers, { aggregateOf });
    cursor.seekRow('');
    assert.deepEqual(await rest(cursor), ['r f:q@2=adjacent', 'r f:q@1=newest', 's f:q@9=other row']);
  });

  test('operands fold down to a put, and not beyond a deletion', async () => {
    const add = (input: number): Mutation => ({
      kind: 'addToCell',
      family: 'sum',
      qualifier: 'q',
      timestamp: 1,
      input,
    });
    const sum = async (...layers: Mutation[][]): Promise<string[]> => {
      const cursor = new MergeCursor(memtables(...layers.map((mutations) => [['r', ...mutations] as const])), {
        aggregateOf,
      });
      cursor.seekRow('');
      return (await rest(cursor)).map((line) =>
        String(readInt64BE(Buffer.from(line.split('=')[1] as string, 'latin1'), 0)),
      );
    };
    const forty: Mutation = { kind: 'setCell', family: 'sum', qualifier: 'q', timestamp: 1, value: int64Bytes(40) };
    const range: Mutation = { kind: 'deleteFromColumn', family: 'sum', qualifier: 'q', range: { start: 0, end: 2 } };
    assert.deepEqual(await sum([add(1)], [add(2)], [add(3)]), ['6']);
    assert.deepEqual(await sum([add(1)], [add(2)], [forty], [add(100)]), ['43']);
    assert.deepEqual(await sum([add(1)], [range, add(2)], [add(100)]), ['3']);
    assert.deepEqual(await sum([add(1)], [range], [add(100)]), ['1']);
    assert.deepEqual(await sum([range], [add(100)]), []);
  });

  test('rows dropped while a load is awaited do not tear a row that the memtable holds', async () => {
    let lazy = false;
    const old = memtables([
      ['r', set('f', 'b', 1), set('f', 'c', 1)],
      ['s', set('f', 'old', 1)],
    ]).map((each) => new ListLayer(entriesOf(each), [], () => lazy));
    const [active] = memtables([
      ['r', set('f', 'a', 1)],
      ['s', set('f', 'new', 1)],
    ]) as [Memtable];
    const cursor = new MergeCursor([active, ...old], { aggregateOf });
    cursor.seekRow('r');
    cursor.next();
    lazy = true;
    cursor.next();
    // the memtable's cursor is on s already, the other one is still in r
    assert.equal(cursor.state, CursorState.needsLoad);
    active.dropRows({ start: 's', end: undefined });
    lazy = false;
    assert.deepEqual(await rest(cursor), ['r f:c@1=v', 's f:new@1=v', 's f:old@1=v']);
  });

  test('a row can be skipped at a deletion after which a load is needed', async () => {
    // the two seeks arrive immediately, the move after the deletion does not
    let turns: boolean[] | undefined = [false, false, true];
    const layers = memtables(
      [
        ['r', { kind: 'deleteFromRow' }, set('f', 'a', 1)],
        ['s', set('f', 'a', 1)],
      ],
      [['r', set('f', 'a', 1)]],
    ).map((each) => new ListLayer(entriesOf(each), [], () => turns?.shift() ?? false));
    const cursor = new MergeCursor(layers, { aggregateOf, keepDeletions: true });
    cursor.seekRow('r');
    assert.equal(cursor.kind, EntryKind.rowDeletion);
    assert.deepEqual(turns, []);
    turns = undefined;
    cursor.skipRow();
    await settled(cursor);
    assert.equal(cursor.row, 's');
  });

  test('a range of rows that a newer layer dropped is passed by a seek, not walked', () => {
    const old = new Memtable();
    for (let i = 0; i < 5000; i++) old.apply(`row${String(i).padStart(4, '0')}`, [set('f', 'q', 1)], aggregateOf);
    const dropper = new Memtable();
    dropper.dropRows({ start: 'row0001', end: 'row4999' });
    let moves = 0;
    const counted: Layer = {
      rowRangeDeletions: () => old.rowRangeDeletions(),
      mayContainRows: () => true,
      cursor: () => countMoves(old.cursor(), () => moves++),
    };
    const cursor = new MergeCursor([dropper, counted], { aggregateOf });
    cursor.seekRow('');
    cursor.next();
    assert.equal(cursor.row, 'row4999');
    cursor.seekRowBefore('row4999');
    assert.equal(cursor.row, 'row0000');
    assert.ok(moves < 10, `${moves} moves`);
  });

  test('a seek inside a row of several layers seeks in each', () => {
    const wide = Array.from({ length: 3000 }, (_, i) => set('f', String(i).padStart(4, '0'), 1));
    const [newer, older] = memtables(
      [['r', ...wide, { kind: 'deleteFromColumn', family: 'f', qualifier: '2000' }]],
      [['r', ...wide]],
    ) as [Memtable, Memtable];
    let moves = 0;
    const counted = [newer, older].map(
      (layer): Layer => ({
        rowRangeDeletions: () => layer.rowRangeDeletions(),
        mayContainRows: () => true,
        cursor: () => countMoves(layer.cursor(), () => moves++),
      }),
    );
    const cursor = new MergeCursor(counted, { aggregateOf });
    cursor.seekRow('r');
    cursor.seekColumn('f\x002000');
    assert.equal(cursor.column, 'f\x002001');
    cursor.seekColumn('f\x002999', 0);
    assert.equal(cursor.state, CursorState.done);
    assert.ok(moves < 20, `${moves} moves`);
  });

  test('a long walk over hidden entries pauses when the slice is over', async () => {
    const deletions = new Memtable();
    for (let i = 0; i < 20_000; i++) deletions.apply(`row${i}`, [{ kind: 'deleteFromRow' }], aggregateOf);
    deletions.apply('z', [set('f', 'q', 1)], aggregateOf);
    let now = 0;
    let pauses = 0;
    const clock = clockOf({
      nowMicros: () => now * 1000,
      // a millisecond a reading: the pacer reads the clock once in `every` items
      monotonicMs: () => now++,
      timer: () => assert.fail('no timers'),
      yield: async () => {
        pauses++;
      },
    });
    const cursor = new MergeCursor([deletions], { aggregateOf, pacer: new Pacer(clock) });
    cursor.seekRow('');
    assert.equal(cursor.state, CursorState.needsLoad);
    assert.deepEqual(await rest(cursor), ['z f:q@1=v']);
    assert.ok(pauses > 3 && pauses < 200, `${pauses} pauses`);
  });

  test('layers that do not overlap are read only when the scan comes to them', () => {
    const sought: string[] = [];
    const layers = ['a', 'f', 'p'].map((row): Layer => {
      const layer = new ListLayer(
        [{ row, column: 'f\0q', kind: EntryKind.put, timestamp: 1, value: Buffer.from(row) }],
        [],
        () => false,
      );
      return {
        firstRow: row,
        lastRow: row,
        rowRangeDeletions: () => [],
        mayContainRows: () => true,
        cursor: () => {
          const cursor = layer.cursor();
          const seekRow = cursor.seekRow.bind(cursor);
          const seekRowBefore = cursor.seekRowBefore.bind(cursor);
          cursor.seekRow = (to) => {
            sought.push(row);
            seekRow(to);
          };
          cursor.seekRowBefore = (to) => {
            sought.push(row);
            seekRowBefore(to);
          };
          return cursor;
        },
      };
    });
    const cursor = new MergeCursor([new Memtable(), ...layers], { aggregateOf });
    cursor.seekRow('');
    assert.deepEqual([cursor.row, sought], ['a', ['a']]);
    cursor.next();
    assert.deepEqual([cursor.row, sought], ['f', ['a', 'f']]);
    sought.length = 0;
    cursor.seekRowBefore('z');
    assert.deepEqual([cursor.row, sought], ['p', ['p']]);
  });

  test('a failing load fails the read with its error', async () => {
    const broken = new ListLayer([], [], () => true);
    const failing: Layer = {
      rowRangeDeletions: () => [],
      mayContainRows: () => true,
      cursor: () => Object.assign(broken.cursor(), { load: () => Promise.reject(new Error('disk')) }),
    };
    const cursor = new MergeCursor([new Memtable(), failing], { aggregateOf });
    cursor.seekRow('');
    await assert.rejects(cursor.load(), /disk/);
    cursor.close();
  });

  test('keepDeletions returns one deletion if several layers have it, and none next to a coarser one', async () => {
    const range = (start: Int64 | undefined, end: Int64 | undefined): Mutation => ({
      kind: 'deleteFromColumn',
      family: 'f',
      qualifier: 'q',
      range: { start, end },
    });
    const kinds = async (...layers: Mutation[][]): Promise<string[]> => {
      const cursor = new MergeCursor(memtables(...layers.map((mutations) => [['r', ...mutations] as const])), {
        aggregateOf,
        keepDeletions: true,
      });
      const out: string[] = [];
      for (cursor.seekRow(''); cursor.state === CursorState.ready; cursor.next())
        out.push(`${cursor.kind} ${cursor.column.replace('\0', ':')} ${cursor.timestamp} ${cursor.rangeEnd}`);
      return out;
    };
    const row: Mutation = { kind: 'deleteFromRow' };
    const family: Mutation = { kind: 'deleteFromFamily', family: 'f' };
    const column: Mutation = { kind: 'deleteFromColumn', family: 'f', qualifier: 'q' };
    assert.deepEqual(await kinds([row], [row], [set('f', 'q', 1)]), ['1  0 undefined']);
    assert.deepEqual(await kinds([family, set('f', 'q', 0)], [row, set('f', 'q', 1)]), [
      '1  0 undefined',
      '16 f:q 0 undefined',
    ]);
    assert.deepEqual(await kinds([column], [family], [row]), ['1  0 undefined']);
    assert.deepEqual(await kinds([range(1, 5)], [column], [family]), ['2 f 0 undefined']);
    assert.deepEqual(await kinds([range(1, 5)], [column, set('f', 'q', 3), set('f', 'q', 5)]), [
      '3 f:q 0 undefined',
      '16 f:q 5 undefined',
    ]);
    assert.deepEqual(await kinds([range(1, 5)], [range(5, 7)], [range(9, undefined)]), [
      '4 f:q 1 7',
      '4 f:q 9 undefined',
    ]);
    assert.deepEqual(await kinds([range(undefined, 5)], [range(3, undefined)]), ['3 f:q 0 undefined']);
  });

  test('layers without entries are done immediately', () => {
    const cursor = new MergeCursor([new Memtable(), new ListLayer([], [], never)], { aggregateOf });
    cursor.seekRow('');
    assert.equal(cursor.state, CursorState.done);
    cursor.seekRowBefore(undefined);
    assert.equal(cursor.state, CursorState.done);
    cursor.next();
    cursor.skipRow();
    assert.equal(cursor.state, CursorState.done);
  });
});

/** The cursor itself, with its moves counted. */
function countMoves(cursor: LayerCursor, count: () => void): LayerCursor {
  for (const move of ['next', 'seekRow', 'seekRowBefore', 'seekColumn'] as const) {
    const original = cursor[move].bind(cursor) as (...args: unknown[]) => void;
    Object.defineProperty(cursor, move, {
      value: (...args: unknown[]) => {
        count();
        original(...args);
      },
    });
  }
  return cursor;
}
