import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AssertionError } from '../base/index.ts';
import { METADATA_TABLE_ID } from '../metadata/index.ts';
import { rangeContains } from '../model/index.ts';
import { type AssignedTablet, LocationCache } from './location-cache.ts';

const location = (start: string, end: string | undefined, tableId = '00000010', epoch = 1): AssignedTablet => ({
  tableId,
  range: { start, end },
  server: { name: 's', address: 's' },
  epoch,
  version: 1,
  commitId: '',
});

const key = fc.stringMatching(/^[a-e]{0,2}$/);
const location$ = fc
  .tuple(key, fc.option(key, { nil: undefined }), fc.nat())
  .filter(([start, end]) => end === undefined || start < end)
  .map(([start, end, epoch]) => location(start, end, '00000010', epoch));

describe('the cache of locations', () => {
  test('the location of a row learnt last is found, and none that it replaced', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            location$.map((added) => ({ added })),
            fc.nat(20).map((dropped) => ({ dropped })),
          ),
          { maxLength: 30 },
        ),
        key,
        (steps, row) => {
          const cache = new LocationCache(1000);
          let known: AssignedTablet[] = [];
          for (const change of steps) {
            if ('added' in change) {
              const { start, end } = change.added.range;
              known = known.filter(
                ({ range }) =>
                  (range.end !== undefined && range.end <= start) || (end !== undefined && end <= range.start),
              );
              known.push(change.added);
              cache.add(change.added);
            } else {
              const dropped = known[change.dropped % Math.max(known.length, 1)];
              if (dropped === undefined) continue;
              known = known.filter((one) => one !== dropped);
              cache.drop(dropped);
            }
          }
          assert.equal(cache.entries, known.length);
          assert.equal(
            cache.find('00000010', row),
            known.find(({ range }) => rangeContains(range, row)),
          );
          const before = known.find(({ range }) => range.start < row && (range.end === undefined || range.end >= row));
          assert.equal(cache.findBefore('00000010', row), before);
          assert.equal(
            cache.findBefore('00000010', undefined),
            known.find(({ range }) => range.end === undefined),
          );
          assert.equal(cache.find('00000011', row), undefined);
        },
      ),
    );
  });

  test('it stays within its limit, and keeps METADATA', () => {
    const cache = new LocationCache(10);
    cache.add(location('', undefined, METADATA_TABLE_ID));
    for (let table = 0x10; table < 0x30; table++) {
      for (let i = 0; i < 3; i++) cache.add(location(`${i}`, `${i + 1}`, table.toString(16).padStart(8, '0')));
      assert.ok(cache.entries <= 10);
    }
    assert.ok(cache.find(METADATA_TABLE_ID, 'x'));
    assert.ok(cache.find('0000002f', '1'));
    assert.equal(cache.find('00000010', '1'), undefined);
    for (let i = 0; i < 100; i++) cache.add(location(String(i).padStart(3, '0'), String(i + 1).padStart(3, '0')));
    assert.ok(cache.entries <= 10);
    assert.ok(cache.find('00000010', '099x'));
  });

  test('a stale location that was replaced meanwhile is not dropped again', () => {
    const cache = new LocationCache(10);
    const [old, now] = [location('a', 'b'), location('a', 'b')];
    cache.add(old);
    cache.add(now);
    cache.drop(old);
    assert.equal(cache.find('00000010', 'a'), now);
  });

  test('METADATA itself is evicted if it is larger than the cache', () => {
    const cache = new LocationCache(3);
    for (let i = 0; i < 3; i++) cache.add(location(`${i}`, `${i + 1}`, METADATA_TABLE_ID));
    cache.add(location('a', 'b'));
    assert.ok(cache.entries <= 3);
    assert.ok(cache.find('00000010', 'a'));
  });

  test('a cache without space, and entries that have changed, are bugs', () => {
    assert.throws(() => new LocationCache(0), AssertionError);
    const cache = new LocationCache(10);
    const [low, high] = [location('a', 'b'), location('b', 'c')];
    for (const one of [low, high]) cache.add(one);
    cache.assertConsistent();
    Object.assign(high.range, { start: 'aa' });
    assert.throws(() => cache.assertConsistent(), /overlap/);
    Object.assign(high.range, { start: 'b' });
    Object.assign(low, { tableId: '00000011' });
    assert.throws(() => cache.assertConsistent(), /a location is kept under its own table/);
  });
});
