import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { fromBytes, toBytes } from '../../base/index.ts';
import { isEmptyRange, LIMITS, normalizeRanges, rangeContains, type RowRange } from '../../model/index.ts';
import { checkReadRows } from '../../service/index.ts';
import { RowRangeSchema, RowSetSchema } from '../generated/google/bigtable/v2/data_pb.ts';
import { byteString, rowKey, rowRange } from './fixtures.ts';
import { rowKeyRangeOf, rowRangeOf } from './row-range.ts';
import { rowRangeMessage, rowSetMessage } from './row-set.ts';

type Ends = readonly [
  'startKeyClosed' | 'startKeyOpen' | undefined,
  string,
  'endKeyClosed' | 'endKeyOpen' | undefined,
  string,
];

function message([startCase, start, endCase, end]: Ends) {
  return create(RowRangeSchema, {
    ...(startCase && { startKey: { case: startCase, value: toBytes(start) } }),
    ...(endCase && { endKey: { case: endCase, value: toBytes(end) } }),
  });
}

describe('row sets', () => {
  test('a range comes back as it was', () => {
    fc.assert(
      fc.property(rowRange, (range) => {
        const back = rowRangeOf(fromBinary(RowRangeSchema, toBinary(RowRangeSchema, rowRangeMessage(range))));
        assert.deepEqual(back, range);
      }),
    );
  });

  test('a set comes back with the same rows, point reads as row keys', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            rowRange,
            rowKey.map((key) => rowKeyRangeOf(key, 0)),
          ),
          { maxLength: 6 },
        ),
        (ranges) => {
          const set = fromBinary(RowSetSchema, toBinary(RowSetSchema, rowSetMessage(ranges)));
          const back: RowRange[] = [
            ...set.rowKeys.map((key, i) => rowKeyRangeOf(fromBytes(key), i)),
            ...set.rowRanges.map((range) => rowRangeOf(range)),
          ];
          assert.deepEqual(normalizeRanges(back), normalizeRanges(ranges));
          assert.equal(back.length, ranges.length);
        },
      ),
    );
  });

  test('open and closed ends hold exactly the rows they should', () => {
    const side = fc.constantFrom('Closed' as const, 'Open' as const);
    fc.assert(
      fc.property(rowKey, rowKey, rowKey, side, side, (a, b, probe, startSide, endSide) => {
        const [start, end] = a < b ? [a, b] : [b, a];
        const range = rowRangeOf(message([`startKey${startSide}`, start, `endKey${endSide}`, end]));
        const above = startSide === 'Closed' ? probe >= start : probe > start;
        const below = endSide === 'Closed' ? probe <= end : probe < end;
        assert.equal(rangeContains(range, probe), above && below);
      }),
    );
  });

  const cases: readonly [string, Ends, RowRange][] = [
    ['nothing set: all rows', [undefined, '', undefined, ''], { start: '', end: undefined }],
    ['only a start', ['startKeyClosed', 'b', undefined, ''], { start: 'b', end: undefined }],
    ['an open start', ['startKeyOpen', 'b', undefined, ''], { start: 'b\0', end: undefined }],
    ['only an end', [undefined, '', 'endKeyOpen', 'c'], { start: '', end: 'c' }],
    ['a closed end', [undefined, '', 'endKeyClosed', 'c'], { start: '', end: 'c\0' }],
    ['an empty open end is no end', ['startKeyClosed', 'b', 'endKeyOpen', ''], { start: 'b', end: undefined }],
  ];
  test('empty bounds: an open end is none, a closed one holds nothing, a start is below every row', () => {
    const rows = ['\0', 'a', 'b', '\xff'];
    const held = (ends: Ends): string[] =>
      rows.filter((row) =>
        rangeContains(rowRangeOf(fromBinary(RowRangeSchema, toBinary(RowRangeSchema, message(ends)))), row),
      );
    for (const startCase of ['startKeyClosed', 'startKeyOpen', undefined] as const) {
      for (const start of startCase === undefined ? [''] : ['', 'a']) {
        const above = rows.filter((row) => (startCase === 'startKeyClosed' ? row >= start : row > start));
        assert.deepEqual(held([startCase, start, undefined, '']), above);
        assert.deepEqual(held([startCase, start, 'endKeyOpen', '']), above);
        assert.deepEqual(held([startCase, start, 'endKeyClosed', '']), []);
        const range = rowRangeOf(message([startCase, start, 'endKeyClosed', '']));
        checkReadRows({ table: 'projects/p/instances/i/tables/t', ranges: [range] }, LIMITS.cloud);
      }
    }
  });

  test('a range that holds nothing is never sent as one that has no end', () => {
    for (const range of [
      { start: '', end: '' },
      { start: 'k', end: 'k' },
    ])
      assert.ok(isEmptyRange(rowRangeOf(rowRangeMessage(range))));
    assert.throws(() => rowRangeMessage({ start: 'b', end: '' }), {
      code: 3,
      message: /starts at "b", above its end ""/,
    });
  });

  for (const [name, ends, expected] of cases) test(name, () => assert.deepEqual(rowRangeOf(message(ends)), expected));

  test('equal ends are empty unless both are closed; a start above its end is refused', () => {
    assert.ok(isEmptyRange(rowRangeOf(message(['startKeyClosed', 'k', 'endKeyOpen', 'k']))));
    assert.ok(isEmptyRange(rowRangeOf(message(['startKeyOpen', 'k', 'endKeyClosed', 'k']))));
    assert.ok(rangeContains(rowRangeOf(message(['startKeyClosed', 'k', 'endKeyClosed', 'k'])), 'k'));
    for (const start of ['startKeyClosed', 'startKeyOpen'] as const) {
      for (const end of ['endKeyClosed', 'endKeyOpen'] as const)
        assert.throws(() => rowRangeOf(message([start, 'l', end, 'k']), 3), { code: 3, message: /range 3/ });
    }
  });

  test('row keys hold one row and must not be empty', () => {
    fc.assert(
      fc.property(rowKey, byteString, (key, other) =>
        assert.equal(rangeContains(rowKeyRangeOf(key, 0), other), key === other),
      ),
    );
    assert.throws(() => rowKeyRangeOf('', 7), { code: 3, message: /row key 7/ });
  });
});
