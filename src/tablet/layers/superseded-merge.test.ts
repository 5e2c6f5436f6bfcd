import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MAX_MERGED_FILES } from './merge-choice.ts';
import { chooseSuperseded, type OverwrittenCandidate, supersededRuns } from './superseded-merge.ts';

const MB = 1_000_000;

/** A file with a row of 1 MB each. */
function file(rows: readonly string[], hasRowFilter = true): OverwrittenCandidate {
  return {
    sizeBytes: rows.length * MB,
    hasRowFilter,
    mayContainRow: (row) => !hasRowFilter || rows.includes(row),
    sampleRows: (count) => {
      assert.ok(count > 0, 'a sample has a row');
      return rows.slice(0, count);
    },
  };
}

const rowsFrom = (first: number, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `row-${first + i}`);
const someFiles = fc.array(fc.uniqueArray(fc.nat(30).map(String)), { maxLength: 40 });

describe('the choice of a merge of files that newer ones have overwritten', () => {
  test('files without common rows are left', () => {
    assert.equal(chooseSuperseded(supersededRuns([file(rowsFrom(0, 50)), file(rowsFrom(50, 50))]), 0.01, 1), undefined);
    assert.deepEqual(supersededRuns([]), []);
  });

  test('a file over a copy of itself promises half of the bytes', () => {
    const runs = supersededRuns([file(rowsFrom(0, 50)), file(rowsFrom(0, 50))]);
    assert.deepEqual(runs, [{ from: 0, to: 1, sizeBytes: 100 * MB, supersededBytes: 50 * MB }]);
    assert.deepEqual(chooseSuperseded(runs, 0.5, 1), runs[0]);
    assert.equal(chooseSuperseded(runs, 0.51, 1), undefined);
  });

  test('newer files that are not overwritten nor overwrite stay out of it', () => {
    const runs = supersededRuns([file(rowsFrom(90, 50)), file(rowsFrom(0, 40)), file(rowsFrom(0, 40))]);
    assert.equal(chooseSuperseded(runs, 0.2, 1)?.from, 1);
  });

  test('what earlier merges did not save is not expected of the next one', () => {
    const runs = supersededRuns([file(rowsFrom(0, 50)), file(rowsFrom(0, 50))]);
    assert.equal(chooseSuperseded(runs, 0.3, 0.5), undefined);
    assert.notEqual(chooseSuperseded(runs, 0.25, 0.5), undefined);
    assert.equal(chooseSuperseded(runs, 0, 0), undefined);
  });

  test('few bytes are not worth a merge', () => {
    assert.equal(chooseSuperseded(supersededRuns([file(['a', 'b']), file(['a', 'b'])]), 0.1, 1), undefined);
  });

  test('a file without a filter promises nothing', () => {
    const [run] = supersededRuns([file(rowsFrom(0, 50), false), file(rowsFrom(0, 50))]);
    assert.equal(run?.supersededBytes, 0);
  });

  test('the estimate is exact where every row is sampled; runs end with the oldest file', () => {
    fc.assert(
      fc.property(someFiles, (lists) => {
        const total = lists.flat().length;
        fc.pre(total <= 256);
        const runs = supersededRuns(lists.map((rows) => file(rows)));
        assert.equal(runs.length, Math.min(Math.max(0, lists.length - 1), MAX_MERGED_FILES - 1));
        for (const { from, to, sizeBytes, supersededBytes } of runs) {
          assert.equal(to, lists.length - 1);
          const rows = lists.slice(from).flat();
          assert.equal(sizeBytes, rows.length * MB);
          assert.ok(Math.abs(supersededBytes - (rows.length - new Set(rows).size) * MB) < 1);
        }
      }),
    );
  });
});
