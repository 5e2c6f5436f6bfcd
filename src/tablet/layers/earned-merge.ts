/**
 * Chooses the files of a locality group whose merge reads have earned (docs/decisions/0045-merges-for-reads.md):
 * neighbours in age whose credit reaches the price of their merge. Files that no read has found over one another have
 * no credit.
 */
import { assert } from '../../base/index.ts';
import { MAX_MERGED_FILES, type MergeRun } from './merge-choice.ts';

/** The price of a compaction, however small: its thread, its files, its commit. */
const COMPACTION_MICROS = 10_000;
const MICROS_PER_ENTRY = 0.7;
const MICROS_PER_BYTE = 0.004;

/** What reads have earned by looking into two files, indices by age, with none of the group between them. */
export interface PairCredit {
  readonly newer: number;
  readonly older: number;
  readonly micros: number;
}

/** What a compaction has to rewrite. */
export interface Rewritten {
  readonly sizeBytes: number;
  readonly entryCount: number;
}

/** About the CPU time of a compaction. */
export function compactionMicros(inputs: readonly Rewritten[]): number {
  return inputs.reduce((sum, input) => sum + rewriteMicros(input), COMPACTION_MICROS);
}

function rewriteMicros({ sizeBytes, entryCount }: Rewritten): number {
  return sizeBytes * MICROS_PER_BYTE + entryCount * MICROS_PER_ENTRY;
}

/**
 * `files`: of one group, by age. Returns the run of files with the most credit for its price; undefined if no run has
 * earned its price `times` over, 1 or more.
 */
export function chooseEarnedMerge(
  files: readonly Rewritten[],
  credits: readonly PairCredit[],
  times: number,
): MergeRun | undefined {
  assert(times >= 1, 'a merge costs no more than reads have earned');
  const byOlder: PairCredit[][] = files.map(() => []);
  let totalMicros = 0;
  for (const pair of credits) {
    const { newer, older, micros } = pair;
    assert(newer < older && older < files.length && micros >= 0, 'credit is earned by a file and an older one');
    byOlder[older]!.push(pair);
    totalMicros += micros;
  }
  if (totalMicros < COMPACTION_MICROS * times) return undefined;
  let best: MergeRun | undefined;
  let bestRatio = times;
  for (const from of new Set(credits.map(({ newer }) => newer))) {
    let priceMicros = COMPACTION_MICROS;
    let earnedMicros = 0;
    for (let to = from; to < files.length && to - from < MAX_MERGED_FILES; to++) {
      priceMicros += rewriteMicros(files[to]!);
      for (const { newer, micros } of byOlder[to]!) if (newer >= from) earnedMicros += micros;
      if (earnedMicros / priceMicros < bestRatio) continue;
      best = { from, to };
      bestRatio = earnedMicros / priceMicros;
    }
  }
  return best;
}
