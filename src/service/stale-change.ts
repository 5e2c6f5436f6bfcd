/** The error of a change that was computed from what is no longer so. */
import { BigtableError, Code } from '../base/index.ts';

export function changedSinceRead(name: string): BigtableError {
  return new BigtableError(Code.ABORTED, `${name} has changed since it was read: read it again, and repeat the change`);
}
