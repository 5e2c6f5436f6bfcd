/**
 * Golden files: bytes that Edubba once wrote. Tests compare them with what it writes now and read them back.
 * WRITE_GOLDEN=1 in the environment writes them anew; a change of their bytes is a new version of their format.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository's folder; the same for sources and for what was built of them. */
const ROOT = repository(dirname(fileURLToPath(import.meta.url)));

function repository(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : repository(dirname(folder));
}

/** The golden file `name`. `written`: what the tests write now; without it the file is never written anew. */
export function goldenFile(name: string, written?: Uint8Array): Buffer {
  const path = join(ROOT, 'test/golden', name);
  if (written !== undefined && process.env.WRITE_GOLDEN === '1') {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, written);
  }
  return readFileSync(path);
}

/** The bytes of each hex dump under the heading "Example" of a page in docs/formats. */
export function examplesOf(page: string): Buffer[] {
  const example = readFileSync(join(ROOT, 'docs/formats', page), 'utf8').split('## Example')[1] ?? '';
  return [...example.matchAll(/```\n([^`]*)```/g)].map(([, dump = '']) => {
    const lines = dump.split('\n').map((line) => line.slice(6, 54).replaceAll(' ', ''));
    return Buffer.from(lines.join(''), 'hex');
  });
}
