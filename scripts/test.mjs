/**
 * npm test [FILTER…]: builds if need be, runs every test beside the code and in test/ (interop and power apart), a process a
 * file and as many at once as there are cores, says each minute how far it is, and closes with one line 'N passed, N failed, N skipped'.
 *
 * FILTER: a part of a path; files that match any are run. --name=REGEX: only tests so named. --file-secs=N: how long a file may take (default 600).
 * A file that crashes, or a run without any test, is a failure.
 */
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { run } from 'node:test';
import { buildOrExit } from './lib/build.mjs';
import { closingLine, filesUnder, ROOT, secondsSince } from './lib/repository.mjs';

const APART = /^dist\/test\/(interop|power)\//;
const MAX_FILE_SECONDS = 600;
const PROGRESS_MS = 60_000;
const TOLD_SLOWEST = 8;

const start = performance.now();
buildOrExit();
process.chdir(ROOT);

const words = process.argv.slice(2);
const names = words
  .filter((word) => word.startsWith('--name='))
  .map((word) => new RegExp(word.slice('--name='.length)));
const fileSeconds = Number(
  words.find((word) => word.startsWith('--file-secs='))?.slice('--file-secs='.length) ?? MAX_FILE_SECONDS,
);
const filters = words
  .filter((word) => !word.startsWith('--'))
  .map((word) => word.replace(/^\.\//, '').replace(/\.ts$/, '.js'));
const files = ['src', 'test', 'examples']
  .flatMap((folder) => filesUnder(`dist/${folder}`, (name) => name.endsWith('.test.js')))
  .filter((path) => !APART.test(path) && (filters.length === 0 || filters.some((filter) => path.includes(filter))));

const paths = files.map((path) => join(ROOT, path));
const tally = { passed: 0, failed: 0, skipped: 0 };
const failures = [];
const withoutTests = [];
/** Times of the outermost tests, by file. */
const secondsOf = new Map();
const isSet = (mark) => mark !== undefined && mark !== false;
const isSuite = (event) => event.details?.type === 'suite';
const sourceOf = (path) =>
  path
    ? relative(ROOT, path)
        .replace(/^dist\//, '')
        .replace(/\.js$/, '.ts')
    : '';

function errorText(event) {
  const error = event.details?.error;
  if (error?.signal) return `    the process was ended by ${error.signal}`;
  if (error?.exitCode) return `    the process ended with status ${error.exitCode}`;
  const cause = error?.cause ?? error;
  return String(cause?.stack ?? cause ?? 'failed').replace(/^/gm, '    ');
}

function onFail(event) {
  // a suite fails by what is in it, which is told by itself, unless it failed before or after its tests
  const ofParts = event.details?.error?.failureType === 'subtestsFailed';
  if (isSuite(event) && ofParts) return;
  if (isSet(event.todo)) return void tally.skipped++;
  tally.failed++;
  if (!ofParts) tell(event.file, paths.includes(event.name) ? '(the whole file)' : event.name, errorText(event));
}

function tell(path, name, text) {
  const line = `FAIL ${sourceOf(path)} ${name}`;
  failures.push(line);
  console.log(`${line}\n${text}`);
}

function onPass(event) {
  // a file that passes as a whole is one in which no test was found
  if (paths.includes(event.name)) return void withoutTests.push(event.name);
  if (isSuite(event)) return;
  if (!isSet(event.skip) && !isSet(event.todo)) return void tally.passed++;
  tally.skipped++;
  if (typeof event.skip === 'string') console.log(`SKIP ${sourceOf(event.file)} ${event.name}: ${event.skip}`);
}

if (paths.length > 0) {
  const setUp = new URL('lib/check-invariants.mjs', import.meta.url).href;
  process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --enable-source-maps --import=${setUp}`.trim();
  const stream = run({
    files: paths,
    concurrency: availableParallelism(),
    timeout: fileSeconds * 1000,
    ...(names.length > 0 ? { testNamePatterns: names } : {}),
  });
  const heard = new Set();
  const tellProgress = () =>
    console.log(
      `${secondsSince(start)}: results from ${heard.size} of ${files.length} files, ${tally.passed} passed, ${tally.failed} failed`,
    );
  const progress = setInterval(tellProgress, PROGRESS_MS);
  stream.on('test:complete', ({ file, nesting, details }) => {
    if (!file) return;
    const path = sourceOf(file);
    heard.add(path);
    if (nesting === 0) secondsOf.set(path, (secondsOf.get(path) ?? 0) + details.duration_ms / 1000);
  });
  stream.on('test:pass', onPass);
  stream.on('test:fail', onFail);
  stream.on('test:stdout', ({ message }) => process.stdout.write(message));
  stream.on('test:stderr', ({ message }) => process.stderr.write(message));
  await new Promise((resolve, reject) => stream.on('end', resolve).on('error', reject).resume());
  clearInterval(progress);
}

for (const path of names.length === 0 ? withoutTests : []) {
  tally.failed++;
  tell(path, '(the whole file)', '    it reported no test');
}
if (tally.passed + tally.failed === 0) {
  console.log(filters.length > 0 ? `no test matches ${filters.join(' ')}` : 'no test was found');
  tally.failed++;
}
if (failures.length > 1) console.log(`\n${failures.length} failures:\n${failures.join('\n')}`);
const slowest = [...secondsOf].sort(([, a], [, b]) => b - a).slice(0, TOLD_SLOWEST);
console.log(`slowest: ${slowest.map(([path, seconds]) => `${path} ${seconds.toFixed(0)} s`).join(', ')}`);
console.log(`${files.length} files in ${secondsSince(start)}`);
console.log(closingLine(tally));
process.exitCode = tally.failed > 0 ? 1 : 0;
