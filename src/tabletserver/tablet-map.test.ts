import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { metadataKey } from '../metadata/index.ts';
import { rangeContains } from '../model/index.ts';
import { type ServedTablet, TabletMap } from './tablet-map.ts';

/** The map reads nothing of the tablet itself. */
const served = (tableId: string, start: string, end: string | undefined): ServedTablet => ({
  key: metadataKey(tableId, end),
  tableId,
  range: { start, end },
  epoch: 1,
  tablet: undefined as never,
  host: undefined as never,
  countedBytes: 0,
  requests: 0,
});

describe('the map of tablets', () => {
  test('finds the tablet of every row while tablets come and go', () => {
    const cuts = ['', 'b', 'd', 'f', 'h'];
    const all = ['00000010', '00000011'].flatMap((id) => cuts.map((start, i) => served(id, start, cuts[i + 1])));
    fc.assert(
      fc.property(
        fc.array(fc.nat(all.length - 1), { maxLength: 40 }),
        fc.stringMatching(/^[a-i]{0,2}$/),
        (steps, row) => {
          const map = new TabletMap();
          const there = new Set<ServedTablet>();
          for (const step of steps) {
            const one = all[step] as ServedTablet;
            if (there.delete(one)) {
              map.delete(one);
            } else {
              there.add(one);
              map.add(one);
            }
          }
          assert.equal(map.size, there.size);
          assert.deepEqual(new Set(map.all()), there);
          for (const id of ['00000010', '00000011']) {
            assert.equal(
              map.find(id, row),
              [...there].find((one) => one.tableId === id && rangeContains(one.range, row)),
            );
          }
          for (const one of all) assert.equal(map.get(one.key), there.has(one) ? one : undefined);
        },
      ),
    );
  });

  test('two tablets for one row are a bug that is found', () => {
    const map = new TabletMap();
    map.add(served('00000010', 'b', 'd'));
    for (const [start, end] of [
      ['', 'c'],
      ['c', 'cc'],
      ['c', undefined],
      ['', undefined],
    ] as const) {
      assert.throws(
        () => map.add(served('00000010', start, end)),
        /a tablet lies (above|below) the one (before|after) it/,
      );
    }
    map.add(served('00000010', '', 'b'));
    map.add(served('00000010', 'd', undefined));
    map.add(served('00000011', '', undefined));
    assert.equal(map.size, 4);
  });

  test('deleting a missing tablet does nothing', () => {
    const map = new TabletMap();
    const [one, other] = [served('00000010', '', undefined), served('00000010', '', undefined)];
    map.add(one);
    map.delete(other);
    assert.equal(map.find('00000010', 'x'), one);
  });

  test('a tablet that is served twice, or under the key of another, is a bug', () => {
    const map = new TabletMap();
    map.add(served('00000010', 'b', 'd'));
    assert.throws(() => map.add(served('00000010', 'a', 'd')), /a tablet is served once/);
    assert.throws(
      () => map.add({ ...served('00000010', '', 'b'), key: metadataKey('00000010', 'x') }),
      /a tablet is served under its own key/,
    );
    assert.equal(map.size, 1);
  });

  test('changes of tablets that bypass the map are found', () => {
    const map = new TabletMap();
    const [low, high] = [served('00000010', '', 'b'), served('00000010', 'b', undefined)];
    for (const one of [low, high]) map.add(one);
    map.assertConsistent();
    Object.assign(low.range, { end: 'c' });
    assert.throws(() => map.assertConsistent(), /overlap/);
    Object.assign(low.range, { end: 'b' });
    Object.assign(low, { key: high.key });
    assert.throws(() => map.assertConsistent(), /a tablet known by its range is known by its key/);
    Object.assign(low, { key: metadataKey('00000010', 'b'), tableId: '00000011' });
    assert.throws(() => map.delete(low), /a tablet known by its key is known by its range/);
  });
});
