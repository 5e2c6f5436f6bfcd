import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AssertionError, CorruptionError, type ByteString, successor } from '../base/index.ts';
import { rangeContains, type RowRange } from '../model/index.ts';
import {
  boundaryAfter,
  dividesTablet,
  keyBeforeBoundary,
  keysOfTable,
  lookupKey,
  METADATA_TABLE_ID,
  metadataKey,
  parseMetadataKey,
  ROOT_KEY,
  ROOT_RANGE,
  USER_RANGE,
} from './keys.ts';

/** Byte strings with many of the bytes that matter to the encoding. */
const row: fc.Arbitrary<ByteString> = fc
  .array(fc.oneof(fc.constantFrom(0, 1, 2, 0x30, 0x61, 0xff), fc.integer({ min: 0, max: 255 })), { maxLength: 12 })
  .map((bytes) => String.fromCharCode(...bytes));
const tableId = fc.integer({ min: 0, max: 0xffff_ffff }).map((id) => id.toString(16).padStart(8, '0'));

/** The tablets of a table that ends at these rows, and without end. */
function tabletsOf(ends: readonly ByteString[]): RowRange[] {
  const cuts = [...new Set(ends)].sort();
  return [...cuts, undefined].map((end, i) => ({ start: i === 0 ? '' : cuts[i - 1]!, end }));
}

describe('keys of METADATA', () => {
  test('a key names table and end', () => {
    fc.assert(
      fc.property(tableId, fc.option(row, { nil: undefined }), (id, end) => {
        assert.deepEqual(parseMetadataKey(metadataKey(id, end)), { tableId: id, end });
      }),
    );
  });

  test('keys order as tablets do, tables by id, the last tablet last', () => {
    fc.assert(
      fc.property(
        tableId,
        tableId,
        fc.option(row, { nil: undefined }),
        fc.option(row, { nil: undefined }),
        (a, b, endA, endB) => {
          const expected = a !== b ? a < b : endA !== undefined && (endB === undefined || endA < endB);
          assert.equal(metadataKey(a, endA) < metadataKey(b, endB), expected);
        },
      ),
    );
  });

  test('the tablet of a row is the first above its look-up key', () => {
    fc.assert(
      fc.property(
        tableId,
        fc.uniqueArray(
          row.filter((key) => key !== ''),
          { maxLength: 8 },
        ),
        row,
        (id, splits, wanted) => {
          const ends = [...splits.sort(), undefined];
          const keys = ends.map((end) => metadataKey(id, end));
          const found = keys.find((key) => key > lookupKey(id, wanted));
          const expected = ends.findIndex((end, i) =>
            rangeContains({ start: i === 0 ? '' : (ends[i - 1] as string), end }, wanted),
          );
          assert.equal(found, keys[expected]);
        },
      ),
    );
  });

  test('the boundary after a row divides no tablet, however tablets are split later; any other place may', () => {
    const tables = fc.dictionary(tableId, fc.uniqueArray(row.filter((key) => key !== '')), { minKeys: 1, maxKeys: 3 });
    fc.assert(
      fc.property(tables, fc.nat(), fc.array(row), (cuts, index, later) => {
        const tablets = Object.entries(cuts).flatMap(([id, ends]) => tabletsOf(ends).map((range) => ({ id, range })));
        const keys = tablets.map(({ id, range }) => metadataKey(id, range.end)).sort();
        const key = keys[index % keys.length]!;
        fc.pre(!key.startsWith(METADATA_TABLE_ID));
        const boundary = boundaryAfter(key);
        assert.equal(keyBeforeBoundary(boundary), key);
        for (const { id, range } of tablets) {
          assert.ok(!dividesTablet(boundary, id, range));
          const parts = tabletsOf([...(cuts[id] ?? []), ...later.filter((at) => at !== '')]);
          for (const part of parts) {
            assert.ok(!dividesTablet(boundary, id, part));
            // both rows of the split that made it
            if (rangeContains(range, part.start) && part.end !== undefined)
              assert.equal(metadataKey(id, part.end) < boundary, metadataKey(id, range.end) < boundary);
          }
        }
        const above = keys.find((one) => one > boundary);
        if (above === undefined) return;
        const { tableId: id, end } = parseMetadataKey(above);
        const range = tablets.find((one) => one.id === id && one.range.end === end)!.range;
        const wide = end === undefined || end > successor(successor(range.start));
        for (const wrong of [above, successor(boundary)])
          if (wrong > boundary && wrong <= above && wide && wrong > successor(lookupKey(id, range.start)))
            assert.ok(dividesTablet(wrong, id, range));
      }),
    );
    for (const wrong of ['00000010\0m', `${metadataKey(METADATA_TABLE_ID, 'x')}\0`])
      assert.throws(() => keyBeforeBoundary(wrong), AssertionError);
    assert.throws(() => keyBeforeBoundary('x\0'), CorruptionError);
    assert.throws(() => boundaryAfter(metadataKey(METADATA_TABLE_ID, 'x')), AssertionError);
  });

  test('all keys of a table, and no others, are in its range', () => {
    fc.assert(
      fc.property(tableId, tableId, fc.option(row, { nil: undefined }), (id, other, end) => {
        assert.equal(rangeContains(keysOfTable(id), metadataKey(other, end)), id === other);
      }),
    );
  });

  test('the root tablet holds the rows of METADATA and no others, nor its own row', () => {
    assert.ok(rangeContains(ROOT_RANGE, metadataKey(METADATA_TABLE_ID, undefined)));
    assert.ok(rangeContains(USER_RANGE, metadataKey('00000010', '')));
    assert.ok(!rangeContains(ROOT_RANGE, metadataKey('00000001', '')));
    assert.deepEqual(parseMetadataKey(ROOT_KEY), { tableId: METADATA_TABLE_ID, end: ROOT_RANGE.end });
    assert.equal(ROOT_RANGE.end, USER_RANGE.start);
  });

  test('an invalid key is refused', () => {
    for (const key of ['', '0000001', '0000001g\0', '00000010', '00000010\x02', '00000010\x01x', 'XXXXXXXX\0'])
      assert.throws(() => parseMetadataKey(key), CorruptionError);
    assert.throws(() => metadataKey('10', undefined), /eight hexadecimal digits/);
  });

  test('an invalid table id makes no key', () => {
    for (const id of ['', '10', 'projects/p/instances/i/tables/t']) {
      for (const make of [() => metadataKey(id, undefined), () => lookupKey(id, 'r'), () => keysOfTable(id)]) {
        assert.throws(make, AssertionError);
      }
    }
  });
});
