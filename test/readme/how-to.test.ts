/** The files that docs/HOW-TO-ADD.md leads to are there. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from './place.ts';

const PATH = /^[\w.-]*\/[\w./-]+$|^[\w-]+\.(ts|md|mjs)$/;

/** A file without a folder lies next to the last one of its cell that has one. */
function pathsOf(cell: string): string[] {
  let folder = '.';
  return [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, text]) => {
    const path = (text as string).split(' ').find((word) => PATH.test(word));
    if (path === undefined) return [];
    if (path.includes('/')) folder = path.endsWith('/') ? path : dirname(path);
    return path.includes('/') ? path : join(folder, path);
  });
}

test('every file that is named is there', () => {
  const rows = readFileSync(join(ROOT, 'docs/HOW-TO-ADD.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '));
  const paths = rows.flatMap(pathsOf);
  assert.ok(paths.length > 60, `only ${paths.length} paths were found`);
  assert.deepEqual(
    paths.filter((path) => !existsSync(join(ROOT, path)) && !existsSync(join(ROOT, path.split('/').at(-1) as string))),
    [],
  );
});
