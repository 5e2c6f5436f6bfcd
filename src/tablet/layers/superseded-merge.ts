/**
 * Chooses the files of a locality group whose merge makes them clearly smaller, because newer ones have overwritten
 * their rows (docs/decisions/0079-merges-of-overwritten-files.md). The bytes are estimated: of each older file some
 * rows, spread evenly over its bytes, are looked up in the Bloom filters of the newer ones.
 *
 * A run ends with the oldest file, since only such a merge drops versions that the rules refuse.
 */
import { assert, type ByteString } from '../../base/index.ts';
import { MAX_MERGED_FILES, type MergeRun } from './merge-choice.ts';

/** The rows of a group that are looked up, shared out among its files by their bytes. */
const SAMPLED_ROWS = 256;
/** A merge that saves less is left to the number of files. */
export const MIN_SAVED_BYTES = 4 * 1024 * 1024;

export interface OverwrittenCandidate {
  readonly sizeBytes: number;
  /** False if every row may be in the file, for all that is known without a read. */
  readonly hasRowFilter: boolean;
  mayContainRow(row: ByteString): boolean;
  /** At most `count` rows of the file, spread evenly over its bytes. */
  sampleRows(count: number): readonly ByteString[];
}

/** A run of files, and the bytes that its merge is expected to save. */
export interface SupersededRun extends MergeRun {
  readonly sizeBytes: number;
  readonly supersededBytes: number;
}

/** `files`: of one group, newest first. Runs that end with the oldest file, shortest first. */
export function supersededRuns(files: readonly OverwrittenCandidate[]): readonly SupersededRun[] {
  // overwrittenBy[i]: bytes of older files whose rows file i has, and none between them
  const overwrittenBy = new Float64Array(files.length);
  const totalBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  for (const [older, file] of files.entries()) {
    // of a part of a file there may be no whole block
    if (older === 0 || file.sizeBytes === 0) continue;
    const rows = file.sampleRows(Math.ceil((SAMPLED_ROWS * file.sizeBytes) / totalBytes));
    for (const row of rows) {
      let newer = older - 1;
      while (newer >= 0 && !(files[newer]!.hasRowFilter && files[newer]!.mayContainRow(row))) newer--;
      if (newer >= 0) overwrittenBy[newer]! += file.sizeBytes / rows.length;
    }
  }
  const runs: SupersededRun[] = [];
  const to = files.length - 1;
  let sizeBytes = 0;
  let supersededBytes = 0;
  for (let from = to; from >= 0 && to - from < MAX_MERGED_FILES; from--) {
    sizeBytes += files[from]!.sizeBytes;
    supersededBytes += overwrittenBy[from]!;
    assert(supersededBytes <= sizeBytes * (1 + 1e-9), 'no byte is overwritten twice');
    if (from < to) runs.push({ from, to, sizeBytes, supersededBytes });
  }
  return runs;
}

/**
 * The run with the largest superseded share, if that is at least `minShare`. `trust`: the part of earlier estimates
 * that merges really saved.
 */
export function chooseSuperseded(
  runs: readonly SupersededRun[],
  minShare: number,
  trust: number,
): SupersededRun | undefined {
  assert(trust >= 0 && trust <= 1, 'a merge saves at most what is superseded');
  let best: SupersededRun | undefined;
  let bestShare = minShare;
  for (const run of runs) {
    const savedBytes = run.supersededBytes * trust;
    if (savedBytes < MIN_SAVED_BYTES || savedBytes / run.sizeBytes < bestShare) continue;
    best = run;
    bestShare = savedBytes / run.sizeBytes;
  }
  return best;
}
