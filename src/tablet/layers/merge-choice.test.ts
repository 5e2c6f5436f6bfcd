import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { ByteString } from '../../base/index.ts';
import {
  chooseMerge,
  CROWDED,
  crowdingOf,
  type MergeCandidate,
  MERGED_FILES,
  type MergeRun,
  TOO_CROWDED,
} from './merge-choice.ts';

const MB = 1 << 20;
const times = (count: number, size: number): number[] => Array.from({ length: count }, () => size);

const rowName = (number: number): ByteString => String(number).padStart(6, '0');
const file = (sizeBytes: number, first: number, last: number): MergeCandidate => ({
  sizeBytes,
  firstRow: rowName(first),
  lastRow: rowName(last),
});

/** Files of these sizes that all overlap. */
const choose = (sizes: readonly number[]): MergeRun | undefined => chooseMerge(sizes.map((size) => file(size, 0, 9)));

interface Flush {
  readonly size: number;
  readonly first: number;
  readonly last: number;
}

/** Flushes one file after another and merges whenever a merge is due, as a server does; nothing is overwritten. */
function loadFiles(flushes: readonly Flush[]): {
  files: MergeCandidate[];
  maxFiles: number;
  maxCrowded: number;
  written: number;
} {
  let files: MergeCandidate[] = [];
  let [maxFiles, maxCrowded, written] = [0, 0, 0];
  for (const { size, first, last } of flushes) {
    files = [file(size, first, last), ...files];
    written += size;
    maxFiles = Math.max(maxFiles, files.length);
    maxCrowded = Math.max(maxCrowded, crowdingOf(files));
    for (let run = chooseMerge(files); run !== undefined; run = chooseMerge(files)) {
      const inputs = files.slice(run.from, run.to + 1);
      const merged = inputs.reduce((sum, each) => sum + each.sizeBytes, 0);
      const rows = inputs.flatMap(({ firstRow, lastRow }) => [firstRow, lastRow]).sort();
      files = [
        ...files.slice(0, run.from),
        { sizeBytes: merged, firstRow: rows[0], lastRow: rows.at(-1) },
        ...files.slice(run.to + 1),
      ];
      written += merged;
    }
  }
  return { files, maxFiles, maxCrowded, written };
}

/** The same for files that all overlap. */
const load = (sizes: readonly number[]): ReturnType<typeof loadFiles> =>
  loadFiles(sizes.map((size) => ({ size, first: 0, last: 9 })));

describe('the choice of files to merge', () => {
  test('takes neighbours of similar size, once they are enough', () => {
    assert.equal(choose(times(MERGED_FILES - 1, MB)), undefined);
    assert.deepEqual(choose(times(MERGED_FILES, MB)), { from: 0, to: MERGED_FILES - 1 });
    assert.deepEqual(choose([...times(MERGED_FILES, MB), 100 * MB]), { from: 0, to: MERGED_FILES - 1 });
    assert.deepEqual(choose([100 * MB, ...times(MERGED_FILES, MB)]), { from: 1, to: MERGED_FILES });
    assert.equal(
      choose([...times(4, MB), 100 * MB, ...times(4, MB)]),
      undefined,
      'files are never merged past one that lies between them',
    );
    assert.equal(choose([]), undefined);
  });

  test('prefers the lowest cost for each file it saves', () => {
    assert.deepEqual(choose([...times(8, 10 * MB), ...times(8, MB)]), { from: 8, to: 15 });
  });

  test('treats the smallest files as equal, whatever their sizes', () => {
    assert.deepEqual(choose([1, 100, 9, 50_000, 3, 3, 3, 3]), { from: 0, to: 7 });
  });

  test('a random load of a gigabyte is written to files at most twice', () => {
    for (const count of [8, 20, 36, 40, 47]) {
      const { written, maxFiles } = load(times(count, 28 * MB));
      assert.ok(written <= count * 28 * MB * 2, `${count} flushes: ${written / (count * 28 * MB)}`);
      assert.ok(maxFiles < 2 * MERGED_FILES);
    }
  });

  test('files stay few and bytes are written seldom, however sizes vary', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.integer({ min: 16, max: 25 }).chain((power) => fc.integer({ min: 2 ** power, max: 2 ** (power + 1) })),
          { minLength: 1, maxLength: 400, size: 'max' },
        ),
        (flushes) => {
          const { files, maxFiles, written } = load(flushes);
          const total = flushes.reduce((sum, size) => sum + size, 0);
          assert.equal(
            files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
            total,
          );
          assert.ok(maxFiles <= CROWDED + 1, `${maxFiles} files`);
          // each merge makes at least sixfold of its largest input, but for those that keep files from becoming too
          // many
          assert.ok(written <= total * (2 + Math.log(total / 65536) / Math.log(5)), `${written / total}`);
        },
      ),
      { numRuns: 100 },
    );
  });

  test('files that do not overlap are left as they are', () => {
    const flushes = Array.from({ length: 40 }, (_, i): Flush => ({ size: 7 * MB, first: i * 100, last: i * 100 + 99 }));
    const { files, written } = loadFiles(flushes);
    assert.equal(files.length, 40);
    assert.equal(written, 40 * 7 * MB);
    // writers that are slightly out of order make files that overlap a little
    const blurred = loadFiles(
      flushes.map(({ size, first, last }) => ({ size, first: Math.max(0, first - 60), last: last + 60 })),
    );
    assert.equal(blurred.files.length, 40);
  });

  test('small files are merged wherever their rows lie', () => {
    assert.deepEqual(chooseMerge(Array.from({ length: MERGED_FILES }, (_, i) => file(1000, i, i))), {
      from: 0,
      to: MERGED_FILES - 1,
    });
  });

  test('files that do not overlap one another are merged if another file overlaps them', () => {
    const adjacent = Array.from({ length: 10 }, (_, i) => file(MB, i * 10, i * 10 + 9));
    const over = times(MERGED_FILES, MB).map((size) => file(size, 50, 59));
    assert.deepEqual(chooseMerge([...over, ...adjacent]), { from: 0, to: MERGED_FILES - 1 });
    assert.equal(chooseMerge([...over.slice(3), ...adjacent]), undefined);
  });

  test('a load in the order of rows ends in few files all the same, and is written seldom', () => {
    for (const count of [100, 1000, 5000]) {
      const { maxFiles, maxCrowded, written } = loadFiles(
        Array.from({ length: count }, (_, i): Flush => ({ size: MB, first: i * 10, last: i * 10 + 12 })),
      );
      assert.ok(maxFiles <= 2 * CROWDED + 2 && maxCrowded < TOO_CROWDED, `${maxFiles} files`);
      assert.ok(
        written <= count * MB * (1 + Math.log(count) / Math.log(MERGED_FILES)),
        `${count}: ${written / (count * MB)}`,
      );
    }
  });

  test('wherever the rows of files lie, files stay few, and no row lies in too many', () => {
    const flush = fc
      .record({ size: fc.integer({ min: 1 << 16, max: 1 << 24 }), first: fc.nat(1000), length: fc.nat(300) })
      .map(({ size, first, length }): Flush => ({ size, first, last: first + length }));
    fc.assert(
      fc.property(fc.array(flush, { minLength: 1, maxLength: 300, size: 'max' }), (flushes) => {
        const { maxFiles, maxCrowded } = loadFiles(flushes);
        assert.ok(maxFiles <= 2 * CROWDED + 2, `${maxFiles} files`);
        assert.ok(maxCrowded <= CROWDED + 1, `${maxCrowded} over one another`);
      }),
      { numRuns: 60 },
    );
  });
});
