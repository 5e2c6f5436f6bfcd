/**
 * Makes a failing run short: takes faults away, half of them first, then one by one, as long as the run still fails. The
 * rest is the story of the failure.
 */
import type { Fault } from './faults.ts';
import { run, type RunResult } from './run.ts';

/** `failed`: the result of a run that failed. Returns a run that fails with as few faults as were found. */
export async function shrink(failed: RunResult): Promise<RunResult> {
  let best = failed;
  for (let size = Math.ceil(best.faults.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < best.faults.length; ) {
      const fewer: readonly Fault[] = [...best.faults.slice(0, from), ...best.faults.slice(from + size)];
      const result = await run({ seed: failed.seed, faults: fewer });
      if (result.violation === undefined) from += size;
      else best = result;
    }
  }
  return best;
}
