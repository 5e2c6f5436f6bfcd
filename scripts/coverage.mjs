/**
 * npm run coverage [-- --show]: how many branches of the cluster's rooms are taken by the tests that lie in these
 * rooms. Fails where a room is below its limit; `--show` lists the branches that no test takes.
 *
 * npm run coverage -- --sim N [--from N]: the same of the simulated clusters of N seeds (npm run sim).
 *
 * Branches that no cluster can take are listed with their reasons (lib/explained-branches.mjs). The limits are of the
 * others; the share of all branches is printed, too.
 *
 * Branches are counted as Istanbul does: both arms of `if` (an absent `else` too) and of `?:`, the operands of `&&`,
 * `||` and `??`, the cases of `switch`, defaults; not the absent `else` of a costly check, which is always on here. The
 * counts are V8's, of the compiled files, which have the same branches as their sources; lines are those of the
 * sources. Code that no test calls counts like any other.
 */
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import { buildOrExit } from './lib/build.mjs';
import { EXPLAINED } from './lib/explained-branches.mjs';
import { argumentsOf, helpIfAsked } from './lib/command-line.mjs';
import { closingLine, filesUnder, ROOT, run } from './lib/repository.mjs';

helpIfAsked(import.meta.url);

/**
 * The least share of branches in percent, by room.
 *
 * @type {Record<string, number>}
 */
const TESTS = { client: 85, locator: 85, master: 85, resources: 85 };
/** The same for simulated clusters. */
const SIMULATED = { client: 90, commitlog: 90, locator: 90, master: 90, metadata: 90, tabletserver: 90 };

const LOGICAL = [
  ts.SyntaxKind.AmpersandAmpersandToken,
  ts.SyntaxKind.BarBarToken,
  ts.SyntaxKind.QuestionQuestionToken,
  ts.SyntaxKind.AmpersandAmpersandEqualsToken,
  ts.SyntaxKind.BarBarEqualsToken,
  ts.SyntaxKind.QuestionQuestionEqualsToken,
];

/**
 * The branches of a source file: each is taken as often as `at` is reached, less how often `minus` is.
 *
 * @param {string} path
 */
function branchesOf(path) {
  const text = readFileSync(path, 'utf8');
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  /**
   * `refuses`: it ends in a `throw`.
   *
   * @type {{ kind: string, at: number, minus: number | undefined, within: string | undefined, refuses: boolean }[]}
   */
  const branches = [];
  /** @type {(kind: string, node: ts.Node, minus?: ts.Node) => void} */
  const add = (kind, node, minus) =>
    branches.push({
      kind,
      at: node.getStart(source),
      minus: minus?.getStart(source),
      within: functionAround(node),
      refuses: minus === undefined && isRefusal(node),
    });
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (ts.isIfStatement(node)) {
      add('if', node.thenStatement);
      if (node.elseStatement) add('else', node.elseStatement);
      else if (!isCheck(node)) add('absent else', node, node.thenStatement);
    } else if (ts.isConditionalExpression(node)) {
      add('?', node.whenTrue);
      add(':', node.whenFalse);
    } else if (ts.isBinaryExpression(node) && LOGICAL.includes(node.operatorToken.kind)) {
      add('left operand', node.left);
      add('right operand', node.right);
    } else if (ts.isCaseOrDefaultClause(node)) {
      add('case', node.statements[0] ?? node);
    } else if ((ts.isParameter(node) || ts.isBindingElement(node)) && node.initializer) {
      add('default', node.initializer);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return { branches, lineOf: lineFinder(path, source) };
}

/**
 * True for a costly check of invariants, which is on in tests and simulated clusters.
 *
 * @param {ts.IfStatement} node
 */
function isCheck({ expression }) {
  return ts.isIdentifier(expression) && expression.text === 'checksInvariants';
}

/**
 * The name of the method or declared function that the node is in.
 *
 * @param {ts.Node} node
 * @returns {string | undefined}
 */
function functionAround(node) {
  for (let at = node; at !== undefined; at = at.parent)
    if (ts.isMethodDeclaration(at) || ts.isFunctionDeclaration(at)) return at.name?.getText();
  return undefined;
}

/**
 * True for a statement, or block, that throws as its last deed, and for what is a part of a `throw`.
 *
 * @param {ts.Node} node
 * @returns {boolean}
 */
function isRefusal(node) {
  const last = ts.isBlock(node) ? node.statements.at(-1) : node;
  if (last !== undefined && ts.isThrowStatement(last)) return true;
  for (let at = node.parent; at !== undefined && !ts.isFunctionLike(at); at = at.parent)
    if (ts.isThrowStatement(at)) return true;
  return false;
}

/**
 * Finds the line of the TypeScript source for a position in the compiled file.
 *
 * @param {string} path
 * @param {ts.SourceFile} source
 */
function lineFinder(path, source) {
  const map = new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')));
  return (/** @type {number} */ position) => {
    const { line, character } = source.getLineAndCharacterOfPosition(position);
    const entry = map.findEntry(line, character);
    return ('originalLine' in entry ? entry.originalLine : line) + 1;
  };
}

/**
 * V8's counts of a function.
 *
 * @typedef {{ ranges: { startOffset: number, endOffset: number, count: number }[] }} Counted
 */

/**
 * How often a process has reached a position: the count of the innermost range around it.
 *
 * @param {readonly Counted[]} functions
 * @param {number} position
 */
function countAt(functions, position) {
  let best;
  for (const { ranges } of functions)
    for (const range of ranges)
      if (range.startOffset <= position && position < range.endOffset)
        if (best === undefined || range.endOffset - range.startOffset <= best.endOffset - best.startOffset)
          best = range;
  return best?.count ?? 0;
}

const { values } = argumentsOf({
  options: {
    show: { type: 'boolean', default: false },
    sim: { type: 'string' },
    from: { type: 'string', default: '1' },
  },
});

buildOrExit();
process.chdir(ROOT);
/** @type {Record<string, number>} */
const limits = values.sim === undefined ? TESTS : SIMULATED;
const rooms = Object.keys(limits);

/** @param {string} folder */
function runTests(folder) {
  const setUp = pathToFileURL(join(ROOT, 'scripts/lib/check-invariants.mjs')).href;
  const files = rooms.flatMap((room) => filesUnder(`dist/src/${room}`, (name) => name.endsWith('.test.js')));
  const status = run(process.execPath, ['--test', '--test-reporter=dot', ...files], {
    env: { ...process.env, NODE_V8_COVERAGE: folder, NODE_OPTIONS: `--import=${setUp}` },
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) throw new Error('tests fail: run npm test');
}

/**
 * @param {string} folder
 * @param {string} seeds
 */
function runSimulator(folder, seeds) {
  const status = run(process.execPath, ['scripts/sim.mjs', '--seeds', seeds, '--from', values.from], {
    env: { ...process.env, NODE_V8_COVERAGE: folder },
  });
  if (status !== 0) throw new Error('a simulated cluster fails: run npm run sim');
}

/**
 * For each file the counts of the processes that ran it.
 *
 * @type {Map<string, (readonly Counted[])[]>}
 */
const coverage = new Map();
const folder = mkdtempSync(join(tmpdir(), 'edubba-coverage-'));
try {
  if (values.sim === undefined) runTests(folder);
  else runSimulator(folder, values.sim);
  for (const name of readdirSync(folder))
    for (const { url, functions } of JSON.parse(readFileSync(join(folder, name), 'utf8')).result) {
      if (!rooms.some((room) => url.includes(`/dist/src/${room}/`))) continue;
      const runs = coverage.get(url);
      if (runs === undefined) coverage.set(url, [functions]);
      else runs.push(functions);
    }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** @type {(file: string, within: string | undefined, refuses: boolean) => boolean} */
const isExplained = (file, within, refuses) =>
  values.sim !== undefined &&
  EXPLAINED.some(
    ({ file: listed, functions, only }) =>
      listed === file && within !== undefined && functions.includes(within) && (only !== 'refusals' || refuses),
  );

/**
 * Looks at all branches of a room.
 *
 * @param {string} room
 */
function countRoom(room) {
  const counts = { taken: 0, explained: 0, all: 0 };
  const missed = [];
  /** What is listed as never taken, and is. */
  const refuted = [];
  for (const file of filesUnder(`dist/src/${room}`, isCounted)) {
    const path = join(ROOT, file);
    const runs = coverage.get(pathToFileURL(path).href) ?? [];
    const source = file.replace(/^dist\//, '').replace(/\.js$/, '.ts');
    const { branches, lineOf } = branchesOf(path);
    for (const { file: listed, functions, only } of EXPLAINED)
      for (const name of listed === source ? functions : [])
        if (!branches.some(({ within, refuses }) => within === name && (only !== 'refusals' || refuses)))
          refuted.push(`${source}: ${name} has no ${only ?? 'branches'}`);
    for (const { kind, at, minus, within, refuses } of branches) {
      const isTaken = runs.some(
        (functions) => countAt(functions, at) - (minus === undefined ? 0 : countAt(functions, minus)) > 0,
      );
      const where = `${source}:${lineOf(at)}: ${kind}`;
      counts.all++;
      if (isTaken) counts.taken++;
      if (!isExplained(source, within, refuses)) {
        if (!isTaken) missed.push(where);
      } else if (isTaken) refuted.push(`${where} is taken`);
      else counts.explained++;
    }
  }
  return { ...counts, missed, refuted };
}

/** @param {string} name */
function isCounted(name) {
  return name.endsWith('.js') && !/(\.test|fixtures)\.js$/.test(name);
}

let failed = 0;
for (const room of rooms) {
  const { taken, explained, all, missed, refuted } = countRoom(room);
  const percent = (100 * taken) / (all - explained);
  const isEnough = percent >= limits[room] && refuted.length === 0;
  if (!isEnough) failed++;
  const ofAll = explained > 0 ? `; ${((100 * taken) / all).toFixed(1)} % with the ${explained} that are explained` : '';
  console.log(
    `${isEnough ? 'ok  ' : 'FAIL'} ${room}: ${percent.toFixed(1)} % of ${all - explained} branches (at least ${limits[room]} %)${ofAll}`,
  );
  for (const line of refuted) console.log(`     explained in lib/explained-branches.mjs, but ${line}`);
  if (values.show) for (const line of missed) console.log(`     ${line}`);
}
for (const { file, functions, only, reason } of values.sim === undefined ? [] : EXPLAINED) {
  if (!rooms.includes(file.split('/')[1] ?? '') || !filesUnder('src', () => true).includes(file))
    throw new Error(`lib/explained-branches.mjs: there is no ${file}`);
  if (values.show) console.log(`explained: ${only ? `${only} of ` : ''}${file}, ${functions.join(', ')}: ${reason}`);
}
console.log(closingLine({ passed: rooms.length - failed, failed, skipped: 0 }));
process.exitCode = failed > 0 ? 1 : 0;
