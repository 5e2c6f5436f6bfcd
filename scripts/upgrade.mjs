/**
 * npm run test:upgrade -- COMMIT…: whether this checkout opens what an older commit wrote, and the older one what this
 * one has written there since, or refuses that with words; and whether this one opens it after such a refusal.
 *
 * For each COMMIT, once closed and once killed: the older build writes 20,000 rows, this one reads them and writes as
 * many, the older one reads both. COMMIT is checked out and built in a folder of its own.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildOrExit } from './lib/build.mjs';
import { checkOut } from './lib/compare.mjs';
import { helpIfAsked } from './lib/command-line.mjs';
import { Report } from './lib/report.mjs';
import { capture, ROOT, run } from './lib/repository.mjs';

helpIfAsked(import.meta.url);

const PROGRAM = join(ROOT, 'scripts/lib/upgrade-program.mjs');
const STEP_MS = 300_000;
/** The error of an older version for data that it cannot read. */
const REFUSAL = /^.*\b(needs|requires)( the)? features .*$/m;

const commits = process.argv.slice(2);
if (commits.length === 0) {
  console.log('usage: npm run test:upgrade -- COMMIT…');
  process.exit(2);
}
buildOrExit();
const report = new Report();
const scratch = mkdtempSync(join(tmpdir(), 'edubba-upgrade-'));

/**
 * The older build, this one and the older one again on one directory. `end`: how each writer ends, write or kill.
 *
 * @param {string} older
 * @param {string} directory
 * @param {string} end
 */
async function thereAndBack(older, directory, end) {
  const steps = [
    ['the older one writes', older, end, 'older'],
    ['this one reads it', ROOT, 'read', 'older'],
    ['this one writes', ROOT, end, 'newer'],
    ['the older one reads what is newer', older, 'read', 'newer'],
    ['the older one reads what is its own', older, 'read', 'older'],
    ['this one reads what is newer', ROOT, 'read', 'newer'],
    ['this one reads what is older', ROOT, 'read', 'older'],
  ];
  const form = end === 'kill' ? 'killed' : 'closed';
  let refuses = false;
  for (const [name, build, what, tag] of steps) {
    if (refuses && build === older) continue;
    const { status, err } = await capture(process.execPath, [PROGRAM, build, directory, what, tag], {
      timeoutMs: STEP_MS,
    });
    // a killed process has no status, which stands for 1 here, and says nothing
    const isGood = what === 'kill' ? status === 1 && err === '' : status === 0;
    const refusal = build === older && tag === 'newer' ? REFUSAL.exec(err)?.[0] : undefined;
    if (refusal !== undefined) {
      refuses = true;
      report.pass(`${form}: the older one refuses with words`, refusal);
      continue;
    }
    report.check(isGood, `${form}: ${name}`, isGood ? '' : err.slice(-2000));
    if (!isGood) return;
  }
  const { status, out } = await capture(process.execPath, [
    join(ROOT, 'bin/edubba'),
    '--dir',
    directory,
    'inspect',
    'check',
  ]);
  report.check(status === 0, `${form}: nothing is damaged`, status === 0 ? '' : out.slice(-2000));
}

for (const [i, commit] of commits.entries()) {
  const folder = join(scratch, String(i));
  await report.section(commit, async () => {
    const older = checkOut(commit, folder);
    try {
      for (const end of ['write', 'kill']) await thereAndBack(older, join(folder, `data-${end}`), end);
    } finally {
      run('git', ['worktree', 'remove', '--force', older]);
    }
  });
}
rmSync(scratch, { recursive: true, force: true });
report.close();
