/** Links between the repository's pages lead to files that are there. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from './place.ts';

const FOLDERS = [
  '.',
  '.github',
  'deploy',
  'docs',
  'docs/decisions',
  'docs/formats',
  'examples/webtable',
  'test/interop',
  'test/interop/suites',
  'bench/btbench',
];

test('every link to a file of the repository has its file', () => {
  const dead: string[] = [];
  let found = 0;
  for (const folder of FOLDERS) {
    for (const name of readdirSync(join(ROOT, folder)).filter((entry) => entry.endsWith('.md'))) {
      for (const [, target] of readFileSync(join(ROOT, folder, name), 'utf8').matchAll(/\]\(([^)\s]+)\)/g)) {
        const path = (target as string).replace(/#.*$/, '');
        if (path === '' || /^[a-z]+:/.test(path)) continue;
        found++;
        if (!existsSync(join(ROOT, dirname(join(folder, name)), path))) dead.push(`${folder}/${name}: ${target}`);
      }
    }
  }
  assert.ok(found > 50, `only ${found} links were found`);
  assert.deepEqual(dead, []);
});
