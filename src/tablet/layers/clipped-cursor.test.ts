/** A clipped cursor moves like one over the list of those entries that lie in its ranges. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type ColumnKey,
  columnKey,
  CursorState,
  EntryKind,
  type LayerCursor,
  normalizeRanges,
  rangeContains,
} from '../../model/index.ts';
import { ClippedCursor } from './clipped-cursor.ts';

interface Cell {
  readonly row: string;
  readonly column: ColumnKey;
}

const COLUMNS = ['', 'p', 'q'].map((qualifier) => columnKey('f', qualifier)).sort();

/** Over a sorted list; every second move needs a load first, as an SSTable's does. */
class ListCursor implements LayerCursor {
  state: CursorState = CursorState.done;
  readonly kind = EntryKind.put;
  readonly timestamp = 0 as unknown as LayerCursor['timestamp'];
  readonly rangeEnd = undefined;
  readonly valueLength = 0;
  readonly #cells: readonly Cell[];
  readonly #isLazy: boolean;
  #at = 0;
  #moves = 0;

  constructor(cells: readonly Cell[], isLazy: boolean) {
    this.#cells = cells;
    this.#isLazy = isLazy;
  }

  get row(): string {
    return this.#cells[this.#at]?.row ?? assert.fail('no entry');
  }

  get column(): ColumnKey {
    return this.#cells[this.#at]?.column ?? assert.fail('no entry');
  }

  value(): Uint8Array {
    return new Uint8Array();
  }

  seekRow(row: string): void {
    this.#to(this.#cells.findIndex((cell) => cell.row >= row));
  }

  seekRowBefore(row: string | undefined): void {
    const last = this.#cells.findLast((cell) => row === undefined || cell.row < row);
    this.#to(last === undefined ? -1 : this.#cells.findIndex((cell) => cell.row === last.row));
  }

  seekColumn(column: ColumnKey): void {
    const { row } = this;
    this.#to(this.#cells.findIndex((cell, i) => i >= this.#at && (cell.row > row || cell.column >= column)));
  }

  next(): void {
    this.#to(this.#at + 1 < this.#cells.length ? this.#at + 1 : -1);
  }

  async load(): Promise<void> {
    this.state = CursorState.ready;
  }

  close(): void {}

  #to(at: number): void {
    this.#at = at;
    this.state =
      at < 0 ? CursorState.done : this.#isLazy && this.#moves++ % 2 === 0 ? CursorState.needsLoad : CursorState.ready;
  }
}

const row = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 2 });
const move = fc.oneof(
  fc.record({ kind: fc.constant('seekRow' as const), row }),
  fc.record({ kind: fc.constant('seekRowBefore' as const), row: fc.option(row, { nil: undefined }) }),
  fc.record({ kind: fc.constant('seekColumn' as const), column: fc.constantFrom(...COLUMNS) }),
  fc.constant({ kind: 'next' as const }),
);
const ranges = fc
  .array(fc.record({ start: row, end: fc.option(row, { nil: undefined }) }), { maxLength: 4 })
  .map((some) => normalizeRanges(some.filter(({ start, end }) => end === undefined || start < end)));

test('a clipped cursor moves like one over a filtered list', async () => {
  const property = fc.asyncProperty(
    fc.uniqueArray(row),
    ranges,
    fc.array(move, { minLength: 1, maxLength: 30 }),
    fc.boolean(),
    async (rows, clips, moves, isLazy) => {
      const cells = rows.sort().flatMap((row) => COLUMNS.map((column) => ({ row, column })));
      const clipped = new ClippedCursor(new ListCursor(cells, isLazy), clips);
      const plain = new ListCursor(
        cells.filter((cell) => clips.some((clip) => rangeContains(clip, cell.row))),
        false,
      );
      for (const one of moves) {
        if ((one.kind === 'next' || one.kind === 'seekColumn') && plain.state === CursorState.done) continue;
        for (const cursor of [clipped, plain]) {
          if (one.kind === 'seekRow') cursor.seekRow(one.row);
          else if (one.kind === 'seekRowBefore') cursor.seekRowBefore(one.row);
          else if (one.kind === 'seekColumn') cursor.seekColumn(one.column);
          else cursor.next();
        }
        while (clipped.state === CursorState.needsLoad) await clipped.load();
        assert.equal(clipped.state, plain.state);
        if (plain.state === CursorState.ready)
          assert.deepEqual([clipped.row, clipped.column], [plain.row, plain.column]);
      }
    },
  );
  await fc.assert(property, { numRuns: 500 });
});
