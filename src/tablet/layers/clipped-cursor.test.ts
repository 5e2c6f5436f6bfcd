/** A clipped cursor moves like one over the list of the entries that lie in its ranges. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ListCursor } from '../../../test/list-cursor.ts';
import { columnKey, CursorState, EntryKind, normalizeRanges, rangeContains } from '../../model/index.ts';
import { ClippedCursor } from './clipped-cursor.ts';

const COLUMNS = ['', 'p', 'q'].map((qualifier) => columnKey('f', qualifier)).sort();

const CELL = { kind: EntryKind.put, timestamp: 0, value: Buffer.alloc(0) };

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
    async (rows, clips, steps, isLazy) => {
      const cells = rows.sort().flatMap((row) => COLUMNS.map((column) => ({ ...CELL, row, column })));
      let moves = 0;
      const clipped = new ClippedCursor(new ListCursor(cells, () => isLazy && moves++ % 3 === 0), clips);
      const plain = new ListCursor(cells.filter((cell) => clips.some((clip) => rangeContains(clip, cell.row))));
      for (const one of steps) {
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
