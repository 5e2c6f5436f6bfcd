import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { METADATA_TABLE_ID, metadataKey, ROOT_KEY } from '../metadata/index.ts';
import { rangeContains } from '../model/index.ts';
import { MetadataTablets } from './metadata-tablets.ts';

const user = (row: string | undefined) => metadataKey('00000010', row);

describe("METADATA's tablets", () => {
  test('each holds the rows of its range, and the root tablet those of all of them', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ minLength: 1, maxLength: 3 })), fc.string(), (splits, row) => {
        const ends = [...splits.map(user).sort(), undefined];
        const tablets = new MetadataTablets();
        tablets.replace(ends.map((end) => metadataKey(METADATA_TABLE_ID, end)));
        const key = user(row);
        const at = ends.findIndex((end, i) => rangeContains({ start: i === 0 ? '' : ends[i - 1]!, end }, key));
        assert.equal(tablets.holderOf(key), metadataKey(METADATA_TABLE_ID, ends[at]));
        assert.equal(tablets.holderOf(metadataKey(METADATA_TABLE_ID, ends[0])), ROOT_KEY);
        assert.equal(tablets.holderOf(ROOT_KEY), undefined);
        assert.equal(tablets.all().length, ends.length + 1);
      }),
    );
  });

  test('the holder of a row is not known before all of them are, and a split adds one', () => {
    const tablets = new MetadataTablets();
    assert.equal(tablets.holderOf(user('b')), undefined);
    const last = metadataKey(METADATA_TABLE_ID, undefined);
    tablets.add([last, ROOT_KEY, user('not METADATA')]);
    assert.deepEqual(tablets.all(), [ROOT_KEY, last]);
    assert.equal(tablets.holderOf(user('b')), undefined);
    tablets.replace([last]);
    assert.equal(tablets.holderOf(user('b')), last);
    const low = metadataKey(METADATA_TABLE_ID, user('c'));
    tablets.add([low, last]);
    assert.deepEqual([tablets.holderOf(user('b')), tablets.holderOf(user('c'))], [low, last]);
  });
});
