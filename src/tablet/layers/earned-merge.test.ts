import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { chooseEarnedMerge, compactionMicros, type PairCredit, type Rewritten } from './earned-merge.ts';
import { MAX_MERGED_FILES } from './merge-choice.ts';

const file = (sizeBytes: number): Rewritten => ({ sizeBytes, entryCount: sizeBytes / 1000 });
const MB = 1_000_000;

interface Run {
  readonly from: number;
  readonly to: number;
}

const earnedBy = ({ from, to }: Run, credits: readonly PairCredit[]): number =>
  credits.reduce((sum, { newer, older, micros }) => sum + (newer >= from && older <= to ? micros : 0), 0);
const priceOf = ({ from, to }: Run, files: readonly Rewritten[]): number => compactionMicros(files.slice(from, to + 1));

const someFiles = fc.array(fc.integer({ min: 1, max: 50 * MB }).map(file), { maxLength: 12 });
const filesAndCredits = someFiles.chain((files) =>
  fc.tuple(
    fc.constant(files),
    files.length < 2
      ? fc.constant<PairCredit[]>([])
      : fc.array(
          fc
            .tuple(fc.nat(files.length - 2), fc.nat(files.length - 2), fc.integer({ min: 0, max: 400_000 }))
            .map(([a, b, micros]) => ({ newer: Math.min(a, b), older: Math.max(a, b) + 1, micros })),
        ),
  ),
);

describe('the choice of a merge that reads have earned', () => {
  test('files that were not read over one another are left', () => {
    assert.equal(chooseEarnedMerge([file(MB), file(MB)], [], 1), undefined);
    assert.equal(chooseEarnedMerge([], [], 1), undefined);
  });

  test('a pair of files is merged once its credit reaches the price', () => {
    const files = [file(MB), file(2 * MB)];
    const price = compactionMicros(files);
    const credit = (micros: number): PairCredit[] => [{ newer: 0, older: 1, micros }];
    assert.equal(chooseEarnedMerge(files, credit(price - 1), 1), undefined);
    assert.deepEqual(chooseEarnedMerge(files, credit(price), 1), { from: 0, to: 1 });
  });

  test('files without credit between the two of a pair are merged with them, and paid for', () => {
    const files = [file(MB), file(9 * MB), file(MB)];
    const credit = (micros: number): PairCredit[] => [{ newer: 0, older: 2, micros }];
    assert.equal(chooseEarnedMerge(files, credit(compactionMicros([files[0]!, files[2]!])), 1), undefined);
    assert.deepEqual(chooseEarnedMerge(files, credit(compactionMicros(files)), 1), { from: 0, to: 2 });
  });

  test('small files over a large one are merged first, and files alike all together', () => {
    const credit = (micros: number): PairCredit[] => [
      { newer: 0, older: 1, micros },
      { newer: 1, older: 2, micros },
    ];
    const small = [file(MB), file(MB), file(100 * MB)];
    assert.deepEqual(chooseEarnedMerge(small, credit(compactionMicros(small.slice(0, 2))), 1), { from: 0, to: 1 });
    const alike = [file(MB), file(MB), file(MB)];
    assert.deepEqual(chooseEarnedMerge(alike, credit(compactionMicros(alike) / 2), 1), { from: 0, to: 2 });
  });

  test('a merge never costs more than reads have earned, and one that they have earned is never left', () => {
    fc.assert(
      fc.property(filesAndCredits, fc.integer({ min: 1, max: 5 }), ([files, credits], times) => {
        const chosen = chooseEarnedMerge(files, credits, times);
        if (chosen !== undefined) {
          assert.ok(chosen.from < chosen.to, 'it has several files');
          assert.ok(earnedBy(chosen, credits) >= times * priceOf(chosen, files));
          return;
        }
        for (let from = 0; from < files.length; from++) {
          for (let to = from + 1; to < Math.min(files.length, from + MAX_MERGED_FILES); to++)
            assert.ok(earnedBy({ from, to }, credits) < times * priceOf({ from, to }, files));
        }
      }),
    );
  });

  test('no merge has more files than any other', () => {
    const files = Array.from({ length: 2 * MAX_MERGED_FILES }, () => file(1000));
    const credits = files.slice(1).map((_, i) => ({ newer: i, older: i + 1, micros: 1e9 }));
    const { from, to } = chooseEarnedMerge(files, credits, 1)!;
    assert.equal(to - from + 1, MAX_MERGED_FILES);
  });
});
