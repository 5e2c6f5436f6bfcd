/** The errors of a call that ends without an answer: cancelled by its caller, out of time, or on its way. */
import { BigtableError, Code } from '../../base/index.ts';

/** CANCELLED by the caller. `waitedFor`: what the call waited for, where that is known. */
export function callCancelled(waitedFor?: string, cause?: unknown): BigtableError {
  return new BigtableError(Code.CANCELLED, `the caller cancelled the call${during(waitedFor)}`, { cause });
}

/** DEADLINE_EXCEEDED. `waitedFor`: what the call waited for, where that is known. */
export function deadlineExceeded(waitedFor?: string): BigtableError {
  return new BigtableError(Code.DEADLINE_EXCEEDED, `the deadline of the call passed${during(waitedFor)}`);
}

/** UNAVAILABLE: surely nothing was done, so a caller that finds the right server may send the call again. */
export function notReached(message: string): BigtableError {
  return new BigtableError(Code.UNAVAILABLE, message, { details: { notReached: true } });
}

function during(waitedFor: string | undefined): string {
  return waitedFor === undefined ? '' : ` while it waited for ${waitedFor}`;
}
