/**
 * Decides if one build costs more CPU than another: the arithmetic of `npm run bench -- compare`.
 *
 * Each line (a workload) is measured once a round with both builds, one right after the other, so that a machine whose
 * speed drifts is equally fast for both. A round gives a ratio: CPU time per operation of the new build over the old
 * one's. The median of a line's ratios is its result; half the distance between their quartiles is its spread.
 *
 * Writes that follow one another on one table are judged as one line, their sum: what one of them leaves to flush and
 * to merge is done in it or in the next one, and a build that merges earlier would fail in one line for what the next
 * one saves.
 */
import { assert } from '../../src/base/index.ts';

/** The geometric mean of the medians of all lines may be at most this. */
export const MAX_MEAN_RATIO = 1.02;
/** The median of a single line, less its spread, may be at most this. */
export const MAX_LINE_RATIO = 1.05;
/** Fewer rounds say nothing about the spread. */
export const MIN_ROUNDS = 9;

/** CPU time per operation in one round, in any one unit. */
export interface Round {
  readonly before: number;
  readonly now: number;
}

export interface LineVerdict {
  readonly line: string;
  /** The medians, in the unit of the rounds. */
  readonly before: number;
  readonly now: number;
  /** Median of now / before, round by round. */
  readonly ratio: number;
  readonly spread: number;
  readonly rounds: number;
  readonly passes: boolean;
}

export interface Verdict {
  readonly lines: readonly LineVerdict[];
  readonly meanRatio: number;
  readonly passes: boolean;
}

/** The value below which `share` of the numbers lie, between neighbours in proportion. */
export function quantile(numbers: readonly number[], share: number): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)] ?? Number.NaN;
  const high = sorted[Math.ceil(at)] ?? Number.NaN;
  return low + (high - low) * (at - Math.floor(at));
}

function judgeLine(line: string, rounds: readonly Round[]): LineVerdict {
  const ratios = rounds.map(({ before, now }) => now / before);
  const ratio = quantile(ratios, 0.5);
  const spread = (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / 2;
  return {
    line,
    before: quantile(
      rounds.map(({ before }) => before),
      0.5,
    ),
    now: quantile(
      rounds.map(({ now }) => now),
      0.5,
    ),
    ratio,
    spread,
    rounds: rounds.length,
    passes: ratio - spread <= MAX_LINE_RATIO,
  };
}

/**
 * The rounds with those of `lines` replaced by their sums, as a line of that name at the end. Returned as they are
 * where a line is missing. All of `lines` have as many rounds.
 */
export function summed(
  rounds: ReadonlyMap<string, readonly Round[]>,
  name: string,
  lines: readonly string[],
): ReadonlyMap<string, readonly Round[]> {
  const parts = lines.map((line) => rounds.get(line) ?? []);
  const [first] = parts;
  if (first === undefined || parts.some((part) => part.length === 0)) return rounds;
  assert(
    parts.every(({ length }) => length === first.length),
    'lines that are summed up have as many rounds',
  );
  const total = (which: keyof Round, i: number): number =>
    parts.reduce((sum, part) => sum + (part[i]?.[which] ?? 0), 0);
  const others = [...rounds].filter(([line]) => !lines.includes(line));
  return new Map([...others, [name, first.map((_, i) => ({ before: total('before', i), now: total('now', i) }))]]);
}

/** Judges all lines. Every line needs one round at least; a verdict of fewer than MIN_ROUNDS rounds does not pass. */
export function judge(lines: ReadonlyMap<string, readonly Round[]>): Verdict {
  const judged = [...lines].map(([line, rounds]) => judgeLine(line, rounds));
  const meanRatio = Math.exp(judged.reduce((sum, { ratio }) => sum + Math.log(ratio), 0) / judged.length);
  const isComplete = judged.length > 0 && judged.every(({ rounds }) => rounds >= MIN_ROUNDS);
  return {
    lines: judged,
    meanRatio,
    passes: isComplete && meanRatio <= MAX_MEAN_RATIO && judged.every(({ passes }) => passes),
  };
}
