import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { successor } from '../base/index.ts';
import {
  ALL_ROWS,
  intersectRanges,
  isEmptyRange,
  normalizeRanges,
  type RowRange,
  rangeContains,
  rangeOfRow,
} from './row-set.ts';

/** All keys of up to three letters of {NUL, a, 0xFF}: every bound below is one, so nothing can hide between. */
const LETTERS = ['\0', 'a', '\xff'];
const KEYS = LETTERS.reduce(
  (keys) => [...keys, ...keys.filter((key) => key.length < 3).flatMap((key) => LETTERS.map((letter) => key + letter))],
  [''],
);
const UNIVERSE = [...new Set(KEYS)];

const bounds = fc.constantFrom(...UNIVERSE.filter((key) => key.length <= 2));
const ranges: fc.Arbitrary<RowRange> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ start: bounds, end: fc.option(bounds, { nil: undefined }) }) },
  { weight: 1, arbitrary: bounds.map(rangeOfRow) },
);

describe('row ranges', () => {
  test('the range of a row holds that row alone', () => {
    assert.deepEqual(
      UNIVERSE.filter((key) => rangeContains(rangeOfRow('a'), key)),
      ['a'],
    );
    assert.deepEqual(rangeOfRow('a'), { start: 'a', end: successor('a') });
    assert.ok(UNIVERSE.every((key) => rangeContains(ALL_ROWS, key)));
  });

  test('empty: the end is not above the start', () => {
    assert.equal(isEmptyRange({ start: 'b', end: 'a' }), true);
    assert.equal(isEmptyRange({ start: 'a', end: 'a' }), true);
    assert.equal(isEmptyRange({ start: '', end: '' }), true);
    assert.equal(isEmptyRange({ start: 'a', end: 'a\0' }), false);
    assert.equal(isEmptyRange({ start: '\xff\xff', end: undefined }), false);
  });

  test('the common part of two holds what both hold', () => {
    fc.assert(
      fc.property(ranges, ranges, (a, b) => {
        const common = intersectRanges(a, b);
        for (const key of UNIVERSE)
          assert.equal(rangeContains(common, key), rangeContains(a, key) && rangeContains(b, key));
      }),
    );
  });
});

describe('normalizeRanges', () => {
  test('holds the same rows, in order, disjoint, not touching, none empty', () => {
    fc.assert(
      fc.property(fc.array(ranges, { maxLength: 8 }), (input) => {
        const frozen = Object.freeze(input.map((range) => Object.freeze(range)));
        const out = normalizeRanges(frozen);
        for (const key of UNIVERSE) {
          assert.equal(
            out.some((range) => rangeContains(range, key)),
            input.some((range) => rangeContains(range, key)),
            JSON.stringify(key),
          );
        }
        out.forEach((range, i) => {
          assert.equal(isEmptyRange(range), false);
          const before = out[i - 1];
          if (before) assert.ok(before.end !== undefined && before.end < range.start, 'apart from the one before');
        });
        assert.deepEqual(normalizeRanges(out), out);
      }),
      { numRuns: 1000 },
    );
  });

  test('ranges that touch become one; one without an end takes all after it', () => {
    assert.deepEqual(
      normalizeRanges([
        { start: 'b', end: 'c' },
        { start: 'a', end: 'b' },
      ]),
      [{ start: 'a', end: 'c' }],
    );
    assert.deepEqual(
      normalizeRanges([
        { start: 'a', end: undefined },
        { start: 'b', end: 'c' },
      ]),
      [{ start: 'a', end: undefined }],
    );
    assert.deepEqual(
      normalizeRanges([
        { start: 'a', end: 'z' },
        { start: 'b', end: 'c' },
      ]),
      [{ start: 'a', end: 'z' }],
    );
    assert.deepEqual(normalizeRanges([]), []);
  });
});
