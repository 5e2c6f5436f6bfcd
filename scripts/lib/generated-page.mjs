/** Pages of docs/ that are made from a table in src/. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './repository.mjs';

/**
 * With `--write` on the command line writes the page; else ends the process with status 1 if the page is not `text`.
 *
 * @param {{ page: string, text: string, source: string, script: string }} options
 */
export function keepPage({ page, text, source, script }) {
  const path = join(ROOT, page);
  if (process.argv.includes('--write')) {
    writeFileSync(path, text);
  } else if (readFileSync(path, 'utf8') !== text) {
    console.error(`${page} is not what ${source} says: node --import tsx ${script} --write`);
    process.exitCode = 1;
  }
}
