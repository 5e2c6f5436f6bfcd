/** The errors of calls that end without an answer (cancelled, out of time, on their way), or are refused by storage. */
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

/** True for RESOURCE_EXHAUSTED, with which storage says that it surely wrote nothing and goes on. */
export function isStorageRefusal(error: unknown): error is BigtableError {
  return error instanceof BigtableError && error.code === Code.RESOURCE_EXHAUSTED;
}

function during(waitedFor: string | undefined): string {
  return waitedFor === undefined ? '' : ` while it waited for ${waitedFor}`;
}
