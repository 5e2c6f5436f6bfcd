/**
 * Chooses the files of a locality group for a merging compaction (paper section 5.4;
 * docs/decisions/0011-compactions.md): neighbours in age, at least MERGED_FILES of which overlap, none larger than a
 * fifth of the others together. So every merge makes a file at least six times as large as its largest input, and a
 * byte is rewritten once each time its file has grown sixfold (eightfold if files are alike).
 *
 * Files that do not overlap, which a load in the order of rows makes, are left until there are very many, except small
 * ones: a read of a row opens one of them. Only if small and large files alternate, so that very many are left, are
 * neighbours of any size merged.
 */
import { assert } from '../../base/index.ts';
import { ANYWHERE, FileRegions, type RowExtent } from './file-regions.ts';

/** The fewest files of a merge, and the fewest that overlap. */
export const MERGED_FILES = 8;
/** The most files of a merge: each takes a block and read-ahead in memory. */
export const MAX_MERGED_FILES = 32;
const MAX_SHARE = 1 / 5;
/** In a group more crowded than this neighbours of any size are merged, so that it never keeps too many files. */
export const CROWDED = 24;
/** Smaller files count as this large: they cost a file, not their bytes. */
const SMALL_BYTES = 64 * 1024;
/** Smaller files are merged as if all overlapped: that writes little, and a trickle of rows leaves few files. */
const MIN_PLACED_BYTES = 1024 * 1024;
/** A group as crowded as this delays writes until it is less so. */
export const TOO_CROWDED = 48;

export interface MergeCandidate extends RowExtent {
  readonly sizeBytes: number;
}

/** Indices of files, both inclusive. */
export interface MergeRun {
  readonly from: number;
  readonly to: number;
}

/**
 * The largest number of files that overlap, or half of all files, whichever is larger: a read pays nothing for files
 * that do not overlap, but each is listed, opened and kept in memory.
 */
export function crowdingOf(files: readonly MergeCandidate[]): number {
  return Math.max(regionsOf(files).depth(), files.length >> 1);
}

function regionsOf(files: readonly MergeCandidate[]): FileRegions {
  return new FileRegions(files.map((file) => (file.sizeBytes < MIN_PLACED_BYTES ? ANYWHERE : file)));
}

/**
 * `files`: of one group, by age. Returns the run with the lowest cost in bytes for its gain; undefined if none is due.
 */
export function chooseMerge(files: readonly MergeCandidate[]): MergeRun | undefined {
  if (files.length < MERGED_FILES) return undefined;
  const isLong = files.length >> 1 > CROWDED;
  const regions = regionsOf(files);
  const depth = regions.depth();
  if (depth < MERGED_FILES && !isLong) return undefined;
  const isAlike = ({ totalBytes, largestBytes }: Run): boolean =>
    largestBytes <= (totalBytes - largestBytes) * MAX_SHARE;
  // the gain: fewer layers for a read to search, or shorter lists
  const layersSaved = (run: Run): number => (run.depth >= MERGED_FILES && isAlike(run) ? run.depth - 1 : 0);
  const filesSaved = (run: Run): number => (isAlike(run) ? run.files - 1 : 0);
  const regular = cheapest(files, regions, layersSaved) ?? (isLong ? cheapest(files, regions, filesSaved) : undefined);
  return regular ?? (isLong || depth > CROWDED ? cheapest(files, regions, (run) => run.files - 1) : undefined);
}

interface Run {
  files: number;
  /** Files that overlap. */
  depth: number;
  totalBytes: number;
  largestBytes: number;
}

/** The run of neighbours with the lowest cost in bytes for its gain; one without gain is not chosen. */
function cheapest(
  files: readonly MergeCandidate[],
  regions: FileRegions,
  gain: (run: Run) => number,
): MergeRun | undefined {
  assert(files.length >= MERGED_FILES, 'there are enough files for a merge');
  let best: MergeRun | undefined;
  let bestCost = Number.POSITIVE_INFINITY;
  for (let from = 0; from + MERGED_FILES <= files.length; from++) {
    const counts = new Int32Array(regions.count);
    const run: Run = { files: 0, depth: 0, totalBytes: 0, largestBytes: 0 };
    for (let to = from; to < files.length && run.files < MAX_MERGED_FILES; to++) {
      const sizeBytes = Math.max(files[to]!.sizeBytes, SMALL_BYTES);
      run.files++;
      run.totalBytes += sizeBytes;
      run.largestBytes = Math.max(run.largestBytes, sizeBytes);
      run.depth = Math.max(run.depth, regions.countIn(to, counts));
      assert(run.depth <= run.files, 'no more files overlap than there are');
      if (run.files < MERGED_FILES) continue;
      const gained = gain(run);
      if (gained > 0 && run.totalBytes / gained < bestCost) {
        bestCost = run.totalBytes / gained;
        best = { from, to };
      }
    }
  }
  return best;
}
