/** Starts what has ended, or could not start, again and again. */
import { toBigtableError } from '../../base/index.ts';
import { type Env, sleep } from '../../env/index.ts';

/**
 * Delay between the end of a role, or a start that failed, and the next start. It doubles while starts fail: each of a
 * tablet server leaves a dead one, whose log the master has to fence.
 */
const RESTART_MS = 500;

export interface StartAgainOptions {
  readonly env: Pick<Env, 'clock' | 'logger'>;
  /** The role that the log names: 'a master'. */
  readonly what: string;
  /** Once it aborts nothing is started any more. */
  readonly signal: AbortSignal;
  /** The longest delay. */
  readonly mostMs: number;
}

/** Resolves when one start has succeeded, or the signal has aborted. `delayMs`: until the first start. */
export async function startAgain(
  { env, what, signal, mostMs }: StartAgainOptions,
  start: () => Promise<void>,
  delayMs = RESTART_MS,
): Promise<void> {
  for (let waitMs = delayMs; !signal.aborted; waitMs = Math.min(Math.max(2 * waitMs, RESTART_MS), mostMs)) {
    if (waitMs > 0) await sleep(env.clock, waitMs, signal).catch(() => {});
    if (signal.aborted) return;
    try {
      return await start();
    } catch (error) {
      if (signal.aborted) return;
      env.logger.error(`${what} could not start and will be tried again`, { error: toBigtableError(error).message });
    }
  }
}
