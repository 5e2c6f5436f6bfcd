import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ListCursor } from '../../../test/list-cursor.ts';
import type { Int64 } from '../../base/index.ts';
import { Memtable } from '../../memtable/index.ts';
import {
  type ColumnKey,
  columnKey,
  compareEntries,
  CursorState,
  type Entry,
  EntryKind,
  type Layer,
  type Mutation,
} from '../../model/index.ts';
import { cursorOver } from './one-row-cursor.ts';
import { layersOfNewest } from './newest-layer.ts';

const ROW = 'b';
const COLUMN = columnKey('f', 'q');
const none = (): undefined => undefined;

const set = (timestamp: number, value = '', qualifier = 'q'): Mutation => ({
  kind: 'setCell',
  family: 'f',
  qualifier,
  timestamp,
  value: Buffer.from(value),
});

class File implements Layer {
  readonly group = 'default';
  readonly maxTimestamp: Int64 | undefined;
  readonly #entries: readonly Entry[];
  reads = 0;

  constructor(entries: readonly Entry[], isDated = true) {
    this.#entries = entries;
    const cells = entries.filter(({ kind }) => kind >= EntryKind.put).map(({ timestamp }) => timestamp as number);
    this.maxTimestamp = isDated && cells.length > 0 ? Math.max(...cells) : undefined;
  }

  rowRangeDeletions(): readonly [] {
    return [];
  }

  mayContainRows(): boolean {
    return true;
  }

  cursor(): ListCursor {
    return new ListCursor(this.#entries);
  }

  rowCursor(row: string): ListCursor {
    this.reads++;
    return new ListCursor(this.#entries.filter((entry) => entry.row === row));
  }
}

function memtableOf(...mutations: Mutation[]): Memtable {
  const memtable = new Memtable();
  memtable.apply(ROW, mutations, none);
  return memtable;
}

const put = (timestamp: number, value: string, column: ColumnKey = COLUMN): Entry => ({
  row: ROW,
  column,
  kind: EntryKind.put,
  timestamp,
  value: Buffer.from(value),
});

function newestOf(layers: readonly Layer[]): string | undefined {
  const cursor = cursorOver(layers, ROW, none);
  cursor.seekRow(ROW);
  if (cursor.state === CursorState.ready && cursor.column < COLUMN) cursor.seekColumn(COLUMN);
  const found =
    cursor.state === CursorState.ready && cursor.column === COLUMN
      ? `${cursor.timestamp}=${Buffer.from(cursor.value()).toString()}`
      : undefined;
  cursor.close();
  return found;
}

describe('the layers of the newest cell', () => {
  test('are the memtable alone where its cell is not older than any cell below', () => {
    const memtable = memtableOf(set(5, 'new'));
    assert.deepEqual(layersOfNewest([memtable, new File([put(5, 'old')]), new File([put(3, 'older')])], ROW, COLUMN), [
      memtable,
    ]);
    const without = memtableOf(set(9, 'other', 'p'));
    assert.deepEqual(layersOfNewest([without, memtable, new File([put(5, 'old')])], ROW, COLUMN), [memtable]);
  });

  test('are all where a cell below may be newer, and no file is searched for that', () => {
    const file = new File([put(6, 'old')]);
    const undated = new File([put(3, 'old')], false);
    for (const layers of [
      [memtableOf(set(5)), file],
      [memtableOf(set(5)), undated],
      [memtableOf(set(9, '', 'p')), file],
      [memtableOf({ kind: 'deleteFromRow' }), memtableOf(set(5)), new File([put(3, 'old')])],
      [file, new File([put(3, 'old')])],
    ]) {
      assert.equal(layersOfNewest(layers, ROW, COLUMN), layers);
    }
    assert.deepEqual([file.reads, undated.reads], [0, 0]);
  });

  test('have the same newest cell as all layers', () => {
    const timestamp = fc.nat(6);
    const qualifier = fc.constantFrom('p', 'q', 'r');
    const mutation = fc.oneof(
      { weight: 12, arbitrary: fc.tuple(timestamp, qualifier).map(([at, name]) => set(at, 'm', name)) },
      { weight: 1, arbitrary: fc.constant<Mutation>({ kind: 'deleteFromRow' }) },
      { weight: 1, arbitrary: fc.constant<Mutation>({ kind: 'deleteFromColumn', family: 'f', qualifier: 'q' }) },
    );
    const entry = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.tuple(timestamp, qualifier).map(([at, name]): Entry => put(at, 'f', columnKey('f', name))),
      },
      {
        weight: 1,
        arbitrary: fc.constant<Entry>({
          row: ROW,
          column: COLUMN,
          kind: EntryKind.columnDeletion,
          timestamp: 0,
          value: Buffer.alloc(0),
        }),
      },
    );
    const file = fc.tuple(fc.array(entry, { maxLength: 3 }), fc.nat(4)).map(([entries, undated]) => {
      const sorted = entries.toSorted(compareEntries);
      return new File(
        sorted.filter((each, i) => i === 0 || compareEntries(sorted[i - 1] as Entry, each) < 0),
        undated > 0,
      );
    });
    const memtables = fc.array(fc.array(mutation, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 2 });
    let alone = 0;
    fc.assert(
      fc.property(memtables, fc.array(file, { minLength: 1, maxLength: 2 }), (written, files) => {
        const all: Layer[] = [
          ...written.map((mutations, age) =>
            memtableOf(
              ...mutations.map((each) => ('value' in each ? { ...each, value: Buffer.from(`${age}`) } : each)),
            ),
          ),
          ...files,
        ];
        const needed = layersOfNewest(all, ROW, COLUMN);
        if (needed.length === 1 && all.length > 1) alone++;
        assert.equal(newestOf(needed), newestOf(all));
      }),
      { numRuns: 2000 },
    );
    assert.ok(alone > 50, `${alone}`);
  });
});
