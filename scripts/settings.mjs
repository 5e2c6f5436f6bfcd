/**
 * docs/SETTINGS.md from the table of settings, src/cli/serve-settings.ts. Without an argument it compares, and ends with status 1 where the page is not what the
 * table says.
 *
 *   node --import tsx scripts/settings.mjs [--write]
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { settingsPage } from '../src/cli/index.ts';
import { ROOT } from './lib/repository.mjs';

const path = join(ROOT, 'docs/SETTINGS.md');
if (process.argv.includes('--write')) {
  writeFileSync(path, settingsPage());
} else if (readFileSync(path, 'utf8') !== settingsPage()) {
  console.error('docs/SETTINGS.md is not what src/cli/serve-settings.ts says: node --import tsx scripts/settings.mjs --write');
  process.exitCode = 1;
}
