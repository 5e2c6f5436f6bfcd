import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BigtableError, Code } from '../base/index.ts';
import { type Mutation, rangeContains, type RowRange } from '../model/index.ts';
import { AuthorizedView, type FamilySubset } from './authorized-view.ts';
import type { Slicer } from './check-data.ts';

const key = fc.string({ unit: fc.constantFrom('a', 'b', '\xff', '\0'), maxLength: 3 });
const range: fc.Arbitrary<RowRange> = fc.record({ start: key, end: fc.option(key, { nil: undefined }) });
const keys = allKeys(['\0', 'a', 'b', '\xff'], 4);

function allKeys(letters: readonly string[], length: number): string[] {
  let last = [''];
  const all: string[] = [];
  for (let i = 0; i < length; i++) {
    last = last.flatMap((start) => letters.map((letter) => start + letter));
    all.push(...last);
  }
  return all;
}

const slicer: Slicer = (count, work) => {
  for (let from = 0; from < count; from += 2) work(from, Math.min(from + 2, count));
  return undefined;
};

function viewOf(rowPrefixes: readonly string[], families: readonly FamilySubset[] = []): AuthorizedView {
  return new AuthorizedView({ name: 'v', table: 't', rowPrefixes, families });
}

const isIn = (ranges: readonly RowRange[], row: string): boolean => ranges.some((each) => rangeContains(each, row));

describe('an authorized view', () => {
  test('reads the rows that are in the request and have a prefix of the view', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(key, { maxLength: 5 }), fc.array(range, { maxLength: 6 }), async (prefixes, ranges) => {
        const { ranges: found = [] } = await viewOf(prefixes).read({ table: '', ranges }, slicer);
        assert.ok(found.length > 0, 'a read without ranges would be one of all rows');
        assert.ok(found.length <= prefixes.length + 2 * Math.max(ranges.length, 1) + 1);
        for (const row of keys) {
          const wanted = ranges.length === 0 || isIn(ranges, row);
          assert.equal(isIn(found, row), wanted && prefixes.some((prefix) => row.startsWith(prefix)), row);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('has no more ranges than its own and two for each of the read, however they overlap', async () => {
    const prefixes = Array.from({ length: 100 }, (_, i) => `p${String(i).padStart(2, '0')}x`);
    const ranges = Array.from({ length: 10_000 }, (_, i) => ({ start: i % 2 ? '' : 'p', end: undefined }));
    const { ranges: found = [] } = await viewOf(prefixes).read({ table: '', ranges }, slicer);
    assert.equal(found.length, 100);
  });

  test('allows changes of its rows and columns, and of nothing else', () => {
    const subset = fc.record({
      family: fc.constantFrom('f', 'g'),
      qualifiers: fc.array(key, { maxLength: 2 }),
      qualifierPrefixes: fc.array(key, { maxLength: 2 }),
    });
    const change = fc.record({
      kind: fc.constantFrom(
        'setCell',
        'addToCell',
        'mergeToCell',
        'deleteFromColumn',
        'deleteFromFamily',
        'deleteFromRow',
      ),
      family: fc.constantFrom('f', 'g', 'h'),
      qualifier: key,
    });
    fc.assert(
      fc.property(
        fc.array(key, { maxLength: 3 }),
        fc.uniqueArray(subset, { selector: ({ family }) => family, maxLength: 2 }),
        key,
        fc.array(change, { minLength: 1, maxLength: 3 }),
        (prefixes, families, row, mutations) => {
          const has = (family: string, qualifier: string): boolean =>
            families.some(
              (each) =>
                each.family === family &&
                (each.qualifiers.includes(qualifier) || each.qualifierPrefixes.some((p) => qualifier.startsWith(p))),
            );
          const isAllowed = mutations.every(({ kind, family, qualifier }) => {
            if (kind === 'deleteFromRow') return false;
            if (kind !== 'deleteFromFamily') return has(family, qualifier);
            return families.some((each) => each.family === family && each.qualifierPrefixes.includes(''));
          });
          const view = viewOf(prefixes, families);
          const check = (): void => view.checkRow({ row, mutations: mutations as unknown as Mutation[] });
          if (isAllowed && prefixes.some((prefix) => row.startsWith(prefix))) check();
          else assert.throws(check, (error) => error instanceof BigtableError && error.code === Code.PERMISSION_DENIED);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('samples its ranges, with offsets from its start', () => {
    const samples = ['b', 'd', 'f', ''].map((row, i) => ({ row, offsetBytes: (i + 1) * 10 }));
    assert.deepEqual(viewOf(['']).samples(samples), samples);
    assert.deepEqual(viewOf(['c']).samples(samples), [{ row: 'd', offsetBytes: 10 }]);
    assert.deepEqual(viewOf(['e', 'a', 'c']).samples(samples), [
      { row: 'b', offsetBytes: 10 },
      { row: 'd', offsetBytes: 20 },
      { row: 'f', offsetBytes: 30 },
    ]);
    assert.deepEqual(viewOf([]).samples(samples), []);
  });
});
