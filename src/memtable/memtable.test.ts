import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AssertionError, INT64_MAX, INT64_MIN, type Int64, int64Bytes, readInt64BE } from '../base/index.ts';
import {
  type AggregateKind,
  columnKey,
  CursorState,
  compareEntries,
  type Entry,
  EntryKind,
  familyOf,
  type LayerCursor,
  type Mutation,
  mergeAggregates,
  mergedState,
} from '../model/index.ts';
import { Memtable } from './index.ts';

const KINDS: Record<string, AggregateKind> = { sum: 'sum', min: 'min', max: 'max' };
const aggregateOf = (family: string): AggregateKind | undefined => KINDS[family];
const none = (): undefined => undefined;

const set = (family: string, qualifier: string, timestamp: Int64, value: string | Uint8Array = 'v'): Mutation => ({
  kind: 'setCell',
  family,
  qualifier,
  timestamp,
  value: typeof value === 'string' ? Buffer.from(value) : value,
});
const add = (family: string, qualifier: string, timestamp: Int64, input: Int64): Mutation => ({
  kind: 'addToCell',
  family,
  qualifier,
  timestamp,
  input,
});
const deleteRange = (family: string, qualifier: string, start?: Int64, end?: Int64): Mutation => ({
  kind: 'deleteFromColumn',
  family,
  qualifier,
  range: { start, end },
});

/** An entry as plain text, so that comparisons print well: kind column timestamp-or-range value. */
function show(
  entry: Pick<Entry, 'row' | 'column' | 'kind' | 'timestamp' | 'rangeEnd'> & { readonly value: Uint8Array },
): string {
  const column = entry.column.replace('\0', ':');
  switch (entry.kind) {
    case EntryKind.rowDeletion:
      return `${entry.row} -row`;
    case EntryKind.familyDeletion:
      return `${entry.row} -family ${column}`;
    case EntryKind.columnDeletion:
      return `${entry.row} -column ${column}`;
    case EntryKind.rangeDeletion:
      return `${entry.row} -range ${column} [${entry.timestamp}, ${entry.rangeEnd ?? 'no end'})`;
    default: {
      const value =
        aggregateOf(familyOf(entry.column)) && entry.value.length === 8
          ? readInt64BE(Buffer.from(entry.value), 0)
          : Buffer.from(entry.value).toString();
      return `${entry.row} ${entry.kind === EntryKind.put ? 'put' : 'merge'} ${column}@${entry.timestamp} ${value}`;
    }
  }
}

function showCursor(cursor: LayerCursor): string {
  const value = cursor.value();
  assert.equal(cursor.valueLength, value.length);
  return show({
    row: cursor.row,
    column: cursor.column,
    kind: cursor.kind,
    timestamp: cursor.timestamp,
    rangeEnd: cursor.rangeEnd,
    value,
  });
}

function rest(cursor: LayerCursor): string[] {
  const out: string[] = [];
  for (; cursor.state === CursorState.ready; cursor.next()) out.push(showCursor(cursor));
  assert.equal(cursor.state, CursorState.done);
  return out;
}

function entriesOf(memtable: Memtable): string[] {
  const cursor = memtable.cursor();
  cursor.seekRow('');
  return rest(cursor);
}

function applied(...mutations: Mutation[]): string[] {
  const memtable = new Memtable();
  memtable.apply('r', mutations, aggregateOf);
  return entriesOf(memtable).map((line) => line.slice(2));
}

describe('Memtable: the entries that mutations leave', () => {
  test('cells are ordered by family, qualifier, newest first; a later one with the same key replaces', () => {
    assert.deepEqual(
      applied(
        set('f', 'b', 1),
        set('f', 'a', 1, 'x'),
        set('f', 'a', 2),
        set('e', 'z', 0),
        set('f', 'a', 1, 'y'),
        set('f', '', 9),
      ),
      ['put e:z@0 v', 'put f:@9 v', 'put f:a@2 v', 'put f:a@1 y', 'put f:b@1 v'],
    );
  });

  test('all of int64 orders as numbers do', () => {
    const stamps: Int64[] = [0, INT64_MIN, -1, INT64_MAX, 2n ** 53n, 2 ** 53 - 1, -(2n ** 53n), 1];
    const expected = stamps.toSorted((a, b) => (a < b ? 1 : -1)).map((stamp) => `put f:q@${stamp} v`);
    assert.deepEqual(applied(...stamps.map((stamp) => set('f', 'q', stamp))), expected);
  });

  test('a row deletion hides earlier cells and leaves later ones', () => {
    assert.deepEqual(
      applied(set('f', 'a', 9), deleteRange('f', 'b', 1, 2), { kind: 'deleteFromRow' }, set('f', 'a', 1)),
      ['-row', 'put f:a@1 v'],
    );
  });

  test('a family deletion takes only the family, and its finer deletions', () => {
    assert.deepEqual(
      applied(
        set('f', 'a', 9),
        set('f-', 'a', 9),
        set('g', 'a', 9),
        deleteRange('f', 'b'),
        { kind: 'deleteFromFamily', family: 'f' },
        set('f', 'c', 1),
      ),
      ['-family f', 'put f:c@1 v', 'put f-:a@9 v', 'put g:a@9 v'],
    );
  });

  test('a column deletion takes only the column', () => {
    assert.deepEqual(
      applied(
        set('f', 'a', 9),
        set('f', 'a\0', 9),
        set('f', '', 1),
        deleteRange('f', 'a', 5, 6),
        { kind: 'deleteFromColumn', family: 'f', qualifier: 'a' },
        set('f', 'a', 1),
      ),
      ['put f:@1 v', '-column f:a', 'put f:a@1 v', 'put f:a\0@9 v'],
    );
  });

  test('next to a coarser deletion no finer one is added, but cells are removed', () => {
    const finer: Mutation[] = [
      set('f', 'a', 5),
      set('f', 'b', 5),
      set('g', 'a', 5),
      deleteRange('f', 'a', 1, 9),
      deleteRange('f', 'b'),
      { kind: 'deleteFromFamily', family: 'g' },
    ];
    assert.deepEqual(applied({ kind: 'deleteFromRow' }, ...finer), ['-row']);
    assert.deepEqual(applied({ kind: 'deleteFromFamily', family: 'f' }, ...finer), ['-family f', '-family g']);
    assert.deepEqual(applied(deleteRange('f', 'a'), set('f', 'a', 3), deleteRange('f', 'a', 1, 5)), ['-column f:a']);
  });

  test('ranges take the cells with start <= timestamp < end', () => {
    const cells = [1, 2, 3, 4].map((stamp) => set('f', 'q', stamp));
    assert.deepEqual(applied(...cells, deleteRange('f', 'q', 2, 4)), [
      '-range f:q [2, 4)',
      'put f:q@4 v',
      'put f:q@1 v',
    ]);
    assert.deepEqual(applied(...cells, deleteRange('f', 'q', undefined, 3)), [
      `-range f:q [${INT64_MIN}, 3)`,
      'put f:q@4 v',
      'put f:q@3 v',
    ]);
    assert.deepEqual(applied(...cells, set('f', 'q', INT64_MAX), deleteRange('f', 'q', 3)), [
      '-range f:q [3, no end)',
      'put f:q@2 v',
      'put f:q@1 v',
    ]);
    assert.deepEqual(
      applied(set('f', 'q', INT64_MAX), set('f', 'q', INT64_MIN), deleteRange('f', 'q', INT64_MIN, INT64_MAX)),
      [`-range f:q [${INT64_MIN}, ${INT64_MAX})`, `put f:q@${INT64_MAX} v`],
    );
    assert.deepEqual(applied(set('f', 'q', 2), deleteRange('f', 'q', 3, 3), deleteRange('f', 'q', 3, 1)), [
      'put f:q@2 v',
    ]);
  });

  test('ranges that overlap or touch become one, and all of int64 becomes the column', () => {
    assert.deepEqual(applied(deleteRange('f', 'q', 1, 3), deleteRange('f', 'q', 7, 9), deleteRange('f', 'q', 3, 5)), [
      '-range f:q [1, 5)',
      '-range f:q [7, 9)',
    ]);
    assert.deepEqual(
      applied(
        deleteRange('f', 'q', 1, 3),
        deleteRange('f', 'q', 7, 9),
        deleteRange('f', 'q', 5, 6),
        deleteRange('f', 'q', 2, 8),
      ),
      ['-range f:q [1, 9)'],
    );
    assert.deepEqual(applied(deleteRange('f', 'q', 1, 9), deleteRange('f', 'q', 3, 5)), ['-range f:q [1, 9)']);
    assert.deepEqual(
      applied(deleteRange('f', 'q', 5), deleteRange('f', 'q', 7, 8), deleteRange('f', 'q', undefined, 5)),
      ['-column f:q'],
    );
    assert.deepEqual(applied({ kind: 'deleteFromColumn', family: 'f', qualifier: 'q', range: {} }), ['-column f:q']);
  });

  test('a deletion of no timestamps makes no row', () => {
    const memtable = new Memtable();
    memtable.apply('r', [deleteRange('f', 'q', 2, 2)], none);
    memtable.apply('r', [], none);
    assert.ok(memtable.isEmpty);
    assert.deepEqual(entriesOf(memtable), []);
  });

  test('inputs fold: a put stays a put, a merge a merge', () => {
    assert.deepEqual(
      applied(add('sum', 'q', 1, 5), add('sum', 'q', 1, 2 ** 53 - 1), {
        kind: 'mergeToCell',
        family: 'sum',
        qualifier: 'q',
        timestamp: 1,
        state: int64Bytes(-5),
      }),
      ['merge sum:q@1 9007199254740991'],
    );
    assert.deepEqual(applied(set('sum', 'q', 1, int64Bytes(40)), add('sum', 'q', 1, 2), add('sum', 'q', 2, 2)), [
      'merge sum:q@2 2',
      'put sum:q@1 42',
    ]);
    assert.deepEqual(
      applied(add('max', 'q', 1, 5), add('max', 'q', 1, 3), add('min', 'q', 1, 5), add('min', 'q', 1, 3)),
      ['merge max:q@1 5', 'merge min:q@1 3'],
    );
    assert.deepEqual(applied(add('sum', 'q', 1, INT64_MAX), add('sum', 'q', 1, 1)), [`merge sum:q@1 ${INT64_MIN}`]);
    assert.deepEqual(applied(add('sum', 'q', 1, 5), { kind: 'deleteFromRow' }, add('sum', 'q', 1, 1)), [
      '-row',
      'merge sum:q@1 1',
    ]);
  });

  test('an input to a family that is no longer an aggregate is skipped', () => {
    const state: Mutation = {
      kind: 'mergeToCell',
      family: 'f',
      qualifier: 'q',
      timestamp: 1,
      state: Buffer.from('any bytes'),
    };
    assert.deepEqual(applied(add('f', 'q', 1, 5), state), []);
    assert.deepEqual(applied(set('f', 'q', 1), add('f', 'q', 1, 5), state), ['put f:q@1 v']);
  });

  test('an input over bytes that are not a state replaces them', () => {
    assert.deepEqual(applied(set('sum', 'q', 1, 'abc'), add('sum', 'q', 1, 2)), ['put sum:q@1 2']);
  });
});

describe('Memtable: its contract', () => {
  test('bad changes are refused before anything is changed', () => {
    const memtable = new Memtable();
    memtable.apply(
      'r',
      Array.from({ length: 200 }, (_, i) => set('f', `${i}`, 1)),
      none,
    );
    const before = entriesOf(memtable);
    const { sizeBytes } = memtable;
    const bad: Mutation[] = [
      { kind: 'setCell', family: 'f', qualifier: 'q', value: Buffer.from('v') },
      add('sum', 'q', 1, Buffer.from('x') as unknown as Int64),
      { kind: 'mergeToCell', family: 'sum', qualifier: 'q', timestamp: 1, state: Buffer.from('short') },
    ];
    for (const mutation of bad)
      assert.throws(() => memtable.apply('r', [{ kind: 'deleteFromRow' }, mutation], aggregateOf));
    assert.deepEqual(entriesOf(memtable), before);
    assert.equal(memtable.sizeBytes, sizeBytes);
  });

  test('a frozen memtable is read and not written', () => {
    const memtable = new Memtable();
    memtable.apply('r', [set('f', 'q', 1)], none);
    const open = memtable.edit('s', none);
    open.add([set('f', 'q', 1)]);
    memtable.freeze();
    assert.throws(() => memtable.apply('r', [set('f', 'q', 2)], none), AssertionError);
    assert.throws(() => memtable.dropRows({ start: '', end: undefined }), AssertionError);
    assert.throws(() => memtable.edit('r', none), AssertionError);
    assert.throws(() => open.commit(), AssertionError);
    assert.deepEqual(entriesOf(memtable), ['r put f:q@1 v']);
  });

  test('a change in slices is invisible until it is committed', () => {
    const memtable = new Memtable();
    memtable.apply(
      'r',
      Array.from({ length: 100 }, (_, i) => set('f', `old${i}`, 1)),
      none,
    );
    const before = entriesOf(memtable);
    const edit = memtable.edit('r', aggregateOf);
    for (let i = 0; i < 300; i++) {
      edit.add([set('f', `new${i}`, 1)]);
      if (i % 100 === 50) assert.deepEqual(entriesOf(memtable), before);
    }
    edit.add([add('sum', 'q', 1, 7)]);
    edit.commit();
    assert.equal(entriesOf(memtable).length, 401);
  });

  test('two changes in slices on one row are a fault', () => {
    const memtable = new Memtable();
    const edit = memtable.edit('r', none);
    edit.add([set('f', 'q', 1)]);
    memtable.apply('r', [set('f', 'q', 2)], none);
    assert.throws(() => edit.commit(), AssertionError);
    assert.deepEqual(entriesOf(memtable), ['r put f:q@2 v']);
  });

  test('dropped rows are gone here, hidden below, and listed in order without overlaps', () => {
    const memtable = new Memtable();
    for (const row of ['a', 'b', 'c', 'd', 'e']) memtable.apply(row, [set('f', 'q', 1)], none);
    const first = memtable.rowRangeDeletions();
    memtable.dropRows({ start: 'd', end: 'e' });
    memtable.dropRows({ start: 'b', end: 'c' });
    memtable.dropRows({ start: 'x', end: 'x' });
    const listed = memtable.rowRangeDeletions();
    assert.deepEqual(listed, [
      { start: 'b', end: 'c' },
      { start: 'd', end: 'e' },
    ]);
    memtable.dropRows({ start: 'c', end: undefined });
    assert.deepEqual(first, []);
    assert.equal(listed.length, 2);
    assert.deepEqual(memtable.rowRangeDeletions(), [{ start: 'b', end: undefined }]);
    assert.deepEqual(entriesOf(memtable), ['a put f:q@1 v']);
    assert.equal(memtable.rowCount, 1);
    memtable.dropRows({ start: '', end: undefined });
    assert.ok(!memtable.isEmpty);
  });

  test('mayContainRows is false only for ranges without entries', () => {
    const memtable = new Memtable();
    assert.equal(memtable.mayContainRows('', undefined), false);
    for (let i = 0; i < 300; i++) memtable.apply(`row${i * 2 + 1000}`, [set('f', 'q', 1)], none);
    assert.equal(memtable.mayContainRows('row1000', 'row1000\0'), true);
    assert.equal(memtable.mayContainRows('row1001', 'row1002'), false);
    assert.equal(memtable.mayContainRows('row1001', 'row1003'), true);
    assert.equal(memtable.mayContainRows('row1599', undefined), false);
    for (let i = 0; i < 299; i++)
      assert.equal(memtable.mayContainRows(`row${i * 2 + 1001}`, `row${i * 2 + 1003}`), true);
  });

  test('the size follows the contents', () => {
    const memtable = new Memtable();
    assert.equal(memtable.sizeBytes, 0);
    memtable.apply('r', [set('f', 'q', 1, Buffer.alloc(1_000_000))], none);
    assert.ok(memtable.sizeBytes > 1_000_000 && memtable.sizeBytes < 1_010_000);
    for (let i = 0; i < 50; i++) memtable.apply('r', [set('f', 'q', 1, Buffer.alloc(1_000_000))], none);
    assert.ok(memtable.sizeBytes < 1_010_000, `${memtable.sizeBytes}`);
    for (let i = 0; i < 20_000; i++) memtable.apply('counter', [add('sum', 'q', 1, 1)], aggregateOf);
    assert.ok(memtable.sizeBytes < 1_600_000, `${memtable.sizeBytes}`);
    for (let i = 0; i < 10_000; i++) memtable.apply(`row${i}`, [set('f', 'q', 1, 'v')], none);
    const full = memtable.sizeBytes;
    assert.ok(full > 1_600_000 + 10_000 * 100, `${full}`);
    memtable.dropRows({ start: '', end: undefined });
    assert.ok(memtable.sizeBytes < 600_000, `${memtable.sizeBytes}`);
  });
});

describe('Memtable cursor', () => {
  function table(): Memtable {
    const memtable = new Memtable();
    memtable.apply(
      'b',
      [set('f', 'a', 2), set('f', 'a', 1), set('f', 'c', 1), deleteRange('f', 'a', 5, 6), deleteRange('f', 'b')],
      none,
    );
    memtable.apply('d', [set('f', 'a', 1)], none);
    return memtable;
  }

  test('seeks rows both ways', () => {
    const cursor = table().cursor();
    const at = (): string => (cursor.state === CursorState.ready ? cursor.row : 'done');
    const seeks: [string, string][] = [
      ['', 'b'],
      ['b', 'b'],
      ['b\0', 'd'],
      ['d', 'd'],
      ['d\0', 'done'],
    ];
    for (const [row, expected] of seeks) {
      cursor.seekRow(row);
      assert.equal(at(), expected);
    }
    const back: [string | undefined, string][] = [
      [undefined, 'd'],
      ['z', 'd'],
      ['d', 'b'],
      ['c', 'b'],
      ['b', 'done'],
      ['', 'done'],
    ];
    for (const [row, expected] of back) {
      cursor.seekRowBefore(row);
      assert.equal(at(), expected);
      if (expected === 'b') assert.equal(cursor.kind, EntryKind.rangeDeletion);
    }
  });

  test('seeks columns forward inside the row, past deletions if a timestamp is given', () => {
    const cursor = table().cursor();
    const land = (column: string, timestamp?: Int64): string => {
      cursor.seekRow('b');
      cursor.seekColumn(column, timestamp);
      return showCursor(cursor);
    };
    assert.equal(land('f'), 'b -range f:a [5, 6)');
    assert.equal(land('f\0a'), 'b -range f:a [5, 6)');
    assert.equal(land('f\0a', INT64_MAX), 'b put f:a@2 v');
    assert.equal(land('f\0a', 1), 'b put f:a@1 v');
    assert.equal(land('f\0a', 0), 'b -column f:b');
    assert.equal(land('f\0b', 9), 'b put f:c@1 v');
    assert.equal(land('f\0c', 0), 'd put f:a@1 v');
    assert.equal(land('g'), 'd put f:a@1 v');
    cursor.seekRow('b');
    cursor.seekColumn('f\0c');
    cursor.seekColumn('f\0a');
    assert.equal(showCursor(cursor), 'b put f:c@1 v');
  });

  test('a row under a cursor stays as it was; further rows are current', () => {
    for (const wide of [1, 10, 200]) {
      const memtable = new Memtable();
      const cells = Array.from({ length: wide }, (_, i) => set('f', String(i).padStart(4, '0'), 1, 'old'));
      for (const row of ['a', 'b', 'c']) memtable.apply(row, cells, none);
      const cursor = memtable.cursor();
      cursor.seekRow('a');
      memtable.apply(
        'a',
        [...cells.map((cell) => ({ ...cell, value: Buffer.from('new') }) as Mutation), set('g', 'q', 1)],
        none,
      );
      memtable.apply('aa', [set('f', 'q', 1, 'new')], none);
      memtable.dropRows({ start: 'b', end: 'c' });
      memtable.apply('c', [{ kind: 'deleteFromRow' }], none);
      const seen = rest(cursor);
      assert.equal(seen.filter((line) => line.startsWith('a put') && line.endsWith('old')).length, wide);
      assert.deepEqual(seen.slice(wide), ['aa put f:q@1 new', 'c -row']);
      assert.equal(entriesOf(memtable).length, wide + 3);
    }
  });

  test('walks and seeks in a row of many thousand cells', () => {
    const memtable = new Memtable();
    const name = (i: number): string => String(i).padStart(5, '0');
    const edit = memtable.edit('r', none);
    for (let i = 0; i < 6000; i++) edit.add([set('f', name((i * 7919) % 6000), 1)]);
    edit.commit();
    assert.deepEqual(
      entriesOf(memtable),
      Array.from({ length: 6000 }, (_, i) => `r put f:${name(i)}@1 v`),
    );
    const cursor = memtable.cursor();
    cursor.seekRow('r');
    for (let i = 0; i < 6000; i += 37) {
      cursor.seekColumn(columnKey('f', name(i)));
      assert.equal(showCursor(cursor), `r put f:${name(i)}@1 v`);
      cursor.next();
      assert.equal(showCursor(cursor), `r put f:${name(i + 1)}@1 v`);
    }
  });

  test('needs no load, and is done after its close', async () => {
    const cursor = table().cursor();
    assert.equal(cursor.state, CursorState.done);
    cursor.seekRow('');
    await cursor.load();
    assert.equal(cursor.state, CursorState.ready);
    cursor.close();
    assert.equal(cursor.state, CursorState.done);
    assert.throws(() => cursor.column, AssertionError);
  });
});

/** The same rules, written as plainly as possible: maps, and walks over all entries. */
class LayerModel {
  readonly rows = new Map<string, Entry[]>();

  apply(row: string, mutations: readonly Mutation[]): void {
    for (const mutation of mutations) {
      const before = this.rows.get(row) ?? [];
      const after = this.#after(row, before, mutation).toSorted(compareEntries);
      if (after.length > 0) this.rows.set(row, after);
    }
  }

  #after(row: string, entries: Entry[], mutation: Mutation): Entry[] {
    const deletion = (column: string, kind: EntryKind, timestamp: Int64 = 0, rangeEnd?: Int64): Entry => ({
      row,
      column,
      kind,
      timestamp,
      value: Buffer.alloc(0),
      rangeEnd,
    });
    const has = (column: string, kind: EntryKind): boolean =>
      entries.some((entry) => entry.column === column && entry.kind === kind);
    if (mutation.kind === 'deleteFromRow') return [deletion('', EntryKind.rowDeletion)];
    const { family } = mutation;
    if (mutation.kind === 'deleteFromFamily') {
      const others = entries.filter((entry) => familyOf(entry.column) !== family);
      return has('', EntryKind.rowDeletion) ? others : [...others, deletion(family, EntryKind.familyDeletion)];
    }
    const column = columnKey(family, mutation.qualifier);
    const hidden = has('', EntryKind.rowDeletion) || has(family, EntryKind.familyDeletion);
    if (mutation.kind === 'deleteFromColumn') {
      const start = mutation.range?.start ?? INT64_MIN;
      // 2^63 is above every timestamp: no end
      const end = mutation.range?.end ?? 2n ** 63n;
      if (end <= start) return entries;
      const left = entries.filter(
        (entry) =>
          entry.column !== column || entry.kind < EntryKind.put || entry.timestamp < start || entry.timestamp >= end,
      );
      if (hidden || has(column, EntryKind.columnDeletion)) return left;
      const isRange = (entry: Entry): boolean => entry.column === column && entry.kind === EntryKind.rangeDeletion;
      let merged = { start, end };
      const apart: Entry[] = [];
      for (const entry of left.filter(isRange)) {
        const other = { start: entry.timestamp, end: entry.rangeEnd ?? 2n ** 63n };
        if (other.end < merged.start || other.start > merged.end) apart.push(entry);
        else
          merged = {
            start: other.start < merged.start ? other.start : merged.start,
            end: other.end > merged.end ? other.end : merged.end,
          };
      }
      const whole = merged.start === INT64_MIN && merged.end === 2n ** 63n;
      const made = whole
        ? deletion(column, EntryKind.columnDeletion)
        : deletion(column, EntryKind.rangeDeletion, merged.start, merged.end === 2n ** 63n ? undefined : merged.end);
      return [...left.filter((entry) => !isRange(entry)), ...apart, made];
    }
    const timestamp = mutation.timestamp as Int64;
    const present = entries.find(
      (entry) => entry.column === column && entry.kind >= EntryKind.put && entry.timestamp === timestamp,
    );
    const others = entries.filter((entry) => entry !== present);
    if (mutation.kind === 'setCell')
      return [...others, { row, column, kind: EntryKind.put, timestamp, value: mutation.value }];
    const input = mutation.kind === 'addToCell' ? int64Bytes(mutation.input as Int64) : mergedState(mutation);
    const value = present === undefined ? input : mergeAggregates(KINDS[family] as AggregateKind, present.value, input);
    return [...others, { row, column, kind: present?.kind ?? EntryKind.merge, timestamp, value }];
  }

  dropRows(start: string, end: string | undefined): void {
    for (const row of this.rows.keys()) if (row >= start && (end === undefined || row < end)) this.rows.delete(row);
  }

  entries(): Entry[] {
    return [...this.rows.values()].flat().sort(compareEntries);
  }
}

const rowName = fc.constantFrom('a', 'b', 'b\0', 'c', 'dd', 'e\xff', 'f');
const timestamp = fc.constantFrom<Int64>(
  INT64_MIN,
  -(2n ** 53n),
  -1,
  0,
  1,
  2,
  3,
  4,
  5,
  2 ** 53 - 1,
  2n ** 53n,
  INT64_MAX - 1n,
  INT64_MAX,
);
const qualifier = fc.oneof(
  fc.constantFrom('', '\0', 'q', 'q\0', 'r'),
  fc.nat({ max: 80 }).map((n) => `n${n}`),
);
const plain = fc.constantFrom('f', 'f-', 'g');
const aggregated = fc.constantFrom('sum', 'min', 'max');
const anyFamily = fc.oneof(plain, aggregated);
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('setCell' as const),
      family: plain,
      qualifier,
      timestamp,
      value: fc.uint8Array({ maxLength: 20 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('setCell' as const),
      family: aggregated,
      qualifier,
      timestamp,
      value: fc.bigInt({ min: INT64_MIN, max: INT64_MAX }).map(int64Bytes),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('addToCell' as const),
      family: aggregated,
      qualifier,
      timestamp,
      input: fc.integer(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('mergeToCell' as const),
      family: aggregated,
      qualifier,
      timestamp,
      state: fc.integer().map(int64Bytes),
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
/** Many cells in one change, so that rows become trees. */
const bulk = fc
  .record({ first: fc.nat({ max: 40 }), count: fc.integer({ min: 30, max: 150 }), deep: fc.boolean() })
  .map(({ first, count, deep }) =>
    Array.from({ length: count }, (_, i) => (deep ? set('f', 'q', first + i) : set('f', `n${first + i}`, i % 3))),
  );
const changes = fc.oneof(
  { weight: 6, arbitrary: fc.array(mutation, { minLength: 1, maxLength: 8 }) },
  { weight: 1, arbitrary: bulk },
);
const step = fc.oneof(
  { weight: 12, arbitrary: fc.record({ kind: fc.constant('apply' as const), row: rowName, mutations: changes }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('drop' as const),
      start: rowName,
      end: fc.option(rowName, { nil: undefined }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('open' as const), row: rowName, before: fc.boolean() }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('move' as const), steps: fc.integer({ min: 1, max: 12 }) }) },
);

describe('Memtable against the model', () => {
  test('its stream of entries, and cursors that stay open across later writes', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40, size: 'max' }), (steps) => {
        const memtable = new Memtable();
        const model = new LayerModel();
        // the open cursor, and the entries of its row that it still has to return, as of its arrival there
        let open: { cursor: LayerCursor; row: string; left: string[] } | undefined;
        const standing = (cursor: LayerCursor, row: string | undefined): typeof open => {
          if (row === undefined) assert.equal(cursor.state, CursorState.done);
          else assert.equal(cursor.row, row);
          return row === undefined ? undefined : { cursor, row, left: (model.rows.get(row) as Entry[]).map(show) };
        };
        for (const each of steps) {
          const rows = [...model.rows.keys()].sort();
          if (each.kind === 'apply') {
            memtable.apply(each.row, each.mutations, aggregateOf);
            model.apply(each.row, each.mutations);
          } else if (each.kind === 'drop') {
            memtable.dropRows({ start: each.start, end: each.end });
            model.dropRows(each.start, each.end);
          } else if (each.kind === 'open') {
            const cursor = memtable.cursor();
            if (each.before) cursor.seekRowBefore(each.row);
            else cursor.seekRow(each.row);
            open = standing(
              cursor,
              each.before ? rows.findLast((row) => row < each.row) : rows.find((row) => row >= each.row),
            );
          } else {
            for (let i = 0; i < each.steps && open !== undefined; i++) {
              const { cursor, row, left } = open;
              assert.equal(showCursor(cursor), left.shift());
              cursor.next();
              if (left.length === 0)
                open = standing(
                  cursor,
                  rows.find((other) => other > row),
                );
            }
          }
        }
        assert.deepEqual(entriesOf(memtable), model.entries().map(show));
        assert.equal(memtable.rowCount, model.rows.size);
      }),
      { numRuns: 80 },
    );
  });

  test('column seeks, with and without a timestamp', () => {
    const seek = fc.record({
      row: rowName,
      skip: fc.nat({ max: 20 }),
      family: anyFamily,
      qualifier: fc.option(qualifier, { nil: undefined }),
      timestamp: fc.option(timestamp, { nil: undefined }),
    });
    const writes = fc.array(fc.record({ row: rowName, mutations: changes }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(writes, fc.array(seek, { maxLength: 20, size: 'max' }), (writesMade, seeks) => {
        const memtable = new Memtable();
        const model = new LayerModel();
        for (const { row, mutations } of writesMade) {
          memtable.apply(row, mutations, aggregateOf);
          model.apply(row, mutations);
        }
        const all = model.entries();
        for (const { row, skip, family, qualifier: wanted, timestamp: at } of seeks) {
          const cursor = memtable.cursor();
          cursor.seekRow(row);
          let from = all.findIndex((entry) => entry.row >= row);
          if (from < 0) continue;
          const own = (all[from] as Entry).row;
          for (let i = 0; i < skip && all[from + 1]?.row === own; i++, from++) cursor.next();
          const column = wanted === undefined ? family : columnKey(family, wanted);
          cursor.seekColumn(column, at);
          const reached = (entry: Entry): boolean =>
            entry.row !== own ||
            entry.column > column ||
            (entry.column === column && (at === undefined || (entry.kind >= EntryKind.put && entry.timestamp <= at)));
          const expected = all.slice(from).filter(reached).map(show);
          assert.deepEqual(rest(cursor), expected);
        }
      }),
      { numRuns: 50 },
    );
  });
});

test('bytes read from a memtable stay as they were when its memory is reused', () => {
  const filled = (byte: number): Memtable => {
    const memtable = new Memtable();
    for (let i = 0; i < 4000; i++)
      memtable.apply(`row${String(i).padStart(5, '0')}`, [set('f', 'q', 1, Buffer.alloc(900, byte))], none);
    return memtable;
  };
  const memoriesOf = (memtable: Memtable, cursor: LayerCursor): Set<ArrayBufferLike> => {
    const memories = new Set<ArrayBufferLike>();
    for (cursor.seekRow(''); cursor.state === CursorState.ready; cursor.next()) memories.add(cursor.value().buffer);
    assert.equal(memtable.rowCount, 4000);
    return memories;
  };
  let before = filled(0);
  const kept: { readonly value: Uint8Array; readonly byte: number }[] = [];
  for (let byte = 1; byte < 20; byte++) {
    const cursor = before.cursor();
    // two rows far apart, so that some slabs are lent and some are not
    for (const row of ['row00700', `row0${3000 + byte}`]) {
      cursor.seekRow(row);
      kept.push({ value: cursor.value(), byte: byte - 1 });
    }
    const old = memoriesOf(before, before.copyCursor());
    before.freeze();
    before.recycle();
    assert.throws(() => (cursor.seekRow('row02000'), cursor.value()), AssertionError);
    before = filled(byte);
    assert.ok([...memoriesOf(before, before.copyCursor())].filter((memory) => old.has(memory)).length > 5);
  }
  for (const { value, byte } of kept) assert.deepEqual(Buffer.from(value), Buffer.alloc(900, byte));
});
