import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Int64 } from '../base/index.ts';
import { columnKey, familyEnd, familyOf, qualifierOf } from './cell.ts';
import { compareEntries, type Entry, EntryKind, isDeletion } from './entry.ts';
import { familyName, storageFamily } from './schema.ts';

const families = fc.constantFrom('a', 'a-', 'ab', 'b', '-', 'z_');
const qualifiers = fc.constantFrom('', '\0', '\x01', 'a', 'a\0', '\xff');
const timestamps = fc.constantFrom<Int64>(-(2n ** 63n), -1, 0, 1, 2 ** 53 - 1, 2n ** 53n, 2n ** 63n - 1n);

function entry(row: string, column: string, kind: EntryKind, timestamp: Int64): Entry {
  return { row, column, kind, timestamp, value: new Uint8Array(0) };
}

const rows = fc.constantFrom('r', 'r\0', 's');
const entries: fc.Arbitrary<Entry> = fc.oneof(
  rows.map((row) => entry(row, '', EntryKind.rowDeletion, 0)),
  fc.tuple(rows, families).map(([row, family]) => entry(row, family, EntryKind.familyDeletion, 0)),
  fc
    .tuple(rows, families, qualifiers)
    .map(([row, family, qualifier]) => entry(row, columnKey(family, qualifier), EntryKind.columnDeletion, 0)),
  fc
    .tuple(
      rows,
      families,
      qualifiers,
      timestamps,
      fc.constantFrom(EntryKind.rangeDeletion, EntryKind.put, EntryKind.merge),
    )
    .map(([row, family, qualifier, timestamp, kind]) => entry(row, columnKey(family, qualifier), kind, timestamp)),
);

/** The position of an entry, as a list to be compared part by part; the rule of entry.ts, written out. */
function positionOf(one: Entry): readonly (string | Int64)[] {
  const rank = one.kind >= EntryKind.put ? EntryKind.put : one.kind;
  const time = BigInt(one.timestamp);
  return [one.row, one.column, rank, one.kind >= EntryKind.put ? -time : time];
}

function comparePlaces(a: Entry, b: Entry): number {
  const [x, y] = [positionOf(a), positionOf(b)];
  const at = x.findIndex((part, i) => part !== y[i]);
  return at < 0 ? 0 : (x[at] as string) < (y[at] as string) ? -1 : 1;
}

describe('the order of entries', () => {
  test('is the rule of layers', () => {
    fc.assert(
      fc.property(entries, entries, (a, b) => {
        assert.equal(Math.sign(compareEntries(a, b)), comparePlaces(a, b));
        assert.equal(Math.sign(compareEntries(b, a)), -Math.sign(compareEntries(a, b)) + 0);
      }),
      { numRuns: 2000 },
    );
  });

  test('a row, as a layer holds it', () => {
    const { rowDeletion, familyDeletion, columnDeletion, rangeDeletion, put, merge } = EntryKind;
    const row = [
      entry('r', '', rowDeletion, 0),
      entry('r', 'a', familyDeletion, 0),
      entry('r', columnKey('a', ''), put, 5),
      entry('r', columnKey('a', 'q'), columnDeletion, 0),
      entry('r', columnKey('a', 'q'), rangeDeletion, 1),
      entry('r', columnKey('a', 'q'), rangeDeletion, 7),
      entry('r', columnKey('a', 'q'), put, 2n ** 60n),
      entry('r', columnKey('a', 'q'), merge, 6),
      entry('r', columnKey('a', 'q'), put, -1),
      entry('r', 'a-', familyDeletion, 0),
      entry('r', columnKey('a-', ''), put, 1),
      entry('s', '', rowDeletion, 0),
    ];
    assert.deepEqual([...row].reverse().sort(compareEntries), row);
    assert.deepEqual(
      row.map((one) => isDeletion(one.kind)),
      [true, true, false, true, true, true, false, false, false, true, false, true],
    );
  });
});

describe('column keys', () => {
  test('order as (family, qualifier) does, and come apart again', () => {
    fc.assert(
      fc.property(families, qualifiers, families, qualifiers, (f1, q1, f2, q2) => {
        const [a, b] = [columnKey(f1, q1), columnKey(f2, q2)];
        assert.equal(a < b, f1 < f2 || (f1 === f2 && q1 < q2));
        assert.deepEqual([familyOf(a), qualifierOf(a)], [f1, q1]);
      }),
    );
  });

  test('a family stands before its columns, and its end after them and before the next', () => {
    fc.assert(
      fc.property(families, families, qualifiers, (family, other, qualifier) => {
        const column = columnKey(other, qualifier);
        assert.equal(column >= family && column < familyEnd(family), family === other);
        assert.equal(familyOf(family), family);
      }),
    );
  });

  test('generations of a family stand apart, in the order of the names', () => {
    const generations = fc.nat({ max: 120 });
    fc.assert(
      fc.property(families, generations, families, generations, qualifiers, (f1, g1, f2, g2, qualifier) => {
        const [a, b] = [storageFamily(f1, g1), storageFamily(f2, g2)];
        assert.equal(familyName(a), f1);
        if (f1 !== f2) assert.equal(a < b, f1 < f2);
        const column = columnKey(b, qualifier);
        assert.equal(column >= a && column < familyEnd(a), a === b);
      }),
    );
  });
});
