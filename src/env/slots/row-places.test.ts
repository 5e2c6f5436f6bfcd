import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RowPlaces } from './row-places.ts';

test('places are found by position, whatever the order in which they were noted; only few are kept', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 2000 }), { maxLength: 600 }), (positions) => {
      const places = new RowPlaces();
      const noted = new Set<number>();
      for (const position of positions) {
        places.note({ slot: position * 2, position });
        noted.add(position);
        assert.equal(places.top?.position, Math.max(...noted));
        const below = places.below(position);
        assert.ok(below === undefined || (noted.has(below.position) && below.position < position));
        assert.ok(below === undefined || below.slot === below.position * 2);
      }
      // those that are kept lie in all parts of the row
      if (noted.size > 300) assert.ok(places.below(1500) !== undefined);
    }),
  );
  assert.equal(new RowPlaces().below(5), undefined);
});
