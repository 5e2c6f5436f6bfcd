/**
 * How many invariants the rooms that keep data assert: calls of `assert` and of functions named `assert...`, per 1,000
 * lines of code. Empty lines, comments, tests and fixtures do not count (docs/decisions/0036-asserts.md).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { filesUnder, ROOT } from '../lib/repository.mjs';

/** The fewest that a room may have. Raise a limit when its room has more; never lower one. */
const LIMITS = {
  tablet: 20,
  sstable: 20,
  memtable: 20,
  commitlog: 20,
  metadata: 20,
  tabletserver: 20,
  master: 20,
  locator: 20,
};

/** @param {string} name */
const isProduct = (name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && !name.endsWith('fixtures.ts');
const CALL = /(?<!function )\bassert[A-Z]?\w*\(/g;
const COMMENTS = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm;

/** A row for each room: { room, lines, asserts, perThousand, limit }. */
export function assertDensities() {
  return Object.entries(LIMITS).map(([room, limit]) => {
    let lines = 0;
    let asserts = 0;
    for (const path of filesUnder(`src/${room}`, isProduct)) {
      const code = readFileSync(join(ROOT, path), 'utf8').replace(COMMENTS, '');
      lines += code.split('\n').filter((line) => line.trim() !== '').length;
      asserts += code.match(CALL)?.length ?? 0;
    }
    return { room, lines, asserts, perThousand: (1000 * asserts) / lines, limit };
  });
}
