/**
 * The range deletions of one column in the layers being merged, and the cells of each layer that they hide. Cells of a
 * column are looked up newest first, so each list is walked once from its end.
 */
import { assert, INT64_MIN, int64, type Int64, toBigInt } from '../../base/index.ts';

export interface VersionRange {
  readonly start: Int64;
  /** Exclusive; undefined = no end. */
  readonly end: Int64 | undefined;
}

interface LayerRanges {
  readonly age: number;
  readonly ranges: VersionRange[];
  /** Ranges from this index on lie above every timestamp still to come. */
  end: number;
}

export class HiddenVersions {
  readonly #layers: LayerRanges[] = [];

  get isEmpty(): boolean {
    return this.#layers.length === 0;
  }

  clear(): void {
    this.#layers.length = 0;
  }

  /** Ranges of one layer come ascending and disjoint; all come before the first `over`. */
  add(age: number, start: Int64, end: Int64 | undefined): void {
    let layer = this.#layers.find((each) => each.age === age);
    if (layer === undefined) {
      layer = { age, ranges: [], end: 0 };
      this.#layers.push(layer);
    }
    const last = layer.ranges.at(-1);
    assert(last === undefined || (last.end !== undefined && last.end <= start), 'the ranges of a layer ascend');
    layer.ranges.push({ start, end });
    layer.end = layer.ranges.length;
  }

  /** Returns the range of a layer newer than `age` that covers the timestamp. Timestamps come in descending order. */
  over(age: number, timestamp: Int64): VersionRange | undefined {
    for (const layer of this.#layers) {
      const ranges = layer.ranges;
      while (layer.end > 0 && ranges[layer.end - 1]!.start > timestamp) layer.end--;
      const range = ranges[layer.end - 1];
      if (layer.age < age && range !== undefined && (range.end === undefined || timestamp < range.end)) return range;
    }
    return undefined;
  }

  /** All ranges as ascending, disjoint ones that do not touch. */
  union(): VersionRange[] {
    const all = this.#layers
      .flatMap((layer) => layer.ranges)
      .sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0));
    const out: VersionRange[] = [];
    for (const range of all) {
      const last = out.at(-1);
      if (last === undefined || (last.end !== undefined && last.end < range.start)) out.push(range);
      else if (last.end !== undefined && (range.end === undefined || range.end > last.end))
        out[out.length - 1] = { start: last.start, end: range.end };
    }
    return out;
  }
}

/** True if the range covers all of int64. */
export function coversAll(range: VersionRange): boolean {
  return range.start === INT64_MIN && range.end === undefined;
}

/** The largest timestamp below the range; undefined if there is none. */
export function timestampBelow(range: VersionRange): Int64 | undefined {
  return range.start === INT64_MIN ? undefined : int64(toBigInt(range.start) - 1n);
}
