import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { chooseMerge, MERGED_FILES, TOO_MANY_FILES } from './merge-choice.ts';

const MB = 1 << 20;
const times = (count: number, size: number): number[] => Array.from({ length: count }, () => size);

/** Flushes one file after another and merges whenever a merge is due, as a server does; nothing is overwritten. */
function load(flushes: readonly number[]): { files: number[]; mostFiles: number; written: number } {
  let files: number[] = [];
  let mostFiles = 0;
  let written = 0;
  for (const size of flushes) {
    files = [size, ...files];
    written += size;
    mostFiles = Math.max(mostFiles, files.length);
    for (let run = chooseMerge(files); run !== undefined; run = chooseMerge(files)) {
      const merged = files.slice(run.from, run.to + 1).reduce((sum, each) => sum + each, 0);
      files = [...files.slice(0, run.from), merged, ...files.slice(run.to + 1)];
      written += merged;
    }
  }
  return { files, mostFiles, written };
}

describe('the choice of files to merge', () => {
  test('takes neighbours that are alike, as soon as they are enough', () => {
    assert.equal(chooseMerge(times(MERGED_FILES - 1, MB)), undefined);
    assert.deepEqual(chooseMerge(times(MERGED_FILES, MB)), { from: 0, to: MERGED_FILES - 1 });
    assert.deepEqual(chooseMerge([...times(MERGED_FILES, MB), 100 * MB]), { from: 0, to: MERGED_FILES - 1 });
    assert.deepEqual(chooseMerge([100 * MB, ...times(MERGED_FILES, MB)]), { from: 1, to: MERGED_FILES });
    assert.equal(chooseMerge([...times(4, MB), 100 * MB, ...times(4, MB)]), undefined, 'files are never merged past one that stands between them');
    assert.equal(chooseMerge([]), undefined);
  });

  test('prefers what costs least for each file it saves', () => {
    assert.deepEqual(chooseMerge([...times(8, 10 * MB), ...times(8, MB)]), { from: 8, to: 15 });
  });

  test('takes the smallest files for alike, whatever their sizes', () => {
    assert.deepEqual(chooseMerge([1, 100, 9, 50_000, 3, 3, 3, 3]), { from: 0, to: 7 });
  });

  test('a random load of a gigabyte is written to files twice at the most', () => {
    for (const count of [8, 20, 36, 40, 47]) {
      const { written, mostFiles } = load(times(count, 28 * MB));
      assert.ok(written <= count * 28 * MB * 2, `${count} flushes: ${written / (count * 28 * MB)}`);
      assert.ok(mostFiles < 2 * MERGED_FILES);
    }
  });

  test('files stay few and bytes are written seldom, however sizes vary', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 16, max: 25 }).chain((power) => fc.integer({ min: 2 ** power, max: 2 ** (power + 1) })), { minLength: 1, maxLength: 400, size: 'max' }), (flushes) => {
        const { files, mostFiles, written } = load(flushes);
        const total = flushes.reduce((sum, size) => sum + size, 0);
        assert.equal(files.reduce((sum, size) => sum + size, 0), total);
        assert.ok(mostFiles <= TOO_MANY_FILES / 2 + 1, `${mostFiles} files`);
        // each merge makes at least sixfold of its largest input, but for those that keep files from becoming too many
        assert.ok(written <= total * (2 + Math.log(total / 65536) / Math.log(5)), `${written / total}`);
      }),
      { numRuns: 100 },
    );
  });
});
