import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { RowFilter } from '../../filter/index.ts';
import { normalizeRanges, type RowRange, rangeOfRow } from '../../model/index.ts';
import { TabletFixture, schemaOf } from '../fixtures.ts';

const SCHEMA = schemaOf({ f: { name: 'f' }, g: { name: 'g' } });
/** Long enough to be joined from pieces, as real keys are. */
const ROWS = Array.from({ length: 12 }, (_, i) => `a row key ${String(i).padStart(8, '0')}`);
const row = fc.constantFrom(...ROWS);
const change = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('set' as const), row, family: fc.constantFrom('f', 'g') }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('delete' as const, 'drop' as const), row }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'flush' as const, row: '' }) },
);
const range: fc.Arbitrary<RowRange> = fc.oneof(
  { weight: 4, arbitrary: row.map(rangeOfRow) },
  { weight: 1, arbitrary: fc.tuple(row, row).map(([start, end]) => ({ start, end })) },
);
const filters: readonly (RowFilter | undefined)[] = [
  undefined,
  { kind: 'familyNameRegex', regex: 'f' },
  {
    kind: 'chain',
    filters: [
      { kind: 'familyNameRegex', regex: 'g' },
      { kind: 'columnQualifierRegex', regex: 'q' },
    ],
  },
];

describe('a read of several ranges', () => {
  test('returns the same cells of each row as a scan of all, in either direction, with and without a limit', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(change, { maxLength: 40 }),
        fc.array(range, { minLength: 2, maxLength: 8 }),
        fc.constantFrom(...filters),
        fc.boolean(),
        fc.nat(4),
        async (changes, given, filter, reversed, limit) => {
          const fixture = await new TabletFixture(SCHEMA).load();
          for (const [i, each] of changes.entries()) {
            if (each.kind === 'set') await fixture.set(each.row, `value ${i}`, i, each.family);
            else if (each.kind === 'delete') await fixture.apply(each.row, { kind: 'deleteFromRow' });
            else if (each.kind === 'drop')
              await fixture.tablet.dropRows(fixture.context, { start: each.row, end: `${each.row.slice(0, -1)}~` });
            else await fixture.tablet.flush();
          }
          const ranges = normalizeRanges(given);
          if (ranges.length === 0) return;
          const isRequested = (line: string): boolean =>
            ranges.some(({ start, end }) => line >= start && (end === undefined || line.slice(0, 18) < end));
          const all = (await fixture.cells(filter, undefined, reversed)).filter(isRequested);
          const rows = [...new Set(all.map((line) => line.slice(0, 18)))].slice(0, limit === 0 ? undefined : limit);
          assert.deepEqual(
            await fixture.cellsIn(ranges, filter, reversed, limit),
            all.filter((line) => rows.includes(line.slice(0, 18))),
          );
          await fixture.tablet.close({ flush: false });
        },
      ),
      { numRuns: 60 },
    );
  });

  test('queries the Bloom filters row by row, and reads no file that has none of a row', async () => {
    const fixture = await new TabletFixture(SCHEMA).load();
    for (const each of ROWS) {
      await fixture.set(each, 'v');
      await fixture.tablet.flush();
    }
    for (const ends of [ROWS.slice(0, 1), ROWS.slice(-1)]) for (const each of ends) await fixture.set(each, 'w', 2);
    await fixture.tablet.flush();
    const count = (name: string): number => fixture.env.metrics.get(name);
    const [passes, skips, reads] = [count('sstable.bloomPasses'), count('sstable.bloomSkips'), count('sstable.reads')];
    const requested = ROWS.slice(1, -1);
    assert.equal((await fixture.cellsIn(requested.map(rangeOfRow))).length, requested.length);
    // each row lies in a file of its own, and between the two rows of the last file, whose filter excludes it
    assert.equal(count('sstable.bloomPasses') - passes, requested.length);
    assert.equal(count('sstable.bloomSkips') - skips, requested.length);
    assert.equal(count('sstable.reads') - reads, requested.length);
  });
});
