/** Paths of `file:` URLs. */
import { fileURLToPath } from 'node:url';
import { invalidArgument } from '../../base/index.ts';

/** The path of the URL. INVALID_ARGUMENT where it does not name a file of this machine. */
export function filePathOf(url: URL): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw invalidArgument(
      `invalid URL "${url.href}": expected a file of this machine: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}
