import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ALL_ROWS, type RowRange } from '../model/index.ts';
import { METADATA_TABLE_ID, USER_RANGE } from './keys.ts';
import type { TabletLocation } from './metadata-row.ts';
import { assertDisjoint, assertPartition, continues } from './partition.ts';

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

describe('tablets that a scan reads one after another', () => {
  const tablet = (tableId: string, [start, end]: Bounds): TabletLocation => ({
    tableId,
    range: { start, end },
    server: undefined,
    epoch: 1,
    version: 1,
    commitId: 'c',
  });

  test('meet, and those of a table begin at its first row', () => {
    const [low, high] = [tablet('00000010', ['', 't']), tablet('00000010', ['t', undefined])];
    assert.ok(continues(low, undefined));
    assert.ok(continues(high, low));
    assert.ok(continues(tablet('00000011', ['', undefined]), high));
    assert.ok(continues(tablet(METADATA_TABLE_ID, [USER_RANGE.start, undefined]), undefined));
  });

  test('leave a gap where a merge and a split came between the reads of two', () => {
    const [low, high] = [tablet('00000010', ['', 'k']), tablet('00000010', ['t', undefined])];
    assert.ok(!continues(high, low));
    assert.ok(!continues(high, undefined));
    assert.ok(!continues(tablet('00000011', ['t', undefined]), high));
  });
});
