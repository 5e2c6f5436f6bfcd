import { BigtableError } from '../../src/embedded/index.ts';
import { type Clock, sleep } from '../../src/env/index.ts';
import { FAILURES } from './verdicts.ts';

/** The pause before a call that has failed is made again. */
export const TRY_AGAIN_MS = 500;

/** Does the work; returns the error with which it fails, undefined if it does not. Any other error is thrown. */
export async function failureOf(work: () => Promise<unknown>): Promise<BigtableError | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (error instanceof BigtableError) return error;
    throw error;
  }
}

export interface Attempts {
  readonly clock: Clock;
  /** True when no other attempt is to be made. */
  readonly isOver: () => boolean;
  /** The code that says that an earlier attempt has done it; undefined: none says so. */
  readonly done: string | undefined;
}

/** Makes the call until it is answered. Returns 'unknown' when time was over before; an error that no fault explains. */
export async function untilAnswered(
  { clock, isOver, done }: Attempts,
  call: () => Promise<unknown>,
): Promise<'done' | 'unknown' | BigtableError> {
  for (let attempts = 1; ; attempts++) {
    const failure = await failureOf(call);
    if (failure === undefined || (attempts > 1 && failure.codeName === done)) return 'done';
    if (!FAILURES.has(failure.codeName)) return failure;
    if (isOver()) return 'unknown';
    await sleep(clock, TRY_AGAIN_MS);
  }
}
