/** What the machine has. */
import { totalmem } from 'node:os';

/** Memory that this process may use: the machine's, or the limit of the container it runs in. */
export function memoryBytes(): number {
  const machine = totalmem();
  // 0, or more than there is, where nobody has set a limit
  const limit = process.constrainedMemory();
  return limit > 0 && limit < machine ? limit : machine;
}
