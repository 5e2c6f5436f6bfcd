/**
 * Tells where files of a tablet overlap: the first and last rows of the files cut the rows into regions, in each of
 * which the same files may have rows. A load in the order of rows makes files that do not overlap, of which a row finds
 * one, however many there are.
 */
import { assert, type ByteString } from '../../base/index.ts';

/** The first and last row of a file; undefined if it may have rows anywhere. */
export interface RowExtent {
  readonly firstRow: ByteString | undefined;
  readonly lastRow: ByteString | undefined;
}

export const ANYWHERE: RowExtent = { firstRow: undefined, lastRow: undefined };

interface Cut {
  readonly row: ByteString;
  readonly file: number;
  /** True: the file ends with the row. False: it begins with it. */
  readonly isEnd: boolean;
}

export class FileRegions {
  /** Number of regions: one more than cuts. */
  readonly count: number;
  readonly #cuts: readonly Cut[];
  /** By file: the first and the last region in which it may have rows. */
  readonly #first: Int32Array;
  readonly #last: Int32Array;

  constructor(files: readonly RowExtent[]) {
    const cuts: Cut[] = [];
    for (let file = 0; file < files.length; file++) {
      const { firstRow, lastRow } = files[file]!;
      if (firstRow !== undefined && lastRow !== undefined)
        cuts.push({ row: firstRow, file, isEnd: false }, { row: lastRow, file, isEnd: true });
    }
    cuts.sort(byRow);
    this.#cuts = cuts;
    this.count = cuts.length + 1;
    this.#first = new Int32Array(files.length);
    this.#last = new Int32Array(files.length).fill(cuts.length);
    for (let i = 0; i < cuts.length; i++) {
      const { file, isEnd } = cuts[i]!;
      if (isEnd) this.#last[file] = i;
      else this.#first[file] = i + 1;
    }
  }

  /** Returns the region of the row. */
  regionOf(row: ByteString): number {
    const cuts = this.#cuts;
    let low = 0;
    let high = cuts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const cut = cuts[middle]!;
      if (cut.isEnd ? cut.row < row : cut.row <= row) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Counts the file in each of its regions and returns the highest count. `counts` has an item for each region. */
  countIn(file: number, counts: Int32Array): number {
    assert(counts.length === this.count, 'every region is counted');
    let most = 0;
    const last = this.#last[file]!;
    for (let region = this.#first[file]!; region <= last; region++) {
      const count = (counts[region]! + 1) | 0;
      counts[region] = count;
      if (count > most) most = count;
    }
    return most;
  }

  /** The largest number of files that overlap. */
  depth(): number {
    const counts = new Int32Array(this.count);
    let depth = 0;
    for (let file = 0; file < this.#first.length; file++) depth = Math.max(depth, this.countIn(file, counts));
    return depth;
  }

  /** By region: the files that may have rows in it, in their order. */
  filesByRegion<F>(files: readonly F[]): readonly (readonly F[])[] {
    assert(files.length === this.#first.length, 'the files are those of which the regions were made');
    const regions = Array.from({ length: this.count }, (): F[] => []);
    files.forEach((file, i) => {
      for (let region = this.#first[i]!; region <= this.#last[i]!; region++) regions[region]!.push(file);
    });
    return regions;
  }
}

/**
 * At the same row, starts come before ends: both a file that ends with the row and one that starts with it contain it.
 */
function byRow(a: Cut, b: Cut): number {
  if (a.row !== b.row) return a.row < b.row ? -1 : 1;
  return Number(a.isEnd) - Number(b.isEnd);
}
