/**
 * Which files of a locality group a merging compaction takes (paper section 5.4; docs/decisions/0011-compactions.md): neighbours in age, at least
 * MERGED_FILES of them, none above a fifth of the others together. So every merge makes a file at least six times as large as its largest input,
 * and a byte is written again once each time the file it lies in has grown sixfold (eightfold, where files are alike). Only where small and
 * large files alternate so that very many are left do neighbours of any size go together.
 */

/** Fewest files of a merge. */
export const MERGED_FILES = 8;
/** Most: each takes a block and read-ahead in memory. */
const MOST_MERGED_FILES = 32;
const LARGEST_SHARE = 1 / 5;
/** With more files than this any neighbours are merged, so that a group never has too many of which none are due. */
const CROWDED_FILES = 24;
/** Smaller files count as this large: what they cost is the file, not its bytes. */
const SMALL_BYTES = 64 * 1024;
/** A group with so many files holds back writes until there are fewer. */
export const TOO_MANY_FILES = 48;

/** Indices into the sizes, both inclusive. */
export interface MergeRun {
  readonly from: number;
  readonly to: number;
}

/** `sizesBytes`: of a group's files, by age. The run that costs the fewest bytes for each file it saves; undefined where none is due. */
export function chooseMerge(sizesBytes: readonly number[]): MergeRun | undefined {
  const sizes = sizesBytes.map((bytes) => Math.max(bytes, SMALL_BYTES));
  let best: MergeRun | undefined;
  const isCrowded = sizes.length > CROWDED_FILES;
  let bestCost = Number.POSITIVE_INFINITY;
  for (let from = 0; from + MERGED_FILES <= sizes.length; from++) {
    let total = 0;
    let largest = 0;
    for (let to = from; to < sizes.length && to - from < MOST_MERGED_FILES; to++) {
      const size = sizes[to] as number;
      total += size;
      if (size > largest) largest = size;
      const files = to - from + 1;
      if (files < MERGED_FILES || (!isCrowded && largest > (total - largest) * LARGEST_SHARE)) continue;
      const cost = total / (files - 1);
      if (cost < bestCost) {
        bestCost = cost;
        best = { from, to };
      }
    }
  }
  return best;
}
