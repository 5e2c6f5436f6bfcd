import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CellBatchBuilder } from './cell-batch.ts';
import { columnAt, mutationList } from './cell-run.ts';
import { setCell } from './mutation.ts';

/** Cells as text: family, qualifier and value, one after the other, each of the given length. */
const cell = fc.record({
  family: fc.constantFrom('f', 'g', 'family'),
  qualifier: fc.oneof(
    fc.constantFrom('', 'a', 'b'),
    fc.string({ unit: fc.constantFrom('a', 'b', '\xff'), maxLength: 6 }),
  ),
  value: fc.constantFrom('', 'value'),
});

test('a run has the cells that were gathered, of few columns and of many', () => {
  fc.assert(
    fc.property(fc.array(cell, { maxLength: 300 }), fc.nat(50), (cells, dropped) => {
      const bytes = Buffer.from(
        cells.map(({ family, qualifier, value }) => family + qualifier + value).join(''),
        'latin1',
      );
      const builder = new CellBatchBuilder(bytes);
      const gather = (): void => {
        let at = 0;
        for (const [i, { family, qualifier, value }] of cells.entries()) {
          const middle = at + family.length;
          const end = middle + qualifier.length;
          if (!builder.toColumn(at, middle, middle, end)) builder.addColumn(builder.familyOfNew() ?? family, middle);
          builder.add(i % 3 === 0 ? undefined : i, end, end + value.length);
          at = end + value.length;
        }
      };
      gather();
      builder.dropFrom(Math.min(dropped, cells.length));
      const from = builder.count;
      gather();
      const run = builder.runFrom(from);
      assert.deepEqual(
        mutationList(run).map((mutation) => ({ ...mutation })),
        cells.map(({ family, qualifier, value }, i) => ({
          ...setCell(family, qualifier, i % 3 === 0 ? undefined : i, Buffer.from(value)),
        })),
      );
    }),
  );
});

test('each of few columns is one object, wherever it recurs', () => {
  const names = Array.from({ length: 30 }, (_, i) => `f${String(i % 10).padStart(2, '0')}`);
  const builder = new CellBatchBuilder(Buffer.from(names.join('')));
  for (let i = 0; i < names.length; i++) {
    const at = i * 3;
    const isKnown = builder.toColumn(at, at + 1, at + 1, at + 3);
    assert.equal(isKnown, i >= 10);
    if (!isKnown) builder.addColumn('f', at + 1);
    builder.add(i, 0, 0);
  }
  const run = builder.runFrom(0);
  for (let i = 0; i < 20; i++) assert.equal(columnAt(run, i), columnAt(run, i + 10));
});
