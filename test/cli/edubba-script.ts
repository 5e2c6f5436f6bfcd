import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The script of the command for a process of its own: bin/edubba with the bundle, as users run it. Its start costs half
 * of what loading every module by itself does. From the sources where the tests themselves run so.
 */
export function edubbaScript(): string {
  const here = fileURLToPath(import.meta.url);
  return extname(here) === '.js' ? join(dirname(here), '../../../bin/edubba') : join(dirname(here), 'edubba.ts');
}
