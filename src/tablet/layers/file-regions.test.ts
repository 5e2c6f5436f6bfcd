import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { ByteString } from '../../base/index.ts';
import { ANYWHERE, FileRegions, type RowExtent } from './file-regions.ts';

const ROWS = [...'abcdefgh'];
const extent = fc.option(
  fc
    .tuple(fc.nat(ROWS.length - 1), fc.nat(ROWS.length - 1))
    .map(([a, b]): RowExtent => ({ firstRow: ROWS[Math.min(a, b)], lastRow: ROWS[Math.max(a, b)] })),
  { nil: ANYWHERE },
);

function mayHold({ firstRow, lastRow }: RowExtent, row: ByteString): boolean {
  return firstRow === undefined || lastRow === undefined || (firstRow <= row && row <= lastRow);
}

describe('the regions of files', () => {
  test('list for each row, and for those between, the files that may hold it, in their order', () => {
    const between = ROWS.flatMap((row) => [row, `${row}!`]);
    fc.assert(
      fc.property(fc.array(extent, { maxLength: 12 }), (files) => {
        const regions = new FileRegions(files);
        const byRegion = regions.filesByRegion(files);
        assert.equal(byRegion.length, regions.count);
        for (const row of ['', ...between, 'z'])
          assert.deepEqual(
            byRegion[regions.regionOf(row)],
            files.filter((file) => mayHold(file, row)),
            row,
          );
      }),
    );
  });

  test('count the files that overlap', () => {
    fc.assert(
      fc.property(fc.array(extent, { maxLength: 12 }), (files) => {
        const rows = ['', ...ROWS];
        assert.equal(
          new FileRegions(files).depth(),
          Math.max(...rows.map((row) => files.filter((file) => mayHold(file, row)).length)),
        );
      }),
    );
    assert.equal(
      new FileRegions([
        { firstRow: 'a', lastRow: 'b' },
        { firstRow: 'b', lastRow: 'c' },
      ]).depth(),
      2,
      'both have the row between them',
    );
    assert.equal(
      new FileRegions([
        { firstRow: 'a', lastRow: 'b' },
        { firstRow: 'c', lastRow: 'd' },
      ]).depth(),
      1,
    );
  });
});
