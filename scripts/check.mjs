/**
 * npm run check: types, lint, layers, dead code, lock file, file sizes, asserts, generated pages, citations and tidiness; a line for each with its time, what is wrong under
 * it, and a closing line 'N passed, N failed, N skipped'. npm run check -- lint layers: only these.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, install } from './lib/build.mjs';
import { capture, closingLine, dependency, filesUnder, ROOT, secondsSince } from './lib/repository.mjs';
import { assertDensities } from './lint/asserts.mjs';
import { brokenCitations } from './lint/citations.mjs';
import { outdated } from './lint/generated-code.mjs';
import { LOCK_FILES, missingEntries, readLock } from './lint/lock-file.mjs';
import { repositoryFiles, untidy } from './lint/tidy.mjs';

const SOFT_LINES = 400;
const HARD_LINES = 700;

/** Runs a tool of node_modules; what it prints counts only when it fails. */
async function tool(...args) {
  const { status, out, err } = await capture(process.execPath, args, {
    env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' },
  });
  return { ok: status === 0, text: `${out}${err}` };
}

function types() {
  build();
  return { ok: true, text: '' };
}

function sizes() {
  const long = [];
  let ok = true;
  for (const path of filesUnder('src', (name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))) {
    const text = readFileSync(join(ROOT, path), 'utf8');
    if (path.includes('/generated/')) continue;
    const lines = text.split('\n').length - 1;
    if (lines > HARD_LINES) ok = false;
    if (lines > SOFT_LINES)
      long.push(
        `${lines > HARD_LINES ? 'TOO LONG' : 'long'} ${path}: ${lines} lines (soft limit ${SOFT_LINES}, hard limit ${HARD_LINES})`,
      );
  }
  return { ok, text: long.join('\n'), warning: ok && long.length > 0 };
}

function asserts() {
  const rooms = assertDensities();
  const isLow = ({ perThousand, limit }) => perThousand < limit;
  const text = rooms.map((one) => {
    const { room, lines, asserts, perThousand, limit } = one;
    const mark = isLow(one) ? 'TOO FEW ' : '';
    return `${mark}${room}: ${perThousand.toFixed(1)} per 1,000 lines (${asserts} in ${lines}; at least ${limit})`;
  });
  return { ok: !rooms.some(isLow), text: text.join('\n'), warning: true };
}

/** What a step found wrong, a line each. */
function verdict(found) {
  return { ok: found.length === 0, text: found.join('\n') };
}

/** Whatever a reader may follow: code, pages, scripts. */
const CITING = /\.(ts|mjs|md|sh)$/;

async function citations() {
  const files = await repositoryFiles();
  return verdict(
    brokenCitations(
      files.filter((path) => CITING.test(path) && !path.includes('/generated/') && existsSync(join(ROOT, path))),
    ),
  );
}

function lockFile() {
  const lacks = LOCK_FILES.map((path) => [path, Object.keys(missingEntries(readLock(path).packages))]).filter(
    ([, missing]) => missing.length > 0,
  );
  return verdict(
    lacks.map(
      ([path, missing]) =>
        `${path} lacks ${missing.join(', ')}; npm ci would refuse it: node scripts/lint/lock-file.mjs --write`,
    ),
  );
}

const STEPS = {
  types,
  lint: () =>
    tool(dependency('@biomejs', 'biome', 'bin', 'biome'), 'check', '--error-on-warnings', '--max-diagnostics=100', '.'),
  layers: () =>
    tool(
      dependency('dependency-cruiser', 'bin', 'dependency-cruise.mjs'),
      '--config',
      '.dependency-cruiser.mjs',
      '--output-type',
      'err-long',
      ...['src', 'test', 'examples', 'bench'].filter((folder) => existsSync(folder)),
    ),
  'dead code': () =>
    tool(dependency('knip', 'bin', 'knip.js'), '--no-progress', '--no-config-hints', '--exclude', 'types'),
  'lock file': lockFile,
  'file sizes': sizes,
  asserts,
  'generated code': () => verdict(outdated()),
  'settings page': () => tool('--import', 'tsx', 'scripts/settings.mjs'),
  'metrics page': () => tool('--import', 'tsx', 'scripts/metrics.mjs'),
  'rooms table': () => tool('scripts/rooms.mjs'),
  citations,
  tidy: async () => verdict(await untidy()),
};

process.chdir(ROOT);
install();
const wanted = process.argv.slice(2);
const tally = { passed: 0, failed: 0, skipped: 0 };
for (const [name, step] of Object.entries(STEPS)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const start = performance.now();
  const {
    ok,
    text,
    warning = false,
  } = await Promise.resolve()
    .then(step)
    .catch((error) => ({ ok: false, text: error.message }));
  tally[ok ? 'passed' : 'failed']++;
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name.padEnd(10)} ${secondsSince(start)}`);
  if (!ok || warning) console.log(text.trimEnd().replace(/^/gm, '     '));
}
if (tally.passed + tally.failed === 0) {
  console.log(`no step named ${wanted.join(', ')}; there are ${Object.keys(STEPS).join(', ')}`);
  tally.failed++;
}
console.log(closingLine(tally));
process.exitCode = tally.failed > 0 ? 1 : 0;
