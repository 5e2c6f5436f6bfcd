/**
 * npm test [FILTER…]: builds what changed and runs every test next to the code, in test/ and in examples/ (interop,
 * power and etcd excepted): a process per file, one more at the same time than there are cores, since some wait.
 * scripts/lib/test-report.mjs reports.
 *
 * FILTER: part of a path; files that match any of them run. --name=REGEX: only tests with such a name.
 * --file-secs=N: how long a file may take (default 600).
 */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { run } from 'node:test';
import { buildOrExit } from './lib/build.mjs';
import { helpIfAsked } from './lib/command-line.mjs';
import { filesUnder, ROOT } from './lib/repository.mjs';
import TestReport from './lib/test-report.mjs';

helpIfAsked(import.meta.url);

const APART = /^dist\/test\/(interop|power|etcd)\//;
const MAX_FILE_SECONDS = 600;

buildOrExit();
process.chdir(ROOT);

const words = process.argv.slice(2);
/** @param {string} name */
const optionsNamed = (name) => words.filter((word) => word.startsWith(name)).map((word) => word.slice(name.length));
const names = optionsNamed('--name=').map((text) => new RegExp(text));
const fileSeconds = Number(optionsNamed('--file-secs=')[0] ?? MAX_FILE_SECONDS);
const filters = words
  .filter((word) => !word.startsWith('--'))
  .map((word) => word.replace(/^\.\//, '').replace(/\.ts$/, '.js'));
const files = ['src', 'test', 'examples']
  .flatMap((folder) => filesUnder(`dist/${folder}`, (name) => name.endsWith('.test.js')))
  .filter((path) => !APART.test(path) && (filters.length === 0 || filters.some((filter) => path.includes(filter))))
  .map((path) => join(ROOT, path));

const report = new TestReport({ files: files.length, byName: names.length > 0 });
report.pipe(process.stdout);
if (files.length === 0) {
  report.end();
} else {
  const setUp = new URL('lib/check-invariants.mjs', import.meta.url).href;
  process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --import=${setUp}`.trim();
  run({
    files,
    concurrency: availableParallelism() + 1,
    timeout: fileSeconds * 1000,
    ...(names.length > 0 ? { testNamePatterns: names } : {}),
  }).pipe(report);
}
