import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ListCursor } from '../../../test/list-cursor.ts';
import { Memtable } from '../../memtable/index.ts';
import {
  columnKey,
  compareEntries,
  CursorState,
  type Entry,
  EntryKind,
  type Layer,
  type Mutation,
} from '../../model/index.ts';
import { MergeCursor, type RowsCursor } from './merge-cursor.ts';
import { cursorOver } from './one-row-cursor.ts';
import { PutMerge } from './put-merge.ts';

const ROW = 'b';
const none = (): undefined => undefined;

/** Puts of the row and of its neighbours; the value names the layer. */
class PutLayer implements Layer {
  readonly group: string;
  readonly hasOnlyPuts = true;
  readonly #entries: readonly Entry[];
  readonly #lazy: () => boolean;

  constructor(
    age: number,
    cells: readonly (readonly [row: string, column: string, timestamp: number])[],
    lazy: () => boolean,
  ) {
    this.group = `group${age % 2}`;
    this.#lazy = lazy;
    this.#entries = cells
      .map(([row, column, timestamp]) => ({
        row,
        column,
        kind: EntryKind.put,
        timestamp,
        value: Buffer.from(`${age}`),
      }))
      .sort(compareEntries);
  }

  rowRangeDeletions(): readonly [] {
    return [];
  }

  mayContainRows(): boolean {
    return true;
  }

  cursor(): ListCursor {
    return new ListCursor(this.#entries, this.#lazy);
  }

  rowCursor(row: string): ListCursor {
    return new ListCursor(
      this.#entries.filter((entry) => entry.row === row),
      this.#lazy,
    );
  }
}

const column = fc.constantFrom('f\0a', 'f\0b', 'g\0a');
const timestamp = fc.nat(3);
const layerCells = fc.uniqueArray(fc.tuple(fc.constantFrom('a', ROW, ROW, ROW, 'c'), column, timestamp), {
  selector: (cell) => cell.join(),
  maxLength: 12,
});
const move = fc.oneof(
  fc.constant(undefined),
  fc.record({ column, timestamp: fc.option(timestamp, { nil: undefined }) }),
);

/** The cells that a reader of the row sees which makes these moves. */
async function seen(
  cursor: RowsCursor,
  moves: readonly (typeof move extends fc.Arbitrary<infer M> ? M : never)[],
): Promise<string[]> {
  const cells: string[] = [];
  cursor.seekRow(ROW);
  for (const each of [...moves, ...new Array<undefined>(100)]) {
    while (cursor.state === CursorState.needsLoad) await cursor.load();
    if (cursor.state === CursorState.done || cursor.row !== ROW) break;
    cells.push(`${cursor.column}@${cursor.timestamp}=${Buffer.from(cursor.value()).toString()}`);
    if (each === undefined) cursor.next();
    else cursor.seekColumn(each.column, each.timestamp);
  }
  cursor.close();
  return cells;
}

describe('a row of several layers of nothing but puts', () => {
  test('is what the merge of all rules makes of it, whatever the moves and the loads', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(layerCells, { minLength: 2, maxLength: 4 }),
        fc.array(move, { maxLength: 6 }),
        fc.infiniteStream(fc.boolean()),
        async (layers, moves, loads) => {
          const lazy = (): boolean => loads.next().value as boolean;
          const list = layers.map((cells, age) => new PutLayer(age, cells, lazy));
          const cursor = cursorOver(list, ROW, none);
          assert.ok(cursor instanceof PutMerge);
          assert.deepEqual(await seen(cursor, moves), await seen(new MergeCursor(list, { aggregateOf: none }), moves));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('is seen as of the seek, whatever the memtable gets later', () => {
    const set = (value: string): Mutation => ({
      kind: 'setCell',
      family: 'f',
      qualifier: 'q',
      timestamp: 1,
      value: Buffer.from(value),
    });
    const newer = new Memtable();
    const older = new Memtable();
    newer.apply(ROW, [set('new')], none);
    older.apply(ROW, [set('old'), { ...set('old'), qualifier: 'r' } as Mutation], none);
    const cursor = cursorOver([newer, older], ROW, none);
    assert.ok(cursor instanceof PutMerge);
    cursor.seekRow(ROW);
    newer.apply(ROW, [{ kind: 'deleteFromRow' }], none);
    assert.equal(newer.hasOnlyPuts, false);
    assert.deepEqual([cursor.column, Buffer.from(cursor.value()).toString()], [columnKey('f', 'q'), 'new']);
    cursor.next();
    assert.deepEqual([cursor.column, Buffer.from(cursor.value()).toString()], [columnKey('f', 'r'), 'old']);
    cursor.next();
    assert.equal(cursor.state, CursorState.done);
    cursor.close();
  });

  for (const [name, change] of [
    ['a deletion', (memtable: Memtable) => memtable.apply('z', [{ kind: 'deleteFromRow' }], none)],
    ['a deleted range of rows', (memtable: Memtable) => memtable.dropRows({ start: 'x', end: 'y' })],
    [
      'a merge operand',
      (memtable: Memtable) =>
        memtable.apply('z', [{ kind: 'addToCell', family: 's', qualifier: '', timestamp: 1, input: 1 }], () => 'sum'),
    ],
  ] as const) {
    test(`${name} in a layer is left to the merge of all rules`, () => {
      const layers = [new Memtable(), new Memtable()];
      assert.ok(cursorOver(layers, ROW, none) instanceof PutMerge);
      change(layers[1]!);
      assert.ok(cursorOver(layers, ROW, none) instanceof MergeCursor);
    });
  }
});
