/**
 * The table of rooms in docs/ARCHITECTURE.md from scripts/lint/rooms.mjs. Without an argument it compares, and ends
 * with status 1 where the page is not what the table says.
 *
 *   node scripts/rooms.mjs [--write]
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { keepPage } from './lib/generated-page.mjs';
import { ROOT } from './lib/repository.mjs';
import { roomsTable, upwardImports } from './lint/rooms.mjs';

const PAGE = 'docs/ARCHITECTURE.md';
/** The table: the lines between its head and the next empty line. */
const TABLE = /\| floor \| room \|[\s\S]*?\n(?=\n)/;

const upward = upwardImports();
if (upward.length > 0) {
  console.error(upward.join('\n'));
  process.exitCode = 1;
}
const text = readFileSync(join(ROOT, PAGE), 'utf8').replace(TABLE, roomsTable());
keepPage({ page: PAGE, text, source: 'scripts/lint/rooms.mjs', script: 'scripts/rooms.mjs' });
