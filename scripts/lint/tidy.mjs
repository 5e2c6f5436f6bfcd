/**
 * Rules for the text of every file: no paths of the machine it was written on, no hosts of package registries, no marks
 * of unfinished work, no white space at line ends, plain words, narrow pages. The patterns are put together from parts,
 * so that this file passes too.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { capture, filesUnder, ROOT } from '../lib/repository.mjs';
import { wideLines } from './page-width.mjs';

const MAX_BYTES = 2_000_000;
/** @param {...string} parts */
const either = (...parts) => parts.join('|');

const REGISTRIES = [
  ['registry', 'npmjs'],
  ['proxy', 'golang'],
  ['sum', 'golang'],
  ['pypi', 'org'],
  ['files', 'pythonhosted'],
  ['repo1', 'maven'],
  ['repo', 'maven'],
  ['static', 'crates', 'io'],
  ['index', 'crates', 'io'],
  ['deb', 'debian'],
];

/** Pages, and rooms of src that are clean, whose words are kept by WORDS. docs/STYLE.md quotes them. */
const PLAIN =
  /^((README|SECURITY|CONTRIBUTING|docs\/(?!STYLE).*|examples\/.*)\.md|src\/(auth|base|boot|env|grpc(?!\/generated)|model|monitor|platform|server|wire)\/.*\.ts|src\/(?!compress\/fixtures)(cli|client|commitlog|compress|embedded|filter|inspect|locator|master|memtable|metadata|protocol|service|sstable|tablet|tabletserver)\/.*\.ts)$/;
/** Pages whose width is kept. */
const NARROW = /^(README|SECURITY|CONTRIBUTING|docs\/.*|examples\/.*)\.md$/;

/**
 * A pattern of words that are banned in comments, pages and messages, and the plain words to use (docs/STYLE.md).
 *
 * @type {[RegExp, string][]}
 */
const WORDS = [
  [/\bis no (address|valid)\b/, 'invalid X "...": expected ...'],
  [/\bused again\b(?! and)/, 'reused'],
  [/\bin step\b/, 'synchronously'],
  [/\btold of\b/, 'notified'],
  [/\b(is|are) told\b/, 'is called, is notified'],
  [/(?<![\w.])([Nn]o|[Ss]ome|[Aa]ny|[Ee]very)body\b/, 'a caller, no reader, each of them'],
  [/(?<![\w.])[Ww]hoever\b/, 'the caller that'],
  [/\bso (many|much)\b/, 'the number itself, or its name'],
  [/\bbeside\b/, 'next to, while'],
  [/\basked for\b/, 'requested'],
  [/\blooked at\b/, 'read, checked'],
  [/\b[Aa]t once\b/, 'immediately, concurrently'],
  [/\bin parts\b/, 'in slices'],
  [/\blet go\b/, 'release'],
  [/\bof old\b/, 'stale'],
];

/** @type {{ what: string, pattern: RegExp, only?: RegExp }[]} */
const RULES = [
  {
    what: 'a path of one machine',
    pattern: new RegExp(
      either(
        `(?<![\\w.])/wo${'rk'}/`,
        `(?<![\\w.])/ro${'ot'}/`,
        `(?<![\\w.$}])/t${'mp'}/`,
        `(?<![\\w.])/ho${'me'}/\\w`,
      ),
    ),
  },
  {
    what: 'the host of a package registry',
    pattern: new RegExp(either(...REGISTRIES.map((labels) => labels.join('\\.')))),
  },
  {
    what: 'a mark of unfinished work',
    pattern: new RegExp(`\\b(TO${'DO'}|FIX${'ME'})\\b`),
    only: /^(src|scripts|examples|docs|README|CONTRIBUTING)/,
  },
  { what: 'a test switched off or alone', pattern: /\b(test|it|describe)\.(only|todo)\(/, only: /^(src|test)\// },
  {
    what: 'a comment that begins with "Of": begin with the noun or the verb',
    pattern: /(\/\*\*|\/\/|\/\*\*\n *\*) Of /,
    only: /^(?!src\/grpc\/generated)(src|bench|scripts|test|sim|examples)\/.*\.(ts|mjs)$/,
  },
  { what: 'white space at the end of a line', pattern: /[ \t]+$/m, only: /\.(ts|mjs|md|json|sh)$/ },
  ...WORDS.map(([pattern, plain]) => ({ what: `say "${plain}"`, pattern, only: PLAIN })),
];

export async function repositoryFiles() {
  const { status, out } = await capture('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard']).catch(
    () => ({ status: 1, out: '' }),
  );
  if (status === 0) return [...new Set(out.split('\0').filter(Boolean))];
  return ['src', 'test', 'scripts', 'docs', 'bench', 'examples', 'bin', '.ci'].flatMap((folder) =>
    filesUnder(folder, () => true),
  );
}

/** One line for each place that breaks a rule. */
export async function untidy() {
  const found = [];
  for (const path of await repositoryFiles()) {
    if (statSync(join(ROOT, path), { throwIfNoEntry: false })?.isFile() !== true) continue;
    const bytes = readFileSync(join(ROOT, path));
    if (bytes.length > MAX_BYTES) found.push(`${path}: ${bytes.length} bytes; a file here has at most ${MAX_BYTES}`);
    if (bytes.includes(0) || path === 'package-lock.json') continue;
    const text = bytes.toString('utf8');
    for (const { what, pattern, only } of RULES) {
      if (only && !only.test(path)) continue;
      for (const { index } of text.matchAll(new RegExp(pattern, `g${pattern.flags}`))) {
        const line = text.slice(0, index).split('\n').length;
        found.push(`${path}:${line}: ${what}: ${text.slice(index, index + 60).split('\n', 1)[0]}`);
      }
    }
    if (NARROW.test(path))
      found.push(
        ...wideLines(text).map(
          (line) => `${path}:${line}: wider than 100 columns: node scripts/lint/page-width.mjs --write ${path}`,
        ),
      );
  }
  return found;
}
