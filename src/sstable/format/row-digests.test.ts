import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RowDigests } from './row-digests.ts';

function digestsOf(rows: readonly string[]): RowDigests {
  const digests = new RowDigests(rows.length, rows[0] ?? '', rows.at(-1) ?? '');
  rows.forEach((row, i) => digests.set(i, Buffer.from(row, 'latin1'), 0, row.length, i % 3 === 1 ? 1 : 0));
  return digests;
}

describe('RowDigests', () => {
  const key = fc.string({ unit: fc.constantFrom('\0', 'a', 'b', '\xff'), maxLength: 10 });

  test('never put a row on the wrong side', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('', 'a', 'common/prefix/'),
        fc.array(key, { maxLength: 40 }),
        fc.oneof(
          key,
          key.map((end) => `common/prefix/${end}`),
        ),
        (prefix, ends, target) => {
          const rows = ends.map((end) => prefix + end).toSorted();
          const digests = digestsOf(rows);
          digests.narrow(target);
          assert.ok(digests.low >= -1 && digests.low < digests.high && digests.high <= rows.length);
          rows.forEach((row, i) => {
            if (i <= digests.low) assert.ok(row < target);
            if (i >= digests.high) assert.ok(row > target);
            assert.equal(digests.isMarked(i), i % 3 === 1);
          });
        },
      ),
      { numRuns: 1000 },
    );
  });

  test('leave one row if six bytes distinguish all', () => {
    const rows = Array.from({ length: 500 }, (_, i) => `user${String(3 * i).padStart(12, '0')}`);
    const digests = digestsOf(rows);
    rows.forEach((row, i) => {
      digests.narrow(row);
      assert.deepEqual([digests.low, digests.high], [i - 1, i + 1]);
    });
    digests.narrow('user000000000001');
    assert.deepEqual([digests.low, digests.high], [0, 1]);
    digests.narrow('a');
    assert.deepEqual([digests.low, digests.high], [-1, 0]);
    digests.narrow('z');
    assert.deepEqual([digests.low, digests.high], [499, 500]);
  });

  test('leave all equal rows, however many', () => {
    for (const count of [1, 2, 3, 17, 1000]) {
      const digests = digestsOf(['a', ...Array.from({ length: count }, () => 'same row'), 'z']);
      digests.narrow('same row');
      assert.deepEqual([digests.low, digests.high], [0, count + 1]);
    }
  });

  test('of no rows leave none', () => {
    const digests = digestsOf([]);
    digests.narrow('a');
    assert.deepEqual([digests.low, digests.high], [-1, 0]);
  });
});
