/**
 * What must not stand in any file of the repository: paths of the machine it was written on, hosts of package registries,
 * marks of unfinished work, white space at line ends. The patterns are put together from parts, so that this file passes too.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { capture, filesUnder, ROOT } from '../lib/repository.mjs';

const MAX_BYTES = 2_000_000;
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
      const at = text.search(pattern);
      if (at >= 0)
        found.push(
          `${path}:${text.slice(0, at).split('\n').length}: ${what}: ${text.slice(at, at + 60).split('\n', 1)[0]}`,
        );
    }
  }
  return found;
}
