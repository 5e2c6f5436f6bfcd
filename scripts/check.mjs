/**
 * npm run check: types, types of the scripts, lint, layers, dead code, lock file, sizes, asserts, casts, state of
 * modules, generated pages, citations and tidiness. Prints a line for each, with its time and its figure; what is
 * wrong, under it; and a closing line 'N passed, N failed, N skipped'. npm run check -- lint layers: only these.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { build, install } from './lib/build.mjs';
import { helpIfAsked } from './lib/command-line.mjs';
import { capture, closingLine, dependency, ROOT, secondsSince } from './lib/repository.mjs';
import { assertDensities } from './lint/asserts.mjs';
import { brokenCitations } from './lint/citations.mjs';
import { outdated } from './lint/generated-code.mjs';
import { LOCK_FILES, missingEntries, readLock } from './lint/lock-file.mjs';
import { moduleState } from './lint/module-state.mjs';
import { casts, longest, MAX_COLUMNS, wideComments } from './lint/sizes.mjs';
import { repositoryFiles, untidy } from './lint/tidy.mjs';

helpIfAsked(import.meta.url);

/** Bounds of the figures that check prints. Lower one when its figure falls; never raise one. */
const MAX_FILE_LINES = 700;
const MAX_CASTS = 140;
const MAX_WIDE_COMMENTS = 0;

/**
 * The outcome of a step. `text`: what is wrong, a line each.
 *
 * @typedef {{ ok: boolean, text: string, figure?: string }} Outcome
 */

/**
 * Runs a tool of node_modules; what it prints counts only when it fails.
 *
 * @param {string[]} args
 */
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

/** The scripts use the compiled product and its declarations, so a renamed member is an error here. */
function scriptTypes() {
  build();
  return tool(dependency('typescript-native', 'bin', 'tsc'), '-p', 'scripts');
}

function sizes() {
  const { file, fn } = longest();
  const figure = `longest file ${file.path}: ${file.lines} lines; longest function ${fn.path}:${fn.line} ${fn.name}: ${fn.lines}`;
  return { ok: file.lines <= MAX_FILE_LINES, text: `a file has at most ${MAX_FILE_LINES} lines`, figure };
}

function asserts() {
  const rooms = assertDensities();
  const low = rooms.filter(({ perThousand, limit }) => perThousand < limit);
  const text = low.map(
    ({ room, lines, asserts, perThousand, limit }) =>
      `${room}: ${perThousand.toFixed(1)} per 1,000 lines (${asserts} in ${lines}; at least ${limit})`,
  );
  const figure = rooms.map(({ room, perThousand }) => `${room} ${perThousand.toFixed(1)}`).join(', ');
  return { ...verdict(text), figure: `per 1,000 lines: ${figure}` };
}

function countCasts() {
  const byPath = casts();
  const count = [...byPath.values()].reduce((sum, each) => sum + each, 0);
  const text = [...byPath].sort(([, a], [, b]) => b - a).map(([path, each]) => `${each} ${path}`);
  return { ok: count <= MAX_CASTS, text: text.join('\n'), figure: `${count}, at most ${MAX_CASTS}` };
}

function commentWidth() {
  const wide = wideComments();
  const figure = `${wide.length} comment lines above ${MAX_COLUMNS} columns, at most ${MAX_WIDE_COMMENTS}`;
  return { ok: wide.length <= MAX_WIDE_COMMENTS, text: wide.join('\n'), figure };
}

function stateOfModules() {
  const wrong = moduleState();
  return { ...verdict(wrong), figure: `${wrong.length} outside base/pools, base/abort-listeners and platform` };
}

/**
 * The outcome of a step that found this, a line each.
 *
 * @param {readonly string[]} found
 */
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
  const lacks = LOCK_FILES.map((path) => ({
    path,
    missing: Object.keys(missingEntries(readLock(path).packages)),
  })).filter(({ missing }) => missing.length > 0);
  return verdict(
    lacks.map(
      ({ path, missing }) =>
        `${path} lacks ${missing.join(', ')}; npm ci would refuse it: node scripts/lint/lock-file.mjs --write`,
    ),
  );
}

/** @type {Record<string, () => Outcome | Promise<Outcome>>} */
const STEPS = {
  types,
  'script types': scriptTypes,
  lint: () =>
    tool(dependency('@biomejs', 'biome', 'bin', 'biome'), 'check', '--error-on-warnings', '--max-diagnostics=100', '.'),
  layers: async () => ({
    ...(await tool(
      dependency('dependency-cruiser', 'bin', 'dependency-cruise.mjs'),
      '--config',
      '.dependency-cruiser.mjs',
      '--output-type',
      'err-long',
      ...['src', 'test', 'examples', 'bench', 'sim'].filter((folder) => existsSync(folder)),
    )),
    figure: '0 circles, 0 imports against the layers',
  }),
  'dead code': () =>
    tool(dependency('knip', 'bin', 'knip.js'), '--no-progress', '--no-config-hints', '--exclude', 'types'),
  'lock file': lockFile,
  sizes,
  asserts,
  casts: countCasts,
  'comment width': commentWidth,
  'module state': stateOfModules,
  'generated code': () => verdict(outdated()),
  'settings page': () => tool('--import', 'tsx', 'scripts/settings.mjs'),
  'metrics page': () => tool('--import', 'tsx', 'scripts/metrics.mjs'),
  'internal calls': () => tool('--import', 'tsx', 'scripts/internal-calls.mjs'),
  compatibility: () => tool('scripts/compatibility.mjs'),
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
  /** @type {Outcome} */
  const {
    ok,
    text,
    figure = '',
  } = await Promise.resolve()
    .then(step)
    .catch((error) => ({ ok: false, text: error.message }));
  tally[ok ? 'passed' : 'failed']++;
  console.log(
    `${ok ? 'ok  ' : 'FAIL'} ${name.padEnd(14)} ${secondsSince(start).padStart(7)}  ${ok ? figure : ''}`.trimEnd(),
  );
  if (!ok) console.log(`${text}\n${figure}`.trimEnd().replace(/^/gm, '     '));
}
if (tally.passed + tally.failed === 0) {
  console.log(`no step named ${wanted.join(', ')}; there are ${Object.keys(STEPS).join(', ')}`);
  tally.failed++;
}
console.log(closingLine(tally));
process.exitCode = tally.failed > 0 ? 1 : 0;
