/**
 * Makes a failing run short: takes faults away, half of them first, then one by one, and the clients that it does not
 * need, and shortens the faults that are left, as long as the run still fails. The rest is the story of the failure.
 */
import type { Fault } from './faults.ts';
import { run, type RunResult } from './run.ts';

/** No fault is made shorter than this. */
const MIN_DURATION_MS = 500;

/** `failed`: the result of a run that failed. Returns a run that fails with as little as was found to be enough. */
export async function shrink(failed: RunResult): Promise<RunResult> {
  let best = failed;
  const stillFails = async (faults: readonly Fault[], idle: ReadonlySet<string>): Promise<boolean> => {
    const result = await run({ seed: failed.seed, faults, idle });
    if (result.violation === undefined) return false;
    best = result;
    return true;
  };
  const withFewerFaults = async (): Promise<void> => {
    for (let size = Math.ceil(best.faults.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
      for (let from = 0; from < best.faults.length; ) {
        const { faults, idle } = best;
        if (!(await stillFails([...faults.slice(0, from), ...faults.slice(from + size)], idle))) from += size;
      }
    }
  };
  await withFewerFaults();
  for (const name of failed.clients) await stillFails(best.faults, new Set([...best.idle, name]));
  await withFewerFaults();
  for (let i = 0; i < best.faults.length; i++) {
    for (;;) {
      const fault = best.faults[i]!;
      const shorter = { ...fault, durationMs: fault.durationMs / 2 };
      if (shorter.durationMs < MIN_DURATION_MS || !(await stillFails(best.faults.with(i, shorter), best.idle))) break;
    }
  }
  return best;
}
