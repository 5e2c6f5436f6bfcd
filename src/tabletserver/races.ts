/**
 * Work on a tablet that fails because the tablet is on its way elsewhere: released, divided, merged, its table deleted,
 * or the work cancelled. This is not a fault, and needs no operator.
 */
import { type BigtableError, Code } from '../base/index.ts';
import { isNotServing } from '../protocol/index.ts';

export function isRace(error: BigtableError): boolean {
  return error.code === Code.CANCELLED || isNotServing(error) || error.details.tabletGone === true;
}
