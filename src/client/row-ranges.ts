/**
 * The ranges that a read requests, checked, in order and joined where they meet. There may be a million of them (a
 * guard of the API's reader), so work over all of them pauses: sorting is a merge of short sorted runs.
 *
 * Invariant: between two checks of the clock at most RUN_RANGES ranges, or RUN_BYTES of their keys, are handled.
 */
import { type Clock, checkContext, Pacer, type RequestContext } from '../env/index.ts';
import { compareStarts, isEmptyRange, joinRange, type Limits, normalizeRanges, type RowRange } from '../model/index.ts';
import { checkReadRanges } from '../service/index.ts';

const RUN_RANGES = 1024;
const RUN_BYTES = 256 * 1024;
/** Bytes of a key that count as one more item: comparing long keys takes its time. */
const BYTES_PER_ITEM = 1024;

/** Synchronous for few ranges. INVALID_ARGUMENT if one is not valid. */
export function orderedRanges(
  ranges: readonly RowRange[],
  limits: Limits,
  clock: Clock,
  context: RequestContext,
): RowRange[] | Promise<RowRange[]> {
  if (runFrom(ranges, 0) < ranges.length) return new Ordering(ranges, limits, clock, context).run();
  checkReadRanges(ranges, limits);
  return normalizeRanges(ranges);
}

function keyBytes({ start, end }: RowRange): number {
  return start.length + (end?.length ?? 0);
}

/** The end of the run that begins at `from`. */
function runFrom(ranges: readonly RowRange[], from: number): number {
  let bytes = 0;
  let to = from;
  while (to < ranges.length && to < from + RUN_RANGES && bytes < RUN_BYTES) bytes += keyBytes(ranges[to++]!);
  return to;
}

class Ordering {
  readonly #ranges: readonly RowRange[];
  readonly #limits: Limits;
  readonly #clock: Clock;
  readonly #context: RequestContext;
  readonly #pacer: Pacer;

  constructor(ranges: readonly RowRange[], limits: Limits, clock: Clock, context: RequestContext) {
    this.#ranges = ranges;
    this.#limits = limits;
    this.#clock = clock;
    this.#context = context;
    this.#pacer = new Pacer(clock);
  }

  async run(): Promise<RowRange[]> {
    let runs = await this.#runs();
    while (runs.length > 1) {
      const merged: RowRange[][] = [];
      for (let i = 0; i < runs.length; i += 2) {
        const [low, high] = [runs[i]!, runs[i + 1]];
        merged.push(high === undefined ? low : await this.#merged(low, high));
      }
      runs = merged;
    }
    const joined: RowRange[] = [];
    for (const range of runs[0] ?? []) {
      joinRange(joined, range);
      const wait = this.#due(range);
      if (wait !== undefined) await wait;
    }
    return joined;
  }

  /** Short sorted runs, without empty ranges. */
  async #runs(): Promise<RowRange[][]> {
    const runs: RowRange[][] = [];
    for (let from = 0; from < this.#ranges.length; ) {
      const to = runFrom(this.#ranges, from);
      const run = this.#ranges.slice(from, to);
      checkReadRanges(run, this.#limits);
      runs.push(run.filter((range) => !isEmptyRange(range)).sort(compareStarts));
      from = to;
      if (this.#pacer.due(RUN_RANGES)) await this.#pause();
    }
    return runs;
  }

  async #merged(low: readonly RowRange[], high: readonly RowRange[]): Promise<RowRange[]> {
    const merged: RowRange[] = [];
    for (let [i, j] = [0, 0]; i < low.length || j < high.length; ) {
      const [a, b] = [low[i], high[j]];
      const takesLow = b === undefined || (a !== undefined && compareStarts(a, b) <= 0);
      const range = (takesLow ? a : b)!;
      if (takesLow) i++;
      else j++;
      merged.push(range);
      const wait = this.#due(range);
      if (wait !== undefined) await wait;
    }
    return merged;
  }

  #due(range: RowRange): Promise<void> | undefined {
    return this.#pacer.due(1 + Math.floor(keyBytes(range) / BYTES_PER_ITEM)) ? this.#pause() : undefined;
  }

  async #pause(): Promise<void> {
    await this.#pacer.pauseForGc();
    checkContext(this.#context, this.#clock);
  }
}
