/**
 * Work on a tablet that fails because the tablet is on its way elsewhere: given up, divided, merged, its table deleted,
 * or the work called off. This is no fault, and nothing that a person who reads the log could mend.
 */
import { type BigtableError, Code } from '../base/index.ts';
import { isNotServing } from '../protocol/index.ts';

export function isRace(error: BigtableError): boolean {
  return error.code === Code.CANCELLED || isNotServing(error) || error.details.tabletGone === true;
}
