/**
 * Checks if others than its owner may use a file or directory. POSIX alone: elsewhere modes have no meaning, and
 * nothing is reported.
 */
import { stat } from 'node:fs/promises';
import { platform } from 'node:os';

const OTHERS_WRITE = 0o022;
const OTHERS_ANYTHING = 0o077;
/** The access that a group may have to a file of root, as services are given keys on many systems. */
const GROUP_READS = 0o040;

/**
 * The mode in octal where others have access that they should not have: to read or write a secret file, to write a
 * trusted one. Undefined where they have not, and where the mode cannot be read.
 */
export async function modeForOthers(path: string, kind: 'secret' | 'trusted'): Promise<string | undefined> {
  if (platform() === 'win32') return undefined;
  const found = await stat(path).catch(() => undefined);
  if (!found) return undefined;
  const ofRoot = found.uid === 0 && found.isFile();
  const forbidden = kind === 'trusted' ? OTHERS_WRITE : ofRoot ? OTHERS_ANYTHING & ~GROUP_READS : OTHERS_ANYTHING;
  return (found.mode & forbidden) === 0 ? undefined : (found.mode & 0o777).toString(8).padStart(3, '0');
}
