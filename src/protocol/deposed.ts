/** The refusal of a call of a master after whom another has taken the lock: it ends itself. */
import { BigtableError, Code } from '../base/index.ts';

export function deposed(masterEpoch: number, highest: number): BigtableError {
  return new BigtableError(
    Code.FAILED_PRECONDITION,
    `the master of epoch ${masterEpoch} was replaced by that of epoch ${highest}`,
    { details: { deposed: true } },
  );
}

export function isDeposed({ details }: BigtableError): boolean {
  return details['deposed'] === true;
}
