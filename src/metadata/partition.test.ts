import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ALL_ROWS, type RowRange } from '../model/index.ts';
import { assertDisjoint, assertPartition } from './partition.ts';

type Bounds = readonly [string, string | undefined];
const ranges = (...bounds: readonly Bounds[]): RowRange[] => bounds.map(([start, end]) => ({ start, end }));

describe('ranges of a table', () => {
  test('that meet and leave nothing out make up the whole', () => {
    assertPartition(ranges(['', undefined]), ALL_ROWS);
    assertPartition(ranges(['', 'b'], ['b', 'd'], ['d', undefined]), ALL_ROWS);
    assertDisjoint(ranges(['', 'b'], ['c', 'd']));
    assertDisjoint([]);
  });

  test('with a gap, an overlap, an empty part or a part too few do not', () => {
    for (const wrong of [
      ranges(),
      ranges(['', 'b'], ['c', undefined]),
      ranges(['', 'c'], ['b', undefined]),
      ranges(['', 'b'], ['b', 'b'], ['b', undefined]),
      ranges(['', 'b'], ['b', 'd']),
      ranges(['a', undefined]),
    ])
      assert.throws(() => assertPartition(wrong, ALL_ROWS), /invariant broken/, JSON.stringify(wrong));
    const overlaps = ranges(['', undefined], ['b', undefined]);
    for (const wrong of [overlaps, ranges(['b', 'c'], ['a', 'b']), ranges(['b', 'a'])]) {
      assert.throws(() => assertDisjoint(wrong), /invariant broken/, JSON.stringify(wrong));
    }
  });
});
