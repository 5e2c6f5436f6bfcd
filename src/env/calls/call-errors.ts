/** The errors of a call that ends before its answer: cancelled by its caller, or out of time. */
import { BigtableError, Code } from '../../base/index.ts';

/** CANCELLED by the caller. `waitedFor`: what the call waited for, where that is known. */
export function callCancelled(waitedFor?: string, cause?: unknown): BigtableError {
  return new BigtableError(Code.CANCELLED, `the caller cancelled the call${during(waitedFor)}`, { cause });
}

/** DEADLINE_EXCEEDED. `waitedFor`: what the call waited for, where that is known. */
export function deadlineExceeded(waitedFor?: string): BigtableError {
  return new BigtableError(Code.DEADLINE_EXCEEDED, `the deadline of the call passed${during(waitedFor)}`);
}

function during(waitedFor: string | undefined): string {
  return waitedFor === undefined ? '' : ` while it waited for ${waitedFor}`;
}
