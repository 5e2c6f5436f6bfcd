/**
 * Which files of a locality group a merging compaction takes (paper section 5.4; docs/decisions/0011-compactions.md): neighbours in age, so that at least
 * MERGED_FILES lie over one another, none above a fifth of the others together. So every merge makes a file at least six times as large as its largest
 * input, and a byte is written again once each time the file it lies in has grown sixfold (eightfold, where files are alike). Files side by side, which a
 * load in the order of rows makes, are left as they are until they are very many, but for small ones: a read of a row looks at one of them. Only where small and large files
 * alternate so that very many are left do neighbours of any size go together.
 */
import { assert } from '../../base/index.ts';
import { ANYWHERE, FileRegions, type RowExtent } from './file-regions.ts';

/** Fewest files of a merge, and fewest that lie over one another. */
export const MERGED_FILES = 8;
/** Most: each takes a block and read-ahead in memory. */
const MAX_MERGED_FILES = 32;
const MAX_SHARE = 1 / 5;
/** A group more crowded than this has any neighbours merged, so that it never has too many files of which none are due. */
export const CROWDED = 24;
/** Smaller files count as this large: what they cost is the file, not its bytes. */
const SMALL_BYTES = 64 * 1024;
/** Smaller files are merged as if all lay over one another: that writes little, and a trickle of rows leaves no crowd of them. */
const SIDE_BY_SIDE_BYTES = 1024 * 1024;
/** A group as crowded as this holds back writes until it is less so. */
export const TOO_CROWDED = 48;

export interface MergeCandidate extends RowExtent {
  readonly sizeBytes: number;
}

/** Indices into the files, both inclusive. */
export interface MergeRun {
  readonly from: number;
  readonly to: number;
}

/**
 * How many of a group's files lie over one another, where most do; or half of all, where that is more: files side by side cost a read nothing, and yet
 * each is listed, opened and kept in mind.
 */
export function crowdingOf(files: readonly MergeCandidate[]): number {
  return Math.max(regionsOf(files).depth(), files.length >> 1);
}

function regionsOf(files: readonly MergeCandidate[]): FileRegions {
  return new FileRegions(files.map((file) => (file.sizeBytes < SIDE_BY_SIDE_BYTES ? ANYWHERE : file)));
}

/** `files`: of a group, by age. The run that costs the fewest bytes for what it gains; undefined where none is due. */
export function chooseMerge(files: readonly MergeCandidate[]): MergeRun | undefined {
  if (files.length < MERGED_FILES) return undefined;
  const isLong = files.length >> 1 > CROWDED;
  const regions = regionsOf(files);
  const depth = regions.depth();
  if (depth < MERGED_FILES && !isLong) return undefined;
  const isAlike = ({ totalBytes, largestBytes }: Run): boolean =>
    largestBytes <= (totalBytes - largestBytes) * MAX_SHARE;
  // what is gained are layers of which a read finds one where there were several, or shorter lists
  const layersSaved = (run: Run): number => (run.depth >= MERGED_FILES && isAlike(run) ? run.depth - 1 : 0);
  const filesSaved = (run: Run): number => (isAlike(run) ? run.files - 1 : 0);
  const regular = cheapest(files, regions, layersSaved) ?? (isLong ? cheapest(files, regions, filesSaved) : undefined);
  return regular ?? (isLong || depth > CROWDED ? cheapest(files, regions, (run) => run.files - 1) : undefined);
}

interface Run {
  files: number;
  /** Files over one another. */
  depth: number;
  totalBytes: number;
  largestBytes: number;
}

/** The run of neighbours that costs the fewest bytes for each one that it gains; what gains nothing is not for choice. */
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
      assert(run.depth <= run.files, 'no more files lie over one another than there are');
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
